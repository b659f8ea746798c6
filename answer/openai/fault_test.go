package openai_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// No error may contain one of these.
const (
	canaryKey    = "sk-canary-31415926535897932384626433832795"
	canaryPrompt = "The canary of the document sings at dawn, and no error may repeat the song."
)

const replyText = "High water stands at noon [1], and again at midnight [2]; café ☕ included."

// An outcome is the expected result of a fault.
type outcome struct {
	Fault    openaitest.Fault
	Kind     openai.Kind // empty: the whole reply arrives
	Partial  bool        // a part of the text arrives first
	Requests int         // total number of requests
}

// drain reads a reply to its end.
func drain(m answer.Model, ctx context.Context, p answer.Prompt) (text string, last answer.Piece, err error) {
	var b strings.Builder
	for piece, e := range m.Complete(ctx, p) {
		if err != nil || last.Finish != "" {
			panic("a piece came after the last one")
		}
		b.WriteString(piece.Text)
		last, err = piece, e
	}
	return b.String(), last, err
}

// checkError checks the rules for all errors.
func checkError(t *testing.T, err error, want outcome) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *openai.Error", err, err)
	}
	if e.Kind != want.Kind {
		t.Errorf("got kind %s, want %s: %v", e.Kind, want.Kind, err)
	}
	if e.Requests != want.Requests {
		t.Errorf("err has Requests = %d, want %d", e.Requests, want.Requests)
	}
	for err := err; err != nil; err = errors.Unwrap(err) {
		for _, secret := range []string{canaryKey[10:20], canaryKey[len(canaryKey)-10:], canaryPrompt[10:40]} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("err shows a secret: %v", err)
			}
		}
		if n := len(err.Error()); n > 1000 {
			t.Errorf("err has %d bytes, want at most 1000", n)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) != (e.Kind == openai.TimedOut) {
		t.Errorf("err wraps the wrong error of the context: %v", err)
	}
	if errors.Is(err, answer.ErrContextLength) != (e.Kind == openai.ContextLength) {
		t.Errorf("errors.Is(err, answer.ErrContextLength) is wrong for the kind %s", e.Kind)
	}
	if e.Kind == openai.Cut && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("err of a cut reply does not wrap io.ErrUnexpectedEOF")
	}
}

// chatFault plays a fault to a chat call.
func chatFault(t *testing.T, o openai.Options, h *openaitest.Handler, want outcome) {
	h.Reply = func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Text: replyText, Fault: want.Fault}
	}
	client, err := openai.New(o)
	must(t, err)
	defer client.Close()
	text, last, err := drain(client, t.Context(), answer.Prompt{Role: answer.RoleAnswer, System: "Answer.", User: canaryPrompt})
	exchanges := h.Exchanges()
	if len(exchanges) != want.Requests {
		t.Errorf("%d requests, want %d", len(exchanges), want.Requests)
	}
	for _, x := range exchanges {
		if x.Role != "answer" || !strings.HasSuffix(x.Path, "/v1/chat/completions") {
			t.Errorf("request for role %q to %s", x.Role, x.Path)
		}
	}
	if want.Kind == "" {
		if err != nil || text != replyText || last.Finish != "stop" {
			t.Errorf("text = %q, finish = %q, err = %v; want the whole reply", text, last.Finish, err)
		}
		if u := last.Usage; u.Prompt == 0 || u.Completion == 0 || u.Requests != want.Requests ||
			u.Reported == (want.Fault == openaitest.NoUsage || want.Fault == openaitest.NoStreamOptions) {
			t.Errorf("usage = %+v", u)
		}
		return
	}
	checkError(t, err, want)
	if last.Finish != "" || last.Text != "" || last.Usage.Requests != want.Requests || last.Usage.Reported {
		t.Errorf("piece with the error = %+v, want only requests", last)
	}
	if (text != "") != want.Partial {
		t.Errorf("text = %q, want partial text: %t", text, want.Partial)
	}
	if want.Fault != openaitest.HugeText && !strings.HasPrefix(replyText, text) {
		t.Errorf("text = %q, want a prefix of the reply", text)
	}
}

// objectFault plays a fault to a call of an endpoint that replies with one object.
func objectFault(t *testing.T, o openai.Options, h *openaitest.Handler, want outcome, role string) {
	texts := []string{canaryPrompt, "noon", "high water", ""}
	play := func(openaitest.Request) openaitest.Reply { return openaitest.Reply{Fault: want.Fault} }
	var rows [][]float32
	var scores []float64
	first := 0 // number of requests before the call
	var err error
	if role == "embed" {
		embedder, made := openai.NewEmbedder(t.Context(), o) // a first call learns the dimensions
		must(t, made)
		embedder.Close() // net/http repeats a request on a connection that was kept open
		first, h.Embed = 1, play
		rows, err = embedder.Embed(t.Context(), texts)
	} else {
		reranker, made := openai.NewReranker(o)
		must(t, made)
		defer reranker.Close()
		h.Rerank = play
		scores, err = reranker.Rerank(t.Context(), "When is high water?", texts)
	}
	exchanges := h.Exchanges()[first:]
	if got := len(exchanges); got != want.Requests {
		t.Errorf("%d requests, want %d", got, want.Requests)
	}
	for _, x := range exchanges {
		if x.Role != role || role == "rerank" && (!strings.HasSuffix(x.Path, "/v1/rerank") || x.Query != "When is high water?") {
			t.Errorf("request for role %q to %s about %q", x.Role, x.Path, x.Query)
		}
	}
	if want.Kind != "" {
		if rows != nil || scores != nil {
			t.Errorf("%d rows, %d scores and an error, want only the error", len(rows), len(scores))
		}
		checkError(t, err, want)
		return
	}
	if err != nil || len(rows)+len(scores) != len(texts) {
		t.Fatalf("%d rows, %d scores, err = %v", len(rows), len(scores), err)
	}
	for i, text := range texts {
		if role == "rerank" && scores[i] != openaitest.Score("When is high water?", text) {
			t.Errorf("%q has the score of another text", text)
		}
		for d, c := range openaitest.Vector(text, 64) {
			if role == "embed" && math.Abs(float64(rows[i][d]-c)) > 1e-6 {
				t.Fatalf("%q has the row of another text", text)
			}
		}
	}
}

// TestFaults plays every fault, with the time limits and waits of real use,
// over HTTP in memory.
func TestFaults(t *testing.T) {
	faults := datatest.Table[outcome](t, "testdata/replies.txt", "faults")
	chat := append(slices.Clone(faults), datatest.Table[outcome](t, "testdata/replies.txt", "faults of a stream")...)
	for role, faults := range map[string][]outcome{"answer": chat, "embed": faults, "rerank": faults} {
		for _, want := range faults {
			t.Run(role+"/"+string(want.Fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &openaitest.Handler{Huge: 8 << 20}
					start := time.Now()
					o := openai.Options{BaseURL: openaitest.PipeURL, Key: canaryKey, Model: "m", Transport: openaitest.Pipe(t, h)}
					if role == "answer" {
						chatFault(t, o, h, want)
					} else {
						if role == "embed" && (want.Fault == openaitest.RateLimitSeconds || want.Fault == openaitest.RateLimitDate) {
							want.Requests += 10 // an ingest may wait longer
						}
						objectFault(t, o, h, want, role)
					}
					if took := time.Since(start); took > 75*time.Second {
						t.Errorf("the call took %s, want at most 75s", took)
					}
				})
			})
		}
	}
}

// TestMismatchedReplies checks that vectors and scores that do not match the texts are
// errors, and that the order of the reply does not matter.
func TestMismatchedReplies(t *testing.T) {
	const first = `{"data":[{"index":0,"embedding":[3,4]}]}`
	embed := func(t *testing.T, o openai.Options) ([]float64, error) {
		e, err := openai.NewEmbedder(t.Context(), o)
		must(t, err)
		defer e.Close()
		rows, err := e.Embed(t.Context(), []string{"a", "b"})
		if err != nil {
			return nil, err
		}
		return []float64{float64(rows[0][0]), float64(rows[1][0])}, nil
	}
	rerank := func(t *testing.T, o openai.Options) ([]float64, error) {
		r, err := openai.NewReranker(o)
		must(t, err)
		defer r.Close()
		return r.Rerank(t.Context(), "q", []string{"a", "b"})
	}
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "vectors and scores") {
		call, body := map[string]func(*testing.T, openai.Options) ([]float64, error){"embed": embed, "rerank": rerank}[row[0]], row[2]
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(b), `"dimensions"`) { // the first call of an embedder
				io.WriteString(w, first)
				return
			}
			io.WriteString(w, body)
		}))
		got, err := call(t, openai.Options{BaseURL: s.URL, Model: "m"})
		if row[1] == "good" {
			if err != nil || len(got) != 2 || got[0] != 1 || got[1] != 0 {
				t.Errorf("%s: got %v, %v; want [1 0]", body, got, err)
			}
		} else if e := (*openai.Error)(nil); !errors.As(err, &e) || e.Kind != openai.BadReply || got != nil {
			t.Errorf("%s: got %v, %v; want BadReply", body, got, err)
		}
		s.Close()
	}
}
