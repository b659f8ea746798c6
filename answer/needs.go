package answer

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// needs is what a question asks for, as terms with weights.
type needs struct {
	terms []need
	kind  answerKind
	unit  answerUnit
}

// A need is one content term of the question.
type need struct {
	stem   string
	word   string  // as the question writes it
	idf    float64 // inverse document frequency
	weight float64 // the same, less for words that only ask
	name   bool    // a capitalised word, not first in its sentence
	number bool    // has a digit
}

// askingWords stand in questions to say what kind of answer is wanted, and
// seldom in the answer. Their weight is a quarter.
var askingWords = words(`many much name names named call called tell know find give list explain happen mean meaning
	kind kinds type types exactly please like want need get say describe year date day time number amount
	person people somebody someone anyone thing things way able possible allowed usually normally often long
	happens anything something actually does did use used make made go going see look
	large big high deep far old fast heavy wide tall soon`)

// priorChunks are added to the number of chunks: in a library of a few pages a
// word that is absent would else outweigh several that are there.
const priorChunks = 50

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// readNeeds reads a question. frequency tells in how many of all chunks a
// term stands.
func readNeeds(question string, stats retrieve.Stats) needs {
	n := needs{kind: kindOf(question), unit: unitOf(question)}
	content := map[string]bool{}
	for _, t := range retrieve.Terms(question) {
		content[t] = true
	}
	seen := map[string]bool{}
	start := true // of a sentence
	for _, field := range strings.Fields(question) {
		word := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		if word == "" {
			continue
		}
		first, _ := utf8.DecodeRuneInString(word)
		for _, stem := range retrieve.Terms(word) {
			if !content[stem] || seen[stem] {
				continue
			}
			seen[stem] = true
			t := need{
				stem: stem, word: word,
				name:   unicode.IsUpper(first) && !start,
				number: strings.ContainsFunc(stem, unicode.IsDigit),
				idf:    retrieve.IDF(stats.Chunks+priorChunks, stats.Frequency[stem]),
			}
			t.weight = t.idf
			if askingWords[strings.ToLower(word)] {
				t.weight /= 4
			}
			n.terms = append(n.terms, t)
		}
		start = strings.HasSuffix(field, ".") || strings.HasSuffix(field, "?") || strings.HasSuffix(field, "!")
	}
	return n
}

// readNeeds reads the question with the term counts of the whole collection,
// or of what was found where the collection is not to be counted.
func (r *run) readNeeds(ctx context.Context, passages []retrieve.Passage) (needs, error) {
	if c, ok := r.Retriever.(Counter); ok {
		stats, err := c.Stats(ctx, retrieve.Terms(r.asked))
		if err != nil {
			return needs{}, fmt.Errorf("counting the terms of the question: %w", err)
		}
		return readNeeds(r.asked, stats), nil
	}
	stats := retrieve.Stats{Chunks: len(passages), Frequency: map[string]int{}}
	for _, p := range passages {
		for t := range termSet(p.Title, p.Heading, p.Text) {
			stats.Frequency[t]++
		}
	}
	return readNeeds(r.asked, stats), nil
}

// A cover tells, for each need, how near a text's nearest word comes to it: 1
// is the word itself, in any form; less is a word of like meaning.
type cover []float64

// with is the cover of two texts together.
func (c cover) with(others ...cover) cover {
	out := append(cover(nil), c...)
	for _, o := range others {
		for i := range o {
			out[i] = max(out[i], o[i])
		}
	}
	return out
}

// exact is the share of the needs' weight that stands in the text, word for word.
func (n *needs) exact(c cover) float64 {
	return n.share(c, func(t need, near float64) (float64, float64) {
		if near < 1 {
			near = 0
		}
		return near, t.weight
	}, 0)
}

// count is how many of the needs stand in the text, word for word. Half of two
// words may be there by chance, half of ten is not.
func (n *needs) count(c cover) int {
	words := 0
	for i := range n.terms {
		if c[i] == 1 {
			words++
		}
	}
	return words
}

// rated is the share of inverse document frequency that stands in the text.
func (n *needs) rated(c cover) float64 {
	return n.share(c, func(t need, near float64) (float64, float64) {
		if near < 1 {
			near = 0
		}
		return near, t.idf
	}, 0)
}

// near is the share of the needs' weight when words of like meaning count in part.
func (n *needs) near(c cover) float64 {
	return n.share(c, func(t need, near float64) (float64, float64) { return near, t.weight }, 0)
}

// named is the share of the weight of names and numbers that stand in the
// text; 1 when the question has none.
func (n *needs) named(c cover) float64 {
	return n.share(c, func(t need, near float64) (float64, float64) {
		if near < 1 {
			near = 0
		}
		if !t.name && !t.number {
			return 0, 0
		}
		return near, t.weight
	}, 1)
}

// pairs is the share of the pairs of neighbouring needs that are both in the
// text, or words much like them.
func (n *needs) pairs(c cover) float64 {
	const much = .5
	if len(c) < 2 {
		return n.near(c)
	}
	hits := 0
	for i := 1; i < len(c); i++ {
		if c[i-1] >= much && c[i] >= much {
			hits++
		}
	}
	return float64(hits) / float64(len(c)-1)
}

// least is how near the text comes to the heaviest need that it is furthest
// from, weighed by how heavy that is: 1 when it misses nothing.
func (n *needs) least(c cover) float64 {
	heaviest, miss := 0.0, 0.0
	for i, t := range n.terms {
		heaviest = max(heaviest, t.weight)
		miss = max(miss, t.weight*(1-c[i]))
	}
	if heaviest == 0 {
		return 0
	}
	return 1 - miss/heaviest
}

func (n *needs) share(c cover, of func(need, float64) (part, weight float64), none float64) float64 {
	var sum, total float64
	for i, t := range n.terms {
		part, weight := of(t, c[i])
		sum += part * weight
		total += weight
	}
	if total == 0 {
		return none
	}
	return sum / total
}

// reason says in words what of the question a passage covers and what not.
func (n *needs) reason(c cover) string {
	var has, lacks []string
	last, covered := "", false
	for i, t := range n.terms {
		if t.word == last || askingWords[strings.ToLower(t.word)] {
			continue
		}
		hit := c[i] == 1
		list := &lacks
		if hit {
			list = &has
		}
		// Words that follow each other stand in one pair of quotes.
		if last != "" && hit == covered && len(*list) > 0 && len((*list)[len(*list)-1])+len(t.word) < 40 {
			(*list)[len(*list)-1] += " " + t.word
		} else {
			*list = append(*list, t.word)
		}
		last, covered = t.word, hit
	}
	quote := func(list []string) string {
		if len(list) > 2 {
			list = list[:2]
		}
		return "'" + strings.Join(list, "', '") + "'"
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
