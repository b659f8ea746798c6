package web

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/ingest"
	"ibid/retrieve"
)

const cafe = "日本 Café. The café opens at nine, they say."

// accented is a library with one document, which it quotes for each question.
type accented struct{ shelf }

func (accented) Document(_ context.Context, id string) (*ingest.Document, error) {
	if id != "cafés/é.md" {
		return nil, retrieve.ErrNotFound
	}
	return &ingest.Document{ID: id, Text: cafe}, nil
}

func (accented) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) {
	const words = "The café opens at nine, they say."
	c := ingest.Chunk{ID: "cafés/é.md#1", Document: "cafés/é.md", Start: len(cafe) - len(words), End: len(cafe), Text: words}
	gone := ingest.Chunk{ID: "gone.md#1", Document: "gone.md", Start: 1, End: 2, Text: "x"}
	return []retrieve.Passage{{Chunk: c}, {Chunk: gone}}, nil
}

func (a accented) Ask(ctx context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
	found, _ := a.Search(ctx, retrieve.Query{})
	return func(yield func(answer.Event, error) bool) {
		for _, e := range []answer.Event{answer.Retrieved{Passages: found}, answer.Kept{Passages: found[:1]},
			answer.Text{Text: "Das Café öffnet nie. "}, answer.Text{Text: "The café opens at nine [1]. 日本?"}, answer.Usage{}} {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// TestCodePoints checks that offsets in code points select the same words as the offsets in
// bytes, in replies, records and events.
func TestCodePoints(t *testing.T) {
	h := newHandler(t, func(o *Options) {
		o.Asker, o.Searcher, o.Library, o.Ledger, o.KeepAnswers = accented{}, accented{}, accented{}, newLedger(), time.Hour
	})
	var said string
	seen := map[string]int{}
	var check func(where string, v any)
	check = func(where string, v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				check(where, item)
			}
		case map[string]any:
			for name, member := range v {
				check(where, member)
				if !strings.HasSuffix(name, "start") {
					continue
				}
				text, prefix := said, strings.TrimSuffix(name, "start")
				if prefix == "" && (v["document"] != nil || v["quote"] != nil) {
					text = cafe
				}
				a, counted := v[name+"_chars"].(float64)
				if v["document"] == "gone.md" {
					if counted {
						t.Errorf("%s: offsets in a deleted document: %v", where, v)
					}
					continue
				}
				b, _ := v[prefix+"end_chars"].(float64)
				from, to := int(v[name].(float64)), int(v[prefix+"end"].(float64))
				if !counted || string([]rune(text)[int(a):int(b)]) != text[from:to] {
					t.Errorf("%s: %s: bytes %d-%d are not code points %v-%v of %q", where, name, from, to, a, b, text)
				}
				seen[where+" "+name]++
			}
		}
	}
	decoded := func(data []byte) (v any) {
		must(t, json.Unmarshal(data, &v))
		return v
	}
	const question = `{"question":"When?"}`
	w := call(h, "POST", "/api/ask?chars=1", question)
	said = into[answered](t, w, 200).Text
	check("ask", decoded(w.Body.Bytes()))
	check("search", decoded(call(h, "POST", "/api/search?chars=1", question).Body.Bytes()))
	check("record", decoded(call(h, "GET", "/api/runs/"+w.Header().Get(runHeader)+"?chars=1", "").Body.Bytes()))
	check("document", decoded(call(h, "GET", "/api/documents/caf%C3%A9s/%C3%A9.md?start=13&end=18&chars=1", "").Body.Bytes()))
	for _, e := range eventsOf(t, call(h, "POST", "/api/ask?chars=1", question, asEvents...).Body.Bytes()) {
		check(e.kind, decoded(e.data))
	}
	for _, want := range []string{"ask start", "ask text_start", "search start", "document start", "record text_start",
		"retrieved start", "quoted start", "quoted text_start", "done start", "done text_start"} {
		if seen[want] == 0 {
			t.Errorf("no offsets of %s", want)
		}
	}
	if w := call(h, "POST", "/api/ask", question); strings.Contains(w.Body.String(), "_chars") {
		t.Errorf("offsets in code points without chars=1: %s", w.Body)
	}
}
