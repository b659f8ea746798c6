package cite_test

import (
	"iter"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// TestPlaced: what is told of is a printed number, before the text that shows
// it, and nothing else that looks like one.
func TestPlaced(t *testing.T) {
	whole := "`a[1]` is code. True.[2](id=2)[1]! [ 2 ] [7]\n\n```\nx[2]\n```\nEnd [1, 2]."
	for size := 1; size <= len(whole); size++ {
		var events iter.Seq2[answer.Event, error] = func(yield func(answer.Event, error) bool) {
			if !yield(answer.Kept{Passages: make([]retrieve.Passage, 2)}, nil) {
				return
			}
			for i := 0; i < len(whole); i += size {
				if !yield(answer.Text{Text: whole[i:min(i+size, len(whole))]}, nil) {
					return
				}
			}
		}
		text, places := "", []cite.Placed(nil)
		for e, err := range cite.Number(events, cite.Options{Places: true}) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := e.(type) {
			case cite.Placed:
				if e.Start < len(text) {
					t.Errorf("size %d: %+v comes behind its text", size, e)
				}
				places = append(places, e)
			case answer.Text:
				text += e.Text
			}
		}
		if len(places) == 0 {
			t.Fatalf("size %d: none in %q", size, text)
		}
		for _, p := range places {
			if got := text[p.Start:p.End]; got != "["+string(rune('0'+p.Number))+"]" {
				t.Errorf("size %d: %+v is %q", size, p, got)
			}
			if p.Start > 0 && (text[p.Start-1] == 'a' || text[p.Start-1] == 'x') {
				t.Errorf("size %d: %+v is in code", size, p)
			}
		}
	}
}
