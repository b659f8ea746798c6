// Package support estimates whether passages support a sentence of an answer, and finds the
// words that do. It uses no model.
//
// SUPPORT.md in the parent folder describes the measurements.
package support

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A Verdict says how well a quote supports a sentence.
type Verdict string

// The verdicts.
const (
	Quoted    Verdict = "quoted" // the passage has the sentence's own words
	Supported Verdict = "supported"
	Weak      Verdict = "weak"
)

// Threshold is the lowest support of a supported sentence. At this value, as many sentences
// are wrongly marked weak as are wrongly left unmarked.
const Threshold = 0.45

const (
	// maxContradicted is the highest support of a sentence that the evidence contradicts.
	maxContradicted = 0.2
	// maxQuote is the number of sentences in a quote. minAdded is the share of the claim
	// that each sentence after the first must add.
	maxQuote = 3
	minAdded = 0.12
)

// A Passage is a text that a sentence of an answer cites. The words of its title and headings
// count for each of its sentences.
type Passage struct{ Text, Title, Heading string }

// A Span is a byte range of a text.
type Span struct{ Start, End int }

// A Quote is the part of a passage that supports a sentence.
type Quote struct {
	Span
	// Support is the estimated probability, 0 to 1, that the quote supports the sentence.
	Support float64
	Verdict Verdict
}

// A Prover compares sentences with passages. Both functions are required. Its methods may be
// called concurrently if its functions may.
type Prover struct {
	// Stem maps the forms of a word to one form. It must not change the first two letters.
	Stem func(word string) string
	// Sentences returns the sentences of a passage.
	Sentences func(text string) []Span
}

// Find returns the part of a passage that best supports a sentence without references. The
// quote lies within the passage's text and cuts no character; it is empty only if the text
// is. The quote of a weak sentence is a heading only if the text has nothing else.
//
// The support is estimated from up to three sentences of the passage that together have most of
// the claim's words. Time and memory are linear in the texts.
func (p Prover) Find(sentence string, passage Passage) Quote {
	all := p.claim(sentence)
	c := p.cover(all, []Passage{passage})
	if len(c.sentences) == 0 {
		return Quote{Span: Span{0, len(passage.Text)}, Verdict: Weak}
	}
	at, verbatim, negated := c.verbatim(all)
	if verbatim && !negated {
		at.End += closingLength(passage.Text[at.End:])
		return Quote{Span: at, Support: 1, Verdict: Quoted}
	}
	q := Quote{Span: c.quote(false), Verdict: Weak}
	picked, found, _ := c.evidence(1)
	if len(picked) == 0 {
		return q
	}
	q.Support = weights.chance(c.signals(found))
	if negated || c.lacksSubject(all) || c.contradicts(all, picked, found) {
		q.Support = min(q.Support, maxContradicted)
	}
	if q.Support >= Threshold {
		q.Span, q.Verdict = c.quote(true), Supported
	}
	return q
}

// Together says how well several passages support a sentence together.
type Together struct {
	// Support is the estimated probability, 0 to 1, that they support it; 0 if fewer than
	// two passages contribute.
	Support float64
	// Parts reports, for each passage in order, whether it contributes.
	Parts []bool
}

// Join judges a sentence by all the passages that it cites. It estimates the support as
// [Prover.Find] does, from sentences of all the passages. If one of those sentences contradicts
// the claim, the claim counts as contradicted. Time and memory are linear in the texts.
func (p Prover) Join(sentence string, passages []Passage) Together {
	all := p.claim(sentence)
	c := p.cover(all, passages[:min(len(passages), maxJoined)])
	picked, found, parts := c.evidence(len(passages))
	if i := slices.Index(parts, true); i < 0 || !slices.Contains(parts[i+1:], true) {
		return Together{Parts: parts}
	}
	t := Together{weights.chance(c.signals(found)), parts}
	_, _, negated := c.verbatim(all)
	denied := negated || c.lacksSubject(all)
	for i := range picked {
		// The first sentence is compared most closely, so each takes its turn.
		picked[0], picked[i] = picked[i], picked[0]
		denied = denied || c.contradicts(all, picked, found)
	}
	if denied {
		t.Support = min(t.Support, maxContradicted)
	}
	return t
}

// replies may open a sentence that answers a question.
var replies = []string{"yes", "no"}

// claim returns the words of a sentence without an initial yes or no.
func (p Prover) claim(sentence string) []word {
	s := strings.TrimLeftFunc(sentence, func(r rune) bool { return unicode.IsSpace(r) || r == '*' || r == '"' })
	for _, reply := range replies {
		if n := len(reply); len(s) > n && strings.EqualFold(s[:n], reply) && strings.IndexByte(",.:;!", s[n]) >= 0 {
			sentence = s[n+1:]
			break
		}
	}
	return (&lexer{stem: p.Stem}).read(sentence, 0)
}

// signals are the inputs of the estimate for a claim.
type signals struct {
	covered float64 // share of the claim's words in the evidence, 0 to 1
	names   float64 // log(1 + names missing)
	numbers float64 // log(1 + numbers missing)
}

func (c *cover) signals(found []bool) signals {
	var covered, names, numbers float64
	for i, w := range c.claim {
		switch {
		case found[i]:
			covered++
		case w.kind == number:
			numbers++
		case w.kind == name:
			names++
		}
	}
	return signals{covered / max(c.total, 1), math.Log1p(names), math.Log1p(numbers)}
}

// A logistic model gives the chance 1/(1+exp(-z)) for the weighted sum z.
type logistic struct{ bias, covered, names, numbers float64 }

func (m logistic) chance(s signals) float64 {
	return 1 / (1 + math.Exp(-(m.bias + m.covered*s.covered + m.names*s.names + m.numbers*s.numbers)))
}

// weights is a logistic regression with a ridge, fitted on the 349 judged claims
// of WiCE's development set (Kamoi and others, 2023, "WiCE: Real-World
// Entailment for Claims in Wikipedia").
var weights = logistic{bias: -2.21, covered: 3.36, names: -1.60, numbers: -2.06}
