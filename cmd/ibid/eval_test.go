package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/cmd/ibid/eval"
)

// teaSet is a set of two documents, each of which answers one query.
var teaSet = map[string]string{
	"corpus.jsonl": `{"_id": "tea", "title": "Tea", "text": "Black tea is served in the galley at four."}
{"_id": "boats", "title": "Boats", "text": "The dinghies stand on the slipway in winter."}`,
	"queries.jsonl": `{"_id": "q1", "text": "When is black tea served?", "answers": ["four"]}
{"_id": "q2", "text": "Where do the dinghies stand in winter?", "answers": ["slipway"]}`,
	"qrels.tsv": "query-id\tcorpus-id\tscore\nq1\ttea\t1\nq2\tboats\t1\n",
}

// decodeEval runs a measurement and reads its JSON object.
func decodeEval[T any](t *testing.T, data string, args ...string) T {
	t.Helper()
	var report T
	out, errs, code := ibid(t, data, append([]string{"eval"}, append(args, "--json")...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("%q: exit code %d, %v: %s%s", args, code, err, out, errs)
	}
	return report
}

// With a reranker there is a fourth search; one that fails is no measurement.
func TestEvalRetrievalWithAReranker(t *testing.T) {
	t.Parallel()
	set := t.TempDir()
	writeFiles(t, set, teaSet)
	upstream, gone := switched()
	args := []string{"retrieval", set, "--rerank-model", "scripted", "--rerank-base-url", openaitest.Start(t, upstream)}
	report := decodeEval[struct {
		BM25, Reranked map[string]float64
		Compared       []struct{ A, B string }
	}](t, t.TempDir(), args...)
	if report.Reranked["ndcg@10"] != 1 || report.BM25["ndcg@10"] != 1 {
		t.Errorf("%+v", report)
	}
	if n := len(report.Compared); n != 3 || report.Compared[n-1].A != "reranked" || report.Compared[n-1].B != "hybrid" {
		t.Errorf("compared %+v", report.Compared)
	}
	if n := len(upstream.Exchanges()); n != 2 {
		t.Errorf("the reranker was asked %d times for 2 queries", n)
	}
	gone.Store(true)
	if out, errs, code := ibid(t, t.TempDir(), append([]string{"eval"}, args...)...); code != exitFailed || !strings.Contains(errs, "asking the query q") || out != "" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// A judge that says yes to everything is right about what is relevant, and
// wrong about every passage shown for an off-topic question.
func TestEvalGateWithAModel(t *testing.T) {
	t.Parallel()
	set, other := t.TempDir(), t.TempDir()
	writeFiles(t, set, teaSet)
	writeFiles(t, other, map[string]string{"queries.jsonl": `{"_id": "o1", "text": "Which enzyme in winter splits lactose?"}`})
	url := openaitest.Start(t, &openaitest.Handler{Reply: openaitest.Rules(openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}})})
	report := decodeEval[gateReportJSON](t, t.TempDir(), "gate", set, "--off-topic", other, "--model", "m", "--base-url", url, "--gate", "model")
	// The questions look at both documents: two passages are relevant, two
	// nobody knows of, two are off topic.
	j := report.Judge
	if j.Judged != 4 || j.Right != 2 || j.Calls != 6 || j.Tokens == 0 || j.Unparsable+j.Errors != 0 {
		t.Errorf("the judge: %+v", j)
	}
	if f := report.Figures; f["judge_accuracy"] != .5 || f["relevant_kept"] != 1 || f["off_topic_skipped"] != 0 || f["off_topic_passages_skipped"] != 0 || f["auroc"] != 1 {
		t.Errorf("%+v", f)
	}

	// One that cannot be read counts apart, and skips nothing.
	url = openaitest.Start(t, &openaitest.Handler{Reply: openaitest.Rules(openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "perhaps, who knows?"}})})
	report = decodeEval[gateReportJSON](t, t.TempDir(), "gate", set, "--off-topic", other, "--model", "m", "--base-url", url, "--gate", "model")
	if j := report.Judge; j.Judged != 4 || j.Right != 0 || j.Unparsable != 6 || report.Figures["on_topic_kept"] != 1 {
		t.Errorf("the judge: %+v, %+v", j, report.Figures)
	}
}

type gateReportJSON struct {
	Figures map[string]float64
	Judge   judgeReport
}

// Answers of a model are compared and what they cost is counted.
func TestEvalAnswersWithAModel(t *testing.T) {
	t.Parallel()
	set := t.TempDir()
	writeFiles(t, set, teaSet)
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Role: "answer", Reply: openaitest.Reply{Text: "Black tea is served in the galley at four [1]."}},
	)}
	report := decodeEval[struct {
		Questions, Answerable int
		Figures               map[string]float64
		Citations             map[string]int
		Usage                 struct {
			Calls      int
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		}
	}](t, t.TempDir(), "answers", set, "--model", "m", "--base-url", openaitest.Start(t, upstream))
	if report.Questions != 2 || report.Answerable != 2 || report.Figures["answered"] != 1 || report.Figures["gold"] != .5 {
		t.Errorf("%+v", report)
	}
	prompt := 0
	for _, x := range upstream.Exchanges() {
		prompt += x.Tokens
	}
	if report.Usage.Calls != len(upstream.Exchanges()) || report.Usage.Prompt != prompt || report.Usage.Completion == 0 {
		t.Errorf("%+v; the server saw %d calls and %d tokens", report.Usage, len(upstream.Exchanges()), prompt)
	}
	if n := report.Citations["quoted"] + report.Citations["supported"] + report.Citations["weak"]; n != 2 || report.Citations["quoted"] < 1 {
		t.Errorf("%+v", report.Citations)
	}
}

// A query that is a document itself does not find itself: the next one is first.
func TestEvalOwnDocument(t *testing.T) {
	set := t.TempDir()
	writeFiles(t, set, map[string]string{
		"corpus.jsonl": `{"_id": "a", "title": "", "text": "School uniforms make pupils equal."}
{"_id": "b", "title": "", "text": "School uniforms make pupils unhappy, not equal."}`,
		"queries.jsonl": `{"_id": "a", "text": "School  uniforms make pupils equal."}
{"_id": "b", "text": "equal pupils"}`,
		"qrels.tsv": "a\tb\t1\nb\tb\t1\n",
	})
	report := decodeEval[struct{ BM25 map[string]float64 }](t, t.TempDir(), "retrieval", set, "--metrics", "mrr@1,mrr@10")
	// b is first for the first query, since a is that query; for the second,
	// whose words are another text than b's, b is second.
	if report.BM25["mrr@1"] != .5 || report.BM25["mrr@10"] != .75 {
		t.Errorf("%+v", report.BM25)
	}
}

// Of two documents with one text either may be the one that was judged.
func TestEvalCopies(t *testing.T) {
	set := t.TempDir()
	writeFiles(t, set, map[string]string{
		"corpus.jsonl": `{"_id": "a", "title": "One", "text": "Black tea is served at four."}
{"_id": "b", "title": "Two", "text": "Black tea is served at four."}
{"_id": "c", "text": "Black tea is served at four."}`,
		"queries.jsonl": `{"_id": "q", "text": "When is black tea served?"}`,
		"qrels.tsv":     "q\ta\t1\nq\tb\t1\nq\tc\t1\n",
	})
	report := decodeEval[map[string]any](t, t.TempDir(), "retrieval", set)
	for _, search := range []string{"bm25", "dense", "hybrid"} {
		figures, _ := report[search].(map[string]any)
		for _, name := range []string{"ndcg@10", "recall@10", "recall@100", "mrr@10"} {
			if figures[name] != 1.0 {
				t.Errorf("%s: %s is %v", search, name, figures[name])
			}
		}
	}
	// What other programs read.
	if report["queries"] != 1.0 || report["documents"] != 3.0 {
		t.Errorf("%v", report)
	}
}

// What is measured is the search as people use it, and in the order in which it
// gives documents.
func TestEvalMeasuresTheSearch(t *testing.T) {
	t.Parallel()
	data, set := t.TempDir(), t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("harbour boat tea milk winter slipway mast sail rope anchor galley chart room tide wind oar dinghy keel crew port lamp storm flag buoy deck cabin map fish net pier")
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[min(random.IntN(len(words)), random.IntN(len(words)))]
		}
		return strings.Join(out, " ")
	}
	var corpus, queries, qrels strings.Builder
	for i := range 400 {
		fmt.Fprintf(&corpus, "{\"_id\": \"d%d\", \"text\": %q}\n", i, text(4+random.IntN(30)))
	}
	const asked = 20
	for i := range asked {
		fmt.Fprintf(&queries, "{\"_id\": \"q%d\", \"text\": %q}\n", i, text(4))
		for d := range 400 {
			fmt.Fprintf(&qrels, "q%d 0 d%d %d\n", i, d, random.IntN(3)*random.IntN(2))
		}
	}
	writeFiles(t, set, map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": queries.String(), "qrels.tsv": qrels.String()})
	read, err := eval.ReadSet(os.DirFS(set), "")
	if err != nil {
		t.Fatal(err)
	}
	details := filepath.Join(t.TempDir(), "details")
	if out, errs, code := ibid(t, data, "eval", "retrieval", set, "--data", data, "--details", details); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	lines, err := os.ReadFile(details)
	if err != nil {
		t.Fatal(err)
	}
	measured := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if len(measured) != asked {
		t.Fatalf("%d queries measured", len(measured))
	}
	for i, q := range read.Queries {
		var line struct{ Hybrid map[string]float64 }
		if err := json.Unmarshal([]byte(measured[i]), &line); err != nil {
			t.Fatal(err)
		}
		out, errs, code := ibid(t, data, "search", "--json", "--data", data, q.Text)
		var found []struct{ Path string }
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, errs)
		}
		var ranking []string
		for _, p := range found {
			ranking = append(ranking, p.Path)
		}
		want := eval.Metric{Kind: "ndcg", K: 10}.Of(ranking, read.Grades[q.ID])
		if got := line.Hybrid["ndcg@10"]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: ndcg@10 is %v, and of what 'ibid search' finds %v", q.Text, got, want)
		}
	}
}

// A name in the judgements that two documents of a store go by is no guess.
func TestEvalAmbiguousDocument(t *testing.T) {
	data, set := t.TempDir(), t.TempDir()
	for _, name := range []string{"one", "two"} {
		folder := filepath.Join(t.TempDir(), name)
		writeFiles(t, folder, hours)
		if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
	}
	writeFiles(t, set, map[string]string{"queries.jsonl": `{"_id": "q", "text": "When does it open?"}`, "qrels.tsv": "q\thours.md\t1\n"})
	_, errs, code := ibid(t, data, "eval", "retrieval", set, "--data", data)
	if code != exitFailed || !strings.Contains(errs, `qrels.tsv names "hours.md", which may be any of one/hours.md, two/hours.md`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	writeFiles(t, set, map[string]string{"qrels.tsv": "q\tone/hours.md\t1\nq\ttwo/hours.md\t1\n"})
	if _, errs, code = ibid(t, data, "eval", "retrieval", set, "--data", data); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Only the document that a question names is right, unless its root is not there
// and no other can be meant.
func TestEvalAnswersDocuments(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"one", "two"} {
		folder := filepath.Join(t.TempDir(), name)
		writeFiles(t, folder, hours)
		if name == "two" {
			writeFiles(t, folder, map[string]string{"hours.md": "# Prices\n\nTea is free."})
		}
		if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
	}
	for _, test := range []struct {
		document, library string // a moved folder has another name
		right             float64
		warned            string
	}{
		{"one/hours.md", "", 1, ""},
		{"two/hours.md", "", 0, ""},
		{"one/gone.md", "", 0, "questions.jsonl names 1 document not in the store, such as one/gone.md; they count as missed"},
		{"two/gone.md", "", 0, "two/gone.md"},
		{"moved/hours.md", "one", 1, ""},
		{"moved/gone.md", "one", 0, "such as moved/gone.md"},
		{"hours.md", "one", 1, ""},
		{"hours", "one", 1, ""},
	} {
		questions := filepath.Join(t.TempDir(), "questions.jsonl")
		writeFiles(t, filepath.Dir(questions), map[string]string{"questions.jsonl": fmt.Sprintf(`{"id": "q", "question": "When does the chart room open?", "answers": ["nine"], "documents": [%q]}`, test.document)})
		args := []string{"eval", "answers", questions, "--json"}
		if test.library == "" {
			args = append(args, "--data", data)
		} else {
			folder := filepath.Join(t.TempDir(), test.library)
			writeFiles(t, folder, hours)
			args = append(args, "--library", folder)
		}
		out, errs, code := ibid(t, data, args...)
		var report struct{ Figures map[string]float64 }
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
		}
		if report.Figures["gold"] != 1 || report.Figures["right_cited"] != test.right {
			t.Errorf("%s: %v", test.document, report.Figures)
		}
		if !strings.Contains(errs, test.warned) || test.warned == "" && strings.Contains(errs, "names") {
			t.Errorf("%s: %s", test.document, errs)
		}
	}
	questions := filepath.Join(t.TempDir(), "questions.jsonl")
	writeFiles(t, filepath.Dir(questions), map[string]string{"questions.jsonl": `{"id": "q", "question": "When does the chart room open?", "documents": ["moved/hours.md"]}`})
	if _, errs, code := ibid(t, data, "eval", "answers", questions, "--data", data); code != exitFailed || !strings.Contains(errs, "may be any of one/hours.md, two/hours.md") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A corpus kept with --data follows the set: what changed is stored anew, what
// is gone is removed, and nothing of a temporary one stays behind.
func TestEvalKeptCorpus(t *testing.T) {
	data, set, temporary := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	writeFiles(t, set, teaSet)
	type report struct {
		Documents int
		BM25      map[string]float64
	}
	if r := decodeEval[report](t, data, "retrieval", set, "--data", data); r.Documents != 2 || r.BM25["ndcg@10"] != 1 {
		t.Fatalf("%+v", r)
	}
	writeFiles(t, set, map[string]string{"corpus.jsonl": `{"_id": "tea", "title": "", "text": "Coffee only."}
{"_id": "new", "title": "Winter dinghies", "text": ""}
{"_id": "empty", "text": " "}`})
	if r := decodeEval[report](t, data, "retrieval", set, "--data", data); r.Documents != 3 || r.BM25["ndcg@10"] != 0 {
		t.Errorf("%+v", r)
	}
	out, errs, code := ibid(t, data, "search", "--json", "black tea dinghies winter")
	if code != 0 || strings.Contains(out, "slipway") || !strings.Contains(out, "/new") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	decodeEval[report](t, data, "retrieval", set)
	left, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "ibid-eval-") }); i >= 0 {
		t.Errorf("%s was left behind", left[i].Name())
	}
}

func TestSample(t *testing.T) {
	items := make([]int, 100)
	for i := range items {
		items[i] = i
	}
	if got := sample(items, 0); len(got) != 100 {
		t.Error(len(got))
	}
	if got := sample(items, 200); len(got) != 100 {
		t.Error(len(got))
	}
	got := sample(items, 10)
	if len(slices.Compact(slices.Clone(got))) != 10 || !slices.IsSorted(got) || !slices.Equal(got, sample(items, 10)) {
		t.Error(got)
	}
}
