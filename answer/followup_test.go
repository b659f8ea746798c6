package answer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/retrieve"
)

func TestFollowUp(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "follow-ups") {
		before, question, want, under := row[0], row[1], row[2], row[3]
		var history []Turn
		if before != "" { // refused questions add no words
			history = []Turn{{"user", before}, {"assistant", "412 euros."}, {"user", "How do I bake bread?"},
				{"assistant", refusal(noAnswer, "How do I bake bread?")}, {"user", "Hallo!"}, {"assistant", sentences["de"][talk]}}
		}
		got, err := followUp(question, history, under, func(asked, _ string) (bool, error) { return asked == "Juniors?", nil })
		if must(t, err); got != want {
			t.Errorf("followUp(%q) after %q = %q, want %q", question, before, got, want)
		}
	}
}

// TestWholeShortQuestion checks that a short question of several words that one passage has
// is not changed; a single word may get words from the questions before it.
func TestWholeShortQuestion(t *testing.T) {
	index, _ := openLibrary(t)
	for _, test := range [][3]string{{"How do I bake bread?", "When is the office open?", "When is the office open?"},
		{"What does adult membership cost in 2025?", "Juniors?", "Juniors? adult membership cost 2025"}} {
		got, err := followUp(test[1], []Turn{{"user", test[0]}, {"assistant", "412 euros."}}, "", foundIn(t, index))
		if must(t, err); got != test[2] {
			t.Errorf("followUp = %q, want %q", got, test[2])
		}
	}
}

// A dialogue is a question, a fragment that continues it, and the fragment as a whole
// question, which the document of a set answers.
type dialogue struct{ Set, Before, Question, Whole, Document string }

// TestFollowUpFinds checks that with the words that followUp adds, the right document is
// first in at least 85 of 100 cases in which it is first for the whole question. Each
// dialogue is in the language of its documents; half of the fragments omit the "and".
func TestFollowUpFinds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"followups", "fragments"} {
		bySet := map[string][]dialogue{}
		for _, d := range datatest.Lines[dialogue](t, filepath.Join("testdata", name+".jsonl")) {
			bySet[d.Set] = append(bySet[d.Set], d)
		}
		carried, whole := 0, 0
		for set, all := range bySet {
			t.Run(name+"/"+set, func(t *testing.T) {
				c, w := findDialogues(t, set, all)
				carried, whole = carried+c, whole+w
			})
		}
		if t.Logf("%s: %d; whole questions: %d", name, carried, whole); carried*100 < whole*85 {
			t.Errorf("%s: the right document is first for %d fragments and %d whole questions; want at least 85%%", name, carried, whole)
		}
	}
}

// findDialogues returns for how many fragments, and for how many whole questions, the right
// document comes first.
func findDialogues(t *testing.T, set string, all []dialogue) (carried, whole int) {
	var index *retrieve.Index
	switch set {
	case "library":
		index, _ = openLibrary(t)
	case "unseen":
		index, _ = openFolder(t, "/unseen", unseenFolder(t))
	default:
		var names map[string]string
		index, names = openSet(t, datatest.Sets(t, set))
		for i, d := range all {
			all[i].Document = "set/" + names[d.Document]
		}
	}
	first := func(d dialogue, question string) bool {
		found, err := index.Search(t.Context(), retrieve.Query{Text: question})
		must(t, err)
		return len(found) > 0 && found[0].Document == d.Document
	}
	asWritten := 0
	for _, d := range all {
		asked, err := followUp(d.Question, []Turn{{"user", d.Before}, {"assistant", "-"}}, "", foundIn(t, index))
		must(t, err)
		right := first(d, asked)
		switch {
		case right:
			carried++
		case first(d, d.Whole):
			t.Logf("found only by the whole question: %q, %q", asked, d.Whole)
		}
		if first(d, d.Question) {
			asWritten++
		}
		if first(d, d.Whole) {
			whole++
		}
	}
	t.Logf("right document first, of %d: %d as written, %d with carried words, %d by the whole question", len(all), asWritten, carried, whole)
	return carried, whole
}

// openSet reads the records of a set and returns the names of their files.
func openSet(t *testing.T, dir string) (*retrieve.Index, map[string]string) {
	records, err := eval.ReadCorpus(os.DirFS(dir))
	must(t, err)
	folder, names := fstest.MapFS{}, map[string]string{}
	for i, r := range records {
		names[r.ID] = fmt.Sprintf("%d.txt", i)
		folder[names[r.ID]] = &fstest.MapFile{Data: []byte(r.Text)}
	}
	index, _ := openFolder(t, "/set", folder)
	return index, names
}

func foundIn(t *testing.T, index *retrieve.Index) func(question, whole string) (bool, error) {
	f := &finder{Answerer: &Answerer{Retriever: index}}
	return func(question, whole string) (bool, error) { return f.foundTogether(t.Context(), question, whole) }
}

// TestTopicChange checks that after a question about another topic, a whole question is
// seldom changed so that its paragraph is no longer found first.
func TestTopicChange(t *testing.T) {
	datatest.CampaignOnly(t, "indexing one of the sets needs seconds")
	for _, set := range []string{"xquad-a/de", "xquad-a/es", "xquad-a/ru", "xquad-a/hi", "squad2-a"} {
		dir := datatest.Sets(t, set)
		index, names := openSet(t, dir)
		grades, _, err := eval.ReadGrades(os.DirFS(dir), "")
		must(t, err)
		queries, err := eval.ReadQueries(os.DirFS(dir))
		must(t, err)
		first := func(id, text string) int {
			found, err := index.Search(t.Context(), retrieve.Query{Text: text})
			must(t, err)
			for right := range grades[id] {
				if len(found) > 0 && found[0].Document == "set/"+names[right] {
					return 1
				}
			}
			return 0
		}
		changed, asWritten, carried := 0, 0, 0
		for i, q := range queries {
			before := queries[(i+len(queries)/2)%len(queries)].Text
			asked, err := followUp(q.Text, []Turn{{"user", before}, {"assistant", "-"}}, "", foundIn(t, index))
			if must(t, err); asked != q.Text {
				changed, asWritten, carried = changed+1, asWritten+first(q.ID, q.Text), carried+first(q.ID, asked)
			}
		}
		t.Logf("%s: %d of %d changed: right document first for %d of them as written, %d with carried words", set, changed, len(queries),
			asWritten, carried)
		if lost := asWritten - carried; lost*100 > len(queries) {
			t.Errorf("%s: %d questions lost, want at most 1 in 100", set, lost)
		}
	}
}

// TestStandalone checks that at most 5 in 100 standalone questions of a set are changed by
// the question before.
func TestStandalone(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"library", "xquad-a/ar", "xquad-a/de", "xquad-a/es", "xquad-a/hi", "xquad-a/ru", "xquad-a/zh", "squad2-a",
		"clapnq-a"} {
		t.Run(set, func(t *testing.T) {
			file := filepath.Join("..", "data", "questions.jsonl")
			if set != "library" {
				file = filepath.Join(datatest.Sets(t, set), "queries.jsonl")
			}
			before, changed := "", 0
			all := datatest.Lines[struct{ Question, Text string }](t, file)
			for _, q := range all {
				question := q.Question + q.Text
				got, err := followUp(question, []Turn{{"user", before}, {"assistant", "-"}}, "",
					func(string, string) (bool, error) { return false, nil })
				if must(t, err); got != question {
					t.Logf("changed: %s", got)
					changed++
				}
				before = question
			}
			if t.Logf("%d of %d changed", changed, len(all)); changed*20 > len(all) {
				t.Errorf("%d of %d standalone questions changed, want at most 5 in 100", changed, len(all))
			}
		})
	}
}
