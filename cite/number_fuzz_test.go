package cite_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/answer"
	"ibid/cite"
)

// FuzzNumber holds the filter over events to its promises: the answer does not
// depend on the cuts, every quote stands where it is said to stand, and the
// ranges of sentences are whole characters of the text.
func FuzzNumber(f *testing.F) {
	f.Add(long, "The library is closed on Mondays. It opens at nine.", uint8(3))
	f.Add("A [1]. B [2].\n- C [1]\n\n```\n[1]\n```\n", "", uint8(1))
	f.Add("図書館は月曜日に休館します[1]。日曜日は正午に開きます【2】。", "図書館は月曜日に休館します。", uint8(2))
	f.Add("Ends \xe3\x80 in [1](id=", "\xff a b c", uint8(5))
	f.Fuzz(func(t *testing.T, text, source string, size uint8) {
		kept := answer.Kept{Passages: append(evidence[:2:2], passage("fuzz.txt", 1, 0, source))}
		whole, err := cite.Collect(cite.Number(stream(kept, answer.Text{Text: text}), cite.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		cut, err := cite.Collect(cite.Number(stream(append([]answer.Event{kept}, pieces(text, 1+int(size))...)...), cite.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := asJSON(t, whole), asJSON(t, cut); a != b {
			t.Fatalf("whole: %s\ncut: %s", a, b)
		}
		if !utf8.ValidString(whole.Text) {
			t.Fatalf("%q is not valid UTF-8", whole.Text)
		}
		for _, c := range whole.Citations {
			if c.Number < 1 || c.Number > len(whole.Sources) {
				t.Fatalf("citation %+v of %d sources", c, len(whole.Sources))
			}
			checkRange(t, whole.Text, c.TextStart, c.TextEnd)
			found := false
			for _, p := range kept.Passages {
				if p.ID == c.Passage {
					found = true
					if got := p.Text[c.Start-p.Start : c.End-p.Start]; got != c.Quote {
						t.Fatalf("the quote %q is not at its place: %q", c.Quote, got)
					}
				}
			}
			if !found || c.Support < 0 || c.Support > 1 {
				t.Fatalf("citation %+v", c)
			}
		}
		for _, u := range whole.Unsupported {
			checkRange(t, whole.Text, u.TextStart, u.TextEnd)
		}
		for _, s := range whole.Sources {
			if len(s.Passages) == 0 {
				t.Fatalf("source %+v has no passage", s)
			}
		}
	})
}

func checkRange(t *testing.T, text string, start, end int) {
	t.Helper()
	if start < 0 || start >= end || end > len(text) || !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
		t.Fatalf("%d:%d is no range of %q", start, end, text)
	}
	if s := text[start:end]; s != strings.TrimSpace(s) {
		t.Fatalf("the sentence %q has white space around it", s)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
