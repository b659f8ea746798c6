package eval

import (
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
)

var must = datatest.Must

const (
	goodCorpus  = `{"_id": "a", "title": "Tea", "text": "black", "metadata": {}}` + "\n" + `{"_id": "b", "title": "", "text": ""}` + "\n"
	goodQueries = `{"_id": "q1", "text": "what tea?", "answers": ["black"]}` + "\n" +
		`{"_id": "q2", "text": "what milk?", "answerable": false}` + "\n"
	goodQrels = "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\n"
)

func files(pairs ...string) fs.FS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

func TestReadSet(t *testing.T) {
	want := &Set{
		Documents: []Entry{{"a", "Tea", "black"}, {"b", "", ""}},
		Queries: []Query{
			{ID: "q1", Text: "what tea?"},
			{ID: "q2", Text: "what milk?"},
		},
		Grades: map[string]Grades{"q1": {"a": 2, "b": 0}},
	}
	windows := strings.NewReplacer("\n", "\r\n")
	for _, test := range []struct {
		name, split, judgements string
		fsys                    fs.FS
	}{
		{"flat", "", "qrels.tsv", files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "qrels.tsv", goodQrels)},
		{"as BEIR has it", "", "qrels/test.tsv", files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "qrels/test.tsv", goodQrels,
			"qrels/dev.tsv", "no\t1\t1\n")},
		{"a split", "dev", "qrels/dev.tsv", files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "qrels/dev.tsv", goodQrels,
			"qrels.tsv", "no\t1\t1\n")},
		{"a file", "other_qrels.tsv", "other_qrels.tsv", files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "other_qrels.tsv",
			goodQrels, "qrels.tsv", "no\t1\t1\n")},
		{"from Windows", "", "qrels.tsv", files("corpus.jsonl", "\ufeff"+windows.Replace(goodCorpus), "queries.jsonl",
			"\ufeff"+windows.Replace(goodQueries), "qrels.tsv", "\ufeff"+windows.Replace(goodQrels))},
		{"blank lines, no last line end", "", "qrels.tsv", files("corpus.jsonl", "\n"+strings.TrimSpace(goodCorpus), "queries.jsonl",
			goodQueries+"\n  \n", "qrels.tsv", strings.TrimSpace(goodQrels))},
	} {
		got, err := ReadSet(test.fsys, test.split)
		if err != nil {
			t.Errorf("reading the set %q: %v", test.name, err)
			continue
		}
		want.Judgements = test.judgements
		datatest.Same(t, "ReadSet of "+test.name, want, got)
		if judged := got.JudgedQueries(); len(judged) != 1 || judged[0].ID != "q1" {
			t.Errorf("%s: JudgedQueries() = %v, want q1", test.name, judged)
		}
	}
}

// TestReadAnswerSet turns queries with answers into questions, with or without judgements.
func TestReadAnswerSet(t *testing.T) {
	more := goodQueries + `{"_id": "q3", "text": "which?", "answers": [["red", "pink"], "blue"]}` + "\n" + `{"_id": "q4", "text": "why?", "answers": null}` + "\n"
	want := []Question{
		{ID: "q1", Text: "what tea?", Answers: []string{"black"}},
		{ID: "q2", Text: "what milk?", Unanswerable: true},
		{ID: "q3", Text: "which?", Answers: []string{"red", "pink", "blue"}},
	}
	judged := append([]Question{}, want...)
	judged[0].Documents = []string{"a"}
	for name, test := range map[string]struct {
		fsys fs.FS
		want []Question
	}{
		"judgements":       {files("corpus.jsonl", goodCorpus, "queries.jsonl", more, "qrels.tsv", goodQrels), judged},
		"empty judgements": {files("corpus.jsonl", goodCorpus, "queries.jsonl", more, "qrels.tsv", ""), want},
		"no judgements":    {files("corpus.jsonl", goodCorpus, "queries.jsonl", more), want},
	} {
		s, got, err := ReadAnswerSet(test.fsys, "")
		if err != nil || len(s.Documents) != 2 {
			t.Errorf("%s: ReadAnswerSet = %v, %v; want 2 documents", name, s, err)
		}
		datatest.Same(t, "questions of "+name, test.want, got)
	}
	for want, fsys := range map[string]fs.FS{
		"no query":           files("corpus.jsonl", goodCorpus, "queries.jsonl", `{"_id": "q1", "text": "what?"}`),
		"queries.jsonl:1":    files("corpus.jsonl", goodCorpus, "queries.jsonl", `{"_id": "q1", "text": "what?", "answers": [1]}`),
		"there is no corpus": files("queries.jsonl", goodQueries),
	} {
		if _, _, err := ReadAnswerSet(fsys, ""); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("ReadAnswerSet = %v, want %s", err, want)
		}
	}
}

// TestHostileSets checks that the error for a mistake has its file and line.
func TestHostileSets(t *testing.T) {
	good := strings.NewReplacer("C", goodCorpus, "Q", goodQueries, "R", goodQrels, "HUGE", strings.Repeat("x", maxLine), "'", `"`)
	for _, row := range datatest.Rows(t, "testdata/rows.txt", "sets")[1:] {
		set := files("corpus.jsonl", good.Replace(row[1]), "queries.jsonl", good.Replace(row[2]), "qrels.tsv", good.Replace(row[3]))
		want := strings.ReplaceAll(row[4], "'", `"`)
		if _, err := ReadSet(set, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: ReadSet = %v, want %s", row[0], err, want)
		}
	}
	for split, want := range map[string]string{"dev": "no judgements found in qrels/dev.tsv",
		"../../etc": `"../../etc" is not the name of a split`} {
		_, err := ReadSet(files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "qrels.tsv", goodQrels), split)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ReadSet = %v, want %s", err, want)
		}
	}
}

// TestJudgements reads judgements in the formats of all sets.
func TestJudgements(t *testing.T) {
	want := map[string]Grades{"q1": {"a": 2, "b": 0}, "7": {"a": -1}}
	for name, written := range map[string]string{
		"without a header": "q1\ta\t2\nq1\tb\t0\n7\ta\t-1",
		"another header":   "\n\nQuery_ID\tDoc\tRelevance\nq1\ta\t2\nq1\tb\t0\n7\ta\t-1\n",
		"of Windows":       "\ufeffquery-id\tcorpus-id\tscore\r\nq1\ta\t2\r\nq1\tb\t0\r\n7\ta\t-1\r\n",
		"lines twice":      "q1\ta\t2\nq1\ta\t2\nq1\tb\t0\n7\ta\t-1\nq1\ta\t2.0\n",
	} {
		got, _, err := ReadGrades(files("qrels.tsv", written), "")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: err = %v, judgements (-want +got)\n%s", name, err, diff)
		}
	}
}

func FuzzReadSet(f *testing.F) {
	f.Add(goodCorpus, goodQueries, goodQrels)
	f.Add("\ufeff{}", "{\"_id\":1e3,\"text\":\"x\"}", "a\tb\t-1\r\n")
	f.Fuzz(func(t *testing.T, corpus, queries, qrels string) {
		s, err := ReadSet(files("corpus.jsonl", corpus, "queries.jsonl", queries, "qrels.tsv", qrels), "")
		if err != nil {
			return
		}
		if len(s.JudgedQueries()) == 0 || len(s.Documents) == 0 {
			t.Error("ReadSet accepted a set without judged queries or documents")
		}
	})
}

// TestReadme checks that README.md documents every field and that its examples can be read.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	must(t, err)
	readme := string(b)
	examples := regexp.MustCompile("(?s)<<'END'\n(.*?)\nEND\n").FindStringSubmatch(readme)
	if examples == nil {
		t.Fatal("README.md has no examples")
	}
	questions, err := ReadQuestions(files("q.jsonl", examples[1]), "q.jsonl")
	if err != nil || len(questions) < 6 {
		t.Errorf("examples of README.md: ReadQuestions = %d questions, %v; want at least 6", len(questions), err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[questionLine]()) {
		if !strings.Contains(readme, "`"+strings.ToLower(f.Name)+"`") {
			t.Errorf("README.md doesn't document the field %s", f.Name)
		}
	}
}
