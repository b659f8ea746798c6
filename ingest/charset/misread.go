package charset

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// leastMisread is the smallest number of misread characters that is not a coincidence.
const leastMisread = 10

// A misreading is an encoding in which UTF-8 was read by mistake. It returns the bytes of a
// character, or "".
type misreading func(r rune) string

// misreadings are the common misreadings.
var misreadings = []misreading{misreadAs(charmap.Windows1252), misreadAs(charmap.Windows1251), func(r rune) string {
	s, err := simplifiedchinese.GBK.NewEncoder().String(string(r))
	if err != nil || !unicode.Is(unicode.Han, r) {
		return ""
	}
	return s
}}

func misreadAs(chars *charmap.Charmap) misreading {
	return func(r rune) string {
		if b, ok := chars.EncodeRune(r); ok {
			return string([]byte{b})
		}
		if r >= 0x80 && r < 0xa0 { // a byte without a character
			return string([]byte{byte(r)})
		}
		return ""
	}
}

// IsMisread reports whether the characters of a text beyond ASCII are UTF-8 that was read in
// another encoding. A few such characters are not enough.
func IsMisread(text string) bool {
	text = text[:min(len(text), sampleBytes)]
	return slices.ContainsFunc(misreadings, func(bytesOf misreading) bool {
		good, bad := 0, 0 // characters of UTF-8, and invalid bytes
		for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r <= unicode.MaxASCII }) {
			var data strings.Builder
			for _, r := range run {
				data.WriteString(cmp.Or(bytesOf(r), "\xff"))
			}
			for _, r := range data.String() {
				switch {
				case r == utf8.RuneError:
					bad++
				case r > unicode.MaxASCII:
					good++
				}
			}
		}
		return good >= leastMisread && good > bad
	})
}

// leastStrange is the share of characters beyond ASCII above which Latin text is suspicious:
// Vietnamese has 30 %.
const leastStrange = 0.45

// isUnusualLatin reports whether a text consists mostly of letters and signs from the upper half of
// Western European encodings, which Latin text has only among other letters. Other scripts in a
// wrong encoding and fonts with their own order of letters produce such text. A list of all letters
// has each only once and doesn't count.
func isUnusualLatin(text string) bool {
	visible, high, inside, words := 0, 0, 0, 0
	seen, signs := map[rune]bool{}, map[rune]bool{}
	var previous rune
	between, wasUpper := false, false // the character before the previous one is a letter or in the upper half
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cc, r) {
			previous, between, wasUpper = 0, false, false
			continue
		}
		letter := unicode.IsLetter(r)
		if letter && !unicode.IsLetter(previous) {
			words++
		}
		b, ok := charmap.Windows1252.EncodeRune(r)
		upper := ok && b >= 0x80
		if (letter || upper) && between && strings.ContainsRune("¡¢£¤¥¦§¨©«®¯°±²³¸¹»¼½¾¿×÷‚ƒ„†‡ˆ‰‹›˜™", previous) {
			inside++
			signs[previous] = true
		}
		between, previous = (unicode.IsLetter(previous) || wasUpper), r
		wasUpper = upper
		if r == unicode.ReplacementChar {
			continue
		}
		visible++
		if upper || r >= 0x80 && r < 0x100 {
			high++
			seen[r] = true
		}
	}
	return visible >= 60 && len(seen) >= 10 && high >= 2*len(seen) && float64(high) > leastStrange*float64(visible) ||
		len(signs) >= 3 && inside >= max(10, 2*len(signs)) && inside*3 > words
}
