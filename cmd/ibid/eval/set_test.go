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
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		want.Judgements = test.judgements
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		if judged := got.Judged(); len(judged) != 1 || judged[0].ID != "q1" {
			t.Errorf("%s: judged %v", test.name, judged)
		}
	}
}

// Queries with answers make questions, with or without judgements.
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
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	for want, fsys := range map[string]fs.FS{
		"no query":           files("corpus.jsonl", goodCorpus, "queries.jsonl", `{"_id": "q1", "text": "what?"}`),
		"queries.jsonl:1":    files("corpus.jsonl", goodCorpus, "queries.jsonl", `{"_id": "q1", "text": "what?", "answers": [1]}`),
		"there is no corpus": files("queries.jsonl", goodQueries),
	} {
		if _, _, err := ReadAnswerSet(fsys, ""); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Every mistake is named with its file and line.
func TestHostileSets(t *testing.T) {
	for _, test := range []struct{ name, corpus, queries, qrels, want string }{
		{"empty corpus", "", goodQueries, goodQrels, "corpus.jsonl is empty"},
		{"nothing but a mark", "\ufeff", goodQueries, goodQrels, "corpus.jsonl is empty"},
		{"nothing but a header", goodCorpus, goodQueries, "query-id\tcorpus-id\tscore\n", "qrels.tsv is empty"},
		{"not JSON", goodCorpus + "hello\n", goodQueries, goodQrels, "corpus.jsonl:3: not a JSON object: invalid character 'h'"},
		{"two objects on a line", `{"_id": "a", "text": "x"}{"_id": "b", "text": "x"}`, goodQueries, goodQrels,
			"corpus.jsonl:1: not a JSON object: "},
		{"an array", "[1]", goodQueries, goodQrels, "corpus.jsonl:1: a JSON array, not an object"},
		{"null", "null", goodQueries, goodQrels, `corpus.jsonl:1: "_id" is missing or empty`},
		{"text of another type", `{"_id": "a", "text": ["x"]}`, goodQueries, goodQrels,
			`corpus.jsonl:1: "text" has the wrong type, a JSON array`},
		{"an id with a fraction", `{"_id": 1.0, "text": "x"}`, goodQueries, goodQrels,
			`corpus.jsonl:1: "_id" has the wrong type, a JSON number`},
		{"a document twice", goodCorpus + `{"_id": "a", "text": "x"}`, goodQueries, goodQrels,
			`corpus.jsonl:3: the _id "a" is in line 1 already`},
		{"a huge line", goodCorpus + strings.Repeat("x", maxLine), goodQueries, goodQrels, "corpus.jsonl:3: bufio.Scanner: token too long"},
		{"UTF-16", "\xff\xfe{\x00", goodQueries, goodQrels, "corpus.jsonl:1: not UTF-8; convert the file"},
		{"an empty query", goodCorpus, `{"_id": "q1", "text": " "}`, goodQrels, `queries.jsonl:1: "text" is missing or empty`},
		{"NaN", goodCorpus, goodQueries, goodQrels + "q1\tc\tNaN\n", `qrels.tsv:4: the score "NaN" is not a whole number`},
		{"a broken score", goodCorpus, goodQueries, goodQrels + "q1\tc\t0.5\n", `qrels.tsv:4: the score "0.5" is not a whole number`},
		{"five fields", goodCorpus, goodQueries, "q1\t0\ta\t1\t2\n", "qrels.tsv:1: 5 columns separated by tabs"},
		{"a header in the middle", goodCorpus, goodQueries, goodQrels + "query-id\tcorpus-id\tscore\n",
			`qrels.tsv:4: the score "score" is not a whole number`},
		{"judged twice", goodCorpus, goodQueries, goodQrels + "q1\ta\t1\n",
			"qrels.tsv:4: query \"q1\" and document \"a\" have the score 1, and 2 in an earlier line"},
		{"other queries", goodCorpus, goodQueries, "x\ta\t1\n", "no query of queries.jsonl has a relevant document in qrels.tsv"},
		{"other documents", goodCorpus, goodQueries, "q1\tx\t1\n", "no relevant document of qrels.tsv is in corpus.jsonl"},
	} {
		_, err := ReadSet(files("corpus.jsonl", test.corpus, "queries.jsonl", test.queries, "qrels.tsv", test.qrels), "")
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	for split, want := range map[string]string{"dev": "no judgements found in qrels/dev.tsv",
		"../../etc": `"../../etc" is not the name of a split`} {
		_, err := ReadSet(files("corpus.jsonl", goodCorpus, "queries.jsonl", goodQueries, "qrels.tsv", goodQrels), split)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Judgements are read in the formats of all sets.
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
			t.Errorf("%s: %v %s", name, err, diff)
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
		if len(s.Judged()) == 0 || len(s.Documents) == 0 {
			t.Error("a set that cannot be measured is taken")
		}
	})
}

// README.md documents every field, and its examples can be read.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	must(t, err)
	readme := string(b)
	examples := regexp.MustCompile("(?s)<<'END'\n(.*?)\nEND\n").FindStringSubmatch(readme)
	if examples == nil {
		t.Fatal("no examples")
	}
	questions, err := ReadQuestions(files("q.jsonl", examples[1]), "q.jsonl")
	if err != nil || len(questions) < 6 {
		t.Errorf("%d questions, %v", len(questions), err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[questionLine]()) {
		if !strings.Contains(readme, "`"+strings.ToLower(f.Name)+"`") {
			t.Errorf("the field %s is not documented", f.Name)
		}
	}
}
