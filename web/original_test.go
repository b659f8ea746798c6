package web

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// TestOriginal checks that a document with a web address is cited with that
// address and the viewer's, in the stream and in the object, and that addresses
// of other schemes are omitted.
func TestOriginal(t *testing.T) {
	shelf := newShelf()
	office := shelf.passage("club/guide.pdf", "Dogs are welcome on the pier.")
	office.Meta = map[string]string{"url": "https://example.org/guide.pdf"}
	fee := shelf.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
	fee.Meta = map[string]string{"url": "javascript:alert(1)"}
	h := newHandler(t, func(o *Options) {
		o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
			_ = yield(answer.Kept{Passages: []retrieve.Passage{office, fee}}, nil) &&
				yield(answer.Text{Text: "Dogs are welcome on the pier.[1] The mooring fee is 240 crowns a season.[2]"}, nil)
		})
	})
	const question = `{"question":"why?"}`
	const original, viewer = "https://example.org/guide.pdf#page=2", "/documents/club/guide.pdf?start="

	a := into[cite.Answer](t, call(h, "POST", "/api/ask", question), 200)
	if len(a.Sources) != 2 || len(a.Citations) != 2 {
		t.Fatalf("%d sources, %d citations: %+v", len(a.Sources), len(a.Citations), a)
	}
	for what, got := range map[string]string{
		"source": a.Sources[0].Original, "passage": a.Sources[0].Passages[0].Original, "citation": a.Citations[0].Original,
	} {
		if got != original {
			t.Errorf("the %s has the address %q, want %q", what, got, original)
		}
	}
	if !strings.Contains(a.Sources[0].Link, viewer) || a.Sources[1].Original != "" || a.Citations[1].Original != "" || !strings.Contains(a.Sources[1].Link, "/documents/club/handbook/mooring.md?") {
		t.Errorf("the sources are %+v", a.Sources)
	}
	if want := "- [1] Harbour guide (" + original + ")\n- [2] Moorings (club/handbook/mooring.md)\n"; !strings.HasSuffix(a.List, want) {
		t.Errorf("the list is %q, want %q", a.List, want)
	}

	given := map[string]int{}
	for _, e := range eventsOf(t, call(h, "POST", "/api/ask", question, asEvents...).Body.Bytes()) {
		if bytes.Contains(e.data, []byte("javascript")) {
			t.Errorf("a link to a script: %s", e.data)
		}
		if bytes.Contains(e.data, []byte(`"original":"`+original+`"`)) {
			given[e.kind]++
		}
	}
	if given["cited"] != 1 || given["quoted"] != 1 || given["done"] != 1 {
		t.Errorf("the address is in the events %v", given)
	}
}
