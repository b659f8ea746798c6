package eval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadQuestions(t *testing.T) {
	got, err := ReadQuestions(files("q.jsonl", `{"id": "q1", "question": "what?", "answer": "tea", "answers": ["tea"], "documents": ["l/a.md"], "kind": "single"}
{"id": "q2", "question": "who?", "kind": "off-topic"}`), "q.jsonl")
	want := []Question{{"q1", "what?", []string{"tea"}, []string{"l/a.md"}, "single"}, {ID: "q2", Text: "who?", Kind: "off-topic"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if !got[0].Answerable() || got[1].Answerable() {
		t.Error("only the first has an answer")
	}
	for text, want := range map[string]string{
		"": "q.jsonl is empty",
		`{"id": "a", "question": "x", "documents": [""]}`: `q.jsonl:1: one of its "documents" is empty`,
		`{"id": "a"}`:                       `q.jsonl:1: its "question" is missing or empty`,
		`{"question": "a"}`:                 `q.jsonl:1: its "id" is missing or empty`,
		`{"question": "a", "answers": "x"}`: `q.jsonl:1: its "answers" is of the wrong type, a JSON string`,
	} {
		if _, err := ReadQuestions(files("q.jsonl", text), "q.jsonl"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestQuestionsOfASet(t *testing.T) {
	s, err := ReadSet(files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries+`{"_id": "q3", "text": "unknown"}`, "qrels.tsv", goodQrels), "")
	if err != nil {
		t.Fatal(err)
	}
	got, left := s.Questions()
	want := []Question{
		{"q1", "what tea?", []string{"black"}, []string{"a"}, "answerable"},
		{ID: "q2", Text: "what milk?", Kind: "unanswerable"},
	}
	if diff := cmp.Diff(want, got); diff != "" || left != 1 {
		t.Error(diff, left)
	}
}

func TestHolds(t *testing.T) {
	for _, test := range []struct {
		text, answer string
		want         bool
	}{
		{"It costs 8 euros.", "8", true},
		{"It costs 180 euros.", "8", false},
		{"It costs 180 or 8 euros.", "8", true},
		{"From **nine\n to   Five**", "nine to five", true},
		{"the sailor’s knot", "Sailor's knot", true},
		{"Élan is a boat", "élan", true},
		{"a boathouse", "boat", false},
		{"会有70个议席", "70", true},
		{"会有170个议席", "70", false},
		{"香港第六届立法会", "立法会", true},
		{"anything", "", false},
		{"", "x", false},
		{"x", "x", true},
	} {
		if got := Holds(test.text, test.answer); got != test.want {
			t.Errorf("%q in %q: %t", test.answer, test.text, got)
		}
	}
}

func TestWordRecall(t *testing.T) {
	for _, test := range []struct {
		text    string
		answers []string
		want    float64
	}{
		{"The tea is black.", []string{"Black tea"}, 1},
		{"The tea is black.", []string{"green tea", "coffee"}, .5},
		{"tea", []string{"tea tea"}, .5}, // a word counts as often as it stands
		{"香港立法会", []string{"立法院"}, 2 / 3.},
		{"tea", nil, 0},
		{"", []string{"tea"}, 0},
		{"tea", []string{"?!"}, 0},
	} {
		if got := WordRecall(test.text, test.answers); !near(got, test.want) {
			t.Errorf("%q of %q: %v, want %v", test.text, test.answers, got, test.want)
		}
	}
}
