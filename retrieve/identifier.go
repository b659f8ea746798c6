package retrieve

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addWord adds the terms of one word, which starts with a letter, a digit or "_".
func (a *analyser) addWord(word string) {
	word = strings.Trim(word, "_.'’:")
	if word == "" {
		return
	}
	plain, ascii := true, true
	for i := 0; i < len(word) && ascii; i++ {
		plain = plain && isASCIIAlpha(word[i])
		ascii = word[i] < utf8.RuneSelf
	}
	switch {
	case strings.Contains(word, narrowSpace):
		for part := range strings.SplitSeq(word, narrowSpace) {
			a.addWord(part)
		}
	case !ascii:
		if word = normaliseWord(word); strings.ContainsFunc(word, isUnspaced) {
			a.addMixed(word)
			return
		}
		a.addCompound(word)
	case plain && !hasHumps(word):
		a.addSimple(word)
	default:
		a.addCompound(word)
	}
}

// narrowSpace is part of a word by Unicode's rules, because of Mongolian, but separates words in
// French.
const narrowSpace = "\u202f"

// addMixed adds a word of two scripts, one of them without spaces, such as a foreign name with an
// ending. Each piece is read by the rules of its script.
func (a *analyser) addMixed(word string) {
	for rest := word; rest != ""; {
		first, _ := utf8.DecodeRuneInString(rest)
		starts := isUnspaced
		if isUnspaced(first) {
			starts = isSpacedLetter
		}
		end := strings.IndexFunc(rest, starts)
		if end < 0 {
			end = len(rest)
		}
		piece := rest[:end]
		a.flush()
		if !isUnspaced(first) {
			a.addWord(piece)
		} else if len(rest) == len(word) || !isParticle(piece) {
			a.addPairs(piece, 0, -1)
		}
		rest = rest[end:]
	}
	a.flush()
}

// addSimple adds one word without inner structure.
func (a *analyser) addSimple(name string) {
	written := strings.ToLower(name)
	function := functionWords[written]
	a.tally.add(written, function)
	folded := fold(written)
	if function.has(english) {
		if !a.dropFunction {
			a.add(folded)
		}
		return
	}
	a.spoken = append(a.spoken, spokenWord{written, len(a.words), function})
	if one, ok := strings.CutSuffix(folded, "s"); ok && endsInCapitals(name[:len(name)-1]) {
		// The English stemmer sees no plural in LLMs, which has no vowel.
		one, many := stem(one), stem(folded)
		if many == one {
			many = ""
		}
		a.appendWord(word{term: one, stem: many})
		return
	}
	a.add(stem(folded))
}

// endsInCapitals reports whether the last two bytes of a word are ASCII capitals.
func endsInCapitals(word string) bool {
	n := len(word)
	return n > 1 && isUpper(word[n-1]) && isUpper(word[n-2])
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// contraction matches an English contraction of function words: don't, I'm, who's.
var contraction = regexp.MustCompile(`(?i)^(?:(?:i|you|we|they|s?he|it|who|what|where|when|how|why|that|there|here|let)` +
	`['’](?:m|re|ve|ll|d|s)|` +
	`(?:ca|wo|sha|ai|do|does|did|is|are|was|were|has|have|had|could|would|should|must|might|need)n['’]t)$`)

// addCompound adds a word as a whole and by its parts.
func (a *analyser) addCompound(word string) {
	if a.dropFunction && contraction.MatchString(word) {
		return
	}
	if word = withoutApostrophes(word); word == "" {
		return
	}
	if numeric.MatchString(word) {
		a.addNumber(word, false)
		return
	}
	if initials.MatchString(word) {
		a.addSimple(strings.ReplaceAll(word, ".", ""))
		return
	}
	// foo_bar, fooBar and FooBar are one name.
	a.addSimple(strings.ReplaceAll(word, "_", ""))
	if left, right, ok := strings.Cut(word, "."); ok && domains[strings.ToLower(right)] && !strings.ContainsAny(left, "_0123456789") {
		a.addRepeat(stem(fold(left + right)))
	}
	lettered := false // the part follows more than one letter
	for _, p := range parts(word) {
		switch {
		case isDigit(p.text[0]) && numeric.MatchString(p.text):
			if len(p.text) > 1 {
				a.addNumber(p.text, lettered)
			} else if lettered {
				a.addIndexOnly(p.text)
			}
		case utf8.RuneCountInString(p.text) > 1:
			lettered = true
			if p.hasParts {
				a.addRepeat(stem(fold(p.text)))
			} else {
				a.addSimple(p.text)
			}
		}
	}
}

// domains are endings of names that are also written without the full stop: node.js and nodejs.
var domains = map[string]bool{"js": true, "io": true, "net": true}

// withoutApostrophes removes apostrophes and the English possessive: "don't" becomes "dont" and
// "boat's" becomes "boat". In French and Italian the part before the apostrophe is another word and
// is removed: "l'eau". Hebrew abbreviation marks are removed too.
func withoutApostrophes(word string) string {
	if !strings.ContainsAny(word, apostrophes) {
		return word
	}
	word = elision.ReplaceAllString(possessive.ReplaceAllString(word, ""), "$1")
	return strings.Join(strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(apostrophes, r) }), "")
}

const apostrophes = "'’‘ʼʻ＇\"״׳"

var (
	possessive = regexp.MustCompile(`[` + apostrophes + `][sS]$`)
	// elision matches the French and Italian articles, pronouns and prepositions that lose their
	// final vowel before another vowel.
	elision = regexp.MustCompile(`(?i)^(?:[ldcjmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|all|dall|dell|nell|sull|coll|quell|quest)[` +
		apostrophes + `]([^\x00-\x7f]|..)`)
)

// initials matches single letters separated by full stops: U.S.A.
var initials = regexp.MustCompile(`^[A-Za-z](?:\.[A-Za-z])+\.?$`)

// hasHumps reports whether capitals divide a word of ASCII letters, as in identifiers.
func hasHumps(word string) bool {
	return strings.ToLower(word[1:]) != word[1:] && len(cutWord(word, startsHump)) > 1
}

// startsHump reports whether r starts a new word within an identifier: a capital after a lower-case
// letter, or the last of several capitals before lower-case letters, as in getUser and HTTPServer.
// A single lower-case letter belongs to the capitals before it: IDs, IPv6.
func startsHump(last, r, next, afterNext rune) bool {
	return unicode.IsUpper(r) && (unicode.IsLower(last) ||
		unicode.IsUpper(last) && unicode.IsLower(next) && unicode.IsLower(afterNext))
}

// startsKind reports whether r is a letter after a digit or a digit after a letter.
func startsKind(last, r, next, _ rune) bool {
	if r == '.' || r == ',' || last == '.' || last == ',' {
		return false // within a number
	}
	return unicode.IsDigit(r) != unicode.IsDigit(last) && !unicode.IsMark(r)
}

// A part is a part of a word.
type part struct {
	text     string
	hasParts bool // it is divided into further parts
}

// parts cuts a word at punctuation, between letters and digits, and before a capital that starts a
// new word. It returns the parts in order, each followed by its own parts. A number is not divided.
func parts(word string) (all []part) {
	pieces := pieces.FindAllString(word, -1)
	for _, piece := range pieces {
		kinds := cutWord(piece, startsKind)
		if len(pieces) > 1 && len(kinds) > 1 {
			all = append(all, part{piece, true})
		}
		for _, kind := range kinds {
			humps := cutWord(kind, startsHump)
			if kind != word {
				all = append(all, part{kind, len(humps) > 1})
			}
			if len(humps) > 1 {
				for _, hump := range humps {
					all = append(all, part{hump, false})
				}
			}
		}
	}
	return all
}

// pieces matches runs of letters, digits and marks, including the points and commas within numbers.
var pieces = regexp.MustCompile(`(?:\p{Nd}+(?:[.,]\p{Nd}+)+|[\pL\pN\pM])+`)

// cutWord cuts a word before each letter for which starts returns true. The arguments of starts are the
// previous letter, the letter, and the two following letters, or 0 beyond the end.
func cutWord(word string, starts func(last, r, next, afterNext rune) bool) []string {
	letters := []rune(word)
	at := func(i int) rune {
		if i < len(letters) {
			return letters[i]
		}
		return 0
	}
	var out []string
	start := 0
	for i := 1; i < len(letters); i++ {
		if starts(letters[i-1], letters[i], at(i+1), at(i+2)) {
			out = append(out, string(letters[start:i]))
			start = i
		}
	}
	return append(out, string(letters[start:]))
}
