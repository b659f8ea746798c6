package extract

import (
	"slices"
	"strings"

	"ibid/retrieve"
)

// The signals of a sentence, in the order of sentenceModel.
const (
	sigContext     = iota // needs.nearShare of the sentence with its headings
	sigWindow             // needs.nearShare of the sentence with its headings and neighbours
	sigPassageNear        // needs.nearShare of the passage
	sigShort              // too short to say much
	sigKind               // has something of the asked kind
	sigScore              // score of the passage in the search
	sigCell               // share of the question's weight in whole cells of a row
	sigAfter              // cosine of the question and the question above the sentence
	sigYear               // about another year
	sigDense              // cosine of question and sentence
	sigTitle              // cosine of question and headings
	sigDenies             // lacks a negation, and the question has one
	sigAside              // in the test of a program, or quoted in a reply
	sentenceSignals
)

// A measurer measures the signals of the sentences of one passage.
type measurer struct {
	q       *query
	passage retrieve.Passage
	about   passageReading
	in      []sentence
}

// otherYear is 1 if the headings name only other years than the question, ⅔ if nothing in the
// passage names a year of the question, else 0.
func (m *measurer) otherYear() float64 {
	asked, p := m.q.years, m.passage
	over := years(p.Title + " " + p.Heading + " " + p.Path)
	switch {
	case len(asked) == 0 || meet(asked, over):
		return 0
	case len(over) > 0:
		return 1
	case !meet(asked, years(p.Text)):
		return 2. / 3
	}
	return 0
}

// isTest is 1 for the test of a program, unless the question is about tests.
func (m *measurer) isTest() float64 {
	if retrieve.IsTest(m.passage) && !strings.Contains(strings.ToLower(m.q.text), "test") {
		return 1
	}
	return 0
}

// measure computes the signals of sentence k that need no embedder. It must be called for the
// sentences in order.
func (m *measurer) measure(k int) {
	in, s := m.in, &m.in[k]
	f := &s.signals
	s.about = m.about
	s.window = m.about.head.union(s.covers)
	if of := antecedent(in, k); len(m.q.needs.names) > 0 && of != k && !m.q.foreign {
		s.window = s.window.union(m.q.needs.selectNames(in[of].covers))
	}
	if m.q.needs.kind.is("way") { // steps seldom repeat the words of their heading
		s.window = s.window.union(lastTitle(in, k).covers)
	}
	if s.inAsked = m.isInAsked(k); s.inAsked {
		f[sigAfter] = 1
	}
	f[sigContext] = m.q.needs.nearShare(s.window)
	if k > 0 {
		s.window = s.window.union(in[k-1].covers)
		if in[k-1].asks {
			f[sigAfter] = max(f[sigAfter], in[k-1].signals[sigDense])
		}
	}
	s.other = s.other || m.q.needs.subject >= 0 && !m.q.foreign && s.window[m.q.needs.subject] < namesAlike || m.isOfAnother(k)
	if k+1 < len(in) {
		s.window = s.window.union(in[k+1].covers)
	}
	f[sigWindow] = m.q.needs.nearShare(s.window)
	f[sigPassageNear] = m.q.needs.nearShare(m.about.all)
	f[sigShort] = max(0, 1-float64(len(s.terms))/5)
	text := s.text
	if start, end := first(in, k), after(in, k); isItem(in[start].text) { // an item is quoted whole
		text = m.passage.Text[in[start].span.Start:in[end-1].span.End]
	}
	f[sigKind] = m.q.needs.kind.foundIn(text, m.q.text)
	if s.by != "" && m.q.asksSender() {
		f[sigKind] = 1
	}
	if m.q.needs.denied && !denials.MatchString(text) {
		f[sigDenies] = 1
	}
	f[sigScore] = m.passage.Score
	f[sigCell] = m.q.cellShare(s.text)
}

// isInAsked reports whether sentence k is in a section with steps whose headings have all words
// of a question about how to do something, or in the comment of the declaration that the
// question names.
func (m *measurer) isInAsked(k int) bool {
	in, p := m.in, m.passage
	if in[k].declares {
		return m.about.asked && !slices.ContainsFunc(in[:k+1], func(s sentence) bool { return s.code })
	}
	if !m.q.needs.kind.is("way") {
		return false
	}
	start, end := section(in, k)
	heading, _ := p.PlaceAt(p.Start + in[k].span.Start) // p.Heading may be another section's
	head := m.q.coverageOf(termSet(p.Title, heading)).union(lastTitle(in, k).covers)
	return m.q.needs.exactShare(head) > .99 && slices.ContainsFunc(in[start:end], func(s sentence) bool { return s.code || isStep(s.text) })
}

// isOfAnother reports whether sentence k is about none of the full names in the question: its
// pronoun refers to something else, or it has a word of the name in another name, such as
// "Pierre Curie" for Marie Curie.
func (m *measurer) isOfAnother(k int) bool {
	in, p := m.in, m.passage
	if len(m.q.needs.names) == 0 || m.q.foreign || in[k].code || isRow(in[k].text) {
		return false
	}
	of := antecedent(in, k)
	if of == k && refersBack(in[k].text) { // to a sentence outside the passage
		return false
	}
	return !slices.ContainsFunc(m.q.needs.names, func(name []int) bool {
		has := func(text string) bool { return m.q.hasName(name, text) }
		part := slices.ContainsFunc(name, func(i int) bool { return in[k].covers[i] == 1 })
		return of == k && !part || has(in[k].text) || has(in[of].text) || has(p.Title) || has(p.Heading) || has(lastTitle(in, k).text)
	})
}
