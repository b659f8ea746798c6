package office

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

type element = xml.StartElement

const (
	maxDepth = 300     // of nested elements
	maxToken = 2 << 20 // bytes of a tag, comment or text
)

// An xmlReader walks through XML and holds one token at a time. It identifies elements by local
// name, since name spaces differ between versions of a format. After an error, it yields no more
// elements.
type xmlReader struct {
	d     *xml.Decoder
	src   *tokenLimit
	depth int
	err   error // why reading stopped
}

// read opens a part for do and returns the error that stopped reading it.
func (a *archive) read(part string, do func(x *xmlReader)) error {
	r, err := a.open(part)
	if err != nil {
		return err
	}
	defer r.Close()
	x := newXML(r)
	do(x)
	return x.err
}

// elements calls do for each child of the root element of a part.
func (a *archive) elements(part string, do func(x *xmlReader, e element)) error {
	return a.read(part, func(x *xmlReader) {
		x.each(func(element) {
			x.each(func(e element) { do(x, e) })
		})
	})
}

// find calls do for each element at any depth of a part.
func (a *archive) find(part string, do func(x *xmlReader, e element)) error {
	return a.read(part, func(x *xmlReader) {
		x.find(func(e element) { do(x, e) })
	})
}

func newXML(r io.Reader) *xmlReader {
	src := &tokenLimit{from: r}
	d := xml.NewDecoder(bufio.NewReaderSize(src, 32<<10))
	// Non-strict mode leaves entities that the file defines unexpanded.
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	return &xmlReader{d: d, src: src}
}

// A tokenLimit is a reader that fails in the middle of a token that is too long.
type tokenLimit struct {
	from  io.Reader
	since int // bytes since the last token
}

func (t *tokenLimit) Read(p []byte) (int, error) {
	if t.since > maxToken {
		return 0, &limitError{fmt.Sprintf("its XML has a single tag or text of more than %d MB: no document has that", maxToken>>20)}
	}
	n, err := t.from.Read(p)
	t.since += n
	return n, err
}

// token returns the next token and tracks the depth. It returns nil after an error.
func (x *xmlReader) token() xml.Token {
	if x.err != nil {
		return nil
	}
	x.src.since = 0
	t, err := x.d.Token()
	if x.err = err; err != nil {
		return nil
	}
	switch t.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > maxDepth {
			x.err = &limitError{fmt.Sprintf("its XML is nested more than %d deep, deeper than any real document", maxDepth)}
			return nil
		}
	case xml.EndElement:
		x.depth--
	}
	return t
}

// each calls do for every child of the current element, or of the document. It skips the content
// that do leaves unread.
func (x *xmlReader) each(do func(e element)) { x.eachMixed(do, nil) }

// eachMixed is like each, but also calls text for the text between the elements.
func (x *xmlReader) eachMixed(do func(e element), text func(s []byte)) {
	level := x.depth
	for {
		switch t := x.token().(type) {
		case xml.StartElement:
			for do(t); x.depth > level && x.err == nil; {
				x.token()
			}
		case xml.EndElement:
			if x.depth < level {
				return
			}
		case xml.CharData:
			if text != nil {
				text(t)
			}
		case nil:
			if errors.Is(x.err, io.EOF) && level == 0 && x.depth == 0 {
				x.err = nil
			}
			return
		}
	}
}

// find calls do for every element in the current one, at any depth. It skips elements that do reads
// to their end, and properties from before a tracked change.
func (x *xmlReader) find(do func(e element)) {
	var walk func(e element)
	walk = func(e element) {
		depth := x.depth
		if strings.HasSuffix(e.Name.Local, "PrChange") {
			return
		}
		if do(e); x.depth >= depth {
			x.each(walk)
		}
	}
	x.each(walk)
}

// skip skips the content of the current element.
func (x *xmlReader) skip() { x.each(func(element) {}) }

// text returns all text in the current element, up to its end or to any damage.
func (x *xmlReader) text() string {
	var out strings.Builder
	var walk func(element)
	add := func(s []byte) { out.Write(s) }
	walk = func(element) { x.eachMixed(walk, add) }
	x.eachMixed(walk, add)
	return out.String()
}

// attr returns the value of an attribute by its local name, preferring one without a name space.
func attr(e element, name string) string {
	value := ""
	for _, a := range e.Attr {
		switch {
		case a.Name.Local != name:
		case a.Name.Space == "":
			return a.Value
		default:
			value = cmp.Or(value, a.Value)
		}
	}
	return value
}

// relationAttr returns the value of an attribute that holds a relation ID.
func relationAttr(e element, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && strings.HasSuffix(a.Name.Space, "relationships") {
			return a.Value
		}
	}
	return ""
}

// number returns the number in an attribute, or other if it has no number.
func number(e element, name string, other int) int {
	n, err := strconv.Atoi(attr(e, name))
	if err != nil {
		return other
	}
	return n
}

// isSwitchOn reports whether a switch element is on.
func isSwitchOn(e element) bool { return isOn(attr(e, "val")) }

// isOn reports whether the value of a switch is on.
func isOn(value string) bool {
	switch value {
	case "0", "false", "off", "none":
		return false
	}
	return true
}
