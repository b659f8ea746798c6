package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// sse reads the events of a stream: kind and data.
func sse(body string) (events [][2]string) {
	kind := ""
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		} else if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			events = append(events, [2]string{kind, d})
		}
	}
	return events
}

func asked(t *testing.T, query, question string, asker Asker) [][2]string {
	t.Helper()
	h := newHandler(t, func(o *Options) {
		if asker != nil {
			o.Asker = asker
		}
	})
	r := httptest.NewRequest("POST", "http://127.0.0.1:8080/api/ask"+query, strings.NewReader(`{"question":"`+question+`"}`))
	r.Header.Set("Accept", "text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return sse(w.Body.String())
}

func blocksIn(t *testing.T, events [][2]string, kind string) (blocks []blockEvent) {
	t.Helper()
	for _, e := range events {
		if e[0] != kind {
			continue
		}
		var b blockEvent
		if err := json.Unmarshal([]byte(e[1]), &b); err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// TestBlocks: the blocks come with ?html=1 and only then; the rest of the
// stream is the same.
func TestBlocks(t *testing.T) {
	plain, both := asked(t, "", "What is the mooring fee?", nil), asked(t, "?html=1", "What is the mooring fee?", nil)
	var rest []string
	for _, e := range both {
		if e[0] != "block" && e[0] != "marked" {
			rest = append(rest, e[0])
		}
	}
	var kinds []string
	for _, e := range plain {
		kinds = append(kinds, e[0])
	}
	if strings.Join(rest, " ") != strings.Join(kinds, " ") {
		t.Errorf("with blocks the events are %q, without %q", rest, kinds)
	}
	blocks := blocksIn(t, both, "block")
	want := `<p>The mooring fee is 240 crowns a season.<a class="cite" data-number="1" data-at="39">1</a> The harbour office opens at eight.<a class="cite" data-number="2" data-at="77">2</a></p>` + "\n"
	if last := blocks[len(blocks)-1]; !last.Final || last.Index != 0 || last.HTML != want {
		t.Errorf("the last block is %+v, want %q", last, want)
	}
	for _, e := range both[len(both)-1:] {
		if e[0] != "done" {
			t.Errorf("the last event is %s", e[0])
		}
	}
}

// TestBlocksOfDrafts: a draft has blocks of its own.
func TestBlocksOfDrafts(t *testing.T) {
	var finals []string
	for _, b := range blocksIn(t, asked(t, "?html=1", "drafted", nil), "block") {
		if b.Final {
			finals = append(finals, strings.Repeat("draft ", b.Draft)+b.HTML)
		}
	}
	want := "draft <p>The mooring fee is 240 crowns.</p>\n|" + `<p>The mooring fee is 240 crowns a season.<a class="cite" data-number="1" data-at="39">1</a></p>` + "\n"
	if got := strings.Join(finals, "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBlocksMarked marks what nothing bears out when the answer has ended.
func TestBlocksMarked(t *testing.T) {
	events := asked(t, "?html=1", "why?", asker(func(_ context.Context, yield func(answer.Event, error) bool) {
		fee := newShelf().passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
		_ = yield(answer.Kept{Passages: []retrieve.Passage{fee}}, nil) &&
			yield(answer.Text{Text: "The mooring fee is 240 crowns a season.[1]\n\nThe moon is made of **green** cheese."}, nil) &&
			yield(answer.Usage{}, nil)
	}))
	marked := blocksIn(t, events, "marked")
	want := `<p><span class="doubt">The moon is made of </span><strong><span class="doubt">green</span></strong><span class="doubt"> cheese.</span></p>` + "\n"
	if len(marked) != 1 || marked[0].Index != 1 || marked[0].HTML != want {
		t.Errorf("marked %+v, want the second block as %q", marked, want)
	}
}

// TestBlocksBroken gives what was written before an error whole.
func TestBlocksBroken(t *testing.T) {
	events := asked(t, "?html=1", "why?", asker(func(_ context.Context, yield func(answer.Event, error) bool) {
		_ = yield(answer.Text{Text: "Begun **and"}, nil) && yield(nil, errors.New("broken"))
	}))
	n := len(events)
	if n < 2 || events[n-1][0] != "error" || !strings.Contains(events[n-2][1], `"final":true`) {
		t.Errorf("the events are %q", events)
	}
}

// TestBlocksPace: a word every 10 ms is rendered every 50 ms, and the last
// words do not wait for more to come.
func TestBlocksPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		p := newPageStream(newMarkdown(), func(string, any) error {
			at = append(at, time.Since(began))
			return nil
		})
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			if err := p.after("text", []byte(`{"text":"word "}`)); err != nil {
				t.Fatal(err)
			}
		}
		words := time.Since(began)
		time.Sleep(time.Second)
		p.close() // nothing is written from here on
		if n := len(at); n < 15 || n > 21 {
			t.Errorf("%d renderings in a second", n)
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < pause {
				t.Errorf("renderings at %v and %v", at[i-1], at[i])
			}
		}
		if last := at[len(at)-1]; last > words+pause {
			t.Errorf("the last words came at %v and are shown at %v", words, last)
		}
	})
}
