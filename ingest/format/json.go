package format

import (
	"bytes"
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
	var b builder
	r := newJSONReader(&b, src)
	err = r.document(doc)
	if errors.Is(err, errTooDeep) || errors.Is(err, errTooMuchText) {
		return err
	}
	if err != nil {
		if reason := unwritten(src); reason != "" {
			return fmt.Errorf("line %d: it is not valid JSON: %w", r.line(), err)
		}
		doc.Partial = fmt.Sprintf("it is not valid JSON (line %d: %v), and was kept unchanged", r.line(), err)
		doc.Title, doc.Meta = "", nil
		b = builder{line: 1}
		b.Code(src)
	}
	b.into(doc)
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

type jsonReader struct {
	b       *builder
	src     string
	decoder *json.Decoder
	counted int // bytes whose lines are counted
	lines   int
}

func newJSONReader(b *builder, src string) *jsonReader {
	r := &jsonReader{b: b, src: src, decoder: json.NewDecoder(strings.NewReader(src)), lines: 1}
	r.decoder.UseNumber()
	return r
}

// line returns the line that was read last.
func (r *jsonReader) line() int {
	at := min(int(r.decoder.InputOffset()), len(r.src))
	r.lines += strings.Count(r.src[r.counted:at], "\n")
	r.counted = at
	return r.lines
}

// document reads all values of the file.
func (r *jsonReader) document(doc *Document) error {
	for n := 1; ; n++ {
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		if err != nil {
			return plainJSON(err)
		}
		switch token {
		case json.Delim('['):
			_, err = r.list("", "", 1, func() {})
		case json.Delim('{'):
			if n == 1 {
				err = r.members(doc, "", "", 1)
			} else { // one of several values
				err = r.rest("row="+strconv.Itoa(r.line()), "", 1, token)
			}
		default:
			r.b.line = r.line()
			r.b.Paragraph(scalar(token))
		}
		if err != nil {
			return plainJSON(err)
		}
	}
}

// plainJSON says in words that the file ends too early.
func plainJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends in the middle of a value")
	}
	return err
}

// members reads an object. At the outer level, those of its members that are
// objects are sections; lists of records are at both levels.
func (r *jsonReader) members(doc *Document, pointer, path string, level int) error {
	headed := false
	for r.decoder.More() {
		key, token, err := r.member()
		if err != nil {
			return err
		}
		line := r.line()
		r.b.line = line
		place, name := pointer+"/"+pointerEscape(key), strings.TrimPrefix(path+"."+key, ".")
		switch {
		case token == json.Delim('['):
			records, err := r.list(place, name, level+1, func() { r.b.Heading(level, key, place) })
			if err != nil {
				return err
			}
			headed = headed || records
		case token == json.Delim('{') && level == 1 && r.decoder.More():
			headed = true
			r.b.Heading(level, key, place)
			if err := r.members(doc, place, name, level+1); err != nil {
				return err
			}
		default:
			fields, err := r.fields(nil, name, token, level)
			if err != nil {
				return err
			}
			r.b.line = line
			write := func() {
				for _, f := range fields {
					r.field(f)
				}
			}
			if headed && len(fields) > 0 { // it is not under the previous heading
				headed, r.b.last = false, kindNone
				r.b.begin(Section{Level: level, Anchor: place}, write)
			} else {
				write()
			}
			if level == 1 && about[key] {
				doc.setMeta(key, scalar(token))
			}
		}
		if r.b.text.Len() > maxDataText {
			return errTooMuchText
		}
	}
	_, err := r.decoder.Token()
	return err
}

// about are the members of a file that are its metadata.
var about = set(`title author description language date`)

// list reads the members of a list: lists and objects as records, and plain values
// together. It calls first before the first record, and reports whether there
// was one.
func (r *jsonReader) list(pointer, name string, level int, first func()) (records bool, err error) {
	var plain []string
	at := r.b.line
	flush := func() {
		if len(plain) > 0 {
			r.field(jsonField{name, strings.Join(plain, ", ")})
			plain = plain[:0]
		}
	}
	for i := 0; r.decoder.More(); i++ {
		token, err := r.decoder.Token()
		if err != nil {
			return records, err
		}
		r.b.line = r.line()
		if _, ok := token.(json.Delim); !ok {
			if s := scalar(token); s != "" {
				plain = append(plain, s)
			}
			if len(plain) == 20 {
				flush()
			}
			continue
		}
		flush()
		if !records {
			records = true
			line := r.b.line
			r.b.line = at
			first()
			r.b.line = line
		}
		if err := r.rest(pointer+"/"+strconv.Itoa(i), "", level, token); err != nil {
			return records, err
		}
		if r.b.text.Len() > maxDataText {
			return records, errTooMuchText
		}
	}
	flush()
	_, err = r.decoder.Token()
	return records, err
}

// rest reads the value that the token begins as one record.
func (r *jsonReader) rest(anchor, name string, level int, token json.Token) error {
	line := r.line()
	fields, err := r.fields(nil, name, token, level)
	if err != nil {
		return err
	}
	r.b.line = line
	r.record(Section{Level: level, Anchor: anchor}, fields)
	return nil
}

// member returns the next key of an object and the first token of its value.
func (r *jsonReader) member() (key string, value json.Token, err error) {
	token, err := r.decoder.Token()
	if err != nil {
		return "", nil, err
	}
	key, ok := token.(string)
	if !ok {
		return "", nil, fmt.Errorf("%v is not a key", token)
	}
	value, err = r.decoder.Token()
	return oneLine(Clean(key)), value, err
}

// scalar returns a plain value as text; empty for null.
func scalar(token json.Token) string {
	switch v := token.(type) {
	case string:
		return strings.TrimSpace(v)
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// pointerEscape escapes a key for a JSON pointer.
func pointerEscape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
