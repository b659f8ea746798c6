package charset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// pairShares has a row for each letter from a to z, after one for the start of a word,
// and in it a digit for each letter that follows, after one for the end of a word: the
// largest share of this pair among the pairs in a language, of 54 in Latin letters, as
// a logarithm. 0 is a share below 2^-13.4, 9 one above 2^-4.6. Accents do not count.
//
// It was counted from the translations of programs in packages of Debian: the messages
// in /usr/share/locale/LANGUAGE/LC_MESSAGES/*.mo that differ from the English ones,
// countries of a language together, with all words that [unlikely] looks at, each as
// often as it occurs. The digit of a share is floor(log2(share)/1.1 + 13.18), from 0 to 9.
const pairShares = "" +
	"098888787868878886789777687" + // the start of a word
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

// The mean digit of the pairs is about 7.2 in a text of any language, in names and in the
// words of code; if each letter is replaced by another one, it is 6.1 or less.
const (
	leastShare = 6.6
	lackOf     = 18.0 // what short texts may lack together
	mostLack   = 5.0  // of a word: the alphabet is none
	leastWords = 10   // different ones
	ofNames    = 3.0  // what a word of letters and digits makes up for
)

// unlikely reports whether the letters of a text in Latin letters follow each other as in
// no language. It looks at words in small letters, which may begin with a capital.
func unlikely(text string) bool {
	lack, words := 0.0, map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimFunc(word, unicode.IsPunct)
		if len(word) < 2 || len(word) > 60 || words[word] {
			continue
		}
		last, sum, pairs := 0, 0.0, 0.0
		add := func(next int) {
			sum += leastShare - float64(pairShares[27*last+next]-'0')
			pairs++
			last = next
		}
		for i, r := range norm.NFD.String(word) {
			if i == 0 {
				r = unicode.ToLower(r)
			}
			if 'a' <= r && r <= 'z' {
				add(int(r-'a') + 1)
			} else if !unicode.Is(unicode.Mn, r) {
				if pairs = 0; unicode.IsDigit(r) { // the name of a part; abbreviations are near such names
					lack -= ofNames
				}
				break // a name, a number or code
			}
		}
		if pairs > 1 {
			add(0)
			lack += min(sum, mostLack)
			words[word] = true
		}
	}
	return lack > lackOf && len(words) >= leastWords
}
