package web

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	nethtml "golang.org/x/net/html"
	"pgregory.net/rapid"

	"ibid/cite/rewrite"
)

// chatMarkdown is Markdown with every extension that chat clients use.
var chatMarkdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList,
	extension.Typographer), goldmark.WithRendererOptions(html.WithUnsafe()))

// plainElements are the elements of paragraphs, lists, tables and code.
var plainElements = strings.Fields(`html head body p em strong del code pre ul ol li h1 h2 h3 h4 h5 h6 hr br blockquote
	table thead tbody tr th td dl dt dd input`)

// activeIn names what a reader of Markdown or HTML finds in a text other than
// words in paragraphs, or returns "".
func activeIn(words string) string {
	source := []byte(words)
	doc := chatMarkdown.Parser().Parse(text.NewReader(source))
	found := ""
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
			found = "Markdown: " + n.Kind().String()
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	if found != "" {
		return found
	}
	var page bytes.Buffer
	if err := chatMarkdown.Renderer().Render(&page, source, doc); err != nil {
		return err.Error()
	}
	if what := elementIn(page.String(), plainElements, "class", "start", "style", "type", "checked", "disabled"); what != "" {
		return "rendered: " + what
	}
	if what := elementIn(words, []string{"html", "head", "body"}); what != "" {
		return "HTML: " + what
	}
	return ""
}

// elementIn returns the first element, comment or attribute of a page that is
// not allowed.
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

// TestNeutralIsOnlyWords checks that readers of Markdown and HTML find only
// words, even if they decode references once more.
func TestNeutralIsOnlyWords(t *testing.T) {
	parts := []string{
		"https://evil.com/a?b=c", "http://", "https:", "//evil.com", "/", "\\", "ftp://e.com", "www.evil.com", "www.", "evil.com",
		"xmpp:a@b.com", "mailto:", "a@b.com", "javascript:x", "data:text/html,x",
		"[", "]", "(", ")", "](", "![", "!", "[a]", "[a][b]", "\n[a]: /x\n", "]:", ":", "[1]", "[^1]", "\n[^1]: x\n", "<", ">",
		"<img src=x onerror=y>", "<a href=//e.com>", "</p>", "<!--", "-->", "<![CDATA[", "<?", "<svg/onload=x>", "<script>",
		"&", "&lt;", "&#60;", "&#x3C", "&colon;", "&NewLine;", "&lbrack;", "&sol;", "#", ";", "`", "```\n", "~~~\n", "$", "\n", "\n\n", " ",
		"    ", "\t", "> ", "- ", "1. ", "* ", "**", "_", "|", "|-|\n", "\"", "'", "x", "= ", "---\n",
		"\u200b", "\u202e", "\x1b", "\r", "\x00", "\u00a0", "\u2028",
	}
	rapid.Check(t, func(t *rapid.T) {
		words := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 30).Draw(t, "parts"), "")
		out := rewrite.Neutral(words)
		if what := activeIn(out); what != "" {
			t.Fatalf("%q, from %q, has %s", out, words, what)
		}
		if decoded := nethtml.UnescapeString(out); decoded != out {
			t.Fatalf("%q, from %q, decodes to %q", out, words, decoded)
		}
		if unescaped := strings.ReplaceAll(out, "\\", ""); strings.Contains(activeIn(unescaped), "AutoLink") {
			t.Fatalf("%q, from %q, is a link without its backslashes", out, words)
		}
		titled := "[" + rewrite.MarkdownText(words) + "](/own)"
		if a, links := countLinks(titled); a != "" || links != 1 {
			t.Fatalf("%q, from %q, has %s and %d links", titled, words, a, links)
		}
	})
}

// countLinks counts the links of a Markdown text, and returns anything active
// other than links to /own.
func countLinks(words string) (strange string, links int) {
	source := []byte(words)
	_ = ast.Walk(chatMarkdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if string(n.Destination) != "/own" {
				strange = string(n.Destination)
			}
			if entering {
				links++
			}
		case *ast.Image, *ast.AutoLink, *ast.RawHTML, *ast.HTMLBlock:
			strange = n.Kind().String()
		}
		return ast.WalkContinue, nil
	})
	return strange, links
}
