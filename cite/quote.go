package cite

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// A Quote is the part of a passage that a sentence rests on.
type Quote struct {
	// Start and End are its byte range in the passage's text.
	Start, End int
	// Support is the estimated chance, 0 to 1, that it bears the sentence out.
	Support float64
	Verdict Verdict
}

// A Finder finds the part of a passage that best bears out a sentence of an
// answer. The sentence comes without references. The range it gives lies within
// the passage's text and does not cut a character; it is empty only for an
// empty text.
type Finder func(sentence string, p retrieve.Passage) Quote

// minVerbatim is how many words of a sentence must stand in a passage in the
// same order to count as quoted: fewer stand in any text.
const minVerbatim = 3

// Verbatim finds the sentence itself in the passage, as it stands but for
// white space and the punctuation at its ends. It is false when the sentence is
// not there whole, or too short to prove anything.
func Verbatim(sentence string, p retrieve.Passage) (Quote, bool) {
	claim := strings.TrimFunc(sentence, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsPunct(r)
	})
	words := strings.Fields(claim)
	wide := strings.IndexFunc(claim, isIdeograph) >= 0
	if len(words) < minVerbatim && !(wide && utf8.RuneCountInString(claim) >= 2*minVerbatim) {
		return Quote{}, false
	}
	needle := strings.Join(words, " ")
	folded, at := fold(p.Text)
	for from := 0; ; {
		i := strings.Index(folded[from:], needle)
		if i < 0 {
			return Quote{}, false
		}
		i += from
		end := i + len(needle)
		if !wide && (joinsWord(folded, i) || joinsWord(folded, end)) {
			from = i + 1
			continue
		}
		start, stop := at[i], at[end-1]+1
		// The full stop belongs to the quote.
		if r, size := utf8.DecodeRuneInString(p.Text[stop:]); isStop(r) {
			stop += size
		}
		return Quote{Start: start, End: stop, Support: 1, Verdict: VerdictQuoted}, true
	}
}

// fold makes one space of each run of white space; at holds for each byte its
// place in s.
func fold(s string) (folded string, at []int) {
	b := make([]byte, 0, len(s))
	at = make([]int, 0, len(s))
	blank := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		space := unicode.IsSpace(r)
		switch {
		case !space:
			for k := i; k < i+size; k++ {
				b = append(b, s[k])
				at = append(at, k)
			}
		case !blank:
			b = append(b, ' ')
			at = append(at, i)
		}
		blank = space
		i += size
	}
	return string(b), at
}

// joinsWord says whether the place i of s lies within a word.
func joinsWord(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	behind, _ := utf8.DecodeRuneInString(s[i:])
	inWord := func(r rune) bool {
		return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
	}
	return inWord(before) && inWord(behind)
}

func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// Overlap gives a finder that takes a sentence which stands in the passage
// verbatim, and else the sentence of the passage, or two neighbours, that share
// most words with it. stem brings the forms of a word together; nil leaves them
// as they are. The support is the share of the sentence's words that stand in
// the quote, short words counting less.
func Overlap(stem func(word string) string) Finder {
	return func(sentence string, p retrieve.Passage) Quote {
		if q, ok := Verbatim(sentence, p); ok {
			return q
		}
		claim := weigh(sentence, stem)
		spans := sentences(p.Text)
		if len(spans) == 0 {
			return Quote{End: len(p.Text), Verdict: VerdictWeak}
		}
		words := make([]map[string]float64, len(spans))
		for i, s := range spans {
			words[i] = weigh(p.Text[s.start:s.end], stem)
		}
		best := Quote{Start: spans[0].start, End: spans[0].end, Support: share(claim, words[0])}
		for i, s := range spans {
			if v := share(claim, words[i]); v > best.Support {
				best = Quote{Start: s.start, End: s.end, Support: v}
			}
		}
		// A second sentence must earn its place.
		const gain = 0.3
		one := best.Support
		for i := 1; i < len(spans); i++ {
			if v := share(claim, words[i-1], words[i]); v >= one+gain && v > best.Support {
				best = Quote{Start: spans[i-1].start, End: spans[i].end, Support: v}
			}
		}
		best.Verdict = VerdictWeak
		if best.Support >= supportedShare {
			best.Verdict = VerdictSupported
		}
		return best
	}
}

// supportedShare is the share of a sentence's words from which on [Overlap]
// calls it supported.
const supportedShare = 0.5

// weigh gives the words of a text with their weights: letters and digits in
// lower case, an ideograph each for itself.
func weigh(text string, stem func(string) string) map[string]float64 {
	words := map[string]float64{}
	add := func(w string) {
		weight := 1.0
		if r, size := utf8.DecodeRuneInString(w); utf8.RuneCountInString(w) <= 3 && !unicode.IsNumber(r) && !(size == len(w) && isIdeograph(r)) {
			weight = 0.25
		}
		if stem != nil {
			w = stem(w)
		}
		words[w] = weight
	}
	for _, field := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		for {
			i := strings.IndexFunc(field, isIdeograph)
			if i < 0 {
				break
			}
			if i > 0 {
				add(field[:i])
			}
			_, size := utf8.DecodeRuneInString(field[i:])
			add(field[i : i+size])
			field = field[i+size:]
		}
		if field != "" {
			add(field)
		}
	}
	return words
}

// share gives the share of the claim's weight that stands in any of the texts.
func share(claim map[string]float64, texts ...map[string]float64) float64 {
	var all, found float64
	for w, weight := range claim {
		all += weight
		for _, t := range texts {
			if _, ok := t[w]; ok {
				found += weight
				break
			}
		}
	}
	if all == 0 {
		return 0
	}
	return found / all
}
