package format

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	yamlHeading = regexp.MustCompile(`^( *)("[^"]+"|'[^']+'|[^\s#"'&*!|>%@\x60{\[-][^:#]*):[ \t]*(?:&\S+[ \t]*)?(?:#.*)?$`)
	tomlHeading = regexp.MustCompile(`^(\s*)\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$`)
	settingPair = regexp.MustCompile(`^(title|description)\s*[:=]\s*(.+)$`)
)

// YAML reads YAML line by line, without resolving anything in it: the two outer
// levels of keys with others in them are headings with their line as anchor, the
// lines are items, and comments are text.
func YAML(doc *Document, data []byte) error {
	if err := lockFile(doc.Path); err != nil {
		return err
	}
	return readSettings(doc, data, yamlHeading, "#")
}

// TOML reads TOML, INI and similar settings: each table is a section, its lines
// are items, and comments are text.
func TOML(doc *Document, data []byte) error {
	return readSettings(doc, data, tomlHeading, "#;!")
}

func readSettings(doc *Document, data []byte, heading *regexp.Regexp, comment string) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	if reason := unwritten(src); reason != "" {
		return &SkipError{reason}
	}
	r := settingsReader{lineReader: newLineReader(doc, src, func(text string) string { return text }), pattern: heading, comment: comment}
	r.lineReader.read(r.next, 0)
	return nil
}

type settingsReader struct {
	lineReader
	pattern *regexp.Regexp // of headings
	comment string         // the signs that begin one
	indents []int          // of the headings whose sections are open
}

func (r *settingsReader) next(line string) {
	trimmed := strings.TrimSpace(line)
	indent := width(line)
	switch {
	case trimmed == "" || trimmed == "---" || trimmed == "...":
		r.flush()
		return
	case strings.IndexByte(r.comment, trimmed[0]) >= 0:
		if r.item.marker != "" {
			r.flush()
		}
		r.add(uncommented(trimmed, r.comment))
		return
	}
	if m := r.pattern.FindStringSubmatch(line); m != nil && r.opens(indent) {
		comments := r.paragraph // they are about the key
		r.paragraph = nil
		r.heading(len(r.indents), strings.Trim(m[2], `"'`), fmt.Sprintf("L%d", r.at+1), r.slug)
		r.paragraph = comments
		return
	}
	r.flush()
	// A key after a section is not in it.
	if n := len(r.indents); n > 0 && indent <= r.indents[n-1] && trimmed[0] != '-' && r.pattern == yamlHeading {
		for n > 0 && indent <= r.indents[n-1] {
			n--
		}
		r.indents = r.indents[:n]
		r.b.last = kindNone
		r.b.Section(Section{Level: n + 1, Anchor: fmt.Sprintf("L%d", r.at+1), Start: r.b.text.Len() + len("\n\n")})
	}
	if m := settingPair.FindStringSubmatch(line); m != nil {
		r.doc.setMeta(m[1], unquote(m[2]))
	}
	if n := len(r.indents); n > 0 {
		indent = max(0, indent-r.indents[n-1]-2)
	}
	r.begin(listItem{indent / 2, "-"}, strings.TrimPrefix(trimmed, "- "))
	r.flush()
}

// opens reports whether a key or a table begins a section, which is true of the two
// outer levels.
func (r *settingsReader) opens(indent int) bool {
	if r.pattern == tomlHeading {
		r.indents = []int{0}
		return true
	}
	for n := len(r.indents); n > 0 && indent <= r.indents[n-1]; n-- {
		r.indents = r.indents[:n-1]
	}
	if len(r.indents) == 2 || len(r.indents) == 0 && indent > 0 {
		return false
	}
	r.indents = append(r.indents, indent)
	return true
}
