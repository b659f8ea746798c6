package web

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// ask streams the reply to a question. A nil asker answers from the script.
func ask(t *testing.T, query, question string, asker Asker) []event {
	t.Helper()
	h := newHandler(t, func(o *Options) {
		if asker != nil {
			o.Asker = asker
		}
	})
	return eventsOf(t, call(h, "POST", "/api/ask"+query, `{"question":"`+question+`"}`, asEvents...).Body.Bytes())
}

func blocksIn(t *testing.T, events []event, kind string) (blocks []blockEvent) {
	t.Helper()
	for _, e := range events {
		if e.kind != kind {
			continue
		}
		var b blockEvent
		must(t, json.Unmarshal(e.data, &b))
		blocks = append(blocks, b)
	}
	return blocks
}

// TestBlocks checks that the stream has blocks with ?html=1 and is the same
// otherwise.
func TestBlocks(t *testing.T) {
	plain, both := ask(t, "", "What is the mooring fee?", nil), ask(t, "?html=1", "What is the mooring fee?", nil)
	var rest []string
	for _, e := range both {
		if e.kind != "block" && e.kind != "marked" {
			rest = append(rest, e.kind)
		}
	}
	var kinds []string
	for _, e := range plain {
		kinds = append(kinds, e.kind)
	}
	if strings.Join(rest, " ") != strings.Join(kinds, " ") {
		t.Errorf("with blocks the events are %q, without %q", rest, kinds)
	}
	blocks := blocksIn(t, both, "block")
	want := `<p>The mooring fee is 240 crowns a season.<a class="cite" data-number="1" data-at="39">1</a> The harbour office opens at eight.<a class="cite" data-number="2" data-at="77">2</a></p>` + "\n"
	if last := blocks[len(blocks)-1]; !last.Final || last.Index != 0 || last.HTML != want {
		t.Errorf("the last block is %+v, want %q", last, want)
	}
	if last := both[len(both)-1].kind; last != "done" {
		t.Errorf("the last event is %s", last)
	}
	h := newHandler(t, func(o *Options) { o.Ledger, o.KeepAnswers = newLedger(), time.Hour })
	w := call(h, "POST", "/api/ask?html=1", `{"question":"What is the mooring fee?"}`)
	id := w.Header().Get("Ibid-Run")
	if whole := into[answered](t, w, 200); whole.HTML != want || whole.Markdown != "" {
		t.Errorf("the reply has %q, want %q", whole.HTML, want)
	}
	if record := into[answerRecord](t, call(h, "GET", "/api/runs/"+id+"?html=1", ""), 200); record.HTML != want {
		t.Errorf("the record has %q, want %q", record.HTML, want)
	}
}

// TestBlocksOfDrafts checks that a draft has its own blocks.
func TestBlocksOfDrafts(t *testing.T) {
	var finals []string
	for _, b := range blocksIn(t, ask(t, "?html=1", "drafted", nil), "block") {
		if b.Final {
			finals = append(finals, strings.Repeat("draft ", b.Draft)+b.HTML)
		}
	}
	want := "draft <p>The mooring fee is 240 crowns.</p>\n|" +
		`<p>The mooring fee is 240 crowns a season.<a class="cite" data-number="1" data-at="39">1</a></p>` + "\n"
	if got := strings.Join(finals, "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBlocksMarked checks that unsupported words are marked after the answer.
func TestBlocksMarked(t *testing.T) {
	events := ask(t, "?html=1", "why?", asker(func(_ context.Context, yield func(answer.Event, error) bool) {
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

// TestBlocksBroken checks that the text before an error is complete.
func TestBlocksBroken(t *testing.T) {
	events := ask(t, "?html=1", "why?", asker(func(_ context.Context, yield func(answer.Event, error) bool) {
		_ = yield(answer.Text{Text: "Begun **and"}, nil) && yield(nil, errors.New("broken"))
	}))
	n := len(events)
	if n < 2 || events[n-1].kind != "error" || !strings.Contains(string(events[n-2].data), `"final":true`) {
		t.Errorf("the events are %q", events)
	}
}
