package cite

import (
	"html"
	"strconv"
	"strings"
)

// A Style formats citations. The styles of this package are [Empty], [Text],
// [Markdown] and [HTML].
type Style interface {
	// Inline appends what stands in the text for a reference. Appending
	// nothing shows nothing; the citation is recorded all the same.
	Inline(dst []byte, r Reference) []byte
	// List appends the list of the references, which come by number. It is
	// called with none when nothing was cited.
	List(dst []byte, refs []Reference) []byte
	// Exclude says that a document must not be cited: it takes no number and
	// is not listed.
	Exclude(d Document) bool
}

// A Reference is a numbered source as the reader sees it.
type Reference struct {
	Number int
	// Document is the first cited document of the source.
	Document Document
}

// Label names the source in words: the title, else the source, else
// "document" and the id.
func (r Reference) Label() string {
	switch d := r.Document; {
	case d.Title != "":
		return d.Title
	case d.Source != "":
		return d.Source
	default:
		return "document " + strconv.Itoa(d.ID)
	}
}

// Link gives the source as the target of a link, or "" if it must not be one:
// links are relative or have the scheme http or https.
func (r Reference) Link() string { return link(r.Document.Source) }

// Empty shows nothing; it records what is cited.
var Empty Style = emptyStyle{}

// Text shows [1] and lists "- [1] Title (source)".
var Text Style = textStyle{}

// Markdown shows a raised, linked number and lists the sources as links.
var Markdown Style = markdownStyle{}

// HTML shows a raised, linked number and lists the sources in an ordered list.
var HTML Style = htmlStyle{}

// StyleByName gives the style called "empty", "text", "markdown" or "html".
func StyleByName(name string) (Style, bool) {
	switch name {
	case "empty":
		return Empty, true
	case "text":
		return Text, true
	case "markdown":
		return Markdown, true
	case "html":
		return HTML, true
	}
	return nil, false
}

// Excluding is a style that leaves out the documents for which f holds.
func Excluding(s Style, f func(Document) bool) Style {
	return excludingStyle{s, f}
}

type excludingStyle struct {
	Style
	exclude func(Document) bool
}

func (s excludingStyle) Exclude(d Document) bool { return s.exclude(d) || s.Style.Exclude(d) }

type emptyStyle struct{}

func (emptyStyle) Inline(dst []byte, _ Reference) []byte { return dst }
func (emptyStyle) List(dst []byte, _ []Reference) []byte { return dst }
func (emptyStyle) Exclude(Document) bool                 { return false }

type textStyle struct{}

func (textStyle) Inline(dst []byte, r Reference) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(r.Number), 10)
	return append(dst, ']')
}

func (s textStyle) List(dst []byte, refs []Reference) []byte {
	if len(refs) > 0 {
		dst = append(dst, "\n\n"...)
	}
	for _, r := range refs {
		dst = append(dst, "- "...)
		dst = s.Inline(dst, r)
		dst = append(dst, ' ')
		dst = append(dst, oneLine(r.Label())...)
		if d := r.Document; d.Title != "" && d.Source != "" {
			dst = append(dst, " ("...)
			dst = append(dst, oneLine(d.Source)...)
			dst = append(dst, ')')
		}
		dst = append(dst, '\n')
	}
	return dst
}

func (textStyle) Exclude(Document) bool { return false }

// oneLine makes one space of each run of line ends.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	var b strings.Builder
	ended := false
	for i := range len(s) {
		if s[i] == '\r' || s[i] == '\n' {
			if !ended {
				b.WriteByte(' ')
			}
			ended = true
			continue
		}
		ended = false
		b.WriteByte(s[i])
	}
	return b.String()
}

type markdownStyle struct{}

func (markdownStyle) Inline(dst []byte, r Reference) []byte {
	dst = append(dst, "<sup>["...)
	u := r.Link()
	if u != "" {
		dst = append(dst, '[')
	}
	dst = strconv.AppendInt(dst, int64(r.Number), 10)
	if u != "" {
		dst = append(dst, "]("...)
		dst = append(dst, escapeTarget(u)...)
		dst = append(dst, ')')
	}
	return append(dst, "]</sup>"...)
}

func (markdownStyle) List(dst []byte, refs []Reference) []byte {
	if len(refs) > 0 {
		dst = append(dst, "\n\n"...)
	}
	for _, r := range refs {
		dst = append(dst, "- **"...)
		dst = strconv.AppendInt(dst, int64(r.Number), 10)
		dst = append(dst, "** "...)
		u, title := r.Link(), r.Document.Title
		switch {
		case u == "":
			dst = append(dst, escapeMarkdown(r.Label())...)
		case title == "" && isWeb(u):
			dst = append(dst, "<"+escapeTarget(u)+">"...)
		case title == "":
			title = u
			fallthrough
		default:
			dst = append(dst, "["+escapeMarkdown(title)+"]("+escapeTarget(u)+")"...)
		}
		dst = append(dst, '\n')
	}
	return dst
}

func (markdownStyle) Exclude(Document) bool { return false }

func isWeb(u string) bool {
	u = strings.ToLower(u[:min(len(u), len("https://"))])
	return strings.HasPrefix(u, "http://") || u == "https://"
}

// escapeMarkdown makes text safe inside the brackets of a link.
func escapeMarkdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `<`, `\<`).Replace(oneLine(s))
}

// escapeTarget makes an address safe inside the parentheses of a link.
func escapeTarget(u string) string {
	var b strings.Builder
	for i := range len(u) {
		switch c := u[i]; {
		case c <= ' ', c == 0x7F, strings.IndexByte(`()<>"\`, c) >= 0:
			const hex = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

type htmlStyle struct{}

func (htmlStyle) Inline(dst []byte, r Reference) []byte {
	dst = append(dst, "<sup>"...)
	u := r.Link()
	if u != "" {
		dst = append(dst, `<a href="`+html.EscapeString(u)+`">`...)
	}
	dst = strconv.AppendInt(dst, int64(r.Number), 10)
	if u != "" {
		dst = append(dst, "</a>"...)
	}
	return append(dst, "</sup>"...)
}

func (htmlStyle) List(dst []byte, refs []Reference) []byte {
	if len(refs) == 0 {
		return dst
	}
	dst = append(dst, "\n<ol>"...)
	for _, r := range refs {
		label := html.EscapeString(r.Label())
		if u := r.Link(); u != "" {
			label = `<a href="` + html.EscapeString(u) + `">` + label + "</a>"
		}
		dst = append(dst, "<li>"+label+"</li>"...)
	}
	return append(dst, "</ol>"...)
}

func (htmlStyle) Exclude(Document) bool { return false }
