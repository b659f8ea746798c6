package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai/openaitest"
	"ibid/answer/trial"
	"ibid/cite"
	"ibid/web"
)

// TestAskWithAModel runs the gated loop end to end over HTTP: off-topic passages are
// skipped with the judge's reason, the model's labels become numbers by first use, labels
// that it invents are dropped, and the answer streams.
func TestAskWithAModel(t *testing.T) {
	t.Parallel()
	data := ingested(t, map[string]string{
		"hours.md":   "# Opening hours\n\nThe chart room opens at nine and closes at five.\n",
		"summer.md":  "# Summer\n\nIn summer the chart room opens an hour earlier.\n",
		"kitchen.md": "# Kitchen\n\nThe kitchen opens with the big key.\n",
	})
	label := regexp.MustCompile(`(?m)^\[(\d+)\] (Opening hours|Summer)`)
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile(`big key`),
			Reply: openaitest.Reply{Text: "no\nabout the kitchen, not the hours"}},
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Role: "answer", Func: func(r openaitest.Request) openaitest.Reply {
			// Cite the later label first, and one that doesn't exist.
			text := "It is closed at night [9]."
			for _, m := range label.FindAllStringSubmatch(r.User, -1) {
				s := "The chart room opens at nine and closes at five [" + m[1] + "]. "
				if m[2] == "Summer" {
					s = "In summer it opens an hour earlier [" + m[1] + "](id=" + m[1] + "). "
				}
				text = s + text
			}
			return openaitest.Reply{Text: text}
		}},
	)}
	url := openaitest.Start(t, upstream)
	model := []string{"--model", "scripted", "--base-url", url, "--gate", "model"}

	a := printed[cite.Answer](t, data, append([]string{"ask", "--json", "When does the chart room open?"}, model...)...)
	if n := len(a.Sources); n != 2 || !strings.Contains(a.Text, "[1]") || !strings.Contains(a.Text, "[2]") ||
		strings.Contains(a.Text, "(id=") {
		t.Errorf("%d sources, text = %q; want 2 sources, cited as [1] and [2]", n, a.Text)
	}
	if i, j := strings.Index(a.Text, "[1]"), strings.Index(a.Text, "[2]"); i > j {
		t.Errorf("citations are not numbered by first use: %q", a.Text)
	}
	for _, s := range a.Sources {
		if strings.Contains(s.Document, "kitchen") {
			t.Errorf("off-topic document is a source: %+v", s)
		}
	}
	skipped := 0
	for _, j := range a.Judged {
		if j.Decision == "irrelevant" {
			skipped++
			if !strings.HasSuffix(j.Document, "/kitchen.md") || j.Reason != "the model says no" || j.By != "model" {
				t.Errorf("skipped passage = %+v, want the kitchen by the model", j)
			}
		}
	}
	if skipped != 1 {
		t.Errorf("%d passages skipped, want 1", skipped)
	}
	for _, x := range upstream.Exchanges() {
		if x.Role == "answer" && strings.Contains(x.User, "big key") {
			t.Error("a skipped passage is in the prompt of the answer")
		}
	}

	// The terminal shows the same text.
	out, errs, code := ibid(t, data, append([]string{"ask", "When does the chart room open?"}, model...)...)
	if code != 0 || !strings.HasPrefix(out, a.Text) || !strings.Contains(errs, "considered 3 passages, used 2") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestAbilities asks in two processes with a server that supports neither logprobs nor
// response_format, in the cases where the processes share what they learned: the second
// process requests neither, and doctor tries both again.
func TestAbilities(t *testing.T) {
	t.Parallel()
	data := ingested(t, hours)
	inner := &openaitest.Handler{Reply: openaitest.Rules(openaitest.Rule{Reply: openaitest.Reply{Text: "yes"}})}
	var refused atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, part := range []string{"logprobs", "response_format"} {
			if strings.Contains(string(body), `"`+part+`":`) {
				refused.Add(1)
				http.Error(w, `{"error":{"message":"`+part+` is not supported"}}`, http.StatusBadRequest)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	model := []string{"--model", "scripted", "--base-url", server.URL + "/v1"}
	for _, run := range []struct {
		args    []string
		refused bool
	}{
		{[]string{"ask", "When does the chart room open?", "--gate", "model"}, true},
		{[]string{"ask", "When does the chart room close?", "--gate", "model"}, false},
		{[]string{"doctor", "--no-self-test=false"}, true},
		{[]string{"ask", "When is the chart room open?", "--gate", "model"}, false},
	} {
		refused.Store(0)
		if out, errs, _ := ibid(t, data, append(run.args, model...)...); (refused.Load() > 0) != run.refused {
			t.Errorf("%q: %d requests were refused, want some: %t; output %s%s", run.args, refused.Load(), run.refused, out, errs)
		}
	}
}

// A chattyModel gives the same reply to all prompts.
type chatty struct{ called func() }

func (m chatty) Complete(context.Context, answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		m.called()
		if yield(answer.Piece{Text: "Perhaps."}, nil) {
			yield(answer.Piece{Finish: "stop"}, nil)
		}
	}
}

// TestSelfTest checks that a model is tested after the first question, while no question is
// being answered, and that its results are then trusted accordingly.
func TestSelfTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var test *selfTest
		calls := 0
		var kept []trial.Result
		test = &selfTest{
			models: answer.Answerer{Model: chatty{func() {
				if calls++; test.active > 0 {
					t.Error("the model was tested while a question was being answered")
				}
			}}},
			logger: slog.New(slog.DiscardHandler),
			keep:   func(_ context.Context, r trial.Result) error { kept = append(kept, r); return nil },
		}
		go test.run(t.Context())
		time.Sleep(time.Hour)
		if calls != 0 {
			t.Errorf("%d calls before the first question, want none", calls)
		}
		trust, end := test.question()
		if trust != (answer.Trust{}) {
			t.Errorf("trust before the test = %+v, want none", trust)
		}
		end()
		_, end = test.question()
		time.Sleep(time.Hour)
		if calls != 0 {
			t.Errorf("%d calls during a question, want none", calls)
		}
		end()
		time.Sleep(time.Hour)
		synctest.Wait()
		if trust, _ = test.question(); !trust.NoJudge || !strings.Contains(trust.Distrust, "0 of 4") || len(kept) != 1 {
			t.Errorf("trust = %+v after %d calls, kept %+v; want no judge", trust, calls, kept)
		}
	})
}

// broken is a model that fails a given number of times.
type broken struct {
	chatty
	fails *int
}

func (m broken) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	if *m.fails--; *m.fails < 0 {
		return m.chatty.Complete(ctx, p)
	}
	m.called()
	return func(yield func(answer.Piece, error) bool) { yield(answer.Piece{}, errors.New("status 500")) }
}

// TestSelfTestBreaksOff checks that a self-test that fails midway is repeated after the
// next question, at most three times in all.
func TestSelfTestBreaksOff(t *testing.T) {
	for _, tt := range []struct{ questions, kept int }{{5, 0}, {1, 1}} { // then the model works, if a try is left
		synctest.Test(t, func(t *testing.T) {
			fails, calls, kept := 1000, 0, 0
			test := &selfTest{
				models: answer.Answerer{Model: broken{chatty{func() { calls++ }}, &fails}},
				logger: slog.New(slog.DiscardHandler),
				keep:   func(context.Context, trial.Result) error { kept++; return nil },
			}
			go test.run(t.Context())
			ask := func() (made int) {
				before := calls
				_, end := test.question()
				end()
				time.Sleep(time.Hour)
				synctest.Wait()
				return calls - before
			}
			for i := range tt.questions {
				if made := ask(); (made > 0) != (i < mostTries) || test.brokenError() == nil {
					t.Errorf("%d calls after question %d, brokenError = %v", made, i+1, test.brokenError())
				}
			}
			fails = 0
			ask()
			if done := test.brokenError() == nil; done != (tt.kept == 1) || test.trust.Distrust == "" == done {
				t.Errorf("after %d failed tries: trust = %+v, brokenError = %v", tt.questions, test.trust, test.brokenError())
			}
			if kept != tt.kept {
				t.Errorf("%d results kept, want %d", kept, tt.kept)
			}
		})
	}
}

// TestFindModels checks that models are found without a key, that Ibid servers and
// embedding models are left out, and that no redirect is followed.
func TestFindModels(t *testing.T) {
	serve := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
				t.Errorf("request for %s with headers %v", r.URL, r.Header)
			}
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	const two = `{"data":[{"id":"nomic-embed-text"},{"id":"bge-m3"},{"id":"mxbai-embed-large"},{"id":"llama3.2"},{"id":"qwen3"}]}`
	own, ollama := serve(200, two), serve(200, two)
	found := findModels(t.Context(), []web.ModelServer{{Name: "own", BaseURL: own}, {Name: "Ollama", BaseURL: ollama},
		{Name: "Ibid", BaseURL: serve(200, `{"data":[{"id":"ibid"},{"id":"ibid/default"}]}`)}, {Name: "moved", BaseURL: serve(302, two)},
		{Name: "other", BaseURL: serve(200, `<html>`)}, {Name: "none", BaseURL: "http://127.0.0.1:1/v1"}},
		strings.TrimSuffix(strings.TrimPrefix(own, "http://"), "/v1"))
	want := "Found Ollama with 2 models: ibid serve --base-url " + ollama + " --model llama3.2"
	if len(found) != 1 || modelHint(found[0]) != want {
		t.Errorf("findModels = %v, want %s", found, want)
	}
}
