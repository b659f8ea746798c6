package charset

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

var unbroken = regexp.MustCompile(`[A-Za-z0-9+/=_-]{100,}`)

// withoutData removes encoded pictures and keys, which are written as letters and digits.
func withoutData(text string) string {
	return unbroken.ReplaceAllStringFunc(text, func(s string) string {
		if strings.ContainsFunc(s, unicode.IsLower) && strings.ContainsFunc(s, unicode.IsUpper) && strings.ContainsFunc(s, unicode.IsDigit) {
			return " "
		}
		return s
	})
}

// hasOtherLetters reports whether the letters of a text are wrong: misread, unusual, or in an order
// that occurs in no language.
func hasOtherLetters(sample string) bool {
	return IsMisread(sample) || isUnusualLatin(sample) || hasUnlikelyPairs(sample) || isGlyphNumbers(sample)
}

// IsGarbled reports whether a text is in no language: it has symbols or wrong letters in place of
// letters, UTF-8 read in another encoding, sequences of letters that no language has, or capitals
// inside words. Such texts result from fonts without a character table and from wrong encodings. A
// short text is never garbled.
func IsGarbled(text string) bool {
	const enough = 60
	sample := withoutData(text[:min(len(text), sampleBytes)])
	if hasOtherLetters(sample) {
		return true
	}
	var visible, known, private, words, breaks int
	var cyrillic, usual, letters, signs, odd int
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	inside := map[rune]bool{}                // signs inside words, except signs used in sums and lists
	before, previous, shown := ' ', ' ', ' ' // shown is the last one that is not a space
	for _, r := range norm.NFD.String(sample) {
		if unicode.IsMark(r) {
			continue
		}
		lower := unicode.ToLower(r)
		letter := unicode.IsLetter(r)
		switch {
		case letter, unicode.IsDigit(r):
			visible, known = visible+1, known+1
		case r == shown, unicode.IsSpace(r): // a rule, or the dots of a table of contents
		default:
			visible++
		}
		count(&letters, letter)
		count(&signs, r != shown && strings.ContainsRune("!\"#$%&'()*+;<=>?@[\\]^`{}~", r))
		if !unicode.IsSpace(before) && !unicode.IsSpace(r) && strings.ContainsRune("!#$%&'?@\\^{}~", previous) {
			inside[previous] = true
			odd++
		}
		count(&private, unicode.Is(unicode.Co, r) || r == unicode.ReplacementChar)
		count(&cyrillic, unicode.Is(unicode.Cyrillic, r))
		count(&usual, strings.ContainsRune("оеаинтсрвліөүәј", lower))
		count(&words, letter && !unicode.IsLetter(previous))
		count(&breaks, unicode.IsUpper(r) && unicode.IsLower(previous) && !unicode.Is(unicode.Latin, r)) // does not occur in code
		before, previous = previous, r
		if !unicode.IsSpace(r) {
			shown = r
		}
	}
	switch {
	case visible < enough:
		return false
	case private*3 > visible, strings.Trim(sample, sample[:1]) == "", known*5 < visible*2,
		letters*10 < visible && signs*4 > visible && len(inside) >= 3 && odd*20 > visible: // digits and signs in place of letters
		return true
	}
	return cyrillic >= enough && cyrillic*2 > known && usual*100 < cyrillic*45 || words >= 10 && breaks*2 > words
}
