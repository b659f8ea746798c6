package extract

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"ibid/retrieve"
)

// A query is a question with its needs and the similarity of the passages' words to them.
type query struct {
	text     string
	needs    needs
	years    []string             // in the question
	nearness map[string][]float64 // similarity of each term of the passages to each need, 0 to 1
	language string               // of the passages; the vectors know English best
	sender   int                  // need that names the author of a mail; the number of needs if none does
	foreign  bool                 // the passages are in another language than the question
}

func (q *query) coverageOf(terms map[string]bool) coverage {
	c := make(coverage, len(q.needs.terms))
	for t := range terms {
		for i, near := range q.nearness[t] {
			c[i] = max(c[i], near)
		}
	}
	return c
}

// precision is the mean, over a text's terms, of the similarity to the nearest need.
func (q *query) precision(terms map[string]bool) float64 {
	if len(terms) == 0 {
		return 0
	}
	var sum float64
	for _, t := range slices.Sorted(maps.Keys(terms)) { // in order: the sum of floats depends on it
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

// notAlike is the highest cosine of unrelated words. Above it, nearness grows linearly to 1.
const notAlike = .2

// demandsKind reports whether only something of the asked kind is an answer.
func (q *query) demandsKind() bool {
	return !q.foreign && q.needs.kind.isDemanded(q.text, q.language)
}

// asksSender reports whether the question asks who wrote something, or when.
func (q *query) asksSender() bool {
	return asksMail.MatchString(q.text) && q.needs.kind.is("name", "date")
}

// asksName matches a question that a heading may answer: "which knot ties …", "what is …
// called".
var asksName = regexp.MustCompile(`(?i)\b(?:which\b|what\b.*\b(?:called|names?)\b)`)

// isNamedBy reports whether a heading may be the name that a question such as "which knot ties
// …" asks for. The heading is in a document or section about knots, is short, is not a
// question, does not repeat the question, and the sentence under it does not say "knot".
func (q *query) isNamedBy(heading, s sentence, p retrieve.Passage) bool {
	words := lowerWords(heading.text)
	asks := slices.ContainsFunc(kinds, func(k kind) bool { return k.opens.beginsAt(words, 0) })
	if k := q.needs.kind; !asksName.MatchString(q.text) || k != nil && k.name != "any" || !heading.title ||
		asks || isAsking(heading.text) || squeeze(heading.text) == squeeze(p.Title) ||
		len(heading.terms) > 6 || q.precision(heading.terms) >= .9 {
		return false
	}
	asked := slices.IndexFunc(q.needs.terms, func(n need) bool { return !n.asks })
	above := q.coverageOf(termSet(p.Title + "\n" + p.Heading))
	return asked >= 0 && s.covers[asked] < 1 && above[asked] == 1
}

func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// givesKind reports whether a sentence has something of the asked kind that the question lacks.
// A number needs no unit unless another noun follows it; a condition or "several" counts too.
func (q *query) givesKind(s sentence) bool {
	k, text, question := q.needs.kind, s.text, q.text
	words, known := lowerWords(text), lowerWords(question)
	switch k.name {
	case "reason":
		return k.foundIn(text, question) > 0
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
	return k.foundIn(text, question) > 0 || k.conditions.occurIn(words) ||
		k.name == "duration" && kindNamed("length").foundIn(text, question) > 0 ||
		k.name == "amount" && !k.only.occurIn(known) && kindNamed("number").foundIn(text, question) > 0 // "how much does it lift"
}

// isGiven reports whether a word is a number that the question lacks.
func isGiven(word string, known []string) bool {
	return isNumber(word) && word != "a" && word != "an" && !yearForm.MatchString(word) && !slices.Contains(known, word)
}

// saysMore reports whether a word has a meaning of its own, unlike a function word.
func saysMore(word string) bool { return len(retrieve.Terms("1 "+word)) > 1 }

// countsThing reports whether a sentence has a new number or a condition before the noun that
// the question counts, or a new number that no noun follows, if the sentence or its neighbours
// have that noun.
func (q *query) countsThing(s sentence, words, known []string) bool {
	is := func(word string) bool { // "two keelboats" does not count all boats
		near := q.coverageOf(termSet(word))
		return slices.ContainsFunc(q.needs.counted, func(n int) bool {
			return near[n] == 1 || near[n] >= alike && !strings.HasSuffix(word, strings.ToLower(q.needs.terms[n].word))
		})
	}
	for i, w := range words {
		number := isGiven(w, known)
		if !number && !q.needs.kind.conditions.beginsAt(words, i) {
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

// hasName reports whether a text has a word of the given name that is not part of another name.
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
