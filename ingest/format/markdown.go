package format

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html/atom"
)

// Markdown reads Markdown, and the Markdown in MDX. Headings have the same anchors as on GitHub.
func Markdown(doc *Document, src string) error {
	whole := strings.ReplaceAll(src, "\r\n", "\n")
	matter, src := cutFrontMatter(whole)
	readFrontMatter(doc, matter)
	above := strings.Count(whole[:len(whole)-len(src)], "\n")
	if strings.HasSuffix(strings.ToLower(doc.Path), ".mdx") {
		src, above = stripMDX(src), -1 // line numbers change
	}
	var b builder
	addMarkdown(&b, src, make(map[string]int), above)
	b.moveTo(doc)
	doc.titleFromHeading(1)
	return nil
}

// isSlowMarkdown reports whether a text could slow down the parser, whose time is quadratic in the
// delimiters of a paragraph and in the depth of nesting.
func isSlowMarkdown(src string) bool {
	const maxParagraph, maxDepth = 2 << 10, 40
	size, signs := 0, 0
	for line := range strings.SplitSeq(src, "\n") {
		if strings.TrimSpace(line) == "" {
			size, signs = 0, 0
			continue
		}
		size += len(line)
		for _, sign := range "*_[]!~<`&(" {
			signs += strings.Count(line, string(sign))
		}
		depth := 0
		for i := 0; i < len(line) && strings.IndexByte(" \t>-+*", line[i]) >= 0; i++ {
			if line[i] == '>' || line[i] > ' ' && strings.HasPrefix(line[i+1:], " ") {
				depth++
			}
		}
		if depth > maxDepth || size > maxParagraph && signs*4 > size || signs > 10000 {
			return true
		}
	}
	return false
}

// addMarkdown adds the blocks of a piece of Markdown. slugs counts the anchors in use. above is the
// number of lines before the piece in the file, or -1 if unknown.
func addMarkdown(b *builder, src string, slugs map[string]int, above int) {
	if isSlowMarkdown(src) {
		scanMarkdown(b, src, slugs, above)
		return
	}
	md := goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
		goldmark.WithParserOptions(parser.WithHeadingAttribute()),
	)
	w := markdownWalker{b: b, src: []byte(src), slugs: slugs, above: above}
	w.blocks(md.Parser().Parse(text.NewReader(w.src)), 0)
}

type markdownWalker struct {
	b     *builder
	src   []byte
	slugs map[string]int // how often each anchor was used
	plain bool           // omit the texts of pictures
	above int            // lines of the file before src; negative if unknown
	at    Line           // a place in src, and the number of line ends before it
}

// setLine sets the line of the next block.
func (w *markdownWalker) setLine(n ast.Node) {
	start, ok := startOf(n)
	if w.above < 0 || !ok {
		return
	}
	if start < w.at.Start {
		w.at = Line{}
	}
	w.at = Line{start, w.at.Number + bytes.Count(w.src[w.at.Start:start], []byte("\n"))}
	w.b.line = w.above + w.at.Number + 1
}

// startOf returns the offset of the first text of a node.
func startOf(n ast.Node) (int, bool) {
	for ; n != nil; n = n.FirstChild() {
		if t, ok := n.(*ast.Text); ok {
			return t.Segment.Start, true
		}
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			return n.Lines().At(0).Start, true
		}
	}
	return 0, false
}

// blocks walks the block elements in n; depth is the number of enclosing lists.
func (w *markdownWalker) blocks(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.block(c, depth)
	}
}

func (w *markdownWalker) block(n ast.Node, depth int) {
	w.setLine(n)
	switch n := n.(type) {
	case *ast.Heading:
		w.plain = true // pictures in headings are badges
		heading := w.inline(n)
		if w.plain = false; oneLine(Clean(heading)) == "" {
			heading = w.inline(n)
		}
		anchor := slug(w.slugs, oneLine(Clean(heading)))
		if id, ok := n.AttributeString("id"); ok {
			anchor = fmt.Sprintf("%s", id)
		}
		w.b.Heading(n.Level, heading, anchor)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		w.b.Code(w.lines(n))
	case *ast.HTMLBlock:
		raw := w.lines(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(w.src))
		}
		htmlFragment(w.b, raw)
	case *ast.List:
		number := n.Start
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			marker := "-"
			if n.IsOrdered() {
				marker = fmt.Sprintf("%d.", number)
				number++
			}
			w.item(c, marker, depth)
		}
		if depth == 0 {
			w.b.last = kindNone // items of the next list are separate
		}
	case *extast.Table:
		w.table(n)
	case *ast.ThematicBreak, *ast.LinkReferenceDefinition:
	case *ast.Paragraph, *ast.TextBlock, *extast.DefinitionTerm:
		w.b.Paragraph(w.inline(n))
	default: // quotes, definitions, footnotes
		w.blocks(n, depth)
	}
}

// item writes a list item: the marker and the first paragraph, then the remaining blocks.
func (w *markdownWalker) item(n ast.Node, marker string, depth int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c.(type) {
		case *ast.Paragraph, *ast.TextBlock:
			w.setLine(c)
			if marker != "" {
				w.b.Item(depth, marker, w.inline(c))
			} else {
				w.b.Paragraph(w.inline(c))
			}
		default:
			w.block(c, depth+1)
		}
		marker = ""
	}
}

func (w *markdownWalker) table(n *extast.Table) {
	var header []string
	rows := 0
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		var cells []string
		for d := c.FirstChild(); d != nil; d = d.NextSibling() {
			cells = append(cells, w.inline(d))
		}
		if _, ok := c.(*extast.TableHeader); ok {
			header = mergeNames(nil, cells)
			continue
		}
		w.setLine(c)
		if _, ok := w.b.Row(header, cells); ok {
			rows++
		}
	}
	if rows == 0 {
		w.b.Row(nil, header)
	}
	w.b.last = kindNone // rows of the next table are separate
}

func (w *markdownWalker) lines(n ast.Node) string {
	var out strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		out.Write(line.Value(w.src))
	}
	return out.String()
}

// inline returns the text of a block without markup and addresses.
func (w *markdownWalker) inline(n ast.Node) string {
	var out strings.Builder
	w.writeInline(&out, n)
	return out.String()
}

func (w *markdownWalker) writeInline(out *strings.Builder, n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			value := c.Segment.Value(w.src)
			if !c.IsRaw() {
				value = unescape(value)
			}
			out.Write(value)
			switch {
			case c.HardLineBreak():
				out.WriteByte('\n')
			case c.SoftLineBreak():
				// Chinese and Japanese lines are wrapped without a space.
				r, _ := utf8.DecodeLastRune(value)
				if !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) && !strings.ContainsRune("，。、；：？！", r) {
					out.WriteByte(' ')
				}
			}
		case *ast.String:
			out.Write(c.Value)
		case *ast.AutoLink:
			out.Write(c.Label(w.src))
		case *ast.RawHTML:
			segment := c.Segments.At(0)
			raw := segment.Value(w.src)
			switch name := tagName.FindSubmatch(raw); {
			case name == nil: // a component; only style separates two of them
				if m := jsxTitle.FindSubmatch(raw); m != nil {
					out.WriteString(string(m[1]) + ": ")
				}
				if _, ok := c.NextSibling().(*ast.RawHTML); ok && raw[1] == '/' {
					out.WriteByte(' ')
				}
			case string(name[1]) == "br":
				out.WriteByte('\n')
			case atom.Lookup(name[1]) == 0:
				out.Write(raw) // a placeholder such as <name>
			}
		case *extast.TaskCheckBox:
			out.WriteString(map[bool]string{true: "[x] ", false: "[ ] "}[c.IsChecked])
		case *extast.FootnoteLink:
			fmt.Fprintf(out, "[^%d]", c.Index)
		case *extast.FootnoteBacklink:
		case *ast.Image:
			if !w.plain {
				w.writeInline(out, c)
			}
		default:
			w.writeInline(out, c)
		}
	}
}

// tagName matches the name in a tag. Components begin with a capital and don't match.
var tagName = regexp.MustCompile(`^</?([a-z][\w-]*)`)

// unescape removes backslashes before punctuation and resolves entities.
func unescape(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 && bytes.IndexByte(value, '&') < 0 {
		return value
	}
	return util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(value)))
}

// slug returns the anchor that GitHub gives a heading.
func slug(taken map[string]int, heading string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			out.WriteByte('-')
		case r == '-' || unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc):
			out.WriteRune(r)
		}
	}
	base := out.String()
	s := base
	for _, ok := taken[s]; ok; _, ok = taken[s] {
		taken[base]++
		s = fmt.Sprintf("%s-%d", base, taken[base])
	}
	taken[s] = 0
	return s
}

var atxHeading = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$`)

// scanMarkdown reads headings, fenced code and paragraphs line by line, in linear time, and keeps
// all other markup. above is the number of lines before src in the file, or -1 if unknown.
func scanMarkdown(b *builder, src string, slugs map[string]int, above int) {
	fence := ""
	var lines []string
	mark := func(i int) {
		if above >= 0 {
			b.line = above + i + 1
		}
	}
	flush := func(write func(text string), at int) {
		mark(at - len(lines))
		write(strings.Join(lines, "\n"))
		lines = nil
	}
	i := 0
	for line := range strings.SplitSeq(src, "\n") {
		trimmed := strings.TrimSpace(line)
		m := atxHeading.FindStringSubmatch(line)
		switch {
		case fence != "" && strings.HasPrefix(trimmed, fence):
			flush(b.Code, i)
			fence = ""
		case fence != "":
			lines = append(lines, line)
		case m != nil:
			flush(b.Paragraph, i)
			mark(i)
			b.Heading(len(m[1]), m[2], slug(slugs, oneLine(Clean(m[2]))))
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			flush(b.Paragraph, i)
			fence = trimmed[:3]
		case trimmed == "":
			flush(b.Paragraph, i)
		default:
			lines = append(lines, trimmed)
		}
		i++
	}
	if fence != "" {
		flush(b.Code, i)
	}
	flush(b.Paragraph, i)
}

var (
	jsxOnly    = regexp.MustCompile(`^\s*</?[A-Z][\w.]*(\s[^<>]*)?/?>\s*$`)
	jsxTitle   = regexp.MustCompile(`\btitle=["']([^"']+)["']`)
	jsxComment = regexp.MustCompile(`\{/\*.*?\*/\}`)
)

// stripMDX removes the additions of MDX to Markdown: imports, exports, comments, and lines with
// only a component's tag, except its title.
func stripMDX(src string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(src) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
		}
		switch {
		case fenced:
			out.WriteString(line)
		case strings.HasPrefix(line, "import ") && strings.Contains(line, "from "), strings.HasPrefix(line, "export "):
			out.WriteString("\n")
		case jsxOnly.MatchString(trimmed):
			if m := jsxTitle.FindStringSubmatch(trimmed); m != nil {
				out.WriteString("\n" + m[1] + "\n")
			}
			out.WriteString("\n")
		default:
			out.WriteString(jsxComment.ReplaceAllString(line, ""))
		}
	}
	return out.String()
}
