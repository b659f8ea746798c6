package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

const (
	// maxJSONLine is the longest line of JSON in bytes.
	maxJSONLine = 32 << 20
	// maxJSONDepth is the deepest nesting of arrays and objects.
	maxJSONDepth = 128
	// maxDataPath is the longest path of keys before a value, in bytes.
	maxDataPath = 200
	// maxDataText is the longest text of a data file in bytes, including the keys repeated before
	// every value.
	maxDataText = 64 << 20
	// maxRecordLine is the longest record, in bytes, that is written on one line.
	maxRecordLine = 600
)

// lockFiles are the lock files of package managers.
var lockFiles = set(`
	package-lock.json npm-shrinkwrap.json composer.lock pipfile.lock pnpm-lock.yaml pubspec.lock
	packages.lock.json deno.lock`)

func lockFile(name string) error {
	if lockFiles[strings.ToLower(path.Base(name))] {
		return &SkipError{"the lock file of a package manager"}
	}
	return nil
}

// JSON reads JSON. Every value is written after the path of its keys, so that it can be read alone.
// Each member of a list is a section with its JSON pointer as anchor ("/orders/12", RFC 6901,
// section 6). Each non-empty object in the outermost object is a section with its key as heading.
// Invalid JSON, such as a configuration with comments, is kept unchanged.
func JSON(doc *Document, src string) error {
	if err := lockFile(doc.Path); err != nil {
		return err
	}
	if err := checkLines(src, maxJSONLine); err != nil {
		return err
	}
	w := jsonWriter{jsonParser: newJSONParser(src)}
	w.document()
	switch {
	case errors.Is(w.err, errTooDeep):
		return w.err
	case w.full():
		return errTooMuchText
	case w.err != nil && whyUnwritten(src) != "":
		return fmt.Errorf("line %d: it is not valid JSON: %w", w.line(), w.err)
	case w.err != nil:
		doc.Partial = fmt.Sprintf("it is not valid JSON (line %d: %v), and was kept unchanged", w.line(), w.err)
		w.b = builder{line: 1}
		w.b.Code(src)
	}
	w.b.moveTo(doc)
	return nil
}

// JSONLines reads one JSON value per line as a record with the anchor "row=N", where N is its
// 1-based line. Invalid lines are kept as text.
func JSONLines(doc *Document, src string) error {
	if err := checkLines(src, maxJSONLine); err != nil {
		return err
	}
	var w jsonWriter
	number, broken := 0, 0
	for line := range strings.SplitSeq(src, "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" || w.full() {
			continue
		}
		w.b.line, w.jsonParser = number, newJSONParser(line)
		s := Section{Level: 1, Anchor: "row=" + strconv.Itoa(number)}
		v := w.value(w.next(), 1)
		switch {
		case errors.Is(w.err, errTooDeep):
			return fmt.Errorf("line %d: %w", number, w.err)
		case w.err == nil && w.atEnd():
			w.record(s, v.fields(nil, ""))
		default:
			broken++
			w.b.begin(s, func() { w.b.Paragraph(line) })
		}
	}
	switch {
	case w.full():
		return errTooMuchText
	case broken > 0 && broken == len(w.b.sections):
		return errors.New("none of its lines is valid JSON")
	case broken > 0:
		doc.Partial = fmt.Sprintf("%d of its lines are not valid JSON, and were kept unchanged", broken)
	}
	w.b.moveTo(doc)
	return nil
}

// checkLines returns an error if a line is longer than limit bytes.
func checkLines(text string, limit int) error {
	for n := 1; len(text) > limit; n++ {
		at := strings.IndexByte(text, '\n')
		if at < 0 {
			at = len(text)
		}
		if at > limit {
			return fmt.Errorf("line %d is %d MB long: put every entry on a line of its own, or split the file", n, at>>20)
		}
		text = text[at+1:]
	}
	return nil
}

var (
	errTooDeep     = fmt.Errorf("lists and objects are nested more than %d deep", maxJSONDepth)
	errTooMuchText = fmt.Errorf("its text would exceed %d MB: split it", maxDataText>>20)
)

// A jsonValue is an object, a list, or a plain value.
type jsonValue struct {
	key  string // in an object, or the index in a list
	kind json.Delim
	text string // a plain value, or all plain values in a list
	kids []jsonValue
}

// A jsonParser keeps its first error, after which it returns no tokens.
type jsonParser struct {
	*json.Decoder
	src     string
	counted int // bytes whose line ends are counted
	lines   int
	err     error
}

func newJSONParser(src string) *jsonParser {
	p := &jsonParser{Decoder: json.NewDecoder(strings.NewReader(src)), src: src, lines: 1}
	p.UseNumber()
	return p
}

// line returns the line of the last token.
func (p *jsonParser) line() int {
	at := min(int(p.InputOffset()), len(p.src))
	p.lines += strings.Count(p.src[p.counted:at], "\n")
	p.counted = at
	return p.lines
}

// next returns the next token, or nil after an error.
func (p *jsonParser) next() json.Token {
	if p.err != nil {
		return nil
	}
	token, err := p.Token()
	if p.err = err; errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.err = errors.New("it ends in the middle of a value")
	}
	return token
}

// key returns the next key of an object. The decoder allows only strings.
func (p *jsonParser) key() string { return oneLine(Clean(scalar(p.next()))) }

// more reports whether a list or an object has more members.
func (p *jsonParser) more() bool { return p.err == nil && p.More() }

// atEnd reports whether the input has ended.
func (p *jsonParser) atEnd() bool {
	_, err := p.Token()
	return errors.Is(err, io.EOF)
}

// scalar returns a plain value as text, or "" for null.
func scalar(token json.Token) string {
	if token == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(token))
}

// value reads the value that begins with a token.
func (p *jsonParser) value(token json.Token, depth int) (v jsonValue) {
	delim, ok := token.(json.Delim)
	if !ok {
		return jsonValue{text: scalar(token)}
	}
	if depth > maxJSONDepth {
		p.err = errTooDeep
	}
	v.kind = delim
	var plain []string
	for i := 0; p.more(); i++ {
		key := strconv.Itoa(i)
		if delim == '{' {
			key = p.key()
		}
		kid := p.value(p.next(), depth+1)
		if kid.key = key; delim == '{' || kid.kind != 0 {
			v.kids = append(v.kids, kid)
		} else if kid.text != "" {
			plain = append(plain, kid.text)
		}
	}
	p.next()
	v.text = strings.Join(plain, ", ")
	return v
}

// A jsonField is a value with the path of its keys.
type jsonField struct{ path, value string }

// fields appends the plain values in a value, in order. The plain values of a list are one field.
func (v jsonValue) fields(out []jsonField, at string) []jsonField {
	if len(at) > maxDataPath {
		at = "…" + strings.ToValidUTF8(at[len(at)-maxDataPath:], "")
	}
	for _, k := range v.kids {
		if v.kind == '{' {
			out = k.fields(out, strings.TrimPrefix(at+"."+k.key, "."))
		} else {
			out = k.fields(out, at+"["+k.key+"]")
		}
	}
	if v.text != "" {
		out = append(out, jsonField{at, v.text})
	}
	return out
}

type jsonWriter struct {
	*jsonParser
	b builder
}

func (w *jsonWriter) full() bool { return w.b.text.Len() > maxDataText }

// document writes all values of the file.
func (w *jsonWriter) document() {
	for n := 1; !w.full() && !(n > 1 && w.err == nil && !w.More() && w.atEnd()); n++ {
		token := w.next()
		w.b.line = w.line()
		switch {
		case w.err != nil:
			return
		case token == json.Delim('['):
			w.list("", "", "", 1)
		case token == json.Delim('{') && n == 1:
			w.members("", "", 1)
		default: // each of several top-level values is a record
			w.record(Section{Level: 1, Anchor: "row=" + strconv.Itoa(w.b.line)}, w.value(token, 1).fields(nil, ""))
		}
	}
}

// members writes an object. On the outermost level, members that are objects become sections.
// Records in lists become sections on this level and the next.
func (w *jsonWriter) members(pointer, path string, level int) {
	headed := false
	for w.more() && !w.full() {
		key := w.key()
		token := w.next()
		w.b.line = w.line()
		place, name := pointer+"/"+pointerSigns.Replace(key), strings.TrimPrefix(path+"."+key, ".")
		if token == json.Delim('[') {
			headed = w.list(place, name, key, level+1) || headed
			continue
		}
		if token == json.Delim('{') && level == 1 && w.more() {
			headed = true
			w.b.Heading(level, key, place)
			w.members(place, name, level+1)
			continue
		}
		fields := w.value(token, level).fields(nil, name)
		if headed && len(fields) > 0 { // it does not belong to the previous heading
			headed, w.b.last = false, kindNone
			w.b.begin(Section{Level: level, Anchor: place}, func() { w.fields(fields) })
		} else {
			w.fields(fields)
		}
	}
	w.next()
}

// list writes the members of a list: lists and objects as records, and plain values together. It
// writes the heading before the first record, and reports whether it wrote a record.
func (w *jsonWriter) list(pointer, name, heading string, level int) (records bool) {
	begun := w.b.line
	var plain []string
	flush := func() {
		if len(plain) > 0 {
			w.b.line = begun
			w.fields([]jsonField{{name, strings.Join(plain, ", ")}})
			plain = nil
		}
	}
	for i := 0; w.more() && !w.full(); i++ {
		token := w.next()
		line := w.line()
		v := w.value(token, level)
		if v.kind == 0 {
			if v.text != "" {
				plain = append(plain, v.text)
			}
			continue
		}
		flush()
		if w.b.line = begun; !records {
			w.b.Heading(level-1, heading, pointer)
		}
		records, w.b.line = true, line
		w.record(Section{Level: level, Anchor: pointer + "/" + strconv.Itoa(i)}, v.fields(nil, ""))
	}
	flush()
	w.next()
	return records
}

// record writes the values of one entry on one line if they are short, or else each value on its
// own line.
func (w *jsonWriter) record(s Section, fields []jsonField) {
	w.b.begin(s, func() {
		var names, values []string
		size, lines := 0, false
		for _, f := range fields {
			size += len(f.path) + len(f.value)
			lines = lines || strings.Contains(f.value, "\n")
			names, values = append(names, oneLine(Clean(f.path))), append(values, f.value)
		}
		if size > maxRecordLine || lines {
			w.b.last = kindNone
			w.fields(fields)
		} else {
			w.b.Row(names, values)
		}
	})
}

// fields writes each value after its path, and a long value as a paragraph.
func (w *jsonWriter) fields(fields []jsonField) {
	for _, f := range fields {
		text := labelText(f.path, f.value)
		if len(text) > 300 || strings.Contains(text, "\n") {
			w.b.Paragraph(text)
		} else {
			w.b.Item(0, "-", text)
		}
	}
}

// pointerSigns escapes a key for a JSON pointer.
var pointerSigns = strings.NewReplacer("~", "~0", "/", "~1")
