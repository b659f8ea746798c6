package retrieve

// Stem brings the forms of one word together ("Sailing", "sails": sail), as
// [Terms] does: without case and accents, its ending taken off by the rules of
// its script. It is for a single word.
func Stem(word string) string { return stem(fold(word)) }
