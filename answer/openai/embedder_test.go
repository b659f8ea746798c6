package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestSpace(t *testing.T) {
	h := &openaitest.Handler{Dimensions: 48}
	if got := newEmbedder(t, h, openai.Options{}).Space(); got != "nomic-embed-text/48" {
		t.Errorf("got the space %q", got)
	}
}

func TestDimensionsAreAskedFor(t *testing.T) {
	h := &openaitest.Handler{Dimensions: 48}
	newEmbedder(t, h, openai.Options{Dimensions: 48})
	var body struct{ Dimensions int }
	if err := json.Unmarshal(h.Exchanges()[0].Body, &body); err != nil || body.Dimensions != 48 {
		t.Errorf("asked for %d dimensions, %v", body.Dimensions, err)
	}
	_, err := openai.NewEmbedder(t.Context(), openai.Options{
		BaseURL: openaitest.PipeURL, Transport: openaitest.Pipe(t, h), Model: "m", Dimensions: 64,
	})
	checkError(t, err, outcome{kind: openai.BadReply, requests: 1})
	if !strings.Contains(fmt.Sprint(err), "48 dimensions in place of 64") {
		t.Errorf("got %v", err)
	}
}

// TestBatches: every text gets its own row at unit length, whatever the
// batches, and no batch is larger than allowed.
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
					t.Fatalf("the row of text %d is another's", i)
				}
			}
			if math.Abs(norm-1) > 1e-6 {
				t.Errorf("row %d has the length %f", i, math.Sqrt(norm))
			}
		}
		requests := h.Exchanges()[1:]
		if c.requests != 0 && len(requests) != c.requests {
			t.Errorf("%d texts, %d tokens: %d requests, want %d", c.texts, c.tokens, len(requests), c.requests)
		}
		for _, x := range requests {
			tokens := 0
			for _, text := range x.Inputs {
				tokens += ingest.CountTokens(text)
			}
			if len(x.Inputs) > 1 && (c.texts > 0 && len(x.Inputs) > c.texts || c.tokens > 0 && tokens > c.tokens) {
				t.Errorf("a batch of %d texts, %d tokens; allowed %d, %d", len(x.Inputs), tokens, c.texts, c.tokens)
			}
		}
	}
}

func TestNothingToEmbed(t *testing.T) {
	h := &openaitest.Handler{}
	e := newEmbedder(t, h, openai.Options{})
	rows, err := e.Embed(t.Context(), nil)
	if err != nil || len(rows) != 0 || len(h.Exchanges()) != 1 {
		t.Errorf("%d rows, %v, %d requests", len(rows), err, len(h.Exchanges()))
	}
}

// TestLastBatchFails: an error means that no row counts.
func TestLastBatchFails(t *testing.T) {
	h := &openaitest.Handler{}
	e := newEmbedder(t, h, openai.Options{BatchTexts: 1})
	h.Embed = openaitest.Sequence(openaitest.Reply{}, openaitest.Reply{Fault: openaitest.Unauthorized})
	rows, err := e.Embed(t.Context(), []string{"a", "b"})
	if rows != nil || err == nil {
		t.Errorf("%d rows, error %v", len(rows), err)
	}
}

// TestEmbedderRepeats: after a fault that passes the vectors are there; the
// time limit is for each request.
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
			t.Errorf("got %v", err)
		}
	})
}
