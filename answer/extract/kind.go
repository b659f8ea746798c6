package extract

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind is the kind of answer that a question asks for: an amount, a date, a name. An answer
// has a number with one of its units, or one of its words.
type kind struct {
	name                                              string
	asks, opens, units, words, sums, only, conditions phrases
	languages                                         map[string]bool // with units or words in kinds.txt
}

//go:embed kinds.txt
var kindTable string

// kinds are the kinds of kinds.txt, in its order.
var kinds = func() (all []kind) {
	for line := range strings.Lines(kindTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(all) == 0 || all[len(all)-1].name != fields[0] {
			all = append(all, kind{name: fields[0], asks: phrases{}, opens: phrases{}, units: phrases{}, words: phrases{},
				sums: phrases{}, only: phrases{}, conditions: phrases{}, languages: map[string]bool{}})
		}
		k := all[len(all)-1]
		set := map[string]phrases{"asks": k.asks, "opens": k.opens, "units": k.units, "words": k.words,
			"sums": k.sums, "only": k.only, "conditions": k.conditions}[fields[1]]
		if fields[1] == "units" || fields[1] == "words" {
			k.languages[fields[2]] = true
		}
		for _, word := range fields[3:] {
			set[strings.ReplaceAll(word, "_", " ")] = true
		}
	}
	return all
}()

// numberWords are the number words of kinds.txt; dateWords are the months and days.
var numberWords, dateWords = kindNamed("number").words, kindNamed("date").words

var unitWords = func() phrases {
	all := phrases{}
	for _, k := range kinds {
		maps.Copy(all, k.units)
	}
	return all
}()

func kindNamed(name string) *kind {
	return &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// phrases is a set of lower-case phrases of one to four words. In a script without spaces, they
// are parts of a word.
type phrases map[string]bool

func (set phrases) beginsAt(words []string, i int) bool {
	if i >= len(words) {
		return false
	}
	if first, _ := utf8.DecodeRuneInString(words[i]); unspaced(first) {
		for p := range set {
			if strings.HasPrefix(words[i], p) {
				return true
			}
		}
	}
	for n := 1; n <= 5 && i+n <= len(words); n++ {
		if set[strings.Join(words[i:i+n], " ")] {
			return true
		}
	}
	return false
}

func (set phrases) occurIn(words []string) bool {
	for i := range words {
		if set.beginsAt(words, i) {
			return true
		}
	}
	return false
}

// wordForm matches a word, a number, or a sign that is a unit.
var wordForm = regexp.MustCompile(`\d[\d.,:]*\d|\d|[\pL\pM][\pL\pM'’/]*|[%\p{Sc}]`)

// lowerWords returns the words and numbers of a text in lower case. In a script without spaces,
// a word begins at each character.
func lowerWords(text string) []string {
	var out []string
	for _, w := range wordForm.FindAllString(strings.ToLower(text), -1) {
		first, _ := utf8.DecodeRuneInString(w)
		if !unspaced(first) {
			out = append(out, w)
			continue
		}
		for i := range w {
			out = append(out, w[i:])
		}
	}
	return out
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// kindOf returns the kind of answer that a question asks for, or nil if the question does not
// say.
func kindOf(question string) *kind {
	var opened *kind
	for at, words := 0, lowerWords(question); at < len(words); at++ {
		for i := range kinds {
			if kinds[i].asks.beginsAt(words, at) {
				return &kinds[i]
			}
		}
		if opened != nil {
			continue
		}
		for i := range kinds {
			if kinds[i].opens.beginsAt(words, at) {
				opened = &kinds[i]
				if amount := kindNamed("amount"); opened.name == "number" && slices.ContainsFunc(words, amount.isSum) {
					return amount
				}
				if opened.name != "any" {
					return opened
				}
				break
			}
		}
	}
	if opened != nil && opened.name == "any" {
		return nil
	}
	return opened
}

// isSum reports whether a word ends like the name of a sum of this kind: "membership fee",
// "Jahresbeitrag".
func (k *kind) isSum(word string) bool {
	for ending := range k.sums {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return false
}

// Asks reports whether a text has a question word.
func Asks(text string) bool {
	words := lowerWords(text)
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.asks.occurIn(words) || k.opens.occurIn(words) })
}

// Decides reports whether a text begins with a yes or no, or has a number that the question
// lacks. In a script without spaces, only digits count: a character for a number may be part of
// another word.
func Decides(text, question string) bool {
	words, known := lowerWords(text), lowerWords(question)
	return kindNamed("yes").words.beginsAt(words, 0) || slices.ContainsFunc(words, func(w string) bool {
		first, _ := utf8.DecodeRuneInString(w)
		return !unspaced(first) && (isGiven(w, known) || yearForm.MatchString(w) && !slices.Contains(known, w))
	})
}

// modal matches words that name a month only if capitalised.
var modal = regexp.MustCompile(`\b(?:may|march)\b`)

var (
	clockForm  = regexp.MustCompile(`^\d{1,2}[:.]\d\d$`)
	bareNumber = regexp.MustCompile(`^\d[\d.,]*$`)
	columnUnit = regexp.MustCompile(`(?:[_([]|\bin )(\pL+)[)\]]?: \d[\d.,]*`) // of a cell: "width_mm: 1220"
	yearForm   = regexp.MustCompile(`^(?:1\d|20)\d\d$`)
	nameForm   = regexp.MustCompile(`\p{Lu}[\pL\pM'’-]+(?: \p{Lu}[\pL\pM'’-]+)*`)
)

// isDistinctive reports whether texts with an answer of this kind differ from other texts. For a way,
// place, reason, or yes and no they do not: nearly every sentence has a preposition or a "not".
func (k *kind) isDistinctive() bool {
	return k != nil && !k.is("way", "place", "reason", "yes")
}

// isDemanded reports whether only something of this kind answers the question, if the texts are in
// language. "How many" demands a number, but "what does the price include" demands no amount. A
// speed or a date is never demanded: "a twentieth of the wind's" and "at dusk" are answers.
func (k *kind) isDemanded(question, language string) bool {
	words := lowerWords(question)
	opens := func(kind string) bool { return kindNamed(kind).opens.occurIn(words) }
	priced := k != nil && (k.only.occurIn(words) || kindNamed("number").asks.occurIn(words)) &&
		!slices.ContainsFunc([]string{"name", "place", "reason", "way"}, opens)
	switch {
	case k == nil || kindNamed("yes").opens.beginsAt(words, 0) && !kindNamed("any").opens.beginsAt(words, 0): // "was" is German too
		return false
	case k.name == "colour":
		return true
	case k.name == "amount" && !priced:
		return false
	}
	return k.languages[language] &&
		k.is("reason", "place", "amount", "duration", "length", "weight", "age", "clock", "year", "share", "number")
}

// is reports whether the kind is known and has one of the names.
func (k *kind) is(names ...string) bool { return k != nil && slices.Contains(names, k.name) }

// foundIn reports whether a text has something of this kind that the question lacks: 1 for yes, 0 for
// no, ½ if unknown.
func (k *kind) foundIn(text, question string) float64 {
	text = columnUnit.ReplaceAllString(text, "$0 $1")
	switch {
	case k == nil || k.is("way") || k.is("yes") && !k.words.beginsAt(lowerWords(text), 0):
		return .5
	case k.is("name"):
		return hasName(text, question)
	case k.name == "amount" && isRow(text): // a cell may leave out the unit
		for _, c := range cellsOf(text) {
			if bareNumber.MatchString(c.value) || k.foundIn(c.value, question) == 1 {
				return 1
			}
		}
		return 0
	}
	words, known := lowerWords(modal.ReplaceAllString(text, "")), lowerWords(question)
	for i, w := range words {
		switch {
		case slices.Contains(known, w):
		case k.words.beginsAt(words, i), isNumber(w) && k.counts(words, i, text):
			return 1
		}
	}
	return 0
}

// aPlace reports whether words contain a preposition before a possible place: any word that is
// not in the question and is not a time or number.
func (k *kind) aPlace(words, known []string) bool {
	for i := range words {
		if strings.Contains(words[i], "/") { // a path
			return true
		}
		if !k.words.beginsAt(words, i) && !k.conditions.beginsAt(words, i) {
			continue
		}
		if at := slices.IndexFunc(words[i+1:], saysMore); at >= 0 {
			w := words[i+1+at]
			if !slices.Contains(known, w) && !dateWords[w] && !isNumber(w) {
				return true
			}
		}
	}
	return false
}

// counts reports whether the unit or the form of the number at word i fits the kind.
func (k *kind) counts(words []string, i int, text string) bool {
	for next := i + 1; next < min(i+4, len(words)); next++ {
		if k.units.beginsAt(words, next) && !(words[next] == "s" && yearForm.MatchString(words[i])) { // "the 1990s"
			return true
		}
		if w := words[next]; !isNumber(w) && len(w) > 3 { // "ten to twelve days"
			break
		}
	}
	switch k.name {
	case "number":
		return !yearForm.MatchString(words[i])
	case "amount":
		return slices.ContainsFunc(words[max(0, i-1):min(i+2, len(words))], func(w string) bool {
			sign, _ := utf8.DecodeRuneInString(w)
			return unicode.Is(unicode.Sc, sign) // before or after the number
		})
	case "clock":
		return clockForm.MatchString(words[i])
	case "year", "age":
		return yearForm.MatchString(words[i])
	case "date":
		return yearForm.MatchString(words[i]) || clockForm.MatchString(words[i])
	}
	return false
}

func isNumber(word string) bool {
	if first, n := utf8.DecodeRuneInString(word); unspaced(first) {
		return numberWords[word[:n]]
	}
	return word[0] >= '0' && word[0] <= '9' || numberWords[word] || word == "a" || word == "an"
}

// hasName reports whether a text has a name without a word of the question: several capitalised
// words, or one that does not begin a sentence or the text after a number. It returns 1 for yes,
// 0 for no, ½ for a script without capitals.
func hasName(text, question string) float64 {
	first, letters := utf8.RuneError, false
	for _, r := range text {
		if unicode.IsLetter(r) {
			if first == utf8.RuneError {
				first = r
			}
			letters = letters || unicode.IsUpper(r) || unicode.IsLower(r)
		}
	}
	if !letters {
		return .5
	}
	question = strings.ToLower(question)
	for _, at := range nameForm.FindAllStringIndex(text, -1) {
		begins, name := strings.TrimRight(text[:at[0]], " \t\n\"'“‘(*_-"), strings.ToLower(text[at[0]:at[1]])
		first := begins == "" || strings.ContainsAny(begins[len(begins)-1:], ".?!:|0123456789")
		if first && !strings.Contains(name, " ") {
			continue
		}
		if !slices.ContainsFunc(strings.Fields(name), func(w string) bool { return dateWords[w] || strings.Contains(question, w) }) {
			return 1
		}
	}
	return 0
}

var year = regexp.MustCompile(`\b(?:19|20)\d\d\b`)

func years(text string) []string { return year.FindAllString(text, -1) }

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}
