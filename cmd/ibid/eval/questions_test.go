package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadQuestions(t *testing.T) {
	got, err := ReadQuestions(files("q.jsonl", `// the first questions
{"id": "q1", "question": "what?", "answer": "tea", "answers": ["tea"], "documents": ["l/a.md"], "kind": "single", "worded": "own"}

# those of another kind
{"id": "q2", "question": "who?", "kind": "off-topic", "answers": null}
{"question": "which?"}
{"Question": " where? ", "documents": "a.pdf", "pages": [3], "quotes": "by the sea", "words": ["sea", "8"]}
{"id": 7, "question": "when?", "documents": ["a.pdf", "b.md"]}
{"question": "why?", "answers": ["tea", "milk"], "answerable": true}
{"question": "whose?", "answerable": false, "answer": "not there", "documents": [], "kind": null}
{"question": "wherefore?", "answer": "because"}
{"question": "really?", "answerable": true}`), "q.jsonl")
	want := []Question{
		{ID: "q1", Text: "what?", Expected: "tea", Answers: []string{"tea"}, Documents: []string{"l/a.md"}, Kind: "single", Worded: "own"},
		{ID: "q2", Text: "who?", Kind: "off-topic"},
		{ID: "line 6", Text: "which?"},
		{ID: "line 7", Text: "where?", Documents: []string{"a.pdf"}, Quotes: []string{"by the sea"},
			Words: []string{"sea", "8"}},
		{ID: "7", Text: "when?", Documents: []string{"a.pdf", "b.md"}},
		{ID: "line 9", Text: "why?", Answers: []string{"tea", "milk"}, HasAnswer: true},
		{ID: "line 10", Text: "whose?", Expected: "not there", Unanswerable: true},
		{ID: "line 11", Text: "wherefore?", Expected: "because"},
		{ID: "line 12", Text: "really?", HasAnswer: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for i, open := range []bool{false, true, true, false, false, false, false, false, false} {
		if got[i].Open() != open {
			t.Errorf("%q is open: %t", got[i].Text, got[i].Open())
		}
	}
}

// A malformed line is named with its number and fault.
func TestMalformedQuestions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "q.jsonl is empty: it needs a question per line, such as " + ExampleQuestion,
		"// nothing":                           "q.jsonl is empty: it needs a question per line, such as " + ExampleQuestion,
		`{"id": "a"}`:                          `q.jsonl:1: "question" is missing or empty`,
		`{"question": ["a", "b"]}`:             `q.jsonl:1: "question" has the wrong type, a JSON array`,
		`{"question": "a", "answers": {}}`:     `q.jsonl:1: "answers" has the wrong type, a JSON object`,
		`{"question": "x", "documents": [""]}`: `q.jsonl:1: one of the texts in a list is empty`,
		`{"question": "x", "anwsers": "y"}`:    `q.jsonl:1: json: unknown field "anwsers"`,
		`{"question": "x", "answerable": false, "answers": "y"}`: `q.jsonl:1: "answerable" is false, but there is a right answer: remove one`,
		`{"question": "a"} x`:                                                `q.jsonl:1: not a JSON object: invalid character 'x' after top-level value`,
		"{\"question\": \"a\xff\"}":                                          `q.jsonl:1: not UTF-8; convert the file`,
		`{"question": "a"}` + "\n{\n\n" + `{"question": "b"}`:                `q.jsonl:2: not a JSON object: unexpected end of JSON input`,
		`{"id": 1, "question": "a"}` + "\n" + `{"id": "1", "question": "b"}`: `q.jsonl:2: the id "1" is in line 1 already`,
	} {
		if _, err := ReadQuestions(files("q.jsonl", text), "q.jsonl"); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadQuestions(f *testing.F) {
	f.Add([]byte(`{"question": "x", "documents": ["a", "b"], "quotes": "y"}`))
	f.Add([]byte(`{"question": "x", "answerable": false}` + "\n" + `{"question": "y", "answers": "a"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadQuestions(files("q.jsonl", string(b)), "q.jsonl")
		if (err == nil) != (len(got) > 0) {
			t.Fatalf("%d questions, %v", len(got), err)
		}
		for _, q := range got {
			if strings.TrimSpace(q.Text) == "" || q.ID == "" {
				t.Fatalf("%+v", q)
			}
		}
	})
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

// The questions on the sample library have no field that is not known.
func TestSampleQuestions(t *testing.T) {
	questions, err := ReadQuestions(os.DirFS(filepath.Join("..", "..", "..", "data")), "questions.jsonl")
	if err != nil || len(questions) < 100 || questions[0].Worded == "" {
		t.Errorf("%d questions, %v", len(questions), err)
	}
}
