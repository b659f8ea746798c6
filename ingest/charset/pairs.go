package charset

import (
	"math/bits"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// pairShares has a row for the start of a word and for each letter from a to z, and in each row a
// digit for the end of a word and for each following letter. The digit is the largest share of this
// pair among all pairs in any of 54 languages in Latin letters, as a logarithm:
// floor(log2(share)/1.1 + 13.18), from 0 to 9. Accents are ignored.
//
// The shares were counted in the translations of programs in Debian packages: the messages in
// /usr/share/locale/LANGUAGE/LC_MESSAGES/*.mo that differ from the English ones. The variants of a
// language in different countries are counted together. Every occurrence of a word that
// [hasUnlikelyPairs] uses counts.
const pairShares = "" +
	"098888787868878886789777687" + // start of a word
	"976776676867778765887666566" + // a
	"674217026761623710533726250" + // b
	"781436008755544712566603066" + // c
	"883378347774545740555635055" + // d
	"986677575757768564887665576" + // e
	"664136625632435602434512040" + // f
	"974447256665435833544646361" + // g
	"884357421734545832536745050" + // h
	"876778565677768765787665566" + // i
	"764248224644535530246521043" + // j
	"773437267766545715566736052" + // k
	"884468355764755731255646054" + // l
	"776437557743554763453734152" + // m
	"884578497865556742467655366" + // n
	"966666565767668664776777456" + // o
	"772427326633524750735622033" + // p
	"650345005510402503343612010" + // q
	"874468345755555744756644456" + // r
	"874658357778554653467747257" + // s
	"883638347744545732677744557" + // t
	"867566555656777654766644355" + // u
	"673217003633405621543420063" + // v
	"682337034602435620544500062" + // w
	"652215305401210340024404020" + // x
	"775667544645557640556634343" + // y
	"664347143615446640335555064" // z

// The mean digit of the pairs is about 7.2 in texts of any language, in names and in the words of
// code. If each letter is replaced by another one, it is at most 6.1. Lists of codes and
// abbreviations have fewer words, or words of fewer lengths.
const (
	leastShare   = 6.4
	leastOfFew   = 6.1 // for fewer than fewWords, whose mean is less certain
	likelyShare  = 6.8
	leastWords   = 25 // different words
	fewWords     = 40
	leastLengths = 7
	longestWord  = 40
)

// hasUnlikelyPairs reports whether the letters of a Latin text are in an order that occurs in no
// language. It uses only lower-case words, which may begin with a capital, and only if they are
// most of the text, since codes, keys and part numbers are in no language.
func hasUnlikelyPairs(text string) bool {
	share, words, lengths := pairsOf(text)
	least := leastShare
	if words < fewWords {
		least = leastOfFew
	}
	return share < least && words >= leastWords && lengths >= leastLengths
}

// isGlyphNumbers reports whether a text consists of glyph numbers read as ASCII, of a font in which
// the space is the first character and has number 3.
func isGlyphNumbers(text string) bool {
	share, words, _ := pairsOf(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return r
		case r > '~'-29:
			return '0'
		}
		return r + 29
	}, text))
	return share > likelyShare && words >= 10
}

// pairsOf returns the mean digit of the pairs of letters and the numbers of different words and
// word lengths, if most of the text is lower-case words. Otherwise share is 0.
func pairsOf(text string) (share float64, words, lengths int) {
	known, letters, pairs, lengthSet := 0, 0, 0, uint64(0)
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimFunc(norm.NFD.String(word), unicode.IsPunct)
		for _, r := range word {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				known++
			}
		}
		if len(word) > 1 {
			word = strings.ToLower(word[:1]) + word[1:]
		}
		if len(word) < 2 || len(word) > longestWord || strings.ContainsFunc(word, func(r rune) bool {
			return (r < 'a' || r > 'z') && !unicode.Is(unicode.Mn, r)
		}) {
			continue
		}
		last, n, again := 0, 0, seen[word]
		for _, r := range word + "`" { // "`", which precedes "a", marks the end
			if r > 'z' {
				continue
			}
			next := int(r - '`')
			if n++; !again {
				share += float64(pairShares[27*last+next] - '0')
				pairs++
			}
			last = next
		}
		seen[word] = true
		letters += n - 1
		lengthSet |= 1 << n
	}
	if letters*2 <= known || pairs == 0 {
		return 0, 0, 0
	}
	return share / float64(pairs), len(seen), bits.OnesCount64(lengthSet)
}
