package retrieve

// Stem reduces the forms of one word to one term ("Sailing", "sails": sail), as
// [Terms] does: it folds case and accents and removes the ending by the rules of
// the word's script.
func Stem(word string) string { return stem(fold(word)) }
