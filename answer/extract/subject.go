package extract

import (
	"slices"
	"strings"

	"ibid/retrieve"
)

// namesOf are the needs of each name that a question has in full, as "Ada Lovelace": words
// with capitals that follow each other. "Tesla's Model" is two.
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

// ofAnother reports whether sentence k of a passage is about none of what the question names
// in full: its pronoun refers to a sentence about another, or it has a word of the name in the
// name of another, as "Pierre Curie" where Marie Curie is asked for.
func (m *measurer) ofAnother(k int) bool {
	in, p := m.in, m.passage
	if len(m.q.needs.names) == 0 || m.q.foreign || in[k].code || isRow(in[k].text) {
		return false
	}
	of := antecedent(in, k)
	if of == k && refersBack(in[k].text) { // to what is not in the passage
		return false
	}
	return !slices.ContainsFunc(m.q.needs.names, func(name []int) bool {
		has := func(text string) bool { return m.q.hasName(name, text) }
		part := slices.ContainsFunc(name, func(i int) bool { return in[k].covers[i] == 1 })
		return of == k && !part || has(in[k].text) || has(in[of].text) || has(p.Title) || has(p.Heading) || has(lastTitle(in, k).text)
	})
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

// ofNames is what a coverage has of the names of the question.
func (n *needs) ofNames(c coverage) coverage {
	of := make(coverage, len(c))
	for _, i := range slices.Concat(n.names...) {
		of[i] = c[i]
	}
	return of
}

// antecedent is the sentence that the pronoun at the beginning of sentence k refers to; k
// where it has none, or where that sentence is not in the passage.
func antecedent(in []sentence, k int) int {
	for i := k; i >= 0 && !in[i].title; i-- {
		if !refersBack(in[i].text) {
			return i
		}
	}
	return k
}
