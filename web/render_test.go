package web

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"ibid/cite"
)

// blocksOf gives the final blocks of a text that comes in pieces, cut at the
// offsets given, and is rendered at each cut. Sources 1 and 2 are announced at
// the beginning, 3 in the middle.
func blocksOf(t testing.TB, m *markdown, text string, cuts []int) []string {
	t.Helper()
	r := newRendering(m, 0)
	r.announce(1)
	r.announce(2)
	var blocks []string
	final := map[int]bool{}
	take := func(end bool) {
		events, err := r.advance(end)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if final[e.Index] {
				t.Errorf("block %d came again after it was final", e.Index)
			}
			if e.Index > len(blocks) {
				t.Errorf("block %d came before block %d", e.Index, len(blocks))
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
			r.announce(3)
		}
		r.text = append(r.text, text[last:cut]...)
		last = cut
		if cut < len(text) {
			take(false)
		}
	}
	take(true)
	for i := range blocks {
		if !final[i] {
			t.Errorf("block %d was never final", i)
		}
	}
	return blocks
}

func TestRender(t *testing.T) {
	m := newMarkdown()
	for _, test := range []struct{ text, want string }{
		{"Plain.", "<p>Plain.</p>\n"},
		{"One[1] and\ntwo[2].", `<p>One<a class="cite" data-number="1" data-at="3">1</a> and<br>` + "\n" + `two<a class="cite" data-number="2" data-at="14">2</a>.</p>` + "\n"},
		{"[9] is none, \\[1] neither, `[1]` code.", "<p>[9] is none, [1] neither, <code>[1]</code> code.</p>\n"},
		{"# Head\n\n#### Deep", "<h3>Head</h3>|<h5>Deep</h5>"},
		{"Head\n---\nText", "<p>Head</p>\n|<hr>\n|<p>Text</p>\n"},
		{"- a\n  - b\n- c\n\nText", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n<li>c</li>\n</ul>\n|<p>Text</p>\n"},
		{"3. x\n4. y", "<ol start=\"3\">\n<li>x</li>\n<li>y</li>\n</ol>\n"},
		{"> said\n> so", "<blockquote>\n<p>said<br>\nso</p>\n</blockquote>\n"},
		{"```go\na < b[1]\n\n```\nAfter", `<pre tabindex="0" role="group" aria-label="Code"><code>a &lt; b[1]` + "\n\n</code></pre>|<p>After</p>\n"},
		{"**b** _i_ ~~s~~ \\*x\\*", "<p><strong>b</strong> <em>i</em> <del>s</del> *x*</p>\n"},
		{"Text\n| a | b[1] |\n|---|--:|\n| c | d |\n", "<p>Text</p>\n" + `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead>` + "\n<tr>\n<th>a</th>\n" +
			`<th align="right">b<a class="cite" data-number="1" data-at="12">1</a></th>` + "\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>c</td>\n" + `<td align="right">d</td>` + "\n</tr>\n</tbody>\n</table></div>"},
		{"<b>no</b> ![x](http://e.example/y) [z](javascript:1) <http://e.example> http://e.example",
			"<p>&lt;b&gt;no&lt;/b&gt; ![x](http://e.example/y) [z](javascript:1) &lt;http://e.example&gt; http://e.example</p>\n"},
		{"[r]\n\n[r]: http://e.example", "<p>[r]</p>\n|<p>[r]: http://e.example</p>\n"},
		{"&lt;img&gt; &#27;[0m &nbsp;", "<p>&amp;lt;img&amp;gt; &amp;#27;[0m &amp;nbsp;</p>\n"},
		{"a\x1b[31mb\x00", "<p>a\ufffd[31mb\ufffd</p>\n"},
		{"", ""}, {"\n\n", ""},
	} {
		if got := strings.Join(blocksOf(t, m, test.text, nil), "|"); got != test.want {
			t.Errorf("%q\n got %q\nwant %q", test.text, got, test.want)
		}
	}
}

// markdownText draws texts that are full of the marks of Markdown.
var markdownText = rapid.Custom(func(t *rapid.T) string {
	token := rapid.OneOf(
		rapid.SampledFrom([]string{"\n", "\n\n", "\n", " ", "  ", "    ", "\t", "- ", "* ", "+ ", "1. ", "2) ", "> ", "# ", "### ", "```", "~~~", "`", "``", "*", "**", "_", "~~",
			"| ", " |", "|---|", "|", "---", "===", ":-:", "[1]", "[2]", "[3]", "[", "]", "\\", "&amp;", "<b>", "<!--", "-->", "</div>", "![x](y)", "[r]: u", "\r\n"}),
		rapid.SampledFrom([]string{"word", "a", "é", "🦆", "one two", "."}))
	return strings.Join(rapid.SliceOfN(token, 0, 40).Draw(t, "tokens"), "")
})

// TestRenderCuts: however a text is cut, its blocks are those of the whole.
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

// harmless checks that HTML holds nothing but what the page is made of, and
// that it is whole: each element that it opens it closes.
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
				return fmt.Errorf("%q is not closed", open)
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if !element.MatchString(token.Data) {
				return fmt.Errorf("the element %s", token.Data)
			}
			for _, a := range token.Attr {
				if !attribute.MatchString(token.Data + " " + a.Key + "=" + a.Val) {
					return fmt.Errorf("the attribute %s=%q of %s", a.Key, a.Val, token.Data)
				}
			}
			if token.Data != "br" && token.Data != "hr" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1] != name {
				return fmt.Errorf("</%s> within %q", name, open)
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
				r.Fatalf("%q became %q: %v", text, b, err)
			}
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n- b[1]\n\n| c |\n|-|\n<i>&lt;![x](y)", uint16(5))
	m := newMarkdown()
	f.Fuzz(func(t *testing.T, text string, cut uint16) {
		whole := blocksOf(t, m, text, nil)
		for _, b := range whole {
			if err := harmless(b); err != nil {
				t.Errorf("%q: %v", b, err)
			}
		}
		if got := blocksOf(t, m, text, []int{min(int(cut), len(text))}); !slices.Equal(got, whole) {
			t.Errorf("cut at %d: %q, want %q", cut, got, whole)
		}
	})
}

// TestRenderMarked marks sentences at their exact bytes, and changes nothing else.
func TestRenderMarked(t *testing.T) {
	marked := regexp.MustCompile(`<span class="doubt">(.*?)</span>`)
	for _, test := range []struct{ text, doubt, want string }{
		{"True.[1] False is it. True.", "False is it.", "False is it."},
		{"True.[1]\n\n- A **false is** it.\n- B", "A **false is** it.", "A |false is| it."},
		{"Run `x y` now. True.", "Run `x y` now.", "Run |<code>x y</code>| now."},
		{"Wrong\nover lines. True", "Wrong\nover lines.", "Wrong|over lines."},
		{"A weak one.[2] More.", "A weak one.[2]", "A weak one."},
		{"| a | b |\n|---|---|\n| wrong | d |", "wrong", "wrong"},
	} {
		r := newRendering(newMarkdown(), 0)
		r.announce(1)
		r.announce(2)
		r.text = []byte(test.text)
		plain, err := r.advance(true)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(test.text, test.doubt)
		events, err := r.marked([]cite.Unsupported{{TextStart: at, TextEnd: at + len(test.doubt)}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events {
			for _, m := range marked.FindAllStringSubmatch(e.HTML, -1) {
				got = append(got, m[1])
			}
			if without := marked.ReplaceAllString(e.HTML, "$1"); without != plain[e.Index].HTML {
				t.Errorf("%q without its marks is %q, was %q", test.text, without, plain[e.Index].HTML)
			}
			if err := harmless(e.HTML); err != nil {
				t.Errorf("%q: %v", e.HTML, err)
			}
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%q: marked %q, want %q", test.text, got, test.want)
		}
	}
}

// TestRenderHostile: texts made to be slow, at one size and at four times it.
func TestRenderHostile(t *testing.T) {
	m := newMarkdown()
	repeat := func(s string) func(int) string { return func(n int) string { return strings.Repeat(s, n/len(s)) } }
	for name, text := range map[string]func(int) string{
		"delimiters": repeat("*a_"), "images": repeat("![a]("), "brackets": repeat("["), "ticks": repeat("`"), "quotes": repeat(">"),
		"bullets": repeat("- "), "numbers": repeat("[1]"), "escapes": repeat("\\"), "lines": repeat("a\n"), "blank": repeat("\n"),
		"tabs": repeat("\t"), "stars": repeat("*"), "items": repeat("- a\n"), "rows": repeat("|a|\n|-|\n"), "tilde": repeat("~~a~"), "fences": repeat("```\n"),
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
	} {
		t.Run(name, func(t *testing.T) {
			took := func(n int) time.Duration {
				least := time.Hour
				for range 3 {
					r := newRendering(m, 0)
					r.announce(1)
					r.text = []byte(text(n))
					began := time.Now()
					events, err := r.advance(true)
					if err != nil {
						t.Fatal(err)
					}
					least = min(least, time.Since(began))
					size := 0
					for _, e := range events {
						size += len(e.HTML)
					}
					if size > 100*n {
						t.Errorf("%d bytes became %d", n, size)
					}
				}
				return least
			}
			// Linear is four times as long, quadratic 16. Of a busy machine the best
			// time of many counts.
			small, large := time.Hour, time.Hour
			linear := func() bool { return large <= 8*small+50*time.Millisecond }
			for range 10 {
				if small, large = min(small, took(32<<10)), min(large, took(128<<10)); linear() {
					break
				}
			}
			t.Logf("figure: 32 KiB in %v, 128 KiB in %v", small, large)
			if !linear() {
				t.Errorf("32 KiB take %v and 128 KiB %v: not linear", small, large)
			}
		})
	}
}

// TestRenderEndlessBlock: a block that does not end is rendered the more
// seldom the longer it is.
func TestRenderEndlessBlock(t *testing.T) {
	for _, n := range []int{16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		r := newRendering(newMarkdown(), 0)
		sum := 0
		for range n {
			r.text = append(r.text, 'a')
			if r.grown() {
				r.rendered = len(r.text)
				sum += len(r.text) - r.open
			}
		}
		if most := 8<<20 + 40*n; sum > most {
			t.Errorf("%d bytes are rendered as %d, want %d at most", n, sum, most)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	text := strings.Repeat("Some **words** of an answer.[1] And `more` of it.[2]\n\n- an item\n- another\n\n", 20)
	m := newMarkdown()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		blocksOf(b, m, text, nil)
	}
}
