package format

import (
	"encoding/xml"
	"errors"
	"fmt"
	"ibid/ingest/charset"
	"io"
	"regexp"
	"strings"
)

// maxXMLDepth is how deep elements may be nested.
const maxXMLDepth = 256

// The elements of documents, by names that DocBook, DITA, TEI, JATS, FictionBook
// and others share. All other elements are data: the values of one are a line,
// each after its name.
var (
	xmlProse   = set(`p para simpara formalpara li listitem lg v subtitle caption abstract quote blockquote note dd dt remark epigraph`)
	xmlCell    = set(`td th entry cell stentry`) // their name is not written
	xmlHeading = set(`title head h h1 h2 h3 h4 h5 h6 heading`)
	xmlSection = set(`section sect sect1 sect2 sect3 sect4 chapter part appendix preface article topic div div1 div2 sec book body
		glossary bibliography reference refsect1`)
	xmlCode    = set(`programlisting screen literallayout codeblock pre code synopsis`)
	xmlItem    = set(`li listitem`)
	xmlDropped = set(`script style binary`)
	xmlAbout   = map[string]string{
		"title": "title", "creator": "author", "author": "author", "date": "date",
		"language": "language", "description": "description", "keywords": "tags", "subject": "tags",
	}
)

var xmlMarkup = regexp.MustCompile(`(?i)</?(?:p|br|a|div|b|i|ul|ol|li|img|strong|em|span|h[1-6]|table)\b[^<>]*>`)

var xmlDeclared = regexp.MustCompile(`^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']`)

// XML reads any XML. Known elements are paragraphs, titles and code; the values of
// any other element are a line, each after its name. Declared entities are not
// resolved, and no other file is read.
func XML(doc *Document, data []byte) error {
	if err := checkLines(data, maxJSONLine); err != nil {
		return err
	}
	declared := ""
	if m := xmlDeclared.FindSubmatch(data[:min(len(data), 1000)]); m != nil {
		declared = string(m[1])
	}
	src, err := charset.Decode(data, declared)
	if err != nil {
		return err
	}
	d := xml.NewDecoder(strings.NewReader(src))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	r := xmlReader{doc: doc, decoder: d}
	err = r.read()
	switch {
	case errors.Is(err, errTooMuchText), errors.Is(err, errTooDeep):
		return err
	case err != nil && r.b.text.Len() == 0:
		return fmt.Errorf("it is not valid XML: %w", err)
	case err != nil:
		doc.Partial = fmt.Sprintf("it is not valid XML after line %d: %v", lineOf(d), err)
	}
	r.b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

func lineOf(d *xml.Decoder) int {
	line, _ := d.InputPos()
	return line
}

type xmlReader struct {
	b       builder
	doc     *Document
	decoder *xml.Decoder
	open    []xmlElement
	dropped int // open elements in one that is left out
}

// An xmlElement is an open element with its unwritten content.
type xmlElement struct {
	name   string
	text   []string // its words, and those of inline elements
	mixed  bool     // it has both words and elements
	parent bool     // it has elements
	names  []string // of the values in it, attributes first
	values []string
	size   int
	line   int
}

func (r *xmlReader) read() error {
	for {
		token, err := r.decoder.RawToken()
		if errors.Is(err, io.EOF) {
			for len(r.open) > 0 {
				r.end()
			}
			return nil
		}
		if err != nil {
			for len(r.open) > 0 {
				r.end()
			}
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(r.open) >= maxXMLDepth {
				return fmt.Errorf("%w: elements are nested more than %d deep", errTooDeep, maxXMLDepth)
			}
			r.begin(t)
		case xml.EndElement:
			// Unclosed elements end with the one around them.
			name := strings.ToLower(t.Name.Local)
			for i := len(r.open) - 1; i >= 0; i-- {
				if r.open[i].name == name {
					for len(r.open) > i {
						r.end()
					}
					break
				}
			}
		case xml.CharData:
			if n := len(r.open); n > 0 && r.dropped == 0 && len(t) > 0 {
				e := &r.open[n-1]
				text := string(t)
				if e.parent && !e.mixed && strings.TrimSpace(text) != "" {
					r.mix(e)
				}
				if e.mixed || !e.parent {
					e.text = append(e.text, text)
				}
			}
		}
		if r.b.text.Len() > maxDataText {
			return errTooMuchText
		}
	}
}

// mix turns values into words of the element's own text.
func (r *xmlReader) mix(e *xmlElement) {
	e.mixed = true
	e.text = nil
	for _, v := range e.values {
		e.text = append(e.text, v, " ")
	}
	e.names, e.values = nil, nil
}

func (r *xmlReader) begin(t xml.StartElement) {
	name := strings.ToLower(t.Name.Local)
	if n := len(r.open); n > 0 {
		e := &r.open[n-1]
		if !e.parent {
			e.parent = true
			e.mixed = strings.TrimSpace(strings.Join(e.text, "")) != ""
			if !e.mixed {
				e.text = nil
			}
		}
	}
	e := xmlElement{name: name, line: lineOf(r.decoder)}
	if xmlDropped[name] || r.dropped > 0 {
		r.dropped++
	} else if !xmlProse[name] && !xmlHeading[name] && !xmlSection[name] && !xmlCode[name] {
		for _, a := range t.Attr {
			declares := a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || a.Name.Space == "xsi"
			if value := oneLine(Clean(a.Value)); value != "" && !declares && len(value) < 2000 {
				e.names, e.values = append(e.names, a.Name.Local), append(e.values, value)
			}
		}
	}
	r.open = append(r.open, e)
}

// end closes the innermost element.
func (r *xmlReader) end() {
	n := len(r.open) - 1
	e := r.open[n]
	r.open = r.open[:n]
	if r.dropped > 0 {
		r.dropped--
		return
	}
	text := strings.Join(e.text, "")
	if n > 0 {
		if !r.isProse(e) && r.addValue(&r.open[n-1], e, text) {
			return
		}
		if r.isProse(e) && strings.TrimSpace(text) == "" { // all its words are in elements
			text, e.values = strings.Join(e.values, " "), nil
		}
		if outer := &r.open[n-1]; outer.mixed && !xmlProse[e.name] && !strings.Contains(text, "\n\n") {
			outer.text = append(outer.text, text)
			return
		}
	}
	r.seal()
	r.b.line = e.line
	r.writeElement(e, text)
}

// isProse reports whether an element is a block of text rather than data.
func (r *xmlReader) isProse(e xmlElement) bool {
	return xmlProse[e.name] || xmlHeading[e.name] || xmlCode[e.name] && !r.open[len(r.open)-1].mixed
}

// addValue adds an element that is not prose to the line of the one around it,
// if it is short enough.
func (r *xmlReader) addValue(outer *xmlElement, e xmlElement, text string) bool {
	blank := strings.TrimSpace(text) == ""
	switch {
	case outer.mixed && !strings.Contains(text, "\n\n"):
		outer.text = append(outer.text, text) // words within a line
	case !e.parent && len(e.values) == 0:
		if !blank {
			r.value(outer, e.name, text, e.line)
		}
	case !e.mixed && len(e.values) == 1 && blank:
		r.value(outer, e.name, e.values[0], e.line)
	case !e.parent && len(e.values) < 4 && len(text) < 300: // a value with attributes
		for i, name := range e.names {
			e.values[i] = named(name, e.values[i])
		}
		r.value(outer, e.name, strings.TrimSpace(text)+" ("+strings.Join(e.values, ", ")+")", e.line)
	default:
		return false
	}
	return true
}

// writeElement writes an element on its own.
func (r *xmlReader) writeElement(e xmlElement, text string) {
	n := len(r.open)
	if strings.TrimSpace(text) == "" {
		r.row(e.names, e.values)
		return
	}
	switch {
	case xmlHeading[e.name]:
		if len(r.b.sections) == 0 && n <= 3 {
			r.doc.setMeta("title", text)
		}
		r.b.Heading(r.level(e.name), text, "")
	case xmlCode[e.name]:
		r.b.Code(text)
	case xmlItem[e.name] || xmlProse[e.name] && n > 0 && xmlItem[r.open[n-1].name]:
		r.b.Item(0, "-", oneLine(text))
	case xmlProse[e.name]:
		r.b.Paragraph(proseLines(text))
	case len(text) > 300:
		r.b.Paragraph(named(e.name, proseLines(text)))
		r.row(e.names, e.values)
	default:
		r.row(append(e.names, e.name), append(e.values, text))
	}
}

// value keeps a value for the line of the element around it.
func (r *xmlReader) value(outer *xmlElement, name, text string, line int) {
	if about, ok := xmlAbout[name]; ok && len(text) < 300 && len(r.open) <= 2 && !xmlMarkup.MatchString(text) {
		r.doc.setMeta(about, text)
	}
	if xmlCell[name] {
		name = ""
	}
	if xmlMarkup.MatchString(text) { // feeds contain pages as text
		r.seal()
		r.b.line = line
		htmlFragment(&r.b, text)
		return
	}
	if len(text) > 300 {
		r.seal()
		r.b.line = line
		r.b.Paragraph(named(name, proseLines(text)))
		return
	}
	outer.names, outer.values = append(outer.names, name), append(outer.values, text)
	if outer.size += len(text); outer.size > maxRecordLine || len(outer.names) >= 40 {
		r.seal()
	}
}

// seal writes the unwritten values of the open elements, outermost first, in the
// order of the file.
func (r *xmlReader) seal() {
	for i := range r.open {
		e := &r.open[i]
		if len(e.values) > 0 && !e.mixed {
			r.b.line = e.line
			r.row(e.names, e.values)
			e.names, e.values, e.size = nil, nil, 0
		}
		if e.mixed && len(e.text) > 0 {
			r.b.line = e.line
			r.b.Paragraph(proseLines(strings.Join(e.text, "")))
			e.text = nil
		}
	}
}

// row writes values on one line; equal names in a row have one.
func (r *xmlReader) row(names, values []string) {
	var heads, cells []string
	for i, name := range names {
		value := oneLine(Clean(values[i]))
		if n := len(heads); n > 0 && heads[n-1] == name && name != "" && value != "" {
			cells[n-1] += ", " + value
			continue
		}
		if value != "" {
			heads, cells = append(heads, name), append(cells, value)
		}
	}
	if len(cells) == 1 {
		r.b.Item(0, "-", named(heads[0], cells[0]))
		return
	}
	r.b.Row(heads, cells)
}

// level returns the level of a heading by the sections around it.
func (r *xmlReader) level(name string) int {
	if len(name) == 2 && name[0] == 'h' {
		return int(name[1] - '0')
	}
	level := 0
	for _, e := range r.open {
		if xmlSection[e.name] {
			level++
		}
	}
	return max(1, level)
}

func named(name, text string) string {
	if name == "" {
		return text
	}
	return name + ": " + text
}

// proseLines joins the lines of a text that was only wrapped.
func proseLines(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if paragraph = oneLine(paragraph); paragraph != "" {
			out = append(out, paragraph)
		}
	}
	return strings.Join(out, "\n\n")
}
