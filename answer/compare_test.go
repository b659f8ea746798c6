package answer

import (
	"context"
	"strings"
	"testing"

	"ibid/cite/support"
	"ibid/retrieve"
)

// A farEncoder finds that only texts with a word of it are near.
type farEncoder string

func (farEncoder) EmbedQuestion(context.Context, string) ([]float32, error) {
	return []float32{1, 0}, nil
}

func (e farEncoder) EmbedPassages(_ context.Context, texts []string, _ int) (rows [][]float32, _ error) {
	for _, text := range texts {
		if strings.Contains(text, string(e)) {
			rows = append(rows, []float32{1, 0})
		} else {
			rows = append(rows, []float32{0, 1})
		}
	}
	return rows, nil
}

func (farEncoder) Knows(language string) bool { return language == "en" }
func (farEncoder) PassageTokens() int         { return 128 }
func (farEncoder) Candidates() int            { return 30 }
func (farEncoder) Space() string              { return "far/2" }

// TestCompare checks that the encoder moves the support of a statement's quotes, except
// of its own words and of what contradicts it.
func TestCompare(t *testing.T) {
	passages := proofLibrary()
	find := func(statement, near string) (quotes []support.Quote) {
		for _, p := range passages {
			quotes = append(quotes, Prover().Find(statement, support.Passage{Text: p.Text, Title: p.Title}))
		}
		p := &proof{asking: &asking{Answerer: &Answerer{Encoder: func() retrieve.Encoder { return farEncoder(near) }}}, ctx: t.Context(), passages: passages}
		p.compare(statement, quotes)
		return quotes
	}
	const painting = "Each spring the owners paint their boats."
	near, far := find(painting, "March")[2], find(painting, "nothing")[2]
	if near.Support < .7 || near.Verdict != support.Supported || far.Support > .2 || far.Verdict != support.Weak {
		t.Errorf("supports %+v and %+v", near, far)
	}
	for statement, verdict := range map[string]support.Verdict{
		"Boats are painted in March by their owners.": support.Quoted, "Boats are not painted in March by their owners.": support.Weak,
		"Im März streichen die Eigner ihre Boote.": support.Weak,
	} {
		for _, word := range []string{"March", "nothing"} {
			if q := find(statement, word)[2]; q.Verdict != verdict {
				t.Errorf("%q: %+v", statement, q)
			}
		}
	}
}
