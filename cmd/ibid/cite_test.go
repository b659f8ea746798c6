package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
)

func newCiter() *rewrite.Rewriter {
	return rewrite.New([]rewrite.Document{{Source: "a.html"}, {Source: "b.html"}}, rewrite.Text, marker.Default)
}

func TestCiteStreams(t *testing.T) {
	t.Parallel()
	in, text := io.Pipe()
	shown, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := citeText(t.Context(), newCiter(), in, out, false, false)
		done <- errors.Join(err, out.Close())
	}()
	for _, step := range []struct{ write, read string }{
		{"Yes[1](id=2), and ", "Yes[1], and"},
		{"no [1", " no"},
		{"]. That", " [2]. That"},
	} {
		_, err := io.WriteString(text, step.write)
		must(t, err)
		got := make([]byte, len(step.read))
		if _, err := io.ReadFull(shown, got); err != nil || string(got) != step.read {
			t.Fatalf("after writing %q: read %q, %v; want %q", step.write, got, err, step.read)
		}
	}
	must(t, text.Close())
	rest, err := io.ReadAll(shown)
	if err != nil || string(rest) != "\n\n- [1] b.html\n- [2] a.html\n" {
		t.Errorf("list of sources = %q, %v", rest, err)
	}
	must(t, <-done)
}

func TestCiteBrokenInput(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pipe broke")
	var out bytes.Buffer
	text := io.MultiReader(strings.NewReader("So it is [1](id="), iotest.ErrReader(broken))
	err := citeText(t.Context(), newCiter(), text, &out, false, false)
	if !errors.Is(err, broken) || out.String() != "So it is [1](id=" {
		t.Errorf("output = %q, %v; want the text before the fault", out.String(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := citeText(ctx, newCiter(), strings.NewReader("text"), io.Discard, false, false); !errors.Is(err, context.Canceled) {
		t.Errorf("citeText with a canceled context = %v, want context.Canceled", err)
	}
}

// brokenWriter fails like a closed pipe.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestCiteBrokenOutput(t *testing.T) {
	t.Parallel()
	broken := errors.New("nobody reads")
	for _, asJSON := range []bool{false, true} {
		err := citeText(t.Context(), newCiter(), strings.NewReader("text [1]"), brokenWriter{broken}, asJSON, false)
		if !errors.Is(err, broken) {
			t.Errorf("citeText(json = %v) to a broken writer = %v", asJSON, err)
		}
	}
}
