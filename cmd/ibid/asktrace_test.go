package main

import (
	"strings"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// A trace tells all that became of the passages and of the steps, in the order
// of the search, however the judging was ordered.
func TestShowTrace(t *testing.T) {
	t.Parallel()
	passage := func(id string, page int) retrieve.Passage {
		return retrieve.Passage{Chunk: ingest.Chunk{ID: id, Document: "docs/" + id, Page: page}, Title: "Title " + id}
	}
	judged := func(id string, d answer.Decision, by, reason string, chance float64) answer.Judged {
		return answer.Judged{Passage: id, Decision: d, By: by, Reason: reason, Chance: chance}
	}
	found := []retrieve.Passage{passage("a", 3), passage("b", 0), passage("c", 0), passage("d", 0), passage("e", 0)}
	for _, tt := range []struct {
		name     string
		passages []retrieve.Passage
		answer   cite.Answer
		want     string
	}{
		{"nothing was found", nil, cite.Answer{}, `
passages, in the order of the search, with the chance of being on topic:
  none found
`},
		{"with a model", found, cite.Answer{
			Judged: []answer.Judged{
				judged("c", answer.Irrelevant, "model", "about\nboats", .4),
				judged("a", answer.Relevant, "score", "covers 'lamp'", .97),
				judged("b", answer.Relevant, "unjudged", "covers \u202e'lit'", .5),
				judged("d", answer.Unparsable, "model", "", .3),
			},
			Sources: []cite.Source{
				{Number: 1, Passages: []cite.SourcePassage{{ID: "a"}, {ID: "a"}}},
				{Number: 2, Passages: []cite.SourcePassage{{ID: "a"}}},
			},
			Steps: []answer.Stepped{
				{Step: 1, Role: answer.RoleAnswer, Passages: []string{"a", "b"}, Changed: true, Invented: []int{7}},
				{Step: 2, Role: answer.RoleRefine, Passages: []string{"d"}, Reason: "meta_remark"},
			},
			Drafts: []cite.Draft{{Step: 1, Text: "The lamp is lit.[1]\n", Labels: []int{1}}},
		}, `
passages, in the order of the search, with the chance of being on topic:
 1. cited [1] [2] 0.970  Title a (docs/a) page 3
    by score: covers 'lamp'
 2. kept       0.500  Title b (docs/b)
    by score, without a judge: covers 'lit'
 3. skipped    0.400  Title c (docs/c)
    by model: about boats
 4. kept, unparsable 0.300  Title d (docs/d)
    by model
 5. not judged        Title e (docs/e)

steps of the model:
 1. answer of 2 passages: changed the answer, invented [7]
 2. refine of 1 passage: nothing changed (meta_remark)

draft of step 1:
The lamp is lit.[1]
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := showTrace(&b, tt.passages, tt.answer); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.SplitSeq(b.String(), "\n") {
				got = append(got, strings.TrimRight(line, " "))
			}
			if s := strings.Join(got, "\n"); s != tt.want {
				t.Errorf("got\n%s\nwant\n%s", s, tt.want)
			}
		})
	}
}
