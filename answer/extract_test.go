package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// A passage of testdata/extract.txt, as changes to a default passage.
type quotedPassage struct {
	Title, Heading, Format, Author, Date string
	Continues                            bool // the text of the previous passage
	Far                                  bool // taken from the question
}

func (q quotedPassage) passage(n int, text string, before *retrieve.Passage) retrieve.Passage {
	p := retrieve.Passage{Title: q.Title, Score: 1, Scores: retrieve.Scores{Dense: .6, BM25: 9, Lexical: .6, Coverage: .9},
		Chunk: ingest.Chunk{ID: fmt.Sprintf("r/%s#%d", q.Title, n), Document: "r/" + q.Title, Text: text, Heading: cmp.Or(q.Heading, q.Title)}}
	p.Format = q.Format
	if q.Author != "" {
		p.Meta = map[string]string{"author": q.Author, "date": q.Date}
	}
	if q.Far {
		p.Scores = retrieve.Scores{Dense: .05, Lexical: .02}
	}
	if q.Continues {
		before.End = before.Start + len(before.Text)
		p.Start, p.End = before.End+1, before.End+1+len(text)
	}
	return p
}

func TestExtract(t *testing.T) {
	cases, err := txtar.ParseFile("testdata/extract.txt")
	must(t, err)
	for _, file := range cases.Files {
		t.Run(file.Name, func(t *testing.T) {
			asked, want, _ := strings.Cut(strings.TrimSuffix(string(file.Data), "\n"), "\n<<<\n")
			asked, parts, _ := strings.Cut(asked, "\n>>> ")
			var ps found
			for part := range strings.SplitSeq(parts, "\n>>> ") {
				head, text, _ := strings.Cut(part, "\n")
				var q quotedPassage
				must(t, json.Unmarshal([]byte(head), &q))
				var before *retrieve.Passage
				if len(ps) > 0 {
					before = &ps[len(ps)-1]
				}
				ps = append(ps, q.passage(len(ps)+1, text, before))
			}
			got := read((&Answerer{Retriever: ps}).Ask(t.Context(), Question{Text: asked}))
			if got.err != nil || got.text != want && !strings.Contains(got.String(), "unanswered {Reason:"+want+" ") {
				t.Errorf("answer = %q\n%s\nwant %q", got.text, got, want)
			}
		})
	}
}

// TestClosest checks that if no sentence is a certain answer, the nearest parts of the
// passages are shown whole, with the best words of the nearest sentence marked.
func TestClosest(t *testing.T) {
	for _, test := range []struct{ name, text, want, marked string }{
		{"a paragraph", "One ferry a day.\n\nMira leads the project. It ends soon.\n\nLast part.",
			"Mira leads the project. It ends soon.", "project"},
		{"a list", "People:\n- Mira leads the project\n- Piet counts", "People:\n- Mira leads the project\n- Piet counts", "project"},
		{"a row", "Person: Piet | Work: counts\nPerson: Mira | Work: leads the project", "Person: Mira | Work: leads the project", "project"},
	} {
		p := retrieve.Passage{Chunk: ingest.Chunk{ID: "r/a#1", Document: "r/a", Start: 7, Text: test.text},
			Scores: retrieve.Scores{Dense: .3, BM25: 2, Lexical: .2, Coverage: .3}}
		p.Places = []retrieve.Place{{Start: 7, Heading: "Work"}, {Start: 7 + len(test.text), Heading: "Cloakroom"}}
		var closest []Closest
		for e, err := range (&Answerer{Retriever: found{p}, Confidence: .99}).Ask(t.Context(), Question{Text: "Who runs the project?"}) {
			must(t, err)
			if e, ok := e.(Unanswered); ok {
				closest = e.Closest
			}
		}
		if len(closest) != 1 || closest[0].Text != test.want || closest[0].Heading != "Work" || len(closest[0].Marks) != 1 {
			t.Errorf("%s: closest = %+v, want %q", test.name, closest, test.want)
			continue
		}
		c, m := closest[0], closest[0].Marks[0]
		if c.Text[m.Start:m.End] != test.marked || test.text[c.Start-p.Start:c.End-p.Start] != test.want {
			t.Errorf("%s: marked %q in the passage at %d, want %q", test.name, c.Text[m.Start:m.End], c.Start, test.marked)
		}
	}
}

// TestExtractQuotes checks that, for any documents, quotes are verbatim, every piece has
// its own label, and the text has no other label.
func TestExtractQuotes(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			"The harbour fee is 120 marks", "harbour", ". ", "? ", ":\n", "\n- ", "\n\n", "\n", " | Fee: 12",
			"\nPier: Old | Metres: 40 | Fee: 7 marks", "[1]", "[2](id=2)", "【3】",
			"-", "\u2010\n", "4 - ", "`", "```\n", "~~~\n", "**", "_", "x[0] = y[1]", "\\", "(", "日本語。", "e.g. ", "1. ", "\u00a0",
		}),
		rapid.String(),
	)
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 3).Draw(rt, "passages") {
			texts = append(texts, "The harbour fee is due. "+strings.Join(rapid.SliceOf(part).Draw(rt, "text"), ""))
		}
		ps := passages(texts...)
		got := read((&Answerer{Retriever: ps, Gate: GateOff}).Ask(rt.Context(), Question{Text: "What is the harbour fee?"}))
		if got.err != nil {
			rt.Fatal(got.err)
		}
		scanner := marker.NewScanner(marker.Default, len(ps))
		quoted, labels := "", 0
		check := func(tok marker.Token) {
			if !tok.Marker {
				quoted += string(tok.Text)
				return
			}
			labels++
			if len(tok.IDs) != 1 {
				rt.Fatalf("marker has the ids %v, want one, in %q", tok.IDs, got.text)
			}
			source := squeezeSpace(bare(ps[tok.IDs[0]-1].Text))
			for _, cell := range between.Split(quoted, -1) { // the row, if the piece is one
				if cell = strings.TrimRight(squeezeSpace(bare(cell)), ".! "); !strings.Contains(source, cell) {
					rt.Fatalf("quote %q is not in %q", cell, source)
				}
			}
			quoted = ""
		}
		scanner.Feed([]byte(got.text), check)
		scanner.Close(check)
		if strings.TrimSpace(quoted) != "" {
			rt.Errorf("piece %q has no label in %q", quoted, got.text)
		}
		if got.text != "" && labels == 0 {
			rt.Errorf("text without a label: %q", got.text)
		}
	})
}

// bare removes what quoting may change: brackets around labels, the signs of list items and
// code, line ends within words.
func bare(s string) string {
	s = strings.NewReplacer("[", "(", "]", ")", "{", "(", "}", ")", "【", "(", "】", ")", "［", "(", "］", ")", "〔", "(", "〕", ")",
		"`", "'", "~~~", "~", "…", "").Replace(s)
	var out []string
	for f := range strings.FieldsSeq(s) {
		if !bullet.MatchString(f) {
			out = append(out, f)
		}
	}
	return regexp.MustCompile(`(\pL[-\x{2010}\x{ad}]) `).ReplaceAllString(strings.Join(out, " "), "$1")
}

var between = regexp.MustCompile(`; | – `)

var bullet = regexp.MustCompile(`^([-*+•‣◦▪●–·]|\d{1,3}[.)])$`)
