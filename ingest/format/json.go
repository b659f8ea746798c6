package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"ibid/ingest/charset"
	"io"
	"path"
	"strconv"
	"strings"
)

const (
	// maxJSONLine is the longest line of JSON that is read.
	maxJSONLine = 32 << 20
	// maxJSONDepth is how deep arrays and objects may be nested.
	maxJSONDepth = 128
	// maxDataPath is the length of the path of keys before a value.
	maxDataPath = 200
	// maxDataText is the longest text of a data file, whose keys are repeated before
	// every value.
	maxDataText = 64 << 20
	// maxRecordLine is the length up to which a record is one line.
	maxRecordLine = 600
	// maxPlain is how many plain values of a list are one value.
	maxPlain = 20
)

// lockFiles are those of package managers.
var lockFiles = set(`
	package-lock.json npm-shrinkwrap.json composer.lock pipfile.lock pnpm-lock.yaml pubspec.lock
	packages.lock.json deno.lock`)

func lockFile(name string) error {
	if lockFiles[strings.ToLower(path.Base(name))] {
		return &SkipError{"the lock file of a package manager"}
	}
	return nil
}

// JSON reads JSON. The path of its keys precedes every value, so that it can be
// read alone. Each member of a list is a section with its JSON pointer as anchor
// ("/orders/12", RFC 6901, section 6); each member of the outermost object that
// has members is a section with its key as heading. Invalid JSON, such as a
// configuration with comments, is kept unchanged.
func JSON(doc *Document, data []byte) error {
	if err := lockFile(doc.Path); err != nil {
		return err
	}
	if err := checkLines(data, maxJSONLine); err != nil {
		return err
	}
	src, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	p := newJSONParser(src)
	values, err := p.values()
	w := jsonWriter{doc: doc}
	switch {
	case errors.Is(err, errTooDeep):
		return err
	case err != nil && unwritten(src) != "":
		return fmt.Errorf("line %d: it is not valid JSON: %w", p.line(), err)
	case err != nil:
		doc.Partial = fmt.Sprintf("it is not valid JSON (line %d: %v), and was kept unchanged", p.line(), err)
		w.b.line = 1
		w.b.Code(src)
	default:
		w.document(values)
	}
	if w.full() {
		return errTooMuchText
	}
	w.b.into(doc)
	return nil
}

// JSONLines reads one JSON value from each line as a record with the anchor
// "row=N", N being its 1-based line. Invalid lines are kept as text.
func JSONLines(doc *Document, data []byte) error {
	if err := checkLines(data, maxJSONLine); err != nil {
		return err
	}
	src, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	w := jsonWriter{doc: doc}
	number, read, broken, first := 0, 0, 0, 0
	for line := range strings.SplitSeq(src, "\n") {
		number++
		if line = strings.TrimSpace(line); line == "" || w.full() {
			continue
		}
		read++
		values, err := newJSONParser(line).values()
		if errors.Is(err, errTooDeep) {
			return fmt.Errorf("line %d: %w", number, err)
		}
		w.b.line = number
		s := Section{Level: 1, Anchor: "row=" + strconv.Itoa(number)}
		if err == nil && len(values) == 1 {
			w.record(s, values[0].fields(nil, ""))
			continue
		}
		broken, first = broken+1, cmp.Or(first, number)
		w.b.begin(s, func() { w.b.Paragraph(line) })
	}
	switch {
	case w.full():
		return errTooMuchText
	case broken > 0 && broken == read:
		return errors.New("none of its lines is valid JSON")
	case broken > 0:
		doc.Partial = fmt.Sprintf("%d of its %d lines are not valid JSON (line %d is the first), and were kept unchanged", broken, read, first)
	}
	w.b.into(doc)
	return nil
}

// checkLines refuses a file with a line that is longer than limit bytes.
func checkLines(data []byte, limit int) error {
	for n := 1; len(data) > limit; n++ {
		at := bytes.IndexByte(data, '\n')
		if at < 0 {
			at = len(data)
		}
		if at > limit {
			return fmt.Errorf("line %d is %d MB long: put every entry on a line of its own, or split the file", n, at>>20)
		}
		data = data[at+1:]
	}
	return nil
}

var (
	errTooDeep     = fmt.Errorf("lists and objects are nested more than %d deep", maxJSONDepth)
	errTooMuchText = fmt.Errorf("its text would exceed %d MB: split it", maxDataText>>20)
)

// A jsonValue is an object, a list, or a plain value. The plain values next to each
// other in a list are one, up to [maxPlain] of them.
type jsonValue struct {
	key  string // in an object, or its place in a list
	kind json.Delim
	text string // of a plain value
	kids []jsonValue
	line int // where it begins
}

type jsonParser struct {
	*json.Decoder
	src     string
	counted int // bytes whose lines are counted
	lines   int
}

func newJSONParser(src string) *jsonParser {
	p := &jsonParser{Decoder: json.NewDecoder(strings.NewReader(src)), src: src, lines: 1}
	p.UseNumber()
	return p
}

// line returns the line that was read last.
func (p *jsonParser) line() int {
	at := min(int(p.InputOffset()), len(p.src))
	p.lines += strings.Count(p.src[p.counted:at], "\n")
	p.counted = at
	return p.lines
}

// values reads all values of the file, of which there is at least one.
func (p *jsonParser) values() (all []jsonValue, err error) {
	for {
		token, err := p.Token()
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		v, err := p.value(token, err, 1)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends in the middle of a value")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// value reads the value that a token begins, unless that has an error.
func (p *jsonParser) value(token json.Token, err error, depth int) (v jsonValue, _ error) {
	v.line = p.line()
	delim, ok := token.(json.Delim)
	switch {
	case err != nil:
		return v, err
	case !ok:
		if token != nil {
			v.text = strings.TrimSpace(fmt.Sprint(token))
		}
		return v, nil
	case depth > maxJSONDepth:
		return v, errTooDeep
	}
	v.kind = delim
	plain := 0 // in the last of its kids
	for i := 0; p.More(); i++ {
		key := strconv.Itoa(i)
		token, err := p.Token()
		if delim == '{' && err == nil {
			key = oneLine(Clean(fmt.Sprint(token))) // the decoder allows only strings
			token, err = p.Token()
		}
		kid, err := p.value(token, err, depth+1)
		if err != nil {
			return v, err
		}
		kid.key = key
		switch {
		case delim == '{' || kid.kind != 0:
			plain = 0
		case kid.text == "":
			continue
		case plain > 0 && plain < maxPlain:
			plain++
			v.kids[len(v.kids)-1].text += ", " + kid.text
			continue
		default:
			plain = 1
		}
		v.kids = append(v.kids, kid)
	}
	_, err = p.Token()
	return v, err
}

// A jsonField is a value with the path of its keys.
type jsonField struct{ path, value string }

// fields appends the plain values in a value, in order; those of a list are one.
func (v jsonValue) fields(out []jsonField, at string) []jsonField {
	if len(at) > maxDataPath {
		at = "…" + strings.ToValidUTF8(at[len(at)-maxDataPath:], "")
	}
	texts := []string{v.text}[:min(len(v.text), 1)]
	for _, k := range v.kids {
		switch {
		case v.kind == '{':
			out = k.fields(out, strings.TrimPrefix(at+"."+k.key, "."))
		case k.kind == 0:
			texts = append(texts, k.text)
		default:
			out = k.fields(out, at+"["+k.key+"]")
		}
	}
	if len(texts) > 0 {
		out = append(out, jsonField{at, strings.Join(texts, ", ")})
	}
	return out
}

type jsonWriter struct {
	doc *Document
	b   builder
}

func (w *jsonWriter) full() bool { return w.b.text.Len() > maxDataText }

func (w *jsonWriter) document(values []jsonValue) {
	for i, v := range values {
		w.b.line = v.line
		switch {
		case v.kind == '[':
			w.list(v, "", "", 1, func() {})
		case v.kind == '{' && i == 0:
			w.members(v, "", "", 1)
		case v.kind == '{': // one of several values
			w.record(Section{Level: 1, Anchor: "row=" + strconv.Itoa(v.line)}, v.fields(nil, ""))
		default:
			w.b.Paragraph(v.text)
		}
	}
}

// about are the members of a file that are its metadata.
var about = set(`title author description language date`)

// members writes an object. At the outer level, those of its members that are
// objects are sections; lists of records are at both levels.
func (w *jsonWriter) members(v jsonValue, pointer, path string, level int) {
	headed := false
	for _, m := range v.kids {
		if w.full() {
			return
		}
		w.b.line = m.line
		place, name := pointer+"/"+pointerEscape(m.key), strings.TrimPrefix(path+"."+m.key, ".")
		heading := func() { w.b.Heading(level, m.key, place) }
		if m.kind == '[' {
			headed = w.list(m, place, name, level+1, heading) || headed
			continue
		}
		if m.kind == '{' && level == 1 && len(m.kids) > 0 {
			headed = true
			heading()
			w.members(m, place, name, level+1)
			continue
		}
		fields := m.fields(nil, name)
		if headed && len(fields) > 0 { // it is not under the previous heading
			headed, w.b.last = false, kindNone
			w.b.begin(Section{Level: level, Anchor: place}, func() { w.fields(fields) })
		} else {
			w.fields(fields)
		}
		if level == 1 && about[m.key] {
			w.doc.setMeta(m.key, m.text)
		}
	}
}

// list writes the members of a list: lists and objects as records, and plain values
// together. It calls first before the first record, and reports whether there
// was one.
func (w *jsonWriter) list(v jsonValue, pointer, name string, level int, first func()) (records bool) {
	for _, k := range v.kids {
		switch {
		case w.full():
			return records
		case k.kind == 0:
			w.b.line = k.line
			w.fields([]jsonField{{name, k.text}})
			continue
		case !records:
			records = true
			w.b.line = v.line
			first()
		}
		w.b.line = k.line
		w.record(Section{Level: level, Anchor: pointer + "/" + k.key}, k.fields(nil, ""))
	}
	return records
}

// record writes the values of one entry on one line if they are short, else each
// on its own.
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

// fields writes each value after its path, a long one as a paragraph.
func (w *jsonWriter) fields(fields []jsonField) {
	for _, f := range fields {
		text := f.value
		if f.path != "" {
			text = f.path + ": " + text
		}
		if len(text) > 300 || strings.Contains(text, "\n") {
			w.b.Paragraph(text)
		} else {
			w.b.Item(0, "-", text)
		}
	}
}

// pointerEscape escapes a key for a JSON pointer.
func pointerEscape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
