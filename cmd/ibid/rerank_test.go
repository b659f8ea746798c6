package main

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
	"ibid/retrieve"
)

// A reranker orders the passages of searches and answers; if it fails, there is
// only a warning.
func TestReranker(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	mustRun(t, data, "ingest", folder)
	upstream, gone := switched()
	reranker := []string{"--rerank-model", "scripted", "--rerank-base-url", openaitest.Start(t, upstream)}

	search := append([]string{"search", "--json", "When does the chart room open?"}, reranker...)
	out, errs, code := ibid(t, data, search...)
	var found []retrieve.Passage
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 || len(found) == 0 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	for i, p := range found {
		if p.Scores.Rerank == nil || i > 0 && *p.Scores.Rerank > *found[i-1].Scores.Rerank {
			t.Errorf("passage %d is not in the reranker's order: %+v", i, p.Scores)
		}
	}
	if x := upstream.Exchanges(); len(x) != 1 || x[0].Model != "scripted" || x[0].Query != "When does the chart room open?" ||
		x[0].Role != "rerank" {
		t.Errorf("asked %+v", x)
	}

	gone.Store(true)
	out, errs, code = ibid(t, data, search...)
	if code != 0 || !strings.Contains(errs, "reranking failed") || !strings.Contains(out, "opens at nine") ||
		strings.Contains(out, `"rerank"`) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = ibid(t, data, append([]string{"ask", "--json", "When does the chart room open?"}, reranker...)...)
	var a cite.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 || !a.Answered || len(a.Warnings) != 1 ||
		!strings.Contains(a.Warnings[0], "reranking failed") {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}

	for _, wrong := range [][]string{
		{"search", "x", "--rerank-model", "m", "--rerank-base-url", "ftp://x"},
	} {
		if _, errs, code := ibid(t, data, wrong...); code != exitUsage {
			t.Errorf("%q: exit code %d: %s", wrong, code, errs)
		}
	}
}

// switched returns a reranker that works until gone is set.
func switched() (h *openaitest.Handler, gone *atomic.Bool) {
	gone = new(atomic.Bool)
	return &openaitest.Handler{Rerank: func(openaitest.Request) (r openaitest.Reply) {
		if gone.Load() {
			r.Fault = openaitest.NoModel
		}
		return r
	}}, gone
}
