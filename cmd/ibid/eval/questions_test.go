package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
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
		t.Errorf("reading questions: %v (-want +got):\n%s", err, diff)
	}
	for i, open := range []bool{false, true, true, false, false, false, false, false, false} {
		if got[i].Open() != open {
			t.Errorf("question %q: Open() = %t, want %t", got[i].Text, got[i].Open(), open)
		}
	}
}

// TestMalformedQuestions checks that the error for a malformed line has its number and
// fault.
func TestMalformedQuestions(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/rows.txt", "questions")[1:] {
		text, want := strings.ReplaceAll(row[0], "'", `"`), "q.jsonl"+strings.ReplaceAll(row[1], "'", `"`)
		if _, err := ReadQuestions(files("q.jsonl", text), "q.jsonl"); err == nil || err.Error() != want {
			t.Errorf("ReadQuestions(%q) = %v, want %s", text, err, want)
		}
	}
	want := `q.jsonl:1: not a JSON object: invalid character 'x' after top-level value`
	if _, err := ReadQuestions(files("q.jsonl", `{"question": "a"} x`), "q.jsonl"); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func FuzzReadQuestions(f *testing.F) {
	f.Add([]byte(`{"question": "x", "documents": ["a", "b"], "quotes": "y"}`))
	f.Add([]byte(`{"question": "x", "answerable": false}` + "\n" + `{"question": "y", "answers": "a"}`))
	f.Add([]byte("0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ReadQuestions(files("q.jsonl", string(b)), "q.jsonl")
		if (err == nil) != (len(got) > 0) {
			t.Fatalf("ReadQuestions = %d questions, %v; want either questions or an error", len(got), err)
		}
		for _, q := range got {
			if strings.TrimSpace(q.Text) == "" || q.ID == "" {
				t.Fatalf("question = %+v, want a text and an ID", q)
			}
		}
	})
}

func TestHolds(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/rows.txt", "holds")[1:] {
		if got := Holds(row[0], row[1]); got != (row[2] == "yes") {
			t.Errorf("Holds(%q, %q) = %t, want %s", row[0], row[1], got, row[2])
		}
	}
}

// TestSampleQuestions checks that the questions on the sample library have only known
// fields.
func TestSampleQuestions(t *testing.T) {
	questions, err := ReadQuestions(os.DirFS(filepath.Join("..", "..", "..", "data")), "questions.jsonl")
	if err != nil || len(questions) < 100 || questions[0].Worded == "" {
		t.Errorf("ReadQuestions = %d questions, %v; want at least 100", len(questions), err)
	}
}
