package answer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A reading is a question compared with the passages found for it.
type reading struct {
	needs needs
	// nearness tells, for each term of the passages, how near it is to each
	// need, 0 to 1.
	nearness map[string][]float64
	question []float32                 // its vector
	passages map[string]passageReading // by chunk id
	embedder *embed.Model
}

// A passageReading is what a passage has of the question.
type passageReading struct {
	head  cover   // its title and headings
	all   cover   // and its text
	dense float64 // cosine of the vectors of question and passage
	// lexical is the passage's lexical score with the words rated as in a
	// library of some size: see priorChunks.
	lexical float64
}

// defaultEmbedder is loaded at the first question, once.
var defaultEmbedder = sync.OnceValues(embed.New)

// notAlike is the cosine up to which two words have nothing to do with each
// other; from there to 1 nearness grows evenly.
const notAlike = .2

// read compares the question with the passages, word by word and as a whole.
func (r *run) read(ctx context.Context, passages []retrieve.Passage) (*reading, error) {
	d := &reading{nearness: map[string][]float64{}, passages: map[string]passageReading{}}
	var err error
	if m, ok := r.Embedder.(*embed.Model); ok {
		d.embedder = m
	} else if d.embedder, err = defaultEmbedder(); err != nil {
		return nil, fmt.Errorf("loading the embedded embedding model: %w", err)
	}
	if d.needs, err = r.readNeeds(ctx, passages); err != nil {
		return nil, err
	}
	// One call for everything: the question, its words, the passages, theirs.
	texts := []string{r.asked}
	for _, t := range d.needs.terms {
		texts = append(texts, t.word)
	}
	var stems []string
	for _, p := range passages {
		texts = append(texts, ingest.EmbeddingText(p.Title, p.Chunk))
	}
	for _, p := range passages {
		for _, part := range []string{p.Title, p.Heading, p.Text} {
			for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
				for _, stem := range retrieve.Terms(word) {
					if _, ok := d.nearness[stem]; !ok {
						d.nearness[stem] = nil
						stems = append(stems, stem)
						texts = append(texts, word)
					}
				}
			}
		}
	}
	vectors, err := d.embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	d.question = vectors[0]
	asked := vectors[1 : 1+len(d.needs.terms)]
	rest := vectors[1+len(asked):]
	for i, stem := range stems {
		near := make([]float64, len(asked))
		for k, v := range asked {
			near[k] = min(.99, max(0, (dot(v, rest[len(passages)+i])-notAlike)/(1-notAlike)))
		}
		d.nearness[stem] = near
	}
	for k, t := range d.needs.terms {
		if d.nearness[t.stem] == nil {
			d.nearness[t.stem] = make([]float64, len(asked))
		}
		d.nearness[t.stem][k] = 1
	}
	for i, p := range passages {
		head := d.cover(termSet(p.Title, p.Heading))
		read := passageReading{
			head:    head,
			all:     head.with(d.cover(termSet(p.Text))),
			dense:   dot(d.question, rest[i]),
			lexical: p.Scores.Lexical,
		}
		if p.Scores.Coverage > 0 {
			read.lexical = min(1, read.lexical*d.needs.rated(read.all)/p.Scores.Coverage)
		}
		d.passages[p.ID] = read
	}
	return d, nil
}

func (d *reading) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := d.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("comparing passages with the question: %w", err)
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("comparing passages with the question: the embedder %s gave %d rows for %d texts", d.embedder.Space(), len(vectors), len(texts))
	}
	return vectors, nil
}

// cover tells what a text of the given terms has of the question.
func (d *reading) cover(terms map[string]bool) cover {
	c := make(cover, len(d.needs.terms))
	for t := range terms {
		for i, near := range d.nearness[t] {
			c[i] = max(c[i], near)
		}
	}
	return c
}

// precise is the mean, over the terms of a text, of how near each is to
// anything in the question.
func (d *reading) precise(terms map[string]bool) float64 {
	if len(terms) == 0 {
		return 0
	}
	var sum float64
	for _, t := range slices.Sorted(maps.Keys(terms)) { // in order, so that the sum is the same each time
		best := 0.0
		for _, near := range d.nearness[t] {
			best = max(best, near)
		}
		sum += best
	}
	return sum / float64(len(terms))
}

func termSet(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		for _, t := range retrieve.Terms(text) {
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
