package extract

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"ibid/retrieve"
)

// A query is the question as it is understood, with the words of the passages that are near its words.
type query struct {
	text  string
	needs needs
	years []string // that the question names
	// nearness gives, for each term of the passages, how near it is to each
	// need, 0 to 1.
	nearness map[string][]float64
	language string // of the passages; the vectors know English best
	foreign  bool   // the passages are in another language than the question
}

// coverageOf gives how much of the question a text of the given terms covers.
func (q *query) coverageOf(terms map[string]bool) coverage {
	c := make(coverage, len(q.needs.terms))
	for t := range terms {
		for i, near := range q.nearness[t] {
			c[i] = max(c[i], near)
		}
	}
	return c
}

// precision is the mean, over the terms of a text, of how near each is to
// anything in the question.
func (q *query) precision(terms map[string]bool) float64 {
	if len(terms) == 0 {
		return 0
	}
	var sum float64
	for _, t := range slices.Sorted(maps.Keys(terms)) { // in order, so that the sum is the same each time
		best := 0.0
		for _, near := range q.nearness[t] {
			best = max(best, near)
		}
		sum += best
	}
	return sum / float64(len(terms))
}

func termSet(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		for _, t := range retrieve.Terms(text + retrieve.Months(text)) {
			set[t] = true
		}
	}
	return set
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// notAlike is the cosine up to which two words are unrelated; from there to 1
// nearness grows evenly.
const notAlike = .2

// demands reports whether only something of the kind that is asked for answers.
func (q *query) demands() bool {
	return !q.foreign && q.needs.kind.demanded(q.text, q.language)
}

// asksSender reports whether the question asks who wrote something, or when it was sent.
func (q *query) asksSender() bool {
	kind := q.needs.kind
	return asksMail.MatchString(q.text) && kind != nil && (kind.named() || kind.name == "date")
}

// asksName matches a question that a heading may answer: "which knot ties …", "what is … called".
var asksName = regexp.MustCompile(`(?i)\b(?:which\b|what\b.*\b(?:called|names?)\b)`)

// isNamedBy reports whether the question asks which one thing of a kind it is, as in "which
// knot ties …", and a heading may be its name: it is in a document or section about that
// kind ("Knots"), is short, is not in the question's words, asks nothing, and the sentence under
// it has no word for the kind.
func (q *query) isNamedBy(heading, s sentence, p retrieve.Passage) bool {
	words := lowerWords(heading.text)
	asks := slices.ContainsFunc(kinds, func(k kind) bool { return k.opens.at(words, 0) })
	if k := q.needs.kind; !asksName.MatchString(q.text) || k != nil && k.name != "any" || !heading.title ||
		asks || isAsking(heading.text) || squeeze(heading.text) == squeeze(p.Title) ||
		len(heading.terms) > 6 || q.precision(heading.terms) >= .9 {
		return false
	}
	asked := slices.IndexFunc(q.needs.terms, func(n need) bool { return !n.asks })
	above := q.coverageOf(termSet(p.Title + "\n" + p.Heading))
	return asked >= 0 && s.covers[asked] < 1 && above[asked] == 1
}

// squeeze lowers s, trims it and makes every run of white space one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// givesKind reports whether a text has something of the kind that the question has not. A number
// may have no unit, if it counts nothing else, and a condition or "several" may be given instead.
func (q *query) givesKind(s sentence) bool {
	k, text, question := q.needs.kind, s.text, q.text
	words, known := lowerWords(text), lowerWords(question)
	switch k.name {
	case "reason":
		return k.in(text, question) > 0
	case "place":
		return k.aPlace(words, known)
	}
	if k.name == "number" && len(q.needs.counted) > 0 && !isRow(text) {
		return q.countsThing(s, words, known)
	}
	for i, w := range words {
		if isGiven(w, known) && (i+1 == len(words) || !saysMore(words[i+1])) {
			return true
		}
	}
	return k.in(text, question) > 0 || k.conditions.anywhere(words) ||
		k.name == "duration" && kindNamed("length").in(text, question) > 0 ||
		k.name == "amount" && !k.only.anywhere(known) && kindNamed("number").in(text, question) > 0 // "how much does it lift"
}

// isGiven reports whether a word is a number that the question has not.
func isGiven(word string, known []string) bool {
	return isNumber(word) && word != "a" && word != "an" && !yearForm.MatchString(word) && !slices.Contains(known, word)
}

// saysMore reports whether a word is no function word.
func saysMore(word string) bool { return len(retrieve.Terms("1 "+word)) > 1 }

// countsThing reports whether among words is a number, which the question has not, or a
// condition, of the thing that is to be counted; or next to that, a number that is of nothing else.
func (q *query) countsThing(s sentence, words, known []string) bool {
	is := func(word string) bool { // two keelboats are not all boats
		near := q.coverageOf(termSet(word))
		return slices.ContainsFunc(q.needs.counted, func(n int) bool {
			return near[n] == 1 || near[n] >= alike && !strings.HasSuffix(word, strings.ToLower(q.needs.terms[n].word))
		})
	}
	for i, w := range words {
		number := isGiven(w, known)
		if !number && !q.needs.kind.conditions.at(words, i) {
			continue
		}
		named := i + 1
		for ; named < min(i+4, len(words)) && saysMore(words[named]); named++ {
			if is(words[named]) {
				return true
			}
		}
		if number && named == i+1 && slices.ContainsFunc(q.needs.counted, func(n int) bool { return s.window[n] == 1 }) {
			return true
		}
	}
	return false
}

// hasName reports whether a text has a word of a name, other than in the name of another.
func (q *query) hasName(name []int, text string) bool {
	covers := func(i int, text string) bool { return q.coverageOf(termSet(text))[i] == 1 }
	rest := nameForm.ReplaceAllStringFunc(text, func(run string) string {
		lacks := func(i int) bool { return !covers(i, run) }
		other := func(word string) bool {
			return saysMore(word) && !slices.ContainsFunc(name, func(i int) bool { return covers(i, word) })
		}
		if slices.ContainsFunc(name, lacks) && slices.ContainsFunc(strings.Fields(run), other) {
			return ""
		}
		return run
	})
	return slices.ContainsFunc(name, func(i int) bool { return covers(i, rest) })
}
