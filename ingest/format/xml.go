package format

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxXMLDepth is the deepest nesting of elements.
const maxXMLDepth = 256

// Names of document elements in DocBook, DITA, TEI, JATS, FictionBook and other formats. All other
// elements are data: the values of an element form a line, each after its name.
var (
	xmlProse   = set(`p para simpara formalpara li listitem lg v subtitle caption abstract quote blockquote note dd dt remark epigraph`)
	xmlCell    = set(`td th entry cell stentry`) // written without their name
	xmlHeading = set(`title head h h1 h2 h3 heading`)
	xmlSection = set(`section sect sect1 sect2 sect3 sect4 chapter part appendix preface article topic div div1 div2 sec book body
		glossary bibliography reference refsect1`)
	xmlCode    = set(`programlisting screen literallayout codeblock pre code synopsis`)
	xmlItem    = set(`li listitem`)
	xmlDropped = set(`script style binary`)
)

var xmlMarkup = regexp.MustCompile(`(?i)</?(?:p|br|a|div|b|i|ul|ol|li|img|strong|em|span|h[1-6]|table)\b[^<>]*>`)

var xmlDeclared = regexp.MustCompile(`^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']`)

// XML reads any XML. Known elements are paragraphs, titles and code. The values of any other
// element form a line, each after its name. It does not resolve declared entities or read other
// files.
func XML(doc *Document, src string) error {
	if err := checkLines(src, maxJSONLine); err != nil {
		return err
	}
	d := xml.NewDecoder(strings.NewReader(src))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	root, err := xmlTree(d)
	if errors.Is(err, errTooDeep) {
		return err
	}
	var w xmlWriter
	w.children(root, 0)
	switch {
	case w.b.text.Len() > maxDataText:
		return errTooMuchText
	case err != nil && w.b.text.Len() == 0:
		return fmt.Errorf("it is not valid XML: %w", err)
	case err != nil:
		doc.Partial = fmt.Sprintf("it is not valid XML: %v", err)
	}
	w.b.moveTo(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// XMLCharset returns the charset in an XML declaration.
func XMLCharset(data []byte) string {
	if m := xmlDeclared.FindSubmatch(data[:min(len(data), 1000)]); m != nil {
		return string(m[1])
	}
	return ""
}

func lineOf(d *xml.Decoder) int {
	line, _ := d.InputPos()
	return line
}

// An xmlNode is an element, or a text if it has no name.
type xmlNode struct {
	name  string
	text  string
	attrs []xml.Attr
	kids  []*xmlNode
	line  int
}

// xmlTree parses a file, up to any damage. An unclosed element ends with the enclosing one.
func xmlTree(d *xml.Decoder) (*xmlNode, error) {
	root := &xmlNode{}
	open := []*xmlNode{root}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return root, err
		}
		inner := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if len(open) > maxXMLDepth {
				return root, fmt.Errorf("%w: elements are nested more than %d deep", errTooDeep, maxXMLDepth)
			}
			n := &xmlNode{name: strings.ToLower(t.Name.Local), attrs: t.Attr, line: lineOf(d)}
			inner.kids = append(inner.kids, n)
			open = append(open, n)
		case xml.EndElement:
			name := strings.ToLower(t.Name.Local)
			for i := len(open) - 1; i > 0; i-- {
				if open[i].name == name {
					open = open[:i]
					break
				}
			}
		case xml.CharData:
			if len(t) > 0 {
				inner.kids = append(inner.kids, &xmlNode{text: string(t), line: lineOf(d)})
			}
		}
	}
}

// words returns all text in an element.
func (n *xmlNode) words() string {
	var out strings.Builder
	var walk func(n *xmlNode)
	walk = func(n *xmlNode) {
		out.WriteString(n.text)
		for _, k := range n.kids {
			if !xmlDropped[k.name] {
				walk(k)
			}
		}
	}
	walk(n)
	return out.String()
}

// isBlock reports whether an element is a block of text rather than data or words in a line.
func (n *xmlNode) isBlock() bool {
	return xmlProse[n.name] || xmlHeading[n.name] || xmlSection[n.name] || xmlCode[n.name] && n.name != "code"
}

// isInline reports whether an element is a single text: it contains no blocks, and if it has
// elements, there are words between them.
func (n *xmlNode) isInline() bool {
	text, elements := false, false
	for _, k := range n.kids {
		if k.isBlock() {
			return false
		}
		text = text || k.name == "" && strings.TrimSpace(k.text) != ""
		elements = elements || k.name != ""
	}
	return text || !elements || xmlProse[n.name]
}

// attributes returns the informative attributes.
func (n *xmlNode) attributes() (out []xml.Attr) {
	for _, a := range n.attrs {
		declares := a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == "xsi"
		if a.Value = oneLine(Clean(a.Value)); a.Value != "" && !declares && len(a.Value) < 2000 {
			out = append(out, a)
		}
	}
	return out
}

// An xmlWriter writes elements and collects the values of a line.
type xmlWriter struct {
	b         builder
	names     []string
	values    []string
	size      int
	firstLine int // line of the first value
}

// element writes an element; level is the level of a heading in it.
func (w *xmlWriter) element(n *xmlNode, level int) {
	if w.b.text.Len() > maxDataText || xmlDropped[n.name] {
		return
	}
	if n.isBlock() {
		w.flush()
	}
	w.b.line = n.line
	switch {
	case xmlHeading[n.name]:
		w.b.Heading(max(1, level), n.words(), "")
	case xmlCode[n.name] && n.isBlock():
		w.b.Code(n.words())
	case xmlItem[n.name] && n.isInline():
		w.b.Item(0, "-", oneLine(n.words()))
	case xmlProse[n.name] && n.isInline():
		w.b.Paragraph(proseLines(n.words()))
	case xmlSection[n.name]:
		w.children(n, level+1)
	case xmlProse[n.name]:
		w.children(n, level)
	default:
		w.data(n, level)
	}
}

// data adds an element to the line if it is a single text, or else writes its content.
func (w *xmlWriter) data(n *xmlNode, level int) {
	attrs := n.attributes()
	text := ""
	if n.isInline() {
		text = proseLines(n.words())
	}
	if text != "" && len(attrs) < 4 || len(attrs) == 1 && len(n.kids) == 0 {
		if text == "" {
			text, attrs = attrs[0].Value, nil
		}
		for _, a := range attrs {
			text = strings.TrimSpace(text + " (" + labelText(a.Name.Local, a.Value) + ")")
		}
		w.add(n.name, text, n.line)
		return
	}
	w.flush()
	for _, a := range attrs {
		w.add(a.Name.Local, a.Value, n.line)
	}
	w.children(n, level)
}

// children writes the content of an element.
func (w *xmlWriter) children(n *xmlNode, level int) {
	for _, k := range n.kids {
		if k.name != "" {
			w.element(k, level)
		} else if words := proseLines(k.text); words != "" {
			w.flush()
			w.b.line = k.line
			w.b.Paragraph(words)
		}
	}
	w.flush()
}

// add adds a value to the line.
func (w *xmlWriter) add(name, text string, line int) {
	if xmlCell[name] {
		name = ""
	}
	switch {
	case text == "":
		return
	case xmlMarkup.MatchString(text): // feeds contain pages as text
		w.flush()
		w.b.line = line
		htmlFragment(&w.b, text)
		return
	case len(text) > 300:
		w.flush()
		w.b.line = line
		w.b.Paragraph(labelText(name, proseLines(text)))
		return
	}
	if len(w.names) == 0 {
		w.firstLine = line
	}
	w.names, w.values = append(w.names, name), append(w.values, text)
	if w.size += len(text); w.size > maxRecordLine || len(w.names) >= 40 {
		w.flush()
	}
}

// flush writes the values on one line. A name shared by consecutive values is written once.
func (w *xmlWriter) flush() {
	var heads, cells []string
	for i, name := range w.names {
		value := oneLine(Clean(w.values[i]))
		if n := len(heads); n > 0 && heads[n-1] == name && name != "" {
			cells[n-1] += ", " + value
			continue
		}
		heads, cells = append(heads, name), append(cells, value)
	}
	w.names, w.values, w.size = nil, nil, 0
	w.b.line = w.firstLine
	switch len(cells) {
	case 0:
	case 1:
		w.b.Item(0, "-", labelText(heads[0], cells[0]))
	default:
		w.b.Row(heads, cells)
	}
}

func labelText(name, text string) string {
	if name == "" {
		return text
	}
	return name + ": " + text
}

// proseLines joins the wrapped lines of a text.
func proseLines(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = oneLine(paragraph); paragraph != "" {
			out = append(out, paragraph)
		}
	}
	return strings.Join(out, "\n\n")
}
