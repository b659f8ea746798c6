package web

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
	nethtml "golang.org/x/net/html"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"ibid/cite/rewrite"
	"ibid/data/datatest"
)

// chatMarkdown is Markdown with every extension that chat clients use.
var chatMarkdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// plainElements are the elements of paragraphs, lists, tables and code.
var plainElements = strings.Fields(`html head body p em strong del code pre ul ol li h1 h2 h3 h4 h5 h6 hr br blockquote
	table thead tbody tr th td dl dt dd input`)

// elementIn returns the first element, comment or attribute of a page that is not allowed,
// or "".
func elementIn(page string, allowed []string, attributes ...string) string {
	root, err := nethtml.Parse(strings.NewReader(page))
	if err != nil {
		return err.Error()
	}
	for n := range root.Descendants() {
		switch n.Type {
		case nethtml.ElementNode:
			if !slices.Contains(allowed, n.Data) {
				return n.Data
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) || strings.Contains(a.Val, "url") {
					return n.Data + " " + a.Key
				}
			}
		case nethtml.CommentNode, nethtml.DoctypeNode:
			return "comment"
		}
	}
	return ""
}

var (
	// ownLinks are links to the viewer.
	ownLinks = regexp.MustCompile(`^(http://127\.0\.0\.1:8080)?/documents/[!-~]*$`)
	// linkable matches text that clients make into links.
	linkable = regexp.MustCompile(`(?i)//[a-z0-9]|www\.[a-z0-9]|\b(https?|ftp|javascript|data|mailto|xmpp|vbscript|file|ms-msdt|search-ms):/?[a-z0-9]|` +
		`[\pL\pN-]\.(com|net|org|example)\b|[a-z0-9]@[a-z0-9-]+\.[a-z]|<[a-z/!?]|&(#\d|[a-z]+;)`)
	// hidden matches invisible characters and terminal commands.
	hidden = map[string]*regexp.Regexp{
		"a control": regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{2028}\x{2029}]`),
		"something invisible": regexp.MustCompile(`[\x{ad}\x{34f}\x{61c}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180e}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}` +
			`\x{2060}-\x{206f}\x{3164}\x{feff}\x{ffa0}\x{fff9}-\x{fffb}\x{1bca0}-\x{1bca3}\x{1d173}-\x{1d17a}\x{e0000}-\x{e0fff}]|` +
			`[\x00-\x7f\x{200c}\x{200d}][\x{200c}\x{200d}]`),
	}
)

// liveIn returns the first part of Markdown, as a client shows it, that is more than words
// and links to the viewer, or "".
func liveIn(markdown string) string {
	for what, re := range hidden {
		if at := re.FindString(markdown); at != "" {
			return fmt.Sprintf("%s (%q)", what, at)
		}
	}
	var page bytes.Buffer
	if err := chatMarkdown.Convert([]byte(markdown), &page); err != nil {
		return err.Error()
	}
	root, err := nethtml.Parse(&page)
	if err != nil {
		return err.Error()
	}
	for n := range root.Descendants() {
		switch {
		case n.Type == nethtml.CommentNode, n.Type == nethtml.DoctypeNode:
			return "a comment"
		case n.Type == nethtml.ElementNode && n.Data == "a":
			if len(n.Attr) != 1 || !ownLinks.MatchString(n.Attr[0].Val) {
				return fmt.Sprintf("a link %v", n.Attr)
			}
		case n.Type == nethtml.ElementNode && !slices.Contains(plainElements, n.Data):
			return "the element " + n.Data
		case n.Type == nethtml.TextNode && n.Parent.Data != "code":
			if at := linkable.FindString(n.Data); at != "" {
				return fmt.Sprintf("what may become a link (%q)", at)
			}
		}
	}
	return ""
}

// wordsMarkdown reads blocks, emphasis and code, but makes no links.
var wordsMarkdown = goldmark.New(goldmark.WithParser(parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewSetextHeadingParser(), 100), util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300), util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500), util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700), util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000)),
	parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewEmphasisParser(), 500)))),
	goldmark.WithExtensions(extension.Table))

// shown returns the words of Markdown as a reader sees them.
func shown(t testing.TB, markdown string) string {
	t.Helper()
	var page bytes.Buffer
	must(t, wordsMarkdown.Convert([]byte(markdown), &page))
	root, err := nethtml.Parse(&page)
	must(t, err)
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == nethtml.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// TestEscapedIsOnlyWords checks that a renderer finds nothing live in escaped
// texts, and that a link has one target whatever its title is.
func TestEscapedIsOnlyWords(t *testing.T) {
	parts := datatest.Lines[string](t, "testdata/rows/escaped.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		words := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 30).Draw(t, "parts"), "")
		if out := rewrite.Escape(words); liveIn(out) != "" {
			t.Fatalf("Escape(%q) = %q, which contains %s", words, out, liveIn(out))
		}
		titled := "[" + rewrite.EscapeTitle(words) + "](/documents/x)"
		if what := liveIn(titled); what != "" {
			t.Fatalf("title %q becomes %q, which contains %s", words, titled, what)
		}
	})
}

func honestFiles(t testing.TB) []txtar.File {
	t.Helper()
	data, err := os.ReadFile("../cite/rewrite/testdata/honest.txt")
	must(t, err)
	return txtar.Parse(data).Files
}

// TestHonestTexts checks that texts worth copying exactly are rendered unchanged.
func TestHonestTexts(t *testing.T) {
	files := honestFiles(t)
	for _, f := range files {
		text := string(f.Data)
		const ampersand = "\ue000" // without character references
		want := strings.ReplaceAll(shown(t, strings.ReplaceAll(text, "&", ampersand)), ampersand, "&")
		if got := shown(t, rewrite.Escape(text)); got != want {
			t.Errorf("%s is shown as\n%s\nwant\n%s", f.Name, got, want)
		}
		if what := liveIn(rewrite.Escape(text)); what != "" {
			t.Errorf("%s: escaped text contains %s", f.Name, what)
		}
	}
	if len(files) < 60 {
		t.Errorf("only %d texts, want at least 60", len(files))
	}
}

// TestRendered checks that hostile and honest texts are inert, alone and between Ibid's
// links. IBID_ESCAPED names a file for the texts as JSON lines, for the renderers of
// .ci/clients.
func TestRendered(t *testing.T) {
	texts := datatest.HostileTexts(t)
	for _, f := range honestFiles(t) {
		texts = append(texts, datatest.Hostile{Name: "honest, " + f.Name, Text: string(f.Data)})
	}
	var lines []byte
	for _, h := range texts {
		for _, text := range []string{h.Text, "The pier§ is " + h.Text + "§ shut."} {
			var e rewrite.Escaper
			var out []byte
			for i, part := range strings.Split(text, "§") {
				if i > 0 {
					out, _ = e.AppendNumber(out, []byte("[[1]](/documents/own)"))
				}
				out = e.Append(out, []byte(part))
			}
			out = e.Close(out)
			if what := liveIn(string(out)); what != "" {
				t.Errorf("%s: rendered text contains %s", h.Name, what)
			}
			lines = append(append(lines, mustEncode(map[string]string{"name": h.Name, "markdown": string(out)})...), '\n')
		}
	}
	if file := os.Getenv("IBID_ESCAPED"); file != "" {
		must(t, os.WriteFile(file, lines, 0o644))
	}
}

// TestPlainTexts checks that every renderer shows exactly the words of a document in a quoted
// answer.
func TestPlainTexts(t *testing.T) {
	texts := datatest.Lines[string](t, "testdata/rows/plain.jsonl")
	for _, f := range honestFiles(t) {
		texts = append(texts, strings.Split(string(f.Data), "\n")...)
	}
	for _, text := range texts {
		checkPlain(t, text)
	}
	parts := strings.Split(`a b|word|*|**|_|__|~|~~|\|\\|#|>|+|=|-|--|:|.|)|1|12|1234|[|]|(|!|<|/|&|;|"|'|é|図|。|https://a.b| |  `, "|")
	parts = append(parts, "|", "`", "```", "\n", " \n")
	rapid.Check(t, func(t *rapid.T) {
		checkPlain(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 30).Draw(t, "parts"), ""))
	})
}

// listItem is what begins a list item in a plain text.
var listItem = regexp.MustCompile(`(?m)^(?:-|[0-9]{1,3}[.)]) +`)

var fenceLine = regexp.MustCompile("(?m)^(```|(-|[0-9]{1,3}[.)])[ \t]*$)")

var indent = regexp.MustCompile(`(?m)^[ \t]+`)

func checkPlain(t rapid.TB, text string) {
	text = indent.ReplaceAllString(text, "")         // as quotes are
	text = listItem.ReplaceAllString(text, "\n${0}") // otherwise only 1 begins a list
	words := strings.Fields(string(rewrite.Visible([]byte(listItem.ReplaceAllString(text, "")))))
	if fenceLine.MatchString(text) {
		return // code, or an item without words
	}
	want := strings.Join(words, " ")
	e := rewrite.Escaper{Plain: true}
	markdown := string(e.Close(e.Append(nil, []byte(text))))
	if what := liveIn(markdown); what != "" {
		t.Fatalf("%q, from %q, has %s", markdown, text, what)
	}
	var chat bytes.Buffer
	if err := chatMarkdown.Convert([]byte(markdown), &chat); err != nil {
		t.Fatal(err)
	}
	page := ""
	parts, err := newMarkdown().render(piece{source: []byte(text), plain: true})
	for _, p := range parts {
		page += p.html + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	for from, shown := range map[string]string{markdown: chat.String(), "the page": page} {
		root, err := nethtml.Parse(strings.NewReader(shown))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for n := range root.Descendants() {
			if n.Type == nethtml.TextNode {
				got += n.Data
			}
		}
		if got = strings.Join(strings.Fields(got), " "); got != want {
			t.Fatalf("%q is shown as\n%q, want\n%q, by %s", text, got, want, from)
		}
	}
}
