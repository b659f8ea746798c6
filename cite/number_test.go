package cite_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/child"
	"ibid/retrieve"
)

var must = datatest.Must

// passage returns a passage at byte 100 of its document.
func passage(document string, n int, page int, text string) retrieve.Passage {
	return retrieve.Passage{
		Chunk: ingest.Chunk{
			ID: fmt.Sprintf("%s#%d", document, n), Document: document, Ordinal: n,
			Start: 100, End: 100 + len(text), Page: page, Text: text,
		},
		Title: strings.ToUpper(document), Digest: "d" + document,
	}
}

var evidence = []retrieve.Passage{
	passage("lib/hours.md", 1, 0, "The library is closed on Mondays. On other days it opens at nine."),
	passage("lib/fees.pdf", 1, 3, "A lost card costs five euros. Children pay nothing."),
	passage("lib/hours.md", 2, 0, "On Sundays the reading room opens at noon."),
}

func stream(events ...answer.Event) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// pieces returns the text as events of n bytes each.
func pieces(text string, n int) []answer.Event {
	var events []answer.Event
	for len(text) > n {
		events = append(events, answer.Text{Text: text[:n]})
		text = text[n:]
	}
	return append(events, answer.Text{Text: text})
}

// transcript writes one event per line, joining adjacent texts.
func transcript(t *testing.T, events iter.Seq2[answer.Event, error]) string {
	t.Helper()
	var b strings.Builder
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = ""
	}
	for e, err := range events {
		if err != nil {
			flush()
			fmt.Fprintf(&b, "error %v\n", err)
			continue
		}
		if e, ok := e.(answer.Text); ok {
			text += e.Text
			continue
		}
		switch e.(type) {
		case answer.Kept, cite.Placed: // FuzzNumber
			continue
		}
		flush()
		switch e := e.(type) {
		case cite.Cited:
			fmt.Fprintf(&b, "cited %d %s %s\n", e.Number, e.Document, e.Link)
		case cite.Quoted:
			fmt.Fprintf(&b, "quoted %d [%d:%d] %s %d:%d %q %s\n", e.Number, e.TextStart, e.TextEnd, e.Passage, e.Start, e.End, e.Quote, e.Verdict)
		case cite.Unsupported:
			fmt.Fprintf(&b, "unsupported [%d:%d] %s\n", e.TextStart, e.TextEnd, e.Reason)
		case cite.Revised:
			fmt.Fprintf(&b, "revision %d %q %v", e.Step, e.Text, e.Places)
			for _, c := range e.Cited {
				fmt.Fprintf(&b, " %d %s", c.Number, c.Document)
			}
			fmt.Fprintf(&b, " settled=%v cut=%t\n", e.Settled, e.Cut)
		case answer.Draft:
			fmt.Fprintf(&b, "draft %d %q %v %v\n", e.Step, e.Text, e.Labels, e.Final)
		default:
			fmt.Fprintf(&b, "%s\n", e.Kind())
		}
	}
	flush()
	return b.String()
}

var options = cite.Options{
	Link: func(p retrieve.Passage, start, end int) string {
		return fmt.Sprintf("/view/%s?start=%d&end=%d", p.Document, start, end)
	},
}

const long = "The library is closed on Mondays [1]. A card that was lost costs five euros[2](id=2). " +
	"The reading room opens on Sundays at noon [3][2]. Dogs may come in on any day. Is that all?"

// collect folds the numbered events.
func collect(t *testing.T, o cite.Options, events ...answer.Event) cite.Answer {
	t.Helper()
	a, err := cite.Collect(cite.Number(stream(events...), o))
	must(t, err)
	return a
}

// cut returns the evidence and the events of a text in pieces of n bytes.
func cut(text string, n int) []answer.Event {
	return append([]answer.Event{answer.Kept{Passages: evidence}}, pieces(text, n)...)
}

func TestNumber(t *testing.T) {
	events := append([]answer.Event{answer.Retrieved{}, answer.Kept{Passages: evidence}}, pieces(long, 1000)...)
	events = append(events, answer.Warning{}, answer.Usage{})
	want := `retrieved
cited 1 lib/hours.md /view/lib/hours.md?start=100&end=165
cited 2 lib/fees.pdf /view/lib/fees.pdf?start=100&end=151
text "The library is closed on Mondays [1]. A card that was lost costs five euros[2]. The reading room opens on Sundays at noon [1][2]. Dogs may come in on any day. Is that all?"
quoted 1 [0:37] lib/hours.md#1 100:133 "The library is closed on Mondays." quoted
quoted 2 [38:79] lib/fees.pdf#1 100:129 "A lost card costs five euros." supported
quoted 1 [80:129] lib/hours.md#2 100:142 "On Sundays the reading room opens at noon." supported
quoted 2 [80:129] lib/fees.pdf#1 100:129 "A lost card costs five euros." weak
warning
unsupported [130:158] uncited
usage
`
	if got := transcript(t, cite.Number(stream(events...), options)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNumberDrafts(t *testing.T) {
	got := transcript(t, cite.Number(stream(
		answer.Kept{Passages: evidence},
		answer.Draft{Step: 1, Text: "Closed on Mon"},
		answer.Draft{Step: 1, Text: "days [2"},
		answer.Draft{Step: 1, Text: "][1](id=1)."},
		answer.Draft{Step: 1, Final: true},
		answer.Draft{Step: 2, Text: "Whole [3].", Final: true},
		answer.Draft{Step: 3, Text: "Broken off [3"},
		answer.Text{Text: "Done [3]."},
		answer.Incomplete{},
		answer.Usage{},
	), cite.Options{}))
	want := `draft 1 "Closed on Mon" [] false
draft 1 "days" [] false
draft 1 "." [] false
draft 1 "" [2 1] true
draft 2 "Whole." [3] true
draft 3 "Broken off" [] false
draft 3 " [3" [] false
cited 1 lib/hours.md 
text "Done [1]."
quoted 1 [0:9] lib/hours.md#2 100:142 "On Sundays the reading room opens at noon." weak
incomplete
usage
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A revision is numbered as if it were the answer. Numbers that stay correct if the revision is
// cut are settled.
func TestNumberRevisions(t *testing.T) {
	got := transcript(t, cite.Number(stream(
		answer.Kept{Passages: evidence},
		answer.Draft{Step: 1, Text: "Closed.[1]", Labels: []int{1}, Final: true},
		answer.Revision{Step: 2, Text: "Half [3] a "},
		answer.Revision{Step: 2, Cut: true},
		answer.Revision{Step: 3, Text: "Open [2"},
		answer.Revision{Step: 3, Text: "](id=2), and [3]. "},
		answer.Text{Text: "Open [2](id=2), and [3]. "},
		answer.Usage{},
	), cite.Options{}))
	want := `draft 1 "Closed." [1] true
revision 2 "Half [1] a" [{1 5 8}] 1 lib/hours.md settled=[1] cut=false
revision 2 "" [] settled=[] cut=true
revision 3 "Open" [] settled=[] cut=false
revision 3 " [2], and [1]." [{2 5 8} {1 14 17}] 2 lib/fees.pdf 1 lib/hours.md settled=[2 1] cut=false
cited 2 lib/fees.pdf 
cited 1 lib/hours.md 
text "Open [2], and [1]. "
quoted 2 [0:18] lib/fees.pdf#1 100:129 "A lost card costs five euros." weak
quoted 1 [0:18] lib/hours.md#2 100:142 "On Sundays the reading room opens at noon." supported
usage
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSettled(t *testing.T) {
	kept := answer.Kept{}
	for n := range 4 {
		kept.Passages = append(kept.Passages, passage(fmt.Sprint(n+1), 1, 0, "The library is closed."))
	}
	for _, tt := range []struct {
		name, draft, revision string
		settled               []int
	}{
		{"kept and continued", "A [3]. B [2].", "A [3]. B [2]. C [1]. D [4].", []int{1, 2, 3, 4}},
		{"in another order", "A [3]. B [2].", "B [2]. A [3]. C [1].", []int{3}},
		{"one is inserted first", "A [3]. B [2].", "C [1]. A [3]. B [2].", nil},
		{"one is inserted later", "A [3]. B [2].", "A [3]. C [1]. B [2]. D [4].", []int{1, 4}},
		{"no citations in the draft", "A. B.", "B [2]. A [3].", []int{1, 2}},
	} {
		var settled []int
		for e, err := range cite.Number(stream(kept, answer.Draft{Step: 1, Text: tt.draft, Final: true},
			answer.Revision{Step: 2, Text: tt.revision + " "}), cite.Options{}) {
			must(t, err)
			if e, ok := e.(cite.Revised); ok {
				settled = append(settled, e.Settled...)
			}
		}
		if !slices.Equal(settled, tt.settled) {
			t.Errorf("%s: settled = %v, want %v", tt.name, settled, tt.settled)
		}
	}
}

// TestSettledStay shows parts of revisions, cut or not, and proves an answer that may lack
// sentences of the draft: a source never has a number other than the one shown. A whole draft
// is numbered by first use, regardless of earlier numbers.
func TestSettledStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kept := answer.Kept{}
	for n := range 6 {
		kept.Passages = append(kept.Passages, passage(fmt.Sprint(n%5), n, 0, "The library is closed."))
	}
	written := func() (s []string) {
		for range rng.IntN(6) {
			s = append(s, fmt.Sprintf("The library is closed [%d]. ", 1+rng.IntN(6)))
		}
		return s
	}
	shown := 0
	for range 5_000 {
		draft := written()
		events := []answer.Event{kept, answer.Draft{Step: 1, Text: strings.Join(draft, ""), Final: true}}
		var revision []string
		for step := range rng.IntN(3) {
			if step > 0 {
				events = append(events, answer.Revision{Step: step + 1, Cut: true})
			}
			revision = slices.Concat(draft[:rng.IntN(len(draft)+1)], written())
			for _, s := range revision {
				events = append(events, answer.Revision{Step: step + 2, Text: s})
			}
		}
		whole := false
		if revision == nil || rng.IntN(2) == 0 {
			revision = slices.DeleteFunc(slices.Clone(draft), func(string) bool { return rng.IntN(4) == 0 })
			whole = len(revision) == len(draft)
			events = append(events, answer.Revision{Step: 3, Cut: true})
		}
		events = append(events, answer.Text{Text: strings.Join(revision, "")})
		numbers, documents, cited := map[string]int{}, map[int]string{}, 0
		see := func(c cite.Cited) {
			if n, d := cmp.Or(numbers[c.Document], c.Number), cmp.Or(documents[c.Number], c.Document); n != c.Number || d != c.Document {
				t.Fatalf("%q has the number %d, but before %q, %d, in %+v", c.Document, c.Number, d, n, events)
			}
			numbers[c.Document], documents[c.Number] = c.Number, c.Document
		}
		for e, err := range cite.Number(stream(events...), cite.Options{}) {
			must(t, err)
			switch e := e.(type) {
			case cite.Revised:
				for _, c := range e.Cited {
					if slices.Contains(e.Settled, c.Number) {
						see(c)
						shown++
					}
				}
			case cite.Cited:
				see(e)
				if cited++; whole && e.Number != cited {
					t.Fatalf("citation %d has the number %d in %+v", cited, e.Number, events)
				}
			}
		}
	}
	if shown < 2_500 {
		t.Errorf("only %d numbers were shown early", shown)
	}
}

func TestNumberError(t *testing.T) {
	failure := errors.New("the model hung up")
	events := func(yield func(answer.Event, error) bool) {
		if yield(answer.Kept{Passages: evidence}, nil) && yield(answer.Text{Text: "Closed [1"}, nil) {
			yield(nil, failure)
		}
	}
	want := "text \"Closed [1\"\nerror the model hung up\n"
	if got := transcript(t, cite.Number(events, options)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	a, err := cite.Collect(cite.Number(events, options))
	if !errors.Is(err, failure) || a.Text != "Closed [1" {
		t.Errorf("Collect = text %q, error %v", a.Text, err)
	}
}

// TestNumberBreak stops ranging after each event.
func TestNumberBreak(t *testing.T) {
	all := cut(long, 7)
	total := 0
	for range cite.Number(stream(all...), options) {
		total++
	}
	for stop := 1; stop < total; stop++ {
		var open bool
		events := func(yield func(answer.Event, error) bool) {
			open = true
			defer func() { open = false }()
			for e := range stream(all...) {
				if !yield(e, nil) {
					return
				}
			}
		}
		n := 0
		for range cite.Number(events, options) {
			if n++; n == stop {
				break
			}
		}
		if n != stop || open {
			t.Fatalf("stopped after %d of %d events, source open = %v", n, stop, open)
		}
	}
}

func TestCollectUnanswered(t *testing.T) {
	a := collect(t, options,
		answer.Judged{Passage: "lib/hours.md#1", Decision: answer.Irrelevant},
		answer.Warning{Message: "slow"},
		answer.Unanswered{Reason: "nothing_relevant", Text: "The documents do not say.", Nearest: evidence[:1]},
		answer.Usage{Calls: 2},
	)
	if a.Answered || a.Text != "The documents do not say." || a.Reason != "nothing_relevant" || a.Usage.Calls != 2 ||
		len(a.Nearest) != 1 || !slices.Equal(a.Warnings, []string{"slow"}) || len(a.Judged) != 1 || a.List != "" {
		t.Errorf("Collect = %+v", a)
	}
}

func TestAnswerHasNoNull(t *testing.T) {
	for name, events := range map[string]iter.Seq2[answer.Event, error]{
		"nothing": stream(),
		"answer":  stream(answer.Kept{Passages: evidence}, answer.Draft{Step: 1, Text: "x", Final: true}, answer.Text{Text: "Closed [1]."}),
	} {
		a, err := cite.Collect(cite.Number(events, options))
		must(t, err)
		data, err := json.Marshal(a)
		must(t, err)
		if strings.Contains(string(data), "null") {
			t.Errorf("%s: answer as JSON has null in place of an empty list: %s", name, data)
		}
	}
}

func TestSources(t *testing.T) {
	pages := []retrieve.Passage{
		passage("a.pdf", 1, 1, "First page."), passage("a.pdf", 2, 2, "Second page."), passage("a.pdf", 3, 2, "More of it."),
	}
	pages[0].Heading, pages[1].Heading, pages[2].Heading = "One", "One", ""
	address := func(_ retrieve.Passage, start, end int) string { return fmt.Sprintf("https://example.org/a#%d", end) }
	for name, tt := range map[string]struct{ text, list string }{
		"document": {"A[1] b[1] c[1].", "\n\n- [1] A.PDF (a.pdf)\n"},
		"page":     {"A[1] b[2] c[2].", "\n\n- [1] A.PDF, p. 1 (a.pdf)\n- [2] A.PDF, p. 2 (a.pdf)\n"},
		"section":  {"A[1] b[1] c[2].", "\n\n- [1] A.PDF › One (a.pdf)\n- [2] A.PDF (a.pdf)\n"},
		"url":      {"A[1] b[1] c[1].", "\n\n- [1] A.PDF (a.pdf)\n"},
	} {
		source, ok := cite.SourceByName(name)
		if !ok {
			t.Fatalf("no source kind %q", name)
		}
		o := cite.Options{Source: source, Link: address}
		a := collect(t, o, answer.Kept{Passages: pages}, answer.Text{Text: "A[1] b[2] c[3]."})
		if a.Text != tt.text || a.List != tt.list {
			t.Errorf("%s: text = %q, list = %q; want %q, %q", name, a.Text, a.List, tt.text, tt.list)
		}
		passages := 0
		for _, s := range a.Sources {
			passages += len(s.Passages)
		}
		if passages != 3 {
			t.Errorf("%s: %d passages under the numbers, want 3", name, passages)
		}
	}
}

// TestSourceOfSmallPages checks that a passage of several small pages is one source, and
// that each quote names its page.
func TestSourceOfSmallPages(t *testing.T) {
	p := passage("talk.pptx", 1, 3, "Boats are cleaned in May.\n\nSails are dried in June.")
	p.Pages = []ingest.Page{{Number: 3, Start: p.Start, End: p.Start + 25}, {Number: 4, Start: p.Start + 27, End: p.End}}
	a := collect(t, cite.Options{Source: cite.ByPage}, answer.Kept{Passages: []retrieve.Passage{p}},
		answer.Text{Text: "Sails are dried in June. [1]\n\nBoats are cleaned in May. [1]"})
	if want := "\n\n- [1] TALK.PPTX, pp. 3-4 (talk.pptx)\n"; a.List != want || len(a.Citations) != 2 ||
		a.Citations[0].Page != 4 || a.Citations[1].Page != 3 {
		t.Errorf("list = %q, citations = %+v", a.List, a.Citations)
	}
}

func TestSourceOfRows(t *testing.T) {
	rows := []retrieve.Passage{passage("fees.csv", 1, 0, "item: atlas | fee: 1 euro"), passage("fees.csv", 2, 0,
		"item: novel | fee: none"), passage("fees.csv", 3, 0, "more")}
	rows[0].Anchor, rows[1].Anchor, rows[2].Anchor = "row=2", "row=3-7", "row=2"
	a := collect(t, cite.Options{Source: cite.BySection}, answer.Kept{Passages: rows}, answer.Text{Text: "A[1] b[2] c[3]."})
	if want := "\n\n- [1] FEES.CSV, row 2 (fees.csv)\n- [2] FEES.CSV, rows 3-7 (fees.csv)\n"; a.Text != "A[1] b[2] c[1]." || a.List != want {
		t.Errorf("text = %q, list = %q", a.Text, a.List)
	}
	sheet := passage("fees.xlsx", 1, 0, "item: atlas | fee: 1 euro")
	sheet.Heading, sheet.Anchor = "2025", "sheet=2025&row=12"
	if key, title := cite.BySection(sheet, ""); key != "fees.xlsx#sheet=2025&row=12" || title != "FEES.XLSX, 2025, row 12" {
		t.Errorf("BySection of a row = %q, %q", key, title)
	}
}

// TestNumberListItems checks that the number or sign of a list item is not part of the
// claim.
func TestNumberListItems(t *testing.T) {
	for _, text := range []string{
		"1. The library is closed on Mondays.[1]",
		"2) A lost card costs five euros [2]",
		"Step 2: A lost card costs five euros.[2]",
		"> 1. The library is closed on Mondays.[1]",
		"**2.** A lost card costs five euros.[2]",
		"| 1 | The library is closed on Mondays. [1] |",
		"- The library is closed on Mondays.[1]",
		"1. The library is closed on Mondays.[1]\n2. A lost card costs five euros.[2]\n3. Children pay nothing.[2]",
	} {
		if got := verdicts(t, text, 5); !strings.Contains(got, "1 quoted") || strings.ContainsAny(got, "-k") {
			t.Errorf("%q: verdicts = %s", text, got)
		}
	}
	a := collect(t, options, answer.Kept{Passages: []retrieve.Passage{passage("a", 1, 0, "There are twelve boats in the shed.")}},
		answer.Text{Text: "12. A lost card costs five euros.[1]"})
	if len(a.Citations) != 1 || a.Citations[0].Verdict != "weak" {
		t.Errorf("the number of an item supports something: %+v", a.Citations)
	}
}

// TestNumberVerdicts checks which sentence each reference belongs to, and which sentences and
// citations are weak.
func TestNumberVerdicts(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/claims.txt", "verdicts") {
		for _, size := range []int{1, 3, 500} {
			if got := verdicts(t, row[0], size); got != row[1] {
				t.Errorf("%q in pieces of %d: verdicts = %s, want %s", row[0], size, got, row[1])
			}
		}
	}
}

// verdicts returns the numbers and verdicts of a text's citations in order, and "-"
// with the reason for an unsupported sentence.
func verdicts(t *testing.T, text string, size int) string {
	t.Helper()
	var got []string
	for e, err := range cite.Number(stream(cut(text, size)...), options) {
		must(t, err)
		switch e := e.(type) {
		case cite.Quoted:
			got = append(got, fmt.Sprint(e.Number, " ", e.Verdict))
		case cite.Unsupported:
			got = append(got, "- "+e.Reason)
		}
	}
	return strings.Join(got, ", ")
}

// TestNumberHostile numbers answers that make a careless filter quadratic.
func TestNumberHostile(t *testing.T) {
	for _, row := range [][2]string{ // the repeated part of an answer, and its end
		{"[1]", "w\n"}, {"*", "\nx*"}, {"A b c d.\n", "\nSources:\n"}, {"A b c d.\nSources:\n", "- a [1]\n"}, {".\n", "[1]"},
		{"", "Sources: [1]\n"}, {"", "(see )"}, {"", "Sources:\n- a [1]\n"}, {"", "The closed library costs nine euros [1][2][3]. "},
		{"", "a[1] "}, {"", "A b c d [1]. "}, {"", "word "}, {"", "."}, {"", ". "}, {"", "a\n"}, {"", "[1]"}, {"", "\n- "}, {"", ".  "},
		{"", ".)"}, {"", ")"}, {"", ".[1][2]"}, {"", " "}, {"", "\n"}, {"", "a.b"},
	} {
		for _, piece := range []int{3, 1 << 30} { // bytes
			datatest.Linear(t, child.ProcessorTime, fmt.Sprintf("%q in pieces of %d", row, piece), func(size int) {
				text := strings.Repeat(row[0], size/4/max(1, len(row[0]))) + strings.Repeat(row[1], size*3/4/len(row[1]))
				collect(t, options, cut(text, min(piece, len(text)))...)
			})
		}
	}
}

// TestNumberLeavesTheText checks that the words of models and documents are not changed.
func TestNumberLeavesTheText(t *testing.T) {
	const hostile = "x\x1b ![a](https://evil.com)"
	a := collect(t, cite.Options{}, answer.Judged{Reason: hostile},
		answer.Kept{Passages: []retrieve.Passage{passage("a", 1, 0, "https://known.com")}},
		answer.Warning{Message: hostile}, answer.Text{Text: hostile + " known.com"}, answer.Incomplete{Reason: hostile})
	for name, got := range map[string]string{"text": strings.TrimSuffix(a.Text, " known.com"), "judged": a.Judged[0].Reason,
		"warning": a.Warnings[0], "reason": a.Reason} {
		if got != hostile {
			t.Errorf("%s = %q, want %q", name, got, hostile)
		}
	}
	if want := []string{"https://evil.com"}; !slices.Equal(a.Unknown, want) {
		t.Errorf("Unknown = %q, want %q", a.Unknown, want)
	}
}

func TestUnsupported(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/claims.txt", "unsupported") {
		a := collect(t, options, answer.Kept{Passages: evidence[1:2]}, answer.Text{Text: row[0]})
		var got []string
		for _, u := range a.Unsupported {
			got = append(got, u.Reason)
		}
		if strings.Join(got, " ") != row[1] {
			t.Errorf("%q: unsupported = %q, want %q", row[0], got, row[1])
		}
	}
	// The statement that was proved is a sentence of the text.
	a := collect(t, options, answer.Kept{Passages: evidence[1:2]}, answer.Verified{Statement: "Penguins", By: "unjudged"},
		answer.Text{Text: "- Penguins\n"})
	if len(a.Unsupported) != 1 || a.Unsupported[0].Reason != "uncited" {
		t.Errorf("Unsupported = %+v", a.Unsupported)
	}
}

func TestNumberOriginal(t *testing.T) {
	const text = "The reading room opens at noon on Sundays."
	at := func(id, address string) retrieve.Passage {
		return retrieve.Passage{Title: id, Format: "pdf", Meta: map[string]string{"url": address},
			Chunk: ingest.Chunk{ID: id + "#1", Document: id, Page: 3, End: len(text), Text: text}}
	}
	a := collect(t, cite.Options{Source: cite.ByURL, LinkDocuments: true}, answer.Kept{Passages: []retrieve.Passage{
		at("a", "https://example.org/a.pdf"), at("b", "https://example.org/a.pdf"), at("c", "javascript:alert(1)"),
	}}, answer.Text{Text: text[:len(text)-1] + " [1][2][3]."})
	if len(a.Sources) != 2 || len(a.Citations) != 3 {
		t.Fatalf("%d sources and %d citations, want 2 and 3: %+v", len(a.Sources), len(a.Citations), a.Sources)
	}
	const want = "https://example.org/a.pdf#page=3"
	s := a.Sources[0]
	if s.Original != want || s.Passages[0].Original != want || a.Citations[0].Original != want {
		t.Errorf("originals = %q, %q, %q; want %q", s.Original, s.Passages[0].Original, a.Citations[0].Original, want)
	}
	if s.Link != "" || a.Sources[1].Original != "" {
		t.Errorf("link = %q, original of a script = %q; want none", s.Link, a.Sources[1].Original)
	}
}
