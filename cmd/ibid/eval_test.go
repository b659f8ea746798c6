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
	"ibid/data/datatest"
)

// teaSet is a set of two documents, each of which answers one query.
var teaSet = map[string]string{
	"corpus.jsonl": `{"_id": "tea", "title": "Tea", "text": "Black tea is served in the galley at four."}
{"_id": "boats", "title": "Boats", "text": "The dinghies stand on the slipway in winter."}`,
	"queries.jsonl": `{"_id": "q1", "text": "When is black tea served?", "answers": ["four"]}
{"_id": "q2", "text": "Where do the dinghies stand in winter?", "answers": ["slipway"]}`,
	"qrels.tsv": "query-id\tcorpus-id\tscore\nq1\ttea\t1\nq2\tboats\t1\n",
}

// decodeEval runs a measurement and decodes its JSON object.
func decodeEval[T any](t *testing.T, data string, args ...string) T {
	t.Helper()
	var report T
	out, errs, code := ibid(t, data, append([]string{"eval"}, append(args, "--json")...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("%q: exit code %d, %v: %s%s", args, code, err, out, errs)
	}
	return report
}

// With a reranker there is a fourth search; if it fails, so does the measurement.
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
	if out, errs, code := ibid(t, t.TempDir(), append([]string{"eval"}, args...)...); code != exitFailed ||
		!strings.Contains(errs, "asking the query q") || out != "" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// The measured search is the one that users run, with documents in its order.
func TestEvalMeasuresTheSearch(t *testing.T) {
	t.Parallel()
	data, set := t.TempDir(), t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("harbour boat tea milk winter slipway mast sail rope anchor galley chart room tide wind oar dinghy keel crew " +
		"port lamp storm flag buoy deck cabin map fish net pier")
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[min(random.IntN(len(words)), random.IntN(len(words)))]
		}
		return strings.Join(out, " ")
	}
	var corpus, queries, qrels strings.Builder
	for i := range 100 {
		fmt.Fprintf(&corpus, "{\"_id\": \"d%d\", \"text\": %q}\n", i, text(4+random.IntN(30)))
	}
	asked := datatest.Cases(t, 80)
	for i := range asked {
		fmt.Fprintf(&queries, "{\"_id\": \"q%d\", \"text\": %q}\n", i, text(4))
		for d := range 100 {
			fmt.Fprintf(&qrels, "q%d\td%d\t%d\n", i, d, random.IntN(3)*random.IntN(2))
		}
	}
	writeFiles(t, set, map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": queries.String(), "qrels.tsv": qrels.String()})
	read, err := eval.ReadSet(os.DirFS(set), "")
	must(t, err)
	details := filepath.Join(t.TempDir(), "details")
	if out, errs, code := ibid(t, data, "eval", "retrieval", set, "--data", data, "--details", details); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	lines, err := os.ReadFile(details)
	must(t, err)
	measured := strings.Split(strings.TrimSpace(string(lines)), "\n")
	if len(measured) != asked {
		t.Fatalf("%d queries measured", len(measured))
	}
	for i, q := range read.Queries {
		var line struct{ Hybrid map[string]float64 }
		must(t, json.Unmarshal([]byte(measured[i]), &line))
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
