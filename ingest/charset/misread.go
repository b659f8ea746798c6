package charset

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// leastMisread is the number of misread characters that cannot be chance.
const leastMisread = 10

// A misreading is an encoding in which UTF-8 was read by mistake: it returns the bytes
// of a character, none if it has none.
type misreading func(r rune) string

// misreadings are the frequent ones.
var misreadings = []misreading{inChars(charmap.Windows1252), inChars(charmap.Windows1251), func(r rune) string {
	s, err := simplifiedchinese.GBK.NewEncoder().String(string(r))
	if err != nil || !unicode.Is(unicode.Han, r) {
		return ""
	}
	return s
}}

func inChars(chars *charmap.Charmap) misreading {
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

// misread reports whether the characters beyond ASCII of a text are those of UTF-8
// that was read in another encoding, at least so many, and returns the text as it was.
// It is whole where nothing is lost of it.
func misread(text string, least int) (was string, whole, found bool) {
	sample := text[:min(len(text), sampleBytes)]
	if strings.IndexFunc(sample, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text, true, false
	}
	for _, m := range misreadings {
		if _, good, bad := m.reread(sample); good >= least && good > bad {
			was, good, bad = m.reread(text)
			return was, bad*10 < good, true
		}
	}
	return text, true, false
}

// reread replaces each run of characters beyond ASCII whose bytes are UTF-8 by the
// characters that these bytes encode. It returns how many those are, and how many bytes
// are not UTF-8.
func (m misreading) reread(text string) (was string, good, bad int) {
	var out strings.Builder
	for text != "" {
		n := strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
		if n < 0 {
			n = len(text)
		}
		out.WriteString(text[:n])
		text = text[n:]
		if n = strings.IndexFunc(text, func(r rune) bool { return r <= unicode.MaxASCII }); n < 0 {
			n = len(text)
		}
		run := text[:n]
		text = text[n:]
		var data strings.Builder
		missing := 0
		for _, r := range run {
			b := m(r)
			if b == "" {
				missing++
			}
			data.WriteString(b)
		}
		right, wrong := sequences(data.String())
		good, bad = good+right, bad+wrong+missing
		if wrong+missing == 0 {
			run = data.String()
		}
		out.WriteString(run)
	}
	return out.String(), good, bad
}

// sequences counts the characters beyond ASCII and the bytes that are not UTF-8.
func sequences(s string) (good, bad int) {
	for _, r := range s {
		switch {
		case r == utf8.RuneError:
			bad++
		case r > unicode.MaxASCII:
			good++
		}
	}
	return good, bad
}

// Of Latin text, at most this share is beyond ASCII: Vietnamese has 30 %.
const leastStrange = 0.45

// strange reports whether a text is in letters and signs that Latin text only has
// among others: of the upper half of Western European encodings, from which come
// also other scripts in the wrong encoding and fonts with an own order of letters.
// A list of all letters has each of them only once.
func strange(text string) bool {
	visible, high, inside, words := 0, 0, 0, 0
	seen, signs := map[rune]bool{}, map[rune]bool{}
	var previous rune
	between, wasUpper := false, false // a letter, or one of the upper half, precedes the previous one
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
