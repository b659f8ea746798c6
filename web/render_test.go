package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"ibid/answer"
	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/child"
	"ibid/retrieve"
)

// number makes each [n] of a text, from an offset on, the number of a source.
func (r *rendering) number(text string, from int, numbers ...int) {
	for _, n := range numbers {
		words := fmt.Sprintf("[%d]", n)
		for at := from; ; at += len(words) {
			next := strings.Index(text[at:], words)
			if next < 0 {
				break
			}
			at += next
			r.numbers[at] = n
		}
	}
}

// blocksOf returns the final blocks of a text that arrives in pieces and is rendered at
// each cut. Every [1] and [2] is the number of a source, and [3] from the middle on.
func blocksOf(t testing.TB, m *markdown, text string, cuts []int) []string {
	t.Helper()
	r := newRendering(m, 0)
	r.number(text, 0, 1, 2)
	var blocks []string
	final := map[int]bool{}
	advance := func(end bool) {
		events, err := r.advance(end)
		must(t, err)
		for _, e := range events {
			if final[e.Index] {
				t.Errorf("block %d is repeated after it was final", e.Index)
			}
			if e.Index > len(blocks) {
				t.Errorf("block %d arrives before block %d", e.Index, len(blocks))
			}
			blocks = append(blocks[:e.Index], e.HTML)
			final[e.Index] = e.Final
		}
	}
	last := 0
	for _, cut := range append(slices.Clone(cuts), len(text)) {
		if middle := len(text) / 2; last <= middle && middle < cut {
			r.text = append(r.text, text[last:middle]...)
			last = middle
			r.number(text, middle, 3)
		}
		r.text = append(r.text, text[last:cut]...)
		last = cut
		if cut < len(text) {
			advance(false)
		}
	}
	advance(true)
	for i := range blocks {
		if !final[i] {
			t.Errorf("block %d is never final", i)
		}
	}
	return blocks
}

func TestRender(t *testing.T) {
	m := newMarkdown()
	for _, test := range datatest.Lines[struct{ Text, Want string }](t, "testdata/rows/render.jsonl") {
		if got := strings.Join(blocksOf(t, m, test.Text, nil), "|"); got != test.Want {
			t.Errorf("%q\n got %q\nwant %q", test.Text, got, test.Want)
		}
	}
}

// markdownText draws texts with much Markdown.
var markdownText = rapid.Custom(func(t *rapid.T) string {
	token := rapid.OneOf(
		rapid.SampledFrom([]string{"\n", "\n\n", "\n", " ", "  ", "    ", "\t", "- ", "* ", "+ ", "1. ", "2) ", "> ", "# ", "### ", "```", "~~~",
			"`", "``", "*", "**", "_", "~~",
			"| ", " |", "|---|", "|", "---", "===", ":-:", "[1]", "[2]", "[3]", "[", "]", "\\", "&amp;", "<b>", "<!--", "-->", "</div>", "![x](y)",
			"[r]: u", "\r\n", "$", "$$", `\(`, `\)`, `\[`, `\]`}),
		rapid.SampledFrom([]string{"word", "a", "é", "🦆", "one two", "."}))
	return strings.Join(rapid.SliceOfN(token, 0, 40).Draw(t, "tokens"), "")
})

// TestRenderCuts checks that the blocks of a text do not depend on its cuts.
func TestRenderCuts(t *testing.T) {
	m := newMarkdown()
	rapid.Check(t, func(r *rapid.T) {
		text := markdownText.Draw(r, "text")
		whole := blocksOf(t, m, text, nil)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 12).Draw(r, "cuts")
		slices.Sort(cuts)
		each := make([]int, len(text))
		for i := range each {
			each[i] = i
		}
		for _, cuts := range [][]int{cuts, each} {
			if got := blocksOf(t, m, text, cuts); !slices.Equal(got, whole) {
				r.Fatalf("%q cut at %d\n got %q\nwant %q", text, cuts, got, whole)
			}
		}
	})
}

// harmless checks that HTML has only elements and attributes of the page, and
// that it closes each element.
func harmless(markup string) error {
	attribute := regexp.MustCompile(`^(ol start=[0-9]+|t[hd] align=(left|right|center)|div class=scroll|span class=doubt|a class=cite|a data-(number|at)=[0-9]+|(div|pre) (tabindex=0|role=group|aria-label=(Table|Code)))$`)
	element := regexp.MustCompile(`^(p|br|hr|h[3-6]|ul|ol|li|blockquote|pre|code|em|strong|del|table|thead|tbody|tr|th|td|div|span|a)$`)
	var open []string
	for z := html.NewTokenizer(strings.NewReader(markup)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				return z.Err()
			}
			if len(open) > 0 {
				return fmt.Errorf("element %q is not closed", open)
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if !element.MatchString(token.Data) {
				return fmt.Errorf("unexpected element %s", token.Data)
			}
			for _, a := range token.Attr {
				if !attribute.MatchString(token.Data + " " + a.Key + "=" + a.Val) {
					return fmt.Errorf("unexpected attribute %s=%q of %s", a.Key, a.Val, token.Data)
				}
			}
			if token.Data != "br" && token.Data != "hr" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1] != name {
				return fmt.Errorf("</%s> closes %q", name, open)
			}
			open = open[:len(open)-1]
		case html.CommentToken, html.DoctypeToken:
			return errors.New("a comment or doctype")
		}
	}
}

func TestRenderIsHarmless(t *testing.T) {
	m := newMarkdown()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(markdownText, rapid.String()).Draw(r, "text")
		for _, b := range blocksOf(t, m, text, nil) {
			if err := harmless(b); err != nil {
				r.Fatalf("%q renders as %q: %v", text, b, err)
			}
		}
	})
}

// TestRenderMarked checks that sentences are marked at their exact bytes, and that the rest
// of the HTML is unchanged.
func TestRenderMarked(t *testing.T) {
	marked := regexp.MustCompile(`<span class="doubt">(.*?)</span>`)
	for _, test := range datatest.Table[struct{ Text, Doubt, Want string }](t, "testdata/rows/tables.txt", "marked") {
		r := newRendering(newMarkdown(), 0)
		r.text = []byte(test.Text)
		r.number(test.Text, 0, 1, 2)
		plain, err := r.advance(true)
		must(t, err)
		at := strings.Index(test.Text, test.Doubt)
		events, err := r.markedBlocks([]cite.Unsupported{{TextStart: at, TextEnd: at + len(test.Doubt)}})
		must(t, err)
		var got []string
		for _, e := range events {
			for _, m := range marked.FindAllStringSubmatch(e.HTML, -1) {
				got = append(got, m[1])
			}
			if without := marked.ReplaceAllString(e.HTML, "$1"); without != plain[e.Index].HTML {
				t.Errorf("%q without its marks = %q, want %q", test.Text, without, plain[e.Index].HTML)
			}
			if err := harmless(e.HTML); err != nil {
				t.Errorf("rendered %q is harmful: %v", e.HTML, err)
			}
		}
		if strings.Join(got, "|") != test.Want {
			t.Errorf("%q: marked = %q, want %q", test.Text, got, test.Want)
		}
	}
}

// TestRenderHostile is a campaign that renders texts that are slow to render, at two sizes.
// The processor time must grow linearly.
func TestRenderHostile(t *testing.T) {
	m := newMarkdown()
	const size = 32 << 10
	repeat := func(s string) func(int) string { return func(n int) string { return strings.Repeat(s, n/len(s)) } }
	texts := map[string]func(int) string{
		"delimiters": repeat("*a_"), "images": repeat("![a]("), "brackets": repeat("["), "ticks": repeat("`"), "quotes": repeat(">"),
		"bullets": repeat("- "), "numbers": repeat("[1]"), "escapes": repeat("\\"), "lines": repeat("a\n"), "blank": repeat("\n"),
		"tabs": repeat("\t"), "stars": repeat("*"), "items": repeat("- a\n"), "rows": repeat("|a|\n|-|\n"), "tilde": repeat("~~a~"),
		"fences": repeat("```\n"),
		"runs of ticks": func(n int) string {
			var b strings.Builder
			for i := 1; b.Len() < n; i++ {
				b.WriteString(strings.Repeat("`", i) + "a ")
			}
			return b.String()
		},
		"deep, then lines": func(n int) string {
			return strings.Repeat("- ", n/4) + "a\n" + strings.Repeat("\n", n/4) + strings.Repeat("b\n", n/8)
		},
		"steps": func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				b.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
			}
			return b.String()
		},
		"wide table": func(n int) string {
			return strings.Repeat("|a", n/6) + "|\n" + strings.Repeat("|-", n/6) + "|\n" + strings.Repeat("|\n", n/6)
		},
		"pipes in code": func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|`\\|`|\n", n/7) },
	}
	for _, name := range datatest.Pick(t, slices.Sorted(maps.Keys(texts))) {
		text := texts[name]
		t.Run(name, func(t *testing.T) {
			render := func(n int) time.Duration {
				r := newRendering(m, 0)
				r.text = []byte(text(n))
				r.number(string(r.text), 0, 1)
				began := child.ProcessorTime()
				events, err := r.advance(true)
				took := child.ProcessorTime() - began
				must(t, err)
				size := 0
				for _, e := range events {
					size += len(e.HTML)
				}
				if size > 100*n {
					t.Errorf("%d bytes render as %d", n, size)
				}
				return took
			}
			// Linear growth gives a factor of 4, quadratic 16. A busy machine can double
			// processor time, so the minimum of several counts.
			small, large := time.Hour, time.Hour
			for try := range 20 {
				small, large = min(small, render(size)), min(large, render(4*size))
				if large <= 8*small+50*time.Millisecond {
					return
				}
				t.Logf("after %d tries: %d bytes in %v, %d in %v", try+1, size, small, 4*size, large)
			}
			t.Error("the time grows faster than linearly")
		})
	}
}

// TestRenderEndlessBlock checks that a block that does not end is rendered less
// often the longer it is.
func TestRenderEndlessBlock(t *testing.T) {
	for _, n := range []int{16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		r := newRendering(newMarkdown(), 0)
		sum := 0
		for range n {
			r.text = append(r.text, 'a')
			if r.hasGrown() {
				r.rendered = len(r.text)
				sum += len(r.text) - r.open
			}
		}
		if most := 8<<20 + 40*n; sum > most {
			t.Errorf("for %d bytes %d are rendered, want at most %d", n, sum, most)
		}
	}
}

// TestForgedCitations checks that only printed numbers become citations in an answer that
// is streaming or complete; in records without places, all announced numbers do.
func TestForgedCitations(t *testing.T) {
	const text = "Fees.[1] So x = [1], {\"fee\": [1]}, \\(x_{[1]}\\) and [1](https://evil.example).[2]"
	last := strings.LastIndex(text, "[2]")
	places := []cite.Placed{{Number: 1, Start: 5, End: 8}, {Number: 2, Start: last, End: last + 3}}
	whole, err := newMarkdown().renderAnswer(cite.Answer{Text: text, Places: places})
	must(t, err)
	stream := func(events ...[2]string) string {
		var blocks []string
		p := &pageStream{markdown: newMarkdown(), answer: newRendering(newMarkdown(), 0), write: func(_ string, v any) error {
			blocks = append(blocks, v.(blockEvent).HTML)
			return nil
		}}
		for _, e := range events {
			must(t, errors.Join(p.beforeEvent(e[0], []byte(e[1])), p.afterEvent(e[0], []byte(e[1]))))
		}
		return blocks[len(blocks)-1]
	}
	piece := func(text string, places []cite.Placed) [2]string {
		return [2]string{"text", string(mustEncode(textEvent{Text: answer.Text{Text: text}, Places: places}))}
	}
	first, second, done := [2]string{"cited", `{"number":1}`}, [2]string{"cited", `{"number":2}`}, [2]string{"done", "{}"}
	now := stream(first, piece(text[:5], nil), piece(text[5:20], places[:1]), piece(text[20:last], []cite.Placed{}),
		second, piece(text[last:], places[1:]), done)
	if now != whole || strings.Count(now, `class="cite"`) != 2 || strings.Count(now, "[1]") != 4 {
		t.Errorf("streaming\n%s\ncomplete\n%s", now, whole)
	}
}

// FuzzLink checks that a link leads the router to the same document and place.
func FuzzLink(f *testing.F) {
	for _, id := range []string{"a/b.md", "a/b c#d?e%f&g;h+i=j.txt", `a/<script>"'.md`, "a/日本/né.pdf", "a/..b", "a/%2e%2e/%2F", "a/b\\c",
		"a//b", "a/\x1b[31m", "a/b\u202e", "a/:x/*y"} {
		f.Add(id, 3, 9)
	}
	var seen string
	var place textRange
	e := newHandler(f, func(o *Options) { o.Library = probe{&seen} })
	f.Fuzz(func(t *testing.T, id string, start, end int) {
		link := Link("http://127.0.0.1:8080/", id, start, end)
		u, err := url.Parse(link)
		if err != nil {
			t.Fatalf("Link(%q) = %q: %v", id, link, err)
		}
		if u.Host != "127.0.0.1:8080" || !strings.HasPrefix(u.Path, "/documents/") {
			t.Fatalf("Link(%q) = %q leads elsewhere", id, link)
		}
		if strings.ContainsAny(link, "\"'<>\\^`{|} \x00\n\r\t") && !strings.ContainsAny(link, "'") {
			t.Fatalf("Link(%q) = %q is not escaped", id, link)
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")))
		if err != nil {
			t.Fatalf("Link(%q) = %q cannot be requested: %v", id, link, err)
		}
		seen = ""
		e.ServeHTTP(httptest.NewRecorder(), r)
		if seen != id {
			t.Fatalf("Link(%q) = %q requests %q", id, link, seen)
		}
		if start < 0 {
			return
		}
		if _, place, err = parseLink(u, "/documents/"); err != nil {
			t.Fatalf("Link(%q, %d, %d) = %q: %v", id, start, end, link, err)
		}
		if want := (textRange{Start: start, End: end}); end > start && place != want {
			t.Fatalf("Link(%q, %d, %d) = %q gives %+v", id, start, end, link, place)
		}
	})
}

// probe is a library that records the id of the last request.
type probe struct{ seen *string }

func (p probe) Document(_ context.Context, id string) (*ingest.Document, error) {
	*p.seen = id
	return &ingest.Document{ID: id, Text: "text"}, nil
}

func (p probe) Documents(context.Context, retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	return nil, nil
}

func (p probe) Holds(context.Context, retrieve.Filter) (bool, error) { return false, nil }

// words returns a text without its white space.
func words(s string) string { return strings.Join(strings.Fields(s), "") }

// TestRows checks that the rows of a table are shown as paragraphs.
func TestRows(t *testing.T) {
	d := &ingest.Document{Text: "name: Acorn\nname: Bramble\nname: Conker\n"}
	for start := 0; start < len(d.Text); start = lineEnd(d.Text, start) {
		d.Sections = append(d.Sections, ingest.Section{Start: start, End: lineEnd(d.Text, start), Anchor: "row=1"})
	}
	want := []block{{Kind: "text", Runs: []blockRun{{Text: "name: Acorn"}}},
		{Kind: "text", At: 12, Runs: []blockRun{{Text: "name: Bramble", Mark: true, First: true}}},
		{Kind: "text", At: 26, Runs: []blockRun{{Text: "name: Conker"}}}}
	datatest.Same(t, "blocks", want, excerptOf(d, textRange{Start: 12, End: 25}).Blocks)
}

// TestRanks checks that the levels of headings on a page skip none.
func TestRanks(t *testing.T) {
	d := &ingest.Document{Text: "A\nB\nC\nD\nE\n"}
	for i, level := range []int{3, 3, 6, 2, 3} {
		d.Sections = append(d.Sections, ingest.Section{Heading: "h", Level: level, Start: 2 * i, End: 2*i + 2})
	}
	var got []int
	for _, b := range excerptOf(d, textRange{}).Blocks {
		got = append(got, b.Rank())
	}
	if want := []int{2, 2, 3, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("ranks = %d, want %d", got, want)
	}
}

// FuzzExcerpt checks that excerpts of any document neither lose nor repeat words, mark the
// right ones, and cut no UTF-8 sequence.
func FuzzExcerpt(f *testing.F) {
	f.Add("Fees\n\nThe fee is 240.\nDue in April.\n\nStorage\nNinety.\n", 6, 21, 0, 4, 20)
	f.Add("日本語\n\n\n né ", 1, 5, 3, 2, 9)
	f.Add(strings.Repeat("A line of some words.\n\n", 9000), 100_000, 100_050, 0, 50_000, 90_000)
	f.Add("0    0", 1, 5, 39, -96, 34)
	f.Add(strings.Repeat("x", 3*window), 2*window, 2*window+9, 7, 5, 8)
	f.Fuzz(func(t *testing.T, text string, start, end, at, section, page int) {
		if !utf8.ValidString(text) || start < 0 || end < 0 || at < 0 {
			t.Skip()
		}
		d := &ingest.Document{ID: "a/b", Text: text}
		inside := func(i int) int { return lineStart(text, runeStart(text, min(max(i, 0), len(text)))) }
		d.Sections = []ingest.Section{{Heading: "h", Level: 1, Start: inside(section), End: len(text)}}
		d.Pages = []ingest.Page{{Number: 1, Start: 0, End: inside(page)}, {Number: 2, Start: inside(page), End: len(text)}}
		x := excerptOf(d, textRange{Start: start, End: end, At: at})

		var all, marked strings.Builder
		first := 0
		for _, b := range x.Blocks {
			if (b.Kind == "page") != (len(b.Runs) == 0) {
				t.Fatalf("block = %+v", b)
			}
			for _, r := range b.Runs {
				if r.Text == "" || !utf8.ValidString(r.Text) {
					t.Fatalf("run = %q", r.Text)
				}
				all.WriteString(r.Text)
				if r.Mark {
					marked.WriteString(r.Text)
				}
				if r.First {
					first++
				}
			}
		}
		if x.Earlier < 0 && x.Later < 0 && words(all.String()) != words(text) {
			t.Fatalf("text %q renders as %q", text, all.String())
		}
		if !strings.Contains(words(text), words(all.String())) {
			t.Fatalf("excerpt is not a part of the text")
		}
		if x.Missing != (end > start && end > len(text)) {
			t.Fatalf("place %d to %d of %d bytes: missing = %t", start, end, len(text), x.Missing)
		}
		if words(marked.String()) != words(text[x.Start:x.End]) {
			t.Fatalf("marked = %q, want %q", marked.String(), text[x.Start:x.End])
		}
		if !x.Missing && end > start && (x.Start > start || x.End < end) {
			t.Fatalf("marked %d to %d, want at least %d to %d", x.Start, x.End, start, end)
		}
		// A mark of spaces within a line has a first run too, to which the page scrolls.
		if first > 1 || first == 0 && words(text[x.Start:x.End]) != "" {
			t.Fatalf("%d first marks of %q", first, text[x.Start:x.End])
		}
		for _, n := range []int{x.Earlier, x.Later} {
			if n > len(text) {
				t.Fatalf("link to byte %d of %d", n, len(text))
			}
		}
	})
}
