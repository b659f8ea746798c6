package retrieve

import (
	"strings"
	"unicode/utf8"
)

// hindiEndings are the inflections of Hindi nouns, adjectives and verbs, the
// longest first (Ramanathan and Rao, "A Lightweight Stemmer for Hindi", 2003).
var hindiEndings = strings.Fields(`
	ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयां ाइयों
	ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियां ियों
	ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं
	कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ां ों ें
	ो े ू ु ी ि ा`)

// stemHindi removes the ending of a folded Hindi word, unless less than two
// letters would be left.
func stemHindi(word string) string {
	letters := utf8.RuneCountInString(word)
	for _, ending := range hindiEndings {
		if letters > utf8.RuneCountInString(ending)+1 && strings.HasSuffix(word, ending) {
			return word[:len(word)-len(ending)]
		}
	}
	return word
}
