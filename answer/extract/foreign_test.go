package extract

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A nearEncoder gives texts with one phrase a high cosine with every question, and all
// other texts that of unrelated texts.
type nearEncoder struct{ phrase string }

func (nearEncoder) EmbedQuestion(context.Context, string) ([]float32, error) {
	return []float32{1, 0}, nil
}

func (e nearEncoder) EmbedPassages(_ context.Context, texts []string, _ int) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	for i, text := range texts {
		cosine := .77
		if strings.Contains(text, e.phrase) {
			cosine = .86
		}
		rows[i] = []float32{float32(cosine), float32(math.Sqrt(1 - cosine*cosine))}
	}
	return rows, nil
}

func (nearEncoder) Knows(string) bool  { return true }
func (nearEncoder) PassageTokens() int { return 128 }
func (nearEncoder) Candidates() int    { return 30 }
func (nearEncoder) Space() string {
	return "multilingual-e5-small-int8/384"
}

// TestForeign checks that a question in another language than the passages is answered by
// the sentence that the encoder finds near. Without such a sentence, or before the whole
// library is encoded, it is not answered.
func TestForeign(t *testing.T) {
	model, err := embed.New()
	must(t, err)
	var passages []retrieve.Passage
	for i, text := range []string{
		"The tide turns at noon in the harbour. The crane lifts boats of two tons.",
		"The chart room opens at nine, and it closes at five. Members leave their keys with the clerk at the door.",
		"The sails are dried in the loft after the race. Nobody is allowed to smoke there.",
	} {
		id := string(rune('a' + i))
		passages = append(passages, retrieve.Passage{Chunk: ingest.Chunk{ID: id, Document: id, Text: text, End: len(text)}})
	}
	for _, c := range datatest.Table[struct{ Question, Phrase, Want string }](t, "testdata/tables.txt", "foreign") {
		d, err := Read(t.Context(), c.Question, passages, CountTerms(passages), model, nearEncoder{c.Phrase})
		must(t, err)
		quotes, _, err := d.Quote(t.Context(), passages, DefaultConfidence, nil)
		must(t, err)
		got := ""
		for _, q := range quotes {
			got += q.Text
		}
		if got != c.Want {
			t.Errorf("%s: answer = %q, want %q", c.Question, got, c.Want)
		}
		stats := CountTerms(passages)
		stats.Unencoded = true
		d, err = Read(t.Context(), c.Question, passages, stats, model, nearEncoder{c.Phrase})
		must(t, err)
		if quotes, _, err := d.Quote(t.Context(), passages, DefaultConfidence, nil); err != nil || quotes != nil {
			t.Errorf("%s: quotes = %+v, %v before the library is encoded; want none", c.Question, quotes, err)
		}
		for _, p := range passages {
			chance, _ := d.Chance(p)
			if on := c.Want != "" && p.ID == "b"; on != (chance > .5) {
				t.Errorf("%s: chance of passage %s = %.3f", c.Question, p.ID, chance)
			}
		}
	}
}

// TestForeignHolds measures questions in other languages about English texts, with the
// multilingual encoder: questions about the texts, and questions about others.
func TestForeignHolds(t *testing.T) {
	datatest.CampaignOnly(t, "encoding the sets needs minutes")
	m := openEncoder(t)
	if m == nil || !m.Knows("ru") {
		t.Skip("needs the multilingual encoder: run 'ibid setup multilingual' and set IBID_ENCODER to the installed file")
	}
	own, other := openSet(t, "xquad-a/en", 0, m), openSet(t, "anthropic-docs", 150, m)
	gold := map[string]question{}
	for _, q := range own.questions {
		gold[q.ID] = q
	}
	random := rand.New(rand.NewPCG(1, 2))
	const each = 40
	for _, language := range []string{"de", "es", "ru", "zh", "ar", "hi", "th"} {
		questions := datatest.Lines[question](t, filepath.Join(datatest.Sets(t, "xquad-a", language), "queries.jsonl"))
		var answered, right, off int
		for _, q := range pick(random, questions, each) {
			if quotes := quoteForeign(t, own, m, q.Text); quotes != "" {
				answered++
				if slices.ContainsFunc(texts(gold[q.ID].Answers), func(a string) bool { return eval.Holds(quotes, a) }) {
					right++
				}
			}
			if quoteForeign(t, other, m, q.Text) != "" {
				off++
			}
		}
		t.Logf("%s: answered %.2f, right %.2f; off topic answered %.2f", language, eval.Share(answered, each), eval.Share(right, each),
			eval.Share(off, each))
		if answered < each*7/10 || off > each/2 {
			t.Errorf("%s: of %d questions each, %d on topic and %d off topic were answered", language, each, answered, off)
		}
	}
}

// quoteForeign returns the quotes for a question from the passages that the encoder finds
// nearest.
func quoteForeign(t *testing.T, s *set, m retrieve.Encoder, text string) (all string) {
	t.Helper()
	passages, err := s.index.Search(t.Context(), retrieve.Query{Text: text})
	must(t, err)
	d, err := Read(t.Context(), text, passages, CountTerms(passages), s.embedder, m)
	must(t, err)
	quotes, _, err := d.Quote(t.Context(), passages, DefaultConfidence, nil)
	must(t, err)
	for _, q := range quotes {
		all += q.Text + "\n"
	}
	return all
}
