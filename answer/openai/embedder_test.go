package openai_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve"
)

var _ retrieve.Embedder = (*openai.Embedder)(nil)

func newEmbedder(t *testing.T, h *openaitest.Handler, o openai.Options) *openai.Embedder {
	t.Helper()
	o.BaseURL, o.Transport, o.Model = openaitest.PipeURL, openaitest.Pipe(t, h), "nomic-embed-text"
	e, err := openai.NewEmbedder(t.Context(), o)
	must(t, err)
	t.Cleanup(e.Close)
	return e
}

// TestEmbedder checks the space, an empty list of texts, and a batch that fails.
func TestEmbedder(t *testing.T) {
	h := &openaitest.Handler{Dimensions: 48}
	e := newEmbedder(t, h, openai.Options{BatchTexts: 1})
	rows, err := e.Embed(t.Context(), nil)
	if err != nil || len(rows) != 0 || len(h.Exchanges()) != 1 || e.Space() != "nomic-embed-text/48" {
		t.Errorf("%d rows, %v, %d requests, the space %q", len(rows), err, len(h.Exchanges()), e.Space())
	}
	h.Embed = openaitest.Sequence(openaitest.Reply{}, openaitest.Reply{Fault: openaitest.Unauthorized})
	if rows, err = e.Embed(t.Context(), []string{"a", "b"}); rows != nil || err == nil {
		t.Errorf("Embed = %d rows, %v; want no rows and an error", len(rows), err)
	}
}

// TestBatches checks that every text gets its own row of unit length for any batches, and
// that no batch is larger than allowed.
func TestBatches(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("tide %d ", i), 1+i%17))
	}
	texts[40] = strings.Repeat("a long one ", 500)
	texts[41] = ""
	for _, c := range []struct{ texts, tokens, requests int }{
		{0, 0, 4}, {10, 1 << 20, 10}, {1000, 1 << 20, 1}, {1, 1, 100}, {1000, 300, 0},
	} {
		h := &openaitest.Handler{}
		e := newEmbedder(t, h, openai.Options{BatchTexts: c.texts, BatchTokens: c.tokens})
		rows, err := e.Embed(t.Context(), texts)
		if err != nil || len(rows) != len(texts) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, row := range rows {
			var norm float64
			for d, c := range openaitest.Vector(texts[i], 64) {
				norm += float64(row[d]) * float64(row[d])
				if math.Abs(float64(row[d]-c)) > 1e-6 {
					t.Fatalf("text %d has the row of another text", i)
				}
			}
			if math.Abs(norm-1) > 1e-6 {
				t.Errorf("row %d has the length %f, want 1", i, math.Sqrt(norm))
			}
		}
		requests := h.Exchanges()[1:]
		if c.requests != 0 && len(requests) != c.requests {
			t.Errorf("limits %d texts, %d tokens: %d requests, want %d", c.texts, c.tokens, len(requests), c.requests)
		}
		for _, x := range requests {
			tokens := 0
			for _, text := range x.Inputs {
				tokens += ingest.CountTokens(text)
			}
			if len(x.Inputs) > 1 && (c.texts > 0 && len(x.Inputs) > c.texts || c.tokens > 0 && tokens > c.tokens) {
				t.Errorf("batch of %d texts, %d tokens; limits %d, %d", len(x.Inputs), tokens, c.texts, c.tokens)
			}
		}
	}
}

// TestEmbedderRepeats checks that a temporary fault is retried, and that the time limit is
// for each request.
func TestEmbedderRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{}
		e := newEmbedder(t, h, openai.Options{BatchTexts: 1})
		slow := openaitest.Reply{FirstToken: 59 * time.Second}
		h.Embed = openaitest.Sequence(openaitest.Reply{Fault: openaitest.Overloaded}, slow)
		rows, err := e.Embed(t.Context(), []string{"a", "b"})
		if err != nil || len(rows) != 2 || len(h.Exchanges()) != 4 {
			t.Errorf("%d rows, %v, %d requests", len(rows), err, len(h.Exchanges()))
		}
		h.Embed = openaitest.Sequence(openaitest.Reply{FirstToken: 61 * time.Second})
		_, err = e.Embed(t.Context(), []string{"a"})
		var failed *openai.Error
		if !errors.As(err, &failed) || failed.Kind != openai.TimedOut {
			t.Errorf("err = %v, want TimedOut", err)
		}
	})
}

// TestCallsShareRequests checks that small documents share requests, and that no more
// requests run at a time than allowed.
func TestCallsShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{Embed: func(openaitest.Request) openaitest.Reply {
			return openaitest.Reply{FirstToken: time.Second}
		}}
		e := newEmbedder(t, h, openai.Options{BatchTexts: 10, Parallel: 3})
		begun := time.Now()
		var g errgroup.Group
		for i := range 40 {
			g.Go(func() error {
				texts := []string{fmt.Sprintf("first of %d", i), fmt.Sprintf("second of %d", i), fmt.Sprintf("third of %d", i)}
				rows, err := e.Embed(t.Context(), texts)
				if err != nil {
					return err
				}
				for n, row := range rows {
					for d, c := range openaitest.Vector(texts[n], 64) {
						if math.Abs(float64(row[d]-c)) > 1e-6 {
							return fmt.Errorf("%q has the row of another text", texts[n])
						}
					}
				}
				return nil
			})
		}
		must(t, g.Wait())
		// The first three requests are sent at once, and the other texts in full batches.
		if n := len(h.Exchanges()) - 1; n < 12 || n > 16 {
			t.Errorf("%d requests for 120 texts, want 12 to 16", n)
		}
		// Three at a time, with a second each.
		if took := time.Since(begun); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the calls took %v, want 4s to 6s", took)
		}
	})
}

// TestRetryAfterHoldsAll checks that a Retry-After for one request delays all requests, and
// does not count as a failure.
func TestRetryAfterHoldsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{}
		e := newEmbedder(t, h, openai.Options{BatchTexts: 1, Parallel: 2})
		limited := openaitest.Reply{Fault: openaitest.RateLimitSeconds}
		replies := slices.Repeat([]openaitest.Reply{limited}, 6) // more than the number of retries after failures
		h.Embed = openaitest.Sequence(append(replies, openaitest.Reply{})...)
		begun := time.Now()
		rows, err := e.Embed(t.Context(), []string{"a", "b", "c", "d"})
		if err != nil || len(rows) != 4 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if took := time.Since(begun); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("the calls took %v, want 3s to 6s", took)
		}
		if n := len(h.Exchanges()) - 1; n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
	})
}

// TestFaultFailsOneCall checks that a text that the server rejects fails only its own
// call, not the calls that shared the request.
func TestFaultFailsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{}
		e := newEmbedder(t, h, openai.Options{Parallel: 1})
		h.Embed = func(r openaitest.Request) openaitest.Reply {
			if slices.Contains(r.Inputs, "poison") {
				return openaitest.Reply{Fault: openaitest.BadRequest}
			}
			return openaitest.Reply{FirstToken: time.Second}
		}
		var g errgroup.Group
		for _, texts := range [][]string{{"a", "b"}, {"c", "d"}, {"poison", "e"}, {"f", "g"}} {
			g.Go(func() error {
				rows, err := e.Embed(t.Context(), texts)
				if poisoned := texts[0] == "poison"; poisoned != (err != nil) || !poisoned && len(rows) != 2 {
					return fmt.Errorf("%q: %d rows, %v", texts, len(rows), err)
				}
				return nil
			})
		}
		must(t, g.Wait())
	})
}

// TestOneCallIsStopped cancels one of several calls: the other calls continue, and its
// texts are not sent.
func TestOneCallIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{Embed: func(openaitest.Request) openaitest.Reply {
			return openaitest.Reply{FirstToken: 10 * time.Second}
		}}
		e := newEmbedder(t, h, openai.Options{Parallel: 1, BatchTexts: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error {
			if _, err := e.Embed(ctx, []string{"a", "b", "c"}); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("canceled call: err = %v, want context.Canceled", err)
			}
			return nil
		})
		synctest.Wait()
		g.Go(func() error {
			rows, err := e.Embed(t.Context(), []string{"d", "e", "f"})
			if err != nil || len(rows) != 3 {
				return fmt.Errorf("other call: %d rows, %v; want 3", len(rows), err)
			}
			return nil
		})
		synctest.Wait()
		cancel()
		must(t, g.Wait())
		for _, x := range h.Exchanges()[2:] {
			if slices.Contains(x.Inputs, "c") {
				t.Errorf("request has a text of the canceled call: %q", x.Inputs)
			}
		}
	})
}
