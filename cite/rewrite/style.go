package rewrite

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// A Style formats citations. Its functions may be nil.
type Style struct {
	// Inline appends the number of a source as the text shows it. If it appends nothing,
	// the text shows nothing, but the citation is recorded.
	Inline func(dst []byte, s Source) []byte
	// Begin and End enclose the entries of a list that is not empty.
	Begin, End string
	// Entry appends an entry of the list.
	Entry func(dst []byte, s Source) []byte
	// Exclude reports whether a document must be neither numbered nor listed.
	Exclude func(d Document) bool
}

// List returns the list of the sources, which are sorted by number.
func (s Style) List(sources []Source) string {
	if len(sources) == 0 || s.Entry == nil {
		return ""
	}
	list := []byte(s.Begin)
	for _, source := range sources {
		list = s.Entry(list, source)
	}
	return string(append(list, s.End...))
}

// Label returns the title, or if that is empty the source, or else "document" and the first
// id.
func (s Source) Label() string {
	return cmp.Or(s.Title, s.Source, fmt.Sprint("document ", s.IDs[0]))
}

// Link returns the source as a link target, or "" if it must not be a link.
func (s Source) Link() string { return Link(s.Source) }

// Link returns an address without white space around it, or "" if it has a scheme other than
// http and https. It detects schemes as lenient parsers do: "java\nscript:" is one.
func Link(address string) string {
	bare := strings.ToLower(strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7F {
			return -1
		}
		return r
	}, address))
	if m := leadingScheme.FindStringSubmatch(bare); m != nil && m[1] != "http" && m[1] != "https" {
		return ""
	}
	return strings.TrimFunc(address, unicode.IsSpace)
}

var (
	leadingScheme = regexp.MustCompile(`^\s*([a-z][a-z0-9+.-]*):`)
	lineEnds      = regexp.MustCompile(`[\r\n]+`)
)

var (
	// Empty shows no numbers; it only records the citations.
	Empty Style
	// Text shows [1] and lists "- [1] Title (source)".
	Text = Style{Inline: textInline, Begin: "\n\n", Entry: textEntry}
	// Markdown shows a raised, linked number and lists the sources as links.
	Markdown = Style{Inline: markdownInline, Begin: "\n\n", Entry: markdownEntry("- **%d** ")}
	// Footnote shows [^1] and lists the sources as Markdown footnotes.
	Footnote = Style{Inline: footnoteInline, Begin: "\n\n", Entry: markdownEntry("[^%d]: ")}
	// HTML shows a raised, linked number and lists the sources in an ordered list.
	HTML = Style{Inline: htmlInline, Begin: "\n<ol>", Entry: htmlEntry, End: "</ol>"}
)

// StyleByName returns the style called "empty", "text", "markdown", "footnote" or
// "html".
func StyleByName(name string) (Style, bool) {
	s, ok := map[string]Style{"empty": Empty, "text": Text, "markdown": Markdown, "footnote": Footnote, "html": HTML}[name]
	return s, ok
}

// NewStyle returns a style made of two templates: for a citation in the text, and for an entry
// of the list, which follows an empty line. Each entry becomes one line, whether or not its
// template ends in a line end. The fields are {number}, {title} (or the source if the title is
// empty), {source} and {link} (the source if it may be a link). Nothing is escaped. Any other
// word in braces is an error.
func NewStyle(inline, entry string) (Style, error) {
	for _, field := range templateField.FindAllString(inline+" "+entry, -1) {
		switch field {
		case "{number}", "{title}", "{source}", "{link}":
		default:
			return Style{}, fmt.Errorf("a template has no %.40q: use {number}, {title}, {source} or {link}", field)
		}
	}
	s := Style{Inline: func(dst []byte, s Source) []byte { return append(dst, s.fill(inline)...) }}
	if entry != "" {
		entry = strings.TrimSuffix(entry, "\n") + "\n"
		s.Begin, s.Entry = "\n\n", func(dst []byte, s Source) []byte { return append(dst, s.fill(entry)...) }
	}
	return s, nil
}

var templateField = regexp.MustCompile(`\{\pL+\}`)

func (s Source) fill(template string) string {
	return strings.NewReplacer("{number}", strconv.Itoa(s.Number), "{title}", oneLine(s.Label()),
		"{source}", oneLine(s.Source), "{link}", oneLine(s.Link())).Replace(template)
}

func textInline(dst []byte, s Source) []byte {
	return append(strconv.AppendInt(append(dst, '['), int64(s.Number), 10), ']')
}

func textEntry(dst []byte, s Source) []byte {
	dst = fmt.Appendf(dst, "- [%d] %s", s.Number, oneLine(s.Label()))
	if s.Title != "" && s.Source != "" {
		dst = fmt.Appendf(dst, " (%s)", oneLine(s.Source))
	}
	return append(dst, '\n')
}

// oneLine replaces line ends by spaces, several in a row by one.
func oneLine(s string) string { return lineEnds.ReplaceAllLiteralString(s, " ") }

func markdownInline(dst []byte, s Source) []byte {
	if u := s.Link(); u != "" {
		return fmt.Appendf(dst, "<sup>[[%d](%s)]</sup>", s.Number, escapeTarget(u))
	}
	return fmt.Appendf(dst, "<sup>[%d]</sup>", s.Number)
}

// markdownEntry returns a function that appends an entry: the number in the format number, and
// a link.
func markdownEntry(number string) func([]byte, Source) []byte {
	return func(dst []byte, s Source) []byte {
		dst = fmt.Appendf(dst, number, s.Number)
		switch u, title := s.Link(), s.Title; {
		case u == "":
			dst = append(dst, escapeMarkdown(s.Label())...)
		case title == "" && isWeb(u):
			dst = fmt.Appendf(dst, "<%s>", escapeTarget(u))
		default:
			dst = fmt.Appendf(dst, "[%s](%s)", escapeMarkdown(cmp.Or(title, u)), escapeTarget(u))
		}
		return append(dst, '\n')
	}
}

func footnoteInline(dst []byte, s Source) []byte { return fmt.Appendf(dst, "[^%d]", s.Number) }

func isWeb(u string) bool {
	u = strings.ToLower(u[:min(len(u), len("https://"))])
	return strings.HasPrefix(u, "http://") || u == "https://"
}

// escapeMarkdown makes text safe inside the brackets of a link.
func escapeMarkdown(s string) string {
	return labelEscapes.Replace(oneLine(s))
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `<`, `\<`)

// escapeTarget makes an address safe inside the parentheses of a link.
func escapeTarget(u string) string {
	var b strings.Builder
	for i := range len(u) {
		if c := u[i]; c <= ' ' || c == 0x7F || strings.IndexByte(`()<>"\`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func htmlInline(dst []byte, s Source) []byte {
	return fmt.Appendf(dst, "<sup>%s</sup>", anchor(s.Link(), fmt.Sprint(s.Number)))
}

func htmlEntry(dst []byte, s Source) []byte {
	return fmt.Appendf(dst, "<li>%s</li>", anchor(s.Link(), s.Label()))
}

// anchor returns text as HTML, linked to u unless u is empty.
func anchor(u, text string) string {
	text = html.EscapeString(text)
	if u == "" {
		return text
	}
	return `<a href="` + html.EscapeString(u) + `">` + text + "</a>"
}
