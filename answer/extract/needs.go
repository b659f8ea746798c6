package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/retrieve"
)

// needs are the terms that a question asks about, with their weights.
type needs struct {
	terms   []need
	kind    *kind   // of answer; nil if the question does not say
	denied  bool    // the question has a negation
	subject int     // need that the answer must be about; -1 if the question does not say
	counted []int   // needs that name the things to count
	names   [][]int // needs of each full name
}

// subjectForm matches the noun after "every" or "each" (or the one before a final verb), countedForm
// the noun after "how many" (a verb follows a plural).
var (
	subjectForm = regexp.MustCompile(`(?i)\b(?:every|each) (?:(?:\pL+ ){0,2}?(\pL+)(?: \pL+)?\?*$|(\pL+))`)
	countedForm = regexp.MustCompile(`(?i)(?:how many|wie ?viele|combien de|cuánt[oa]s|quant[ie]|сколько) ` +
		`(?:(\pL*[^\PLs]s)(?:\PL|$)|(\pL+)(?: (\pL+))?)`)
)

// A need is one content term of the question.
type need struct {
	stem   string
	own    string  // stem in the question's language, if it differs
	word   string  // in the question
	idf    float64 // inverse document frequency
	weight float64 // idf, or a quarter of it for askingWords
	asks   bool    // one of askingWords
	name   bool    // capitalised, and not first in its sentence
	number bool    // has a digit
	common bool    // in most passages of the library
}

// askingWords say what kind of answer a question wants, and are seldom in the answer.
var askingWords = marker.WordSet(`many much name names named call called tell know find give list explain happen mean meaning
	kind kinds type types exactly please like want need get say describe year date day time number amount
	person people somebody someone anyone thing things way able possible allowed usually normally often long
	happens anything something actually does did use used make made go going see look
	large big high deep far old fast heavy wide tall soon`)

// priorChunks are added to the number of chunks. Otherwise, in a library of a few pages, one
// absent word would outweigh several present ones.
const priorChunks = 50

// readNeeds reads a question. stats has the number of chunks with each term.
func readNeeds(question string, stats retrieve.Stats) needs {
	n := needs{kind: kindOf(question)}
	n.denied = isDenied(question, n.kind)
	written := map[string]need{} // by stem
	start := true                // of a sentence
	for field := range strings.FieldsSeq(question) {
		word := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		if word == "" {
			continue
		}
		first, _ := utf8.DecodeRuneInString(word)
		for _, stem := range retrieve.Terms(word) {
			if _, ok := written[stem]; !ok {
				written[stem] = need{
					stem: stem, word: word, name: unicode.IsUpper(first) && !start,
					asks:   askingWords[strings.ToLower(word)],
					number: strings.ContainsFunc(stem, unicode.IsDigit),
				}
			}
		}
		start = strings.HasSuffix(field, ".") || strings.HasSuffix(field, "?") || strings.HasSuffix(field, "!")
	}
	n.subject = -1
	seen := map[string]bool{}
	for _, stem := range retrieve.QuestionTerms(question) {
		t, ok := written[stem]
		switch last := len(n.terms) - 1; {
		case seen[stem]:
		case ok:
			t.idf, t.common = retrieve.IDF(stats.Chunks+priorChunks, stats.Frequency[stem]), 2*stats.Frequency[stem] > stats.Chunks
			n.terms = append(n.terms, t)
		case last >= 0:
			// A word's English stem is followed by its stem in the question's language, and by
			// the word joined to its adverb.
			n.terms[last].own = stem
			n.terms[last].idf = min(n.terms[last].idf, retrieve.IDF(stats.Chunks+priorChunks, stats.Frequency[stem]))
		}
		seen[stem] = true
	}
	for i, t := range n.terms {
		n.terms[i].weight = t.idf
		if t.asks {
			n.terms[i].weight /= 4
		}
	}
	subject, counted := subjectForm.FindStringSubmatch(question), countedForm.FindStringSubmatch(question)
	for i, t := range n.terms {
		is := func(word string) bool { return !t.asks && strings.EqualFold(word, t.word) }
		if slices.ContainsFunc(subject, is) {
			n.subject = i
		}
		if slices.ContainsFunc(counted, is) {
			n.counted = append(n.counted, i)
		}
	}
	n.names = n.namesOf(question)
	return n
}

// denies matches a negated question, denials its answer.
var (
	denies = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:not|cannot|never|nicht|nie|kein\pL*|pas|jamais|nunca|не|нет|никогда|niet|geen)` +
		`(?:$|[^\pL])|n['’]t\b`)
	denials = regexp.MustCompile(denies.String() + `|(?i)(?:^|[^\pL])(?:no|none|neither|nor|without|except|unless|unable|lacks?|` +
		`fail(?:s|ed)?|hardly|ohne|außer|weder|aucune?|sans|ningun\pL*|ningún|sin|ни|без|кроме)(?:$|[^\pL])`)
)

// isDenied reports whether the last clause of a question has a negation. Earlier clauses may
// only give a reason, and "Isn't it open?" asks whether it is open.
func isDenied(question string, k *kind) bool {
	question = strings.TrimRight(question, "?!.？ ")
	clause := strings.TrimSpace(question[strings.LastIndexAny(question, ".,;")+1:])
	first, rest, _ := strings.Cut(clause, " ")
	return !k.is("yes") && !denies.MatchString(first) && denies.MatchString(rest)
}

// A coverage gives, for each need, the similarity of the nearest word of a text: 1 for the same
// word in any form, less for a word with a similar meaning.
type coverage []float64

func (c coverage) union(other coverage) coverage {
	out := append(coverage(nil), c...)
	for i := range other {
		out[i] = max(out[i], other[i])
	}
	return out
}

// exactShare is the share of the needs' weight that a text has word for word.
func (n *needs) exactShare(c coverage) float64 { return n.share(c, true, need.weigh, 0) }

// idfShare is the share of the needs' inverse document frequency that a text has word for word.
func (n *needs) idfShare(c coverage) float64 {
	return n.share(c, true, func(t need) float64 { return t.idf }, 0)
}

// nearShare is the share of the needs' weight that a text has, where words with a similar meaning
// count in part.
func (n *needs) nearShare(c coverage) float64 { return n.share(c, false, need.weigh, 0) }

// nameShare is the share of the weight of names and numbers that a text has; 1 if the question has
// no name or number.
func (n *needs) nameShare(c coverage) float64 {
	return n.share(c, true, func(t need) float64 {
		if !t.name && !t.number {
			return 0
		}
		return t.weight
	}, 1)
}

func (t need) weigh() float64 { return t.weight }

// share is the share of the needs' weight that a coverage has, or none if the needs have no
// weight.
func (n *needs) share(c coverage, exact bool, weight func(need) float64, none float64) float64 {
	var sum, total float64
	for i, t := range n.terms {
		w := weight(t)
		total += w
		if !exact || c[i] == 1 {
			sum += c[i] * w
		}
	}
	if total == 0 {
		return none
	}
	return sum / total
}

// count returns how many needs a text has word for word. A text may have half of two words by
// chance, but not half of ten.
func (n *needs) count(c coverage) int {
	words := 0
	for i := range n.terms {
		if c[i] == 1 {
			words++
		}
	}
	return words
}

// lacksWord reports whether a coverage lacks a word that another has, except askingWords.
func (n *needs) lacksWord(c, other coverage) bool {
	for i, t := range n.terms {
		if c[i] < 1 && other[i] == 1 && !t.asks {
			return true
		}
	}
	return false
}

// isTopical reports whether a coverage has a word of the question, or one like it, that neither names
// the kind of answer nor is common in the library.
func (n *needs) isTopical(c coverage) bool {
	for i, t := range n.terms {
		if c[i] >= namesAlike && !t.common && !unitWords[strings.ToLower(t.word)] && !n.asksOnly(i, nil) {
			return true
		}
	}
	return false
}

// reason says which words of the question a passage has and which it lacks.
func (n *needs) reason(c coverage) string {
	var has, lacks []string
	last, covered := "", false
	for i, t := range n.terms {
		asks := t.asks || strings.EqualFold(t.word, "may") && !t.name // the month is a name
		if t.word == last || asks {
			continue
		}
		list := &lacks
		if c[i] == 1 {
			list = &has
		}
		// Consecutive words share one pair of quotes.
		if end := len(*list) - 1; last != "" && (c[i] == 1) == covered && len((*list)[end])+len(t.word) < 40 {
			(*list)[end] += " " + t.word
		} else {
			*list = append(*list, t.word)
		}
		last, covered = t.word, c[i] == 1
	}
	quote := func(list []string) string {
		return "'" + strings.Join(list[:min(len(list), 2)], "', '") + "'"
	}
	switch {
	case len(has) == 0 && len(lacks) == 0:
		return "the question has no word to look for"
	case len(has) == 0:
		return "does not mention " + quote(lacks)
	case len(lacks) == 0:
		return "covers " + quote(has)
	}
	return "covers " + quote(has) + ", not " + quote(lacks)
}

// namesOf returns the needs of each full name in a question: consecutive capitalised words, such
// as "Ada Lovelace". "Tesla's Model" is two names.
func (n *needs) namesOf(question string) (names [][]int) {
	for _, run := range nameForm.FindAllString(strings.NewReplacer("'s ", ", ", "’s ", ", ").Replace(question), -1) {
		var name []int
		for _, stem := range retrieve.Terms(run) {
			if i := slices.IndexFunc(n.terms, func(t need) bool { return t.stem == stem && !t.asks }); i >= 0 {
				name = append(name, i)
			}
		}
		if len(name) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// selectNames returns a coverage with only the needs of full names.
func (n *needs) selectNames(c coverage) coverage {
	of := make(coverage, len(c))
	for _, i := range slices.Concat(n.names...) {
		of[i] = c[i]
	}
	return of
}

func (n *needs) asksOf(word string) bool {
	return slices.ContainsFunc(n.terms, func(n need) bool { return strings.EqualFold(n.word, word) })
}

// askedOf returns the terms that are also in the question, except askingWords.
func (n *needs) askedOf(terms map[string]bool) (asked []string) {
	for _, n := range n.terms {
		if n.weight == n.idf && (terms[n.stem] || terms[n.own]) {
			asked = append(asked, n.stem)
		}
	}
	return asked
}

// asksOnly reports whether a need is a word not expected in a row, since it names the kind of
// answer or is part of a superlative.
func (n *needs) asksOnly(need int, superlative []string) bool {
	term, kind := n.terms[need], n.kind
	word := strings.ToLower(term.word)
	return term.asks || slices.Contains(superlative, word) || kind != nil && kind.asks[word] || kindNamed("yes").opens[word]
}
