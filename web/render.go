package web

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"unicode"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"ibid/cite"
	"ibid/cite/rewrite"
)

// A markdown converts a model's text to HTML. It supports headings, lists, quotes, tables,
// code, emphasis, and citations as links without an address. Images, other links, raw HTML
// and character references remain text. It runs in linear time, and is safe for concurrent
// use.
type markdown struct {
	parser   parser.Parser
	words    parser.Parser // for plain pieces
	renderer renderer.Renderer
	policy   *bluemonday.Policy
}

// Keys in a parser's context.
var (
	pieceKey = parser.NewContextKey()
	spentKey = parser.NewContextKey()
)

func newMarkdown() *markdown {
	writer := html.WithWriter(plain)
	return &markdown{
		parser: parser.NewParser(
			// Setext headings are left out: a line could become a heading after it has been
			// shown.
			parser.WithBlockParsers(
				util.Prioritized(parser.NewThematicBreakParser(), 200),
				util.Prioritized(nestingLimit{parser.NewListParser()}, 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(parser.NewCodeBlockParser(), 500),
				util.Prioritized(parser.NewATXHeadingParser(), 600),
				util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
				util.Prioritized(nestingLimit{parser.NewBlockquoteParser()}, 800),
				util.Prioritized(parser.NewParagraphParser(), 1000)),
			parser.WithInlineParsers(
				util.Prioritized(delimiterLimit{parser.NewCodeSpanParser()}, 100),
				util.Prioritized(citations{}, 200),
				util.Prioritized(formulas{}, 300),
				util.Prioritized(delimiterLimit{parser.NewEmphasisParser()}, 500),
				util.Prioritized(delimiterLimit{extension.NewStrikethroughParser()}, 600)),
			parser.WithParagraphTransformers(
				util.Prioritized(tableLimit{extension.NewTableParagraphTransformer()}, 200))),
		words: parser.NewParser(
			parser.WithBlockParsers(
				util.Prioritized(plainBlock{parser.NewListParser(), regexp.MustCompile(`^(?:-|\d{1,3}[.)]) `)}, 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(plainBlock{parser.NewFencedCodeBlockParser(), regexp.MustCompile("^ {0,3}```")}, 700),
				util.Prioritized(plainLines{parser.NewParagraphParser()}, 1000)),
			parser.WithInlineParsers(util.Prioritized(citations{}, 200))),
		renderer: renderer.NewRenderer(renderer.WithNodeRenderers(
			util.Prioritized(nodeRenderer{}, 100),
			util.Prioritized(extension.NewTableHTMLRenderer(
				extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute),
				extension.WithTableHTMLOptions(writer)), 500),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(writer), 500),
			util.Prioritized(html.NewRenderer(writer, html.WithHardWraps()), 1000))),
		policy: policy(),
	}
}

// policy allows only the elements that [newMarkdown] produces. None of their attributes can
// contain an address, a style or a script.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote",
		"pre", "code", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "a")
	p.AllowNoAttrs().OnElements("span", "a", "div")
	number := regexp.MustCompile(`^[0-9]{1,9}$`)
	p.AllowAttrs("start").Matching(number).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^scroll$`)).OnElements("div")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^doubt$`)).OnElements("span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^cite$`)).OnElements("a")
	p.AllowAttrs("data-number", "data-at").Matching(number).OnElements("a")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("div", "pre")
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^group$`)).OnElements("div", "pre")
	p.AllowAttrs("aria-label").Matching(regexp.MustCompile(`^(Table|Code)$`)).OnElements("div", "pre")
	return p
}

// A piece is a text to render, or a part of one.
type piece struct {
	source []byte
	at     int  // offset of source in the whole text
	plain  bool // see answer.Text
	// numbers are the numbers of sources, by offset in the whole text.
	numbers map[int]int
	// doubts are the sentences to mark, in order, with offsets in the whole text.
	doubts []cite.Unsupported
}

// A part is the HTML of one block, which begins at the start of a line.
type part struct {
	start int // offset in the piece's source
	html  string
}

// render returns the blocks of a piece. Each block is rendered independently of the others.
func (m *markdown) render(p piece) ([]part, error) {
	nodes, starts := m.parse(p)
	var parts []part
	for i := 0; i < len(nodes); {
		start := starts[i]
		var b bytes.Buffer
		// A table that directly follows a paragraph is in the same block.
		for ; i < len(nodes) && starts[i] == start; i++ {
			if err := m.renderer.Render(&b, p.source, nodes[i]); err != nil {
				return nil, fmt.Errorf("rendering the answer: %w", err)
			}
		}
		parts = append(parts, part{start, m.policy.SanitizeReader(&b).String()})
	}
	return parts, nil
}

// parse returns the outermost nodes of a piece and the start of each node's line.
func (m *markdown) parse(p piece) (nodes []ast.Node, starts []int) {
	context := parser.NewContext()
	context.Set(pieceKey, p)
	reader := m.parser
	if p.plain {
		reader = m.words
	}
	document := reader.Parse(text.NewReader(p.source), parser.WithContext(context))
	document.OwnerDocument().AddMeta(metaPiece, p)
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		nodes = append(nodes, n)
		at := min(max(n.Pos(), 0), len(p.source))
		starts = append(starts, bytes.LastIndexByte(p.source[:at], '\n')+1)
	}
	return nodes, starts
}

// maxDepth is how deep lists and quotes nest; a list is two levels.
const maxDepth = 16

// nestingLimit limits the nesting of containers, since every line is matched against all open
// containers.
type nestingLimit struct{ parser.BlockParser }

func (s nestingLimit) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n := 0
	for up := parent; up != nil; up = up.Parent() {
		n++
	}
	if n > maxDepth {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// plainBlock parses blocks of plain pieces, at the top level only and only if begins matches,
// so that "+", "*" and years begin no list.
type plainBlock struct {
	parser.BlockParser
	begins *regexp.Regexp
}

func (p plainBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); parent.Kind() != ast.KindDocument || !p.begins.Match(line) {
		return nil, parser.NoChildren
	}
	return p.BlockParser.Open(parent, reader, pc)
}

// plainLines parses the lines of plain pieces. Indented lines are not code.
type plainLines struct{ parser.BlockParser }

func (plainLines) CanAcceptIndentedLine() bool { return true }

// maxDelimiters is how many runs of *, _, ~ or ` are parsed in a paragraph.
const maxDelimiters = 200

// delimiterLimit parses the first delimiters of a paragraph and leaves further ones as text,
// since matching them takes quadratic time.
type delimiterLimit struct{ parser.InlineParser }

type delimiterCount struct {
	parent ast.Node
	count  int
}

func (t delimiterLimit) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	s, _ := pc.Get(spentKey).(*delimiterCount)
	if s == nil || s.parent != parent {
		s = &delimiterCount{parent: parent}
		pc.Set(spentKey, s)
	}
	if s.count >= maxDelimiters {
		return nil
	}
	s.count++
	return t.InlineParser.Parse(parent, block, pc)
}

// tableLimit rejects tables with many more cells than bytes, since short rows are padded to
// the width of the first.
type tableLimit struct{ parser.ParagraphTransformer }

func (n tableLimit) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	size, width := 0, 0
	for _, line := range node.Lines().Sliced(0, node.Lines().Len()) {
		size += line.Len()
		width = max(width, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	if node.Lines().Len()*width > 500+size {
		return
	}
	n.ParagraphTransformer.Transform(node, reader, pc)
}

// citations parses the numbers of sources: [n] at the place of a number. The model's own
// brackets, as in "x = [1]", remain text.
type citations struct{}

func (citations) Trigger() []byte { return []byte{'['} }

func (citations) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	p := pc.Get(pieceKey).(piece)
	at := p.at + segment.Start
	n := p.numbers[at]
	number := fmt.Appendf(nil, "[%d]", n)
	if n == 0 || !bytes.HasPrefix(line, number) {
		return nil
	}
	block.Advance(len(number))
	link := ast.NewString(fmt.Appendf(nil, `<a class="cite" data-number="%d" data-at="%d">%d</a>`, n, at, n))
	link.SetCode(true) // it is HTML already
	return link
}

var kindFormula = ast.NewNodeKind("Formula")

// A formula is mathematics with its delimiters, shown as written.
type formula struct{ ast.BaseInline }

func (*formula) Kind() ast.NodeKind { return kindFormula }

func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulas parses mathematics between the delimiters that package marker also knows.
type formulas struct{}

// maxFormula is the maximum length of a formula in bytes: four for each character that
// package marker allows.
const maxFormula = 800

func (formulas) Trigger() []byte { return []byte{'$', '\\'} }

func (formulas) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, _ := block.PeekLine()
	opening, closing := opensFormula(line, block.PrecendingCharacter())
	if opening == 0 {
		return nil
	}
	at, segment := block.Position()
	f, p := &formula{}, pc.Get(pieceKey).(piece)
	for size := 0; ; {
		line, segment := block.PeekLine()
		end, closed := len(line), false
		if n := bytes.Index(line[opening:], []byte(closing)); n >= 0 {
			end, closed = opening+n+len(closing), true
		}
		size += end
		if line == nil || size > maxFormula || !closed && (closing == "$" || closing == `\)`) || p.breaksFormula(line[:end], segment.Start) ||
			closed && closing == "$" && (!closesFormula(line, end-1)) {
			break
		}
		words := ast.NewTextSegment(text.NewSegment(segment.Start, segment.Start+len(bytes.TrimRight(line[:end], "\r\n"))))
		words.SetSoftLineBreak(!closed)
		f.AppendChild(f, words)
		if closed {
			block.Advance(end)
			return f
		}
		block.AdvanceLine()
		opening = 0
	}
	block.SetPosition(at, segment)
	return nil
}

// opensFormula returns the length of a delimiter at the start of the line, or 0, and the
// closing delimiter.
func opensFormula(line []byte, before rune) (length int, closing string) {
	for _, d := range [][2]string{{"$$", "$$"}, {`\[`, `\]`}, {`\(`, `\)`}} {
		if bytes.HasPrefix(line, []byte(d[0])) {
			return 2, d[1]
		}
	}
	next, _ := utf8.DecodeRune(line[1:])
	if line[0] != '$' || unicode.IsSpace(next) || unicode.IsNumber(next) || unicode.IsNumber(before) || unicode.In(before, unicode.Latin) {
		return 0, ""
	}
	return 1, "$"
}

// closesFormula reports whether the dollar sign at an offset ends a formula.
func closesFormula(line []byte, at int) bool {
	before, _ := utf8.DecodeLastRune(line[:at])
	after, _ := utf8.DecodeRune(line[at+1:])
	return !unicode.IsSpace(before) && before != '\\' && !unicode.IsNumber(after)
}

// breaksFormula reports whether a line at an offset contains code or the number of a source,
// so that it cannot be a formula.
func (p piece) breaksFormula(line []byte, offset int) bool {
	for i, b := range line {
		if b == '`' || b == '[' && p.numbers[p.at+offset+i] > 0 {
			return true
		}
	}
	return false
}

// firstDoubt returns the first doubtful part of source[start:end], or an empty range.
func (p piece) firstDoubt(start, end int) (int, int) {
	i := sort.Search(len(p.doubts), func(i int) bool { return p.doubts[i].TextEnd > p.at+start })
	if i == len(p.doubts) {
		return end, end
	}
	a := min(max(start, p.doubts[i].TextStart-p.at), end)
	return a, max(a, min(end, p.doubts[i].TextEnd-p.at))
}

// nodeRenderer renders the nodes that the library does not know or renders differently.
type nodeRenderer struct{}

func (nodeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindFormula, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) { return ast.WalkContinue, nil })
	r.Register(ast.KindText, renderText)
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(extast.KindTable, renderTable)
}

// renderText puts doubtful words into spans.
func renderText(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	t := n.(*ast.Text)
	write := plain.Write
	if n.Parent().Kind() == kindFormula {
		write = plain.RawWrite
	}
	if pieceOf(n).plain {
		write = plain.RawWrite
		if end := t.Segment.Stop; t.HardLineBreak() && source[end] == '\\' { // the library has removed it as markup
			t.Segment = t.Segment.WithStop(end + 1)
		}
	}
	for rest := t.Segment; rest.Len() > 0; {
		a, z := pieceOf(n).firstDoubt(rest.Start, rest.Stop)
		sure := rest.WithStop(a)
		write(w, sure.Value(source))
		if rest = rest.WithStart(a); a < z {
			doubtful := rest.WithStop(z)
			w.WriteString(`<span class="doubt">`)
			write(w, doubtful.Value(source))
			w.WriteString("</span>")
		}
		rest = rest.WithStart(z)
	}
	if t.SoftLineBreak() || t.HardLineBreak() {
		w.WriteString("<br>\n")
	}
	return ast.WalkContinue, nil
}

// renderHeading renders the headings of an answer below the level of the question.
func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	slash := "/"
	if entering {
		slash = ""
	}
	fmt.Fprintf(w, "<%sh%d>", slash, min(max(n.(*ast.Heading).Level+1, 3), 6))
	return ast.WalkContinue, nil
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	w.WriteString(`<pre tabindex="0" role="group" aria-label="Code"><code>`)
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		plain.RawWrite(w, line.Value(source))
	}
	w.WriteString("</code></pre>")
	return ast.WalkSkipChildren, nil
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		w.WriteString(`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`)
	} else {
		w.WriteString("</table></div>")
	}
	return ast.WalkContinue, nil
}

// metaPiece is the key for the piece in a parsed document.
const metaPiece = "piece"

func pieceOf(n ast.Node) piece { return n.OwnerDocument().Meta()[metaPiece].(piece) }

var plain = plainWriter{html.DefaultWriter}

// plainWriter removes the backslashes of Markdown and invisible characters. It does not
// resolve character references, which could hide text from a reader.
type plainWriter struct{ html.Writer }

func (p plainWriter) Write(w util.BufWriter, source []byte) {
	p.RawWrite(w, util.UnescapePunctuations(source))
}

func (p plainWriter) RawWrite(w util.BufWriter, source []byte) {
	p.Writer.RawWrite(w, rewrite.Visible(source))
}

// A blockEvent is a block of the answer as HTML: the event "block", or "marked" for
// a final block with its unsupported sentences marked.
type blockEvent struct {
	// Draft is the step of the draft or revision that contains the block; 0 for the answer.
	Draft int    `json:"draft,omitempty"`
	Index int    `json:"index"`
	HTML  string `json:"html"`
	// Final means that the block will not change.
	Final bool `json:"final"`
}

// A rendering splits a growing text into blocks. Its final blocks do not depend on how the
// text is split into events.
type rendering struct {
	markdown *markdown
	draft    int
	plain    bool // see answer.Text
	text     []byte
	numbers  map[int]int // see piece
	starts   []int       // of the final blocks
	open     int         // start of the open block
	rendered int         // length of the text at the last rendering
	lastSent string      // the open block as last sent
}

func newRendering(m *markdown, draft int) *rendering {
	return &rendering{markdown: m, draft: draft, numbers: map[int]int{}}
}

// renderAnswer renders a complete answer.
func (m *markdown) renderAnswer(a cite.Answer) (string, error) {
	numbers := map[int]int{}
	for _, p := range a.Places {
		numbers[p.Start] = p.Number
	}
	return m.html(piece{source: []byte(a.Text), plain: a.Plain, numbers: numbers, doubts: a.Unsupported})
}

// html renders all blocks of a piece.
func (m *markdown) html(p piece) (all string, err error) {
	parts, err := m.render(p)
	for _, p := range parts {
		all += p.html
	}
	return all, err
}

// append adds a piece of text.
func (r *rendering) append(e textEvent) {
	for _, p := range e.Places {
		r.numbers[p.Start] = p.Number
	}
	r.text, r.plain = append(r.text, e.Text.Text...), e.Plain
}

// hasGrown reports whether there is enough new text to render the open block again. A longer
// block needs more new text, so that all renderings take linear time.
func (r *rendering) hasGrown() bool {
	enough := 1
	if open := len(r.text) - r.open; open > 4<<10 {
		enough = open / 32
	}
	return len(r.text) >= r.rendered+enough
}

func (r *rendering) piece(from, to int, doubts []cite.Unsupported) piece {
	return piece{source: r.text[from:to], at: from, plain: r.plain, numbers: r.numbers, doubts: doubts}
}

// advance returns the blocks that have closed and the open one. At the end it returns all
// remaining blocks.
func (r *rendering) advance(end bool) ([]blockEvent, error) {
	r.rendered = len(r.text)
	var out []blockEvent
	// An incomplete line does not show yet which kind of block it begins.
	upto := len(r.text)
	for !end && upto > r.open && r.text[upto-1] != '\n' {
		upto--
	}
	parts, err := r.markdown.render(r.piece(r.open, upto, nil))
	if err != nil {
		return nil, err
	}
	from := r.open
	for i, p := range parts {
		if i == len(parts)-1 && !end {
			r.open = from + p.start
			break
		}
		out = append(out, blockEvent{r.draft, len(r.starts), p.html, true})
		r.starts = append(r.starts, from+p.start)
		r.lastSent = ""
	}
	if end {
		r.open = len(r.text)
		return out, nil
	}
	html, err := r.markdown.html(r.piece(r.open, len(r.text), nil))
	if err != nil {
		return nil, err
	}
	if html != r.lastSent {
		r.lastSent = html
		out = append(out, blockEvent{r.draft, len(r.starts), html, false})
	}
	return out, nil
}

// markedBlocks returns the final blocks that contain doubtful sentences, with marks.
func (r *rendering) markedBlocks(doubts []cite.Unsupported) ([]blockEvent, error) {
	var out []blockEvent
	for i, start := range r.starts {
		end := len(r.text)
		if i+1 < len(r.starts) {
			end = r.starts[i+1]
		}
		block := r.piece(start, end, doubts)
		if from, to := block.firstDoubt(0, end-start); from == to {
			continue
		}
		html, err := r.markdown.html(block)
		if err != nil {
			return nil, err
		}
		out = append(out, blockEvent{r.draft, i, html, true})
	}
	return out, nil
}

// A pageStream sends the blocks of an answer between its events.
type pageStream struct {
	markdown *markdown
	write    func(kind string, v any) error
	answer   *rendering
	draft    *rendering // or revision, of the current step; nil between steps
}

// beforeEvent is called before each event is sent. The last blocks of a text precede the
// event that ends it.
func (p *pageStream) beforeEvent(kind string, data []byte) error {
	switch kind {
	case "text":
		return p.endDraft()
	case "unanswered", "incomplete", "error", "done":
		if err := errors.Join(p.endDraft(), p.advance(p.answer, true)); err != nil {
			return err
		}
	}
	if kind != "done" {
		return nil
	}
	a, err := decodeStored[cite.Answer](data)
	if err != nil {
		return err
	}
	events, err := p.answer.markedBlocks(a.Unsupported)
	if err != nil {
		return err
	}
	return p.send("marked", events)
}

func (p *pageStream) afterEvent(kind string, data []byte) error {
	if kind != "text" && kind != "draft" && kind != revisionKind {
		return nil
	}
	e, err := decodeStored[struct {
		textEvent
		Step  int
		Final bool
		Cut   bool
	}](data)
	if err != nil {
		return err
	}
	growing := p.answer
	if kind != "text" {
		if p.draft != nil && p.draft.draft != e.Step {
			if err := p.endDraft(); err != nil {
				return err
			}
		}
		if p.draft == nil {
			p.draft = newRendering(p.markdown, e.Step)
		}
		growing = p.draft
	}
	growing.append(e.textEvent)
	switch {
	case e.Cut:
		p.draft = nil
	case e.Final:
		return p.endDraft()
	case growing.hasGrown():
		return p.advance(growing, false)
	}
	return nil
}

func (p *pageStream) endDraft() error {
	r := p.draft
	if r == nil {
		return nil
	}
	p.draft = nil
	return p.advance(r, true)
}

func (p *pageStream) advance(r *rendering, end bool) error {
	events, err := r.advance(end)
	if err != nil {
		return err
	}
	return p.send("block", events)
}

func (p *pageStream) send(kind string, events []blockEvent) error {
	for _, e := range events {
		if err := p.write(kind, e); err != nil {
			return err
		}
	}
	return nil
}
