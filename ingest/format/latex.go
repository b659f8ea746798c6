package format

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxTeXDepth is how deep groups and environments are followed; what stands
// deeper is left out.
const maxTeXDepth = 60

// LaTeX reads LaTeX as text with headings, in linear time: commands and
// comments are taken off, mathematics stays readable, lists and tables become
// lines. No other file is read and no macro is expanded.
func LaTeX(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	r := texReader{doc: doc, src: src, ends: matchBraces(src), slugs: make(map[string]int), line: 1, seen: make(map[string]span)}
	body := strings.Index(src, `\begin{document}`)
	if body >= 0 {
		r.preamble(0, body)
		end := len(src)
		if at := strings.LastIndex(src, `\end{document}`); at > body {
			end = at
		}
		r.read(body+len(`\begin{document}`), end, 0)
	} else {
		r.read(0, len(src), 0)
	}
	r.flush()
	r.b.into(doc)
	if doc.Title == "" && len(doc.Sections) > 0 {
		doc.Title = doc.Sections[0].Heading
	}
	return nil
}

// matchBraces gives for each opening brace where the one stands that closes it;
// 0 for all else. Braces behind a backslash and in comments do not count.
func matchBraces(src string) []int32 {
	ends := make([]int32, len(src)+1)
	var open []int32
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '%':
			if at := strings.IndexByte(src[i:], '\n'); at >= 0 {
				i += at
			} else {
				i = len(src)
			}
		case '{':
			open = append(open, int32(i))
		case '}':
			if n := len(open); n > 0 {
				ends[open[n-1]] = int32(i)
				open = open[:n-1]
			}
		}
	}
	return ends
}

type texReader struct {
	b       builder
	doc     *Document
	src     string
	ends    []int32
	slugs   map[string]int
	text    strings.Builder // the paragraph in hand
	begins  int             // where in the file it began; 0 when it is empty
	lists   []texList
	math    bool
	depth   int // of groups and environments
	counted int // bytes whose lines are counted
	line    int
	seen    map[string]span // where signs were found last
}

type texList struct {
	marker string // of the item in hand; empty between items
	number int    // of numbered items; -1 for others
}

// lineAt gives the line of a place that is not before the last one asked for.
func (r *texReader) lineAt(at int) int {
	if at > r.counted {
		r.line += strings.Count(r.src[r.counted:at], "\n")
		r.counted = at
	}
	return r.line
}

func (r *texReader) write(s string, at int) {
	if r.text.Len() == 0 {
		if s = strings.TrimLeft(s, " \n\t"); s == "" {
			return
		}
		r.begins = at
	}
	r.text.WriteString(s)
}

// flush ends the paragraph or list item in hand.
func (r *texReader) flush() {
	text := tidyTeX(r.text.String())
	r.text.Reset()
	if text == "" {
		return
	}
	r.b.line = r.lineAt(r.begins)
	if n := len(r.lists); n > 0 && r.lists[n-1].marker != "" {
		r.b.Item(n-1, r.lists[n-1].marker, text)
		r.lists[n-1].marker = ""
		return
	}
	r.b.Paragraph(text)
}

var (
	texSpace  = regexp.MustCompile(`[ \t]+`)
	texBefore = regexp.MustCompile(` +([,.;:!?)\]])`)
	texLines  = regexp.MustCompile(`[ \t]*\n[ \t]*`)
)

func tidyTeX(text string) string {
	text = texLines.ReplaceAllString(strings.TrimSpace(text), "\n")
	text = texSpace.ReplaceAllString(text, " ")
	return texBefore.ReplaceAllString(text, "$1")
}

// preamble looks for what the document says of itself in front of its text.
func (r *texReader) preamble(start, end int) {
	for i := start; i < end; i++ {
		switch r.src[i] {
		case '%':
			i = r.lineEnd(i)
		case '\\':
			name, after := r.command(i, end)
			switch name {
			case "title", "author", "date", "subtitle", "keywords":
				if from, to, ok := r.argument(after, end); ok {
					r.about(name, from, to)
					after = to + 1
				}
			}
			i = max(i, after-1)
		}
	}
}

// about notes what the document says of itself.
func (r *texReader) about(name string, start, end int) {
	text := oneLine(strings.ReplaceAll(r.plain(start, end), "\n", " "))
	switch {
	case name == "date" && (text == "" || strings.HasPrefix(r.src[start:], `\today`)):
	case name == "author":
		for _, sign := range []string{"\\and", " ; "} {
			text = strings.ReplaceAll(text, sign, ", ")
		}
		r.doc.setMeta(name, text)
	default:
		r.doc.setMeta(name, text)
	}
}

// plain gives a range as one piece of text.
func (r *texReader) plain(start, end int) string {
	inner := texReader{doc: &Document{}, src: r.src, ends: r.ends, slugs: map[string]int{}, math: r.math, counted: start, seen: r.seen}
	inner.read(start, end, r.depth+1)
	text := tidyTeX(inner.text.String())
	if before := inner.b.text.String(); before != "" {
		text = strings.TrimSpace(before + " " + text)
	}
	return text
}

// command reads the name of the command at a backslash.
func (r *texReader) command(at, end int) (name string, after int) {
	after = at + 1
	for after < end && isTeXLetter(r.src[after]) {
		after++
	}
	if after == at+1 && after < end {
		_, size := utf8.DecodeRuneInString(r.src[after:end])
		after += size
		return r.src[at+1 : after], after
	}
	name = r.src[at+1 : after]
	if after < end && r.src[after] == '*' {
		after++
	}
	return name, after
}

func isTeXLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '@' }

func (r *texReader) lineEnd(at int) int {
	if n := strings.IndexByte(r.src[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(r.src)
}

// argument gives the range inside the braces that come next.
func (r *texReader) argument(at, end int) (from, to int, ok bool) {
	at = r.skipOptions(at, end)
	if at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) <= end {
		return at + 1, int(r.ends[at]), true
	}
	return 0, 0, false
}

// skipOptions passes over white space and options in square brackets, of which
// no one is long.
func (r *texReader) skipOptions(at, end int) int {
	for at < end {
		switch {
		case r.src[at] == ' ' || r.src[at] == '\t' || r.src[at] == '\n' && !strings.HasPrefix(r.src[at+1:end], "\n"):
			at++
		case r.src[at] == '[':
			n := strings.IndexByte(r.src[at:min(end, at+500)], ']')
			if n < 0 {
				return at
			}
			at += n + 1
		default:
			return at
		}
	}
	return at
}
