package cite

import (
	"iter"
	"math"
	"strings"
	"unicode"

	"ibid/ingest"
	"ibid/retrieve"
)

// Support finds the sentences of a passage that bear out a sentence of an
// answer and estimates the chance that they do. Its zero value works; each of
// its functions makes it more exact. It asks no model and is safe for
// concurrent use when its functions are.
//
// SUPPORT.md in this folder says how it was measured.
type Support struct {
	// Stem brings the forms of one word together (retrieve.Stem). It must
	// leave the first two letters as they are. Nil compares words as they
	// stand, and by their beginnings.
	Stem func(word string) string
	// Sentences gives the sentences of a passage (ingest.Sentences). Nil
	// takes the rules by which sentences of an answer are found.
	Sentences func(text string) iter.Seq[ingest.Span]
}

// Supported is the support from which on a sentence counts as supported: where
// as many sentences are marked weak wrongly as are wrongly not marked.
const Supported = 0.45

const (
	// mostContradicted is the most support that evidence gets which says the
	// opposite, or has no such number.
	mostContradicted = 0.2
	// maxQuote is how many sentences a quote has at most, and worthQuoting
	// the share of the claim that each after the first must add.
	maxQuote     = 3
	worthQuoting = 0.12
)

// Find is a [Finder]. The support is estimated from the up to three sentences
// of the passage that together cover most of the claim, with the title and the
// headings over the passage; the quote is the run of sentences that covers most
// of it alone. Time and memory are linear in the texts.
func (s Support) Find(sentence string, p retrieve.Passage) Quote {
	spans := s.spans(p.Text)
	if len(spans) == 0 {
		return Quote{End: len(p.Text), Verdict: VerdictWeak}
	}
	at, found := quoted(sentence, p.Text, spans)
	if found == present {
		return Quote{Start: at.start, End: at.end, Support: 1, Verdict: VerdictQuoted}
	}
	all := (&lexer{stem: s.Stem}).read(statement(sentence))
	c := s.cover(claimWords(all), p.Text, p.Title+"\n"+p.Heading, spans)
	picked, degrees := c.evidence()
	support := 0.0
	if len(picked) > 0 {
		g := c.signals(degrees)
		support = supportModel.chance(g)
		if found == denied || c.contradicts(all, picked, degrees) {
			support = min(support, mostContradicted)
		}
	}
	at = c.quote()
	q := Quote{Start: at.start, End: at.end, Support: support, Verdict: VerdictWeak}
	if support >= Supported {
		q.Verdict = VerdictSupported
	}
	return q
}

// statement takes off the yes or no with which an answer begins: it is no word
// of the statement behind it.
func statement(sentence string) string {
	s := strings.TrimLeftFunc(sentence, func(r rune) bool { return unicode.IsSpace(r) || r == '*' || r == '"' })
	for _, reply := range [...]string{"yes", "no"} {
		if n := len(reply); len(s) > n && strings.EqualFold(s[:n], reply) && strings.IndexByte(",.:;!", s[n]) >= 0 {
			return s[n+1:]
		}
	}
	return sentence
}

// spans gives the sentences of a passage.
func (s Support) spans(text string) []span {
	if s.Sentences == nil {
		return sentences(text)
	}
	var out []span
	for x := range s.Sentences(text) {
		out = append(out, span{x.Start, x.End})
	}
	return out
}

// signals says what the support of a claim is estimated from.
//
//   - covered: the share of the claim's words that stand in the evidence, 0 to 1
//   - names: log(1 + names missing)
//   - numbers: log(1 + numbers missing)
//
// A word counts in part when one like it stands there. Many more were tried;
// SUPPORT.md says what they added.
type signals struct{ covered, names, numbers float64 }

func (c *cover) signals(degrees []float64) signals {
	var covered, names, numbers float64
	for i, w := range c.claim {
		covered += degrees[i]
		if degrees[i] == 1 {
			continue
		}
		switch w.kind {
		case number:
			numbers++
		case name:
			// "Mayor Ellen Brandt" is one name.
			if i == 0 || c.claim[i-1].kind != name || degrees[i-1] == 1 {
				names++
			}
		}
	}
	return signals{
		covered: covered / max(c.total, 1),
		names:   math.Log1p(names),
		numbers: math.Log1p(numbers),
	}
}

// A logistic model gives the chance 1/(1+exp(-z)) for the weighted sum z.
type logistic struct{ bias, covered, names, numbers float64 }

func (m logistic) chance(s signals) float64 {
	z := m.bias + m.covered*s.covered + m.names*s.names + m.numbers*s.numbers
	return 1 / (1 + math.Exp(-z))
}
