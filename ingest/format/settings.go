package format

import (
	"fmt"
	"ibid/ingest/charset"
	"path"
	"regexp"
	"strings"
)

// YAML reads YAML line by line, without resolving anything in it: the path of
// its keys precedes every value, comments are text, and the two outer levels of
// keys are headings with their line as anchor.
func YAML(doc *Document, data []byte) error {
	if err := lockFile(doc.Path); err != nil {
		return err
	}
	return readSettings(doc, data, (*settingsReader).yamlLine)
}

// TOML reads TOML, INI and similar settings: each table is a section, its keys
// precede every value, and comments are text.
func TOML(doc *Document, data []byte) error {
	return readSettings(doc, data, (*settingsReader).tomlLine)
}

func readSettings(doc *Document, data []byte, next func(r *settingsReader, line string)) error {
	src, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	if reason := unwritten(src); reason != "" {
		return &SkipError{reason}
	}
	r := settingsReader{doc: doc, block: -1, glue: "\n", ini: !strings.EqualFold(path.Ext(doc.Path), ".toml")}
	for line := range strings.SplitSeq(strings.ReplaceAll(src, "\r\n", "\n"), "\n") {
		r.number++
		next(&r, strings.TrimRight(line, " \t\r"))
		if r.b.text.Len() > maxDataText {
			return errTooMuchText
		}
	}
	r.flush()
	r.writeComment()
	r.b.into(doc)
	return nil
}

type settingsReader struct {
	b        builder
	doc      *Document
	number   int // of the current line
	stack    []setting
	open     string // path of the headings whose section is open
	comments []string

	// The current value, which later lines may continue.
	at     string // its path
	value  []string
	glue   string // between the lines of the value
	began  int
	block  int    // indentation of the key of a block of text; -1 otherwise
	until  string // what ends a text of several lines in TOML
	square int    // brackets still open in TOML
	ini    bool
}

// A setting is a key or a list member that contains the more indented lines
// after it.
type setting struct {
	indent  int
	name    string
	member  bool
	headed  bool
	members int
}

// maxSettingDepth is the number of keys in a path.
const maxSettingDepth = 64

func (r *settingsReader) path() string {
	var out strings.Builder
	for _, s := range r.stack {
		if !s.member && out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(s.name)
	}
	if p := out.String(); len(p) > maxDataPath {
		return "…" + strings.ToValidUTF8(p[len(p)-maxDataPath:], "")
	}
	return out.String()
}

// writeComment writes the comment that was read.
func (r *settingsReader) writeComment() {
	if len(r.comments) > 0 {
		r.b.line = r.number - len(r.comments)
		r.b.Paragraph(strings.Join(r.comments, "\n"))
		r.comments = r.comments[:0]
	}
}

// flush writes the current value.
func (r *settingsReader) flush() {
	value := strings.TrimSpace(Clean(strings.Join(r.value, r.glue)))
	if value != "" {
		r.endSections()
		text := value
		if r.at != "" {
			text = r.at + ": " + value
		}
		r.b.line = r.began
		if len(text) > 300 || strings.Contains(text, "\n") {
			r.b.Paragraph(text)
		} else {
			r.b.Item(0, "-", text)
		}
		switch r.at {
		case "title", "info.title":
			r.doc.setMeta("title", unquote(value))
		case "description", "info.description":
			r.doc.setMeta("description", unquote(value))
		}
	}
	r.at, r.value, r.glue, r.block, r.until, r.square = "", r.value[:0], "\n", -1, "", 0
}

// endSections ends the sections that the next value does not belong to.
func (r *settingsReader) endSections() {
	open, level := "", 1
	for _, s := range r.stack {
		if s.headed {
			open += "\x00" + s.name
			level++
		}
	}
	if r.open == "" || open == r.open {
		r.open = open
		return
	}
	r.open = open
	r.b.last = kindNone
	r.b.Section(Section{Level: level, Anchor: fmt.Sprintf("L%d", r.began), Start: r.b.text.Len() + 2})
}

// heading begins the section of the innermost key.
func (r *settingsReader) heading(level int) {
	r.b.line = r.number
	r.b.Heading(level, r.stack[len(r.stack)-1].name, fmt.Sprintf("L%d", r.number))
	r.stack[len(r.stack)-1].headed = true
	r.open = ""
	for _, s := range r.stack {
		if s.headed {
			r.open += "\x00" + s.name
		}
	}
}

func (r *settingsReader) beginValue(at, value string) {
	r.at, r.value, r.began = at, append(r.value[:0], value), r.number
}

func (r *settingsReader) yamlLine(line string) {
	trimmed := strings.TrimLeft(line, " \t")
	indent := width(line[:len(line)-len(trimmed)])
	if r.block >= 0 && len(r.value) > 0 { // inside a block of text
		if trimmed == "" || indent > r.block {
			r.value = append(r.value, trimmed)
			return
		}
		r.flush()
	}
	switch {
	case trimmed == "":
		r.writeComment()
		return
	case indent == 0 && (trimmed == "---" || strings.HasPrefix(trimmed, "--- ") || trimmed == "..."):
		r.flush()
		r.writeComment()
		r.stack = r.stack[:0]
		return
	case trimmed[0] == '#':
		r.flush()
		r.comments = append(r.comments, uncommented(trimmed, "#"))
		return
	case trimmed[0] == '%' && indent == 0:
		return
	}
	trimmed, indent, members := r.yamlMembers(trimmed, indent)
	key, value, ok := yamlKey(trimmed)
	switch {
	case ok:
		r.flush()
		r.yamlPair(key, value, indent)
	case trimmed == "":
	case members:
		r.beginValue(r.listPath(), trimmed)
	case len(r.value) == 0:
		r.beginValue(r.path(), trimmed)
	default: // a value of several lines
		r.value, r.glue = append(r.value, trimmed), " "
	}
}

// yamlMembers reads the dashes at the start of a line, each of which begins a
// member of a list. It returns the rest of the line and its indentation.
func (r *settingsReader) yamlMembers(trimmed string, indent int) (rest string, at int, members bool) {
	for n := 0; n < maxSettingDepth && (strings.HasPrefix(trimmed, "- ") || trimmed == "-"); n++ {
		members = true
		r.flush()
		r.writeComment()
		for n := len(r.stack); n > 0 && (r.stack[n-1].indent > indent || r.stack[n-1].indent == indent && r.stack[n-1].member); n-- {
			r.stack = r.stack[:n-1]
		}
		number := 0
		if n := len(r.stack); n > 0 {
			number = r.stack[n-1].members
			r.stack[n-1].members++
		}
		r.push(setting{indent: indent, name: fmt.Sprintf("[%d]", number), member: true})
		rest := strings.TrimLeft(trimmed[1:], " ")
		indent += len(trimmed) - len(rest)
		trimmed = rest
	}
	return trimmed, indent, members
}

// yamlPair reads a key with what is after it in its line.
func (r *settingsReader) yamlPair(key, value string, indent int) {
	for n := len(r.stack); n > 0 && r.stack[n-1].indent >= indent; n-- {
		r.stack = r.stack[:n-1]
	}
	r.push(setting{indent: indent, name: oneLine(Clean(key))})
	opens := value == "" || value[0] == '&' && !strings.Contains(value, " ") || value[0] == '#'
	if n := len(r.stack); opens && n <= 2 && (n == 1 || !r.stack[0].member && r.stack[0].headed) && !r.stack[n-1].member {
		r.heading(n)
	}
	r.writeComment()
	switch {
	case opens:
	case (value[0] == '|' || value[0] == '>') && len(value) <= 4:
		r.beginValue(r.path(), "")
		r.block = indent
	default:
		r.beginValue(r.path(), value)
	}
}

// listPath is the path of the list that the innermost member is in.
func (r *settingsReader) listPath() string {
	n := len(r.stack)
	defer func(whole []setting) { r.stack = whole }(r.stack)
	if r.stack[n-1].member {
		r.stack = r.stack[:n-1]
	}
	return r.path()
}

func (r *settingsReader) push(s setting) {
	if len(r.stack) < maxSettingDepth {
		r.stack = append(r.stack, s)
	} else {
		r.stack[len(r.stack)-1] = s
	}
}

// yamlKey splits "key: value".
func yamlKey(s string) (key, value string, ok bool) {
	if s == "" || strings.IndexByte("{[|>*&!%@`", s[0]) >= 0 {
		return "", "", false
	}
	if quote := s[0]; quote == '"' || quote == '\'' {
		end := strings.IndexByte(s[1:], quote)
		if end < 0 {
			return "", "", false
		}
		rest := strings.TrimLeft(s[end+2:], " ")
		if value, ok := strings.CutPrefix(rest, ":"); ok && (value == "" || value[0] == ' ') {
			return s[1 : end+1], strings.TrimSpace(value), true
		}
		return "", "", false
	}
	for at := 0; at < min(len(s), 300); at++ {
		switch {
		case s[at] == ':' && (at+1 == len(s) || s[at+1] == ' ' || s[at+1] == '\t'):
			return strings.TrimSpace(s[:at]), strings.TrimSpace(s[at+1:]), at > 0
		case s[at] == '#' && at > 0 && s[at-1] == ' ':
			return "", "", false
		}
	}
	return "", "", false
}

var (
	tomlTable = regexp.MustCompile(`^\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$`)
	tomlKey   = regexp.MustCompile(`^("[^"]*"|'[^']*'|[^\s=:"'#;][^=:]*?)\s*([=:])\s*(.*)$`)
)

func (r *settingsReader) tomlLine(line string) {
	trimmed := strings.TrimSpace(line)
	if r.until != "" {
		text, _, closed := strings.Cut(line, r.until)
		r.value = append(r.value, strings.TrimSpace(text))
		if closed {
			r.flush()
		}
		return
	}
	if r.square > 0 {
		r.value, r.glue = append(r.value, trimmed), " "
		if r.square += brackets(trimmed); r.square <= 0 {
			r.flush()
		}
		return
	}
	switch {
	case trimmed == "":
		r.flush()
		r.writeComment()
		return
	case trimmed[0] == '#' || r.ini && (trimmed[0] == ';' || trimmed[0] == '!'):
		r.flush()
		r.comments = append(r.comments, uncommented(trimmed, "#;!"))
		return
	}
	if len(line) < maxCodeLine && (r.tomlHeader(trimmed) || r.tomlPair(trimmed)) {
		return
	}
	if len(r.value) > 0 { // a value of several lines
		r.value = append(r.value, trimmed)
		return
	}
	r.beginValue(r.path(), trimmed)
}

// tomlHeader reads the name of a table.
func (r *settingsReader) tomlHeader(line string) bool {
	m := tomlTable.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	r.flush()
	r.stack = append(r.stack[:0], setting{name: oneLine(Clean(strings.ReplaceAll(m[1], `"`, "")))})
	if r.stack[0].name == "" {
		r.stack = r.stack[:0]
	} else {
		r.heading(1)
	}
	r.writeComment()
	return true
}

// tomlPair reads a key with its value, or the beginning of it.
func (r *settingsReader) tomlPair(line string) bool {
	m := tomlKey.FindStringSubmatch(line)
	if m == nil || !r.ini && m[2] != "=" {
		return false
	}
	r.flush()
	r.writeComment()
	at := oneLine(Clean(strings.Trim(m[1], `"'`)))
	if p := r.path(); p != "" {
		at = p + "." + at
	}
	value := m[3]
	for _, sign := range []string{`"""`, "'''"} {
		if inner, ok := strings.CutPrefix(value, sign); ok && !r.ini && !strings.Contains(inner, sign) {
			r.beginValue(at, inner)
			r.until = sign
			return true
		}
	}
	if strings.Count(value, `"`) == 2 {
		value = unquote(value)
	}
	r.beginValue(at, value)
	if !r.ini {
		if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
			r.square = max(0, brackets(value))
		}
		if r.square == 0 {
			r.flush()
		}
	}
	return true
}

// brackets counts how many more brackets a line opens than it closes, outside
// texts in quotes.
func brackets(line string) (n int) {
	var quote byte
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '{':
			n++
		case c == ']' || c == '}':
			n--
		case c == '#':
			return n
		}
	}
	return n
}
