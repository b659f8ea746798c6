package web

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// TestOriginal: a document that says where it is on the web is cited with that
// address beside the viewer's, in the stream as in the object; an address of
// another scheme is never given.
func TestOriginal(t *testing.T) {
	shelf := newShelf()
	office := shelf.passage("club/guide.pdf", "Dogs are welcome on the pier.")
	office.Meta = map[string]string{"url": "https://example.org/guide.pdf"}
	fee := shelf.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
	fee.Meta = map[string]string{"url": "javascript:alert(1)"}
	s := serve(t, func(o *Options) {
		o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
			_ = yield(answer.Kept{Passages: []retrieve.Passage{office, fee}}, nil) &&
				yield(answer.Text{Text: "Dogs are welcome on the pier.[1] The mooring fee is 240 crowns a season.[2]"}, nil)
		})
	})
	const original, viewer = "https://example.org/guide.pdf#page=2", "/documents/club/guide.pdf?start="

	var a cite.Answer
	if err := json.NewDecoder(post(t, t.Context(), s.URL, "application/json").Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if len(a.Sources) != 2 || len(a.Citations) != 2 {
		t.Fatalf("%d sources, %d citations: %+v", len(a.Sources), len(a.Citations), a)
	}
	for what, got := range map[string]string{
		"source": a.Sources[0].Original, "passage": a.Sources[0].Passages[0].Original, "citation": a.Citations[0].Original,
	} {
		if got != original {
			t.Errorf("the %s has the original %q, want %q", what, got, original)
		}
	}
	if !strings.Contains(a.Sources[0].Link, viewer) || a.Sources[1].Original != "" || a.Citations[1].Original != "" || !strings.Contains(a.Sources[1].Link, "/documents/club/handbook/mooring.md?") {
		t.Errorf("the sources are %+v", a.Sources)
	}
	if want := "- [1] Harbour guide (" + original + ")\n- [2] Moorings (club/handbook/mooring.md)\n"; !strings.HasSuffix(a.List, want) {
		t.Errorf("the list is %q, want %q", a.List, want)
	}

	body, err := io.ReadAll(post(t, t.Context(), s.URL, "text/event-stream").Body)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for event := range strings.SplitSeq(string(body), "\n\n") {
		kind, data, _ := strings.Cut(event, "\n")
		if strings.Contains(data, "javascript") {
			t.Errorf("a script is linked to: %s", event)
		}
		if strings.Contains(data, `"original":"`+original+`"`) {
			told[strings.TrimPrefix(kind, "event: ")]++
		}
	}
	if told["cited"] != 1 || told["quoted"] != 1 || told["done"] != 1 {
		t.Errorf("the original is told by %v", told)
	}
}
