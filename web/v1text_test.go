package web

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ibid/cite"
	"ibid/ingest"
)

// throughLinks writes a text with numbers in pieces and returns the result.
func throughLinks(t *testing.T, text string, split func(left int) int, most int, links bool) (content string,
	l *linkedText) {
	t.Helper()
	var b strings.Builder
	l = &linkedText{maxTokens: most, links: links, sources: map[int]cite.Cited{},
		write: func(s string) error { b.WriteString(s); return nil }}
	seen := map[int]bool{}
	for at := 0; at < len(text); {
		to := at + split(len(text)-at)
		if i := strings.LastIndex(text[:to], "["); i >= at && strings.IndexByte(text[i:to], ']') < 0 && strings.IndexByte(text[to:], ']') >= 0 {
			to += strings.IndexByte(text[to:], ']') + 1 // a number is one piece
		}
		for to < len(text) && text[to]&0xC0 == 0x80 {
			to++
		}
		for i := at; i < to; i++ {
			var n int
			if _, err := fmt.Sscanf(text[i:to], "[%d]", &n); err == nil && text[i] == '[' {
				if !seen[n] {
					seen[n] = true
					l.sources[n] = cite.Cited{Number: n, Title: fmt.Sprintf("T%d", n), Link: fmt.Sprintf("http://h/(%d)", n)}
				}
				l.numbers = append(l.numbers, cite.Placed{Number: n, Start: i, End: i + strings.IndexByte(text[i:], ']') + 1})
			}
		}
		if err := l.append(text[at:to]); errors.Is(err, errEnough) {
			return b.String(), l
		} else if err != nil {
			t.Fatal(err)
		}
		at = to
	}
	if err := l.close(); err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return b.String(), l
}

// TestLinkedText checks that the text, its cut and its annotations do not depend
// on the pieces, and that each annotation covers its link, in characters.
func TestLinkedText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, text := range []string{
		"Plain words.", "One.[1] Two.[2][1] Three [12].", "港は八時に開く。[1]料金は二百四十クローネ。[2] 😀🏴‍☠️ e\u0301[3] end", "[1]", "", "a  b\n\nc[1]\n",
	} {
		for _, most := range []int{0, 1, 3, 7, 1000} {
			for _, links := range []bool{true, false} {
				whole, first := throughLinks(t, text, func(left int) int { return left }, most, links)
				for range 20 {
					got, l := throughLinks(t, text, func(left int) int { return 1 + random.IntN(min(left, 5)) }, most, links)
					if got != whole || l.cut != first.cut || fmt.Sprint(l.annotations) != fmt.Sprint(first.annotations) {
						t.Fatalf("%q, limit %d:\n%q %t %v\nin one piece\n%q %t %v", text, most, got, l.cut, l.annotations, whole, first.cut,
							first.annotations)
					}
				}
				for _, a := range first.annotations {
					want := fmt.Sprintf("[%d]", a.number)
					if links {
						want = fmt.Sprintf("[[%d]](http://h/%%28%d%%29)", a.number, a.number)
					}
					if got := string([]rune(whole)[a.URL.Start:a.URL.End]); got != want {
						t.Errorf("%q: annotation of %d covers %q, want %q", whole, a.number, got, want)
					}
				}
			}
		}
	}
}

func TestLinkedTextLimit(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"one two three", 2, "one two"}, {"one two three", 3, "one two three"}, {"one two three", 1, "one"},
		{"港は八時", ingest.CountTokens("港") + ingest.CountTokens("は"), "港は"},
	} {
		got, l := throughLinks(t, tt.text, func(int) int { return 1 }, tt.most, true)
		if got != tt.want || l.cut != (got != tt.text) {
			t.Errorf("%q with limit %d = %q, cut = %t", tt.text, tt.most, got, l.cut)
		}
	}
}

// TestMarkdownOfAnswer checks that each number leads to the quote of its own sentence, and
// that the list has all quotes with their places.
func TestMarkdownOfAnswer(t *testing.T) {
	quote := func(start, end int, link string) cite.Citation {
		return cite.Citation{Number: 1, TextStart: start, TextEnd: end, Link: link}
	}
	got := asMarkdown(cite.Answer{
		Text:      "One.[1] Two.[1]",
		Places:    []cite.Placed{{Number: 1, Start: 4, End: 7}, {Number: 1, Start: 12, End: 15}},
		Citations: []cite.Citation{quote(0, 7, "http://h/one"), quote(8, 15, "http://h/two")},
		Sources: []cite.Source{{Number: 1, Document: "club/a.pdf", Title: "A *bold* title", Link: "http://h/one", Passages: []cite.SourcePassage{
			{Page: 3, Heading: "A *bold* title › Fees", Quote: "It is\none.", Link: "http://h/one"}, {Quote: "Two [1]."}}}},
	}, true)
	want := "One.[[1]](http://h/one) Two.[[1]](http://h/two)\n\n" +
		"- [1] [A \\*bold\\* title](http://h/one), `club/a.pdf`\n" +
		"  - p. 3, Fees: [“It is one.”](http://h/one)\n" +
		"  - “Two \\[1\\].”"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWithoutContext checks that the question is found after the sources that Open WebUI puts
// before it.
func TestWithoutContext(t *testing.T) {
	const sources = "### Task:\nAnswer by the context.\n\n### Output:\nA clear answer.\n\n<context>\n" +
		"<source id=\"1\" name=\"notes.md\">Lit at noon. </source>\n</context> And who?</source>\n" +
		"<source id=\"2\">x</source>\n</context>\n"
	for text, want := range map[string]string{
		sources + "\nWhen is it lit?":                                               "When is it lit?",
		sources + "\n<user_query>\nWhen is it lit?\n</user_query>\n":                "When is it lit?",
		sources + "\n<user_query>\nWhen is it lit?\n</user_query>\nWhen is it lit?": "When is it lit?",
		"Be brief.\n" + sources:                                                     "Be brief.",
		"What is <context> in ### Task: of <source id=1></source>?":                 "What is <context> in ### Task: of <source id=1></source>?",
		" \n": "",
	} {
		if got := stripContext(text); got != want {
			t.Errorf("stripContext(%q) = %q, want %q", text, got, want)
		}
	}
}
