package cite_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/cite/support"
	"ibid/retrieve"
)

// FuzzNumber checks with every kind of source that the answer does not depend on the cuts, that
// every citation keeps its passage and its quote is in its range, that passages with one key
// share a number, and that links have only the schemes http and https.
func FuzzNumber(f *testing.F) {
	f.Add(long, "The library is closed on Mondays. It opens at nine.", uint8(3), uint64(0))
	f.Add("A [1]. B [2].\n- C [1]\n\n```\n[1]\n```\n", "", uint8(1), uint64(1))
	f.Add("図書館は月曜日に休館します[1]。日曜日は正午に開きます【2】。", "図書館は月曜日に休館します。", uint8(2), uint64(2))
	f.Add("Ends \xe3\x80 in [1](id=", "\xff a b c", uint8(5), uint64(3))
	f.Add("A b c d.\nSources:\n- [1]\n- E [2]\n\nF (see [3]).\nSource: [4, 5]", "A b c d.", uint8(5), uint64(9))
	code := "`a[1]` is code. True.[2](id=2)[1]! [ 2 ] [7]\n\n```\nx[2]\n```\nEnd [1, 2]."
	for size := range uint8(len(code)) {
		f.Add(code, "The library is closed on Mondays.", size, uint64(4))
	}
	more := long + " Größe 【1】。是的。\n- Item one [2]\n- Item two\n\n`x[1]` \xff\xfe"
	for size := range uint8(255) {
		f.Add(more, "", size, uint64(0))
	}
	f.Fuzz(func(t *testing.T, text, source string, size uint8, shape uint64) {
		text = strings.ToValidUTF8(text, "\uFFFD") // like the replies of models, which are decoded from JSON
		kept, o := fuzzEvidence(source, shape)
		whole, err := cite.Collect(cite.Number(stream(kept, answer.Text{Text: text}), o))
		must(t, err)
		events := cite.Number(stream(append([]answer.Event{kept}, pieces(text, 1+int(size))...)...), o)
		checkOrder(t, events, whole)
		cut, err := cite.Collect(events)
		must(t, err)
		if a, b := asJSON(t, whole), asJSON(t, cut); a != b {
			t.Fatalf("whole: %s\ncut: %s", a, b)
		}
		if !utf8.ValidString(whole.Text) {
			t.Fatalf("%q is not valid UTF-8", whole.Text)
		}
		numbers, keys := map[string]int{}, map[int]string{}
		for _, c := range whole.Citations {
			checkCitation(t, whole, kept.Passages, c)
			p := kept.Passages[slices.IndexFunc(kept.Passages, func(p retrieve.Passage) bool { return p.ID == c.Passage })]
			key, _ := o.Source(p, cmp.Or(c.Original, c.Link))
			if strings.TrimSpace(key) == "" {
				key = "\x00" + p.ID // a separate source
			}
			if n, ok := numbers[key]; ok && n != c.Number {
				t.Fatalf("%q has the numbers %d and %d", key, n, c.Number)
			}
			if k, ok := keys[c.Number]; ok && k != key {
				t.Fatalf("%d is the number of both %q and %q", c.Number, key, k)
			}
			numbers[key], keys[c.Number] = c.Number, key
		}
		for _, u := range whole.Unsupported {
			checkRange(t, whole.Text, u.TextStart, u.TextEnd)
		}
		for i, s := range whole.Sources {
			if s.Number != i+1 || len(s.Passages) == 0 {
				t.Fatalf("source %d = %+v", i+1, s)
			}
		}
	})
}

// checkOrder checks that sources are announced before their numbers are shown, that each place
// holds a number and comes before its text, and that quotes follow their sentence.
func checkOrder(t *testing.T, events iter.Seq2[answer.Event, error], whole cite.Answer) {
	t.Helper()
	shown, announced := 0, map[int]bool{}
	for e, err := range events {
		must(t, err)
		switch e := e.(type) {
		case cite.Cited:
			announced[e.Number] = true
		case answer.Text:
			shown += len(e.Text)
		case cite.Placed:
			if got := whole.Text[e.Start:e.End]; got != fmt.Sprintf("[%d]", e.Number) || e.Start < shown || !announced[e.Number] {
				t.Fatalf("%+v marks %q after %d bytes of text", e, got, shown)
			}
		case cite.Quoted:
			if e.TextEnd > shown {
				t.Fatalf("%+v after %d bytes of text", e, shown)
			}
		}
	}
}

// fuzzEvidence returns passages with documents, pages, headings and addresses that
// depend on shape, and options.
func fuzzEvidence(text string, shape uint64) (answer.Kept, cite.Options) {
	rng := rand.New(rand.NewPCG(shape, 0))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	kept := answer.Kept{Passages: append(evidence[:2:2], passage("fuzz.txt", 1, 0, text))}
	for i := range rng.IntN(5) {
		p := passage(pick("a.pdf", "a.html", "b.md"), i+2, rng.IntN(3), pick(text, evidence[2].Text))
		p.Heading, p.Anchor, p.Title = pick("", "One", "One › Two"), pick("", "one", "a b"), pick("", "T")
		p.Format = pick("pdf", "html", "markdown", "csv")
		p.Meta = map[string]string{"url": pick("", "https://example.org/a", "http://example.org/b#c", "javascript:alert(1)",
			"data:text/html,x", "file:///etc", "rel.html"), "row": pick("", "1", "2")}
		kept.Passages = append(kept.Passages, p)
	}
	o := cite.Options{LinkDocuments: true, Link: func(p retrieve.Passage, start, end int) string { return p.Meta["url"] }}
	sources := [...]cite.SourceOf{cite.ByDocument, cite.ByPage, cite.BySection, cite.ByURL,
		func(p retrieve.Passage, _ string) (key, title string) { return p.Meta["row"], p.Title }}
	o.Source = sources[shape%uint64(len(sources))]
	return kept, o
}

// checkCitation checks that a citation's number is in the list with its quote, and that it
// links only to the web or Ibid's own pages.
func checkCitation(t *testing.T, a cite.Answer, passages []retrieve.Passage, c cite.Citation) {
	t.Helper()
	if c.Number < 1 || c.Number > len(a.Sources) || !(c.Support >= 0 && c.Support <= 1) ||
		(c.Verdict == support.Weak) != (c.Support < support.Threshold) {
		t.Fatalf("citation %+v with %d sources", c, len(a.Sources))
	}
	checkRange(t, a.Text, c.TextStart, c.TextEnd)
	if !slices.ContainsFunc(passages, func(p retrieve.Passage) bool {
		return p.ID == c.Passage && c.Start >= p.Start && c.End <= p.End && p.Text[c.Start-p.Start:c.End-p.Start] == c.Quote
	}) {
		t.Fatalf("quote of %+v is not at its place", c)
	}
	if !slices.ContainsFunc(a.Sources[c.Number-1].Passages, func(p cite.SourcePassage) bool {
		return p.ID == c.Passage && p.Start == c.Start && p.End == c.End && p.Quote == c.Quote
	}) {
		t.Fatalf("%+v is not a passage of its source %+v", c, a.Sources[c.Number-1])
	}
	for _, link := range []string{c.Link, a.Sources[c.Number-1].Link} {
		if rewrite.Link(link) != link {
			t.Fatalf("unsafe link %q", link)
		}
	}
	for _, link := range []string{c.Original, a.Sources[c.Number-1].Original} {
		if link != "" && !strings.HasPrefix(link, "http://") && !strings.HasPrefix(link, "https://") {
			t.Fatalf("unsafe original %q", link)
		}
	}
}

func checkRange(t *testing.T, text string, start, end int) {
	t.Helper()
	if start < 0 || start >= end || end > len(text) || !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
		t.Fatalf("%d:%d is not a range of %q", start, end, text)
	}
	if s := text[start:end]; s != strings.TrimSpace(s) {
		t.Fatalf("the sentence %q has white space around it", s)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}
