package format

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTeXDepth is how deep groups and environments are followed; what is nested
// deeper is left out.
const maxTeXDepth = 60

// LaTeX reads LaTeX as text with headings, in linear time: commands and
// comments are removed, mathematics stays readable, lists and tables become
// lines. No other file is read and no macro is expanded.
func LaTeX(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	r := texReader{doc: doc, src: src, ends: matchBraces(src), slugs: make(map[string]int), line: 1, seen: make(map[string]span)}
	start, end := 0, len(src)
	if body := strings.Index(src, `\begin{document}`); body >= 0 {
		r.plain(0, body) // the title, the authors and the date
		start = body + len(`\begin{document}`)
		if at := strings.LastIndex(src, `\end{document}`); at > body {
			end = at
		}
	}
	r.read(start, end, 0)
	r.flush()
	r.b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// matchBraces returns for each opening brace the place of the one that closes
// it, and 0 elsewhere. Braces after a backslash and in comments do not count.
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
	text    strings.Builder // the current paragraph
	begins  int             // where in the file the paragraph begins
	lists   []texList
	math    bool
	depth   int // of groups and environments
	counted int // bytes whose lines are counted
	line    int
	seen    map[string]span // where signs were found last
}

type texList struct {
	marker string // of the current item; empty between items
	number int    // of numbered items; -1 for others
}

// lineAt returns the line of a place, which is not before that of the last call.
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

// flush ends the current paragraph or list item.
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

func (r *texReader) heading(level int, text, anchor string, at int) {
	r.flush()
	r.b.line = r.lineAt(at)
	r.b.Heading(level, text, anchor)
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

// plain returns a range as one piece of text.
func (r *texReader) plain(start, end int) string {
	inner := texReader{doc: r.doc, src: r.src, ends: r.ends, slugs: map[string]int{}, math: r.math, counted: start, seen: r.seen}
	inner.read(start, end, r.depth+1)
	text := tidyTeX(inner.text.String())
	if before := inner.b.text.String(); before != "" {
		text = strings.TrimSpace(before + " " + text)
	}
	return text
}

// read reads a range of the source.
func (r *texReader) read(start, end, depth int) {
	if depth > maxTeXDepth {
		return
	}
	before := r.depth
	r.depth = depth
	defer func() { r.depth = before }()
	for i := start; i < end; {
		switch c := r.src[i]; c {
		case '\\':
			i = r.run(i, end, depth)
		case '%':
			// A comment ends with its line end, unless it is all of the line.
			at := r.lineEnd(i)
			if i > start && r.src[i-1] != '\n' {
				at = min(at+1, end)
			}
			i = max(at, i+1)
		case '{':
			if to := int(r.ends[i]); to > 0 && to <= end {
				r.read(i+1, to, depth+1)
				i = to
			}
			i++
		case '}':
			i++
		case '$':
			i = r.dollars(i, end, depth)
		case '\n':
			if next := i + 1 + spaces(r.src[i+1:end]); next < end && r.src[next] == '\n' && !r.math {
				r.flush()
				i = next
			} else {
				r.write("\n", i)
				i++
			}
		case '~', '&', '`', '\'', '-':
			i = r.sign(i, end)
		default:
			next := strings.IndexAny(r.src[i:end], "\\%{}$~&\n`'-")
			if next < 0 {
				next = end - i
			}
			r.write(r.src[i:i+next], i)
			i += next
		}
	}
}

// sign writes a character that means another: a space, a quote or a dash.
func (r *texReader) sign(at, end int) int {
	for _, s := range [...]struct{ source, text string }{
		{"---", "—"}, {"--", "–"}, {"-", "-"}, {"``", "“"}, {"`", "‘"}, {"''", "”"}, {"'", "'"}, {"~", " "}, {"&", " "},
	} {
		if strings.HasPrefix(r.src[at:end], s.source) && !(r.math && s.source == "''") {
			r.write(s.text, at)
			return at + len(s.source)
		}
	}
	return at + 1
}

func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// find returns where a sign that ends mathematics comes next; -1 if it does not
// come before end, or is so far off that it ends something else.
func (r *texReader) find(sign string, from, end int) int {
	known, ok := r.seen[sign]
	if !ok || from < known.Start || from > known.End {
		known = span{from, len(r.src)}
		if n := strings.Index(r.src[from:], sign); n >= 0 {
			known.End = from + n
		}
		r.seen[sign] = known
	}
	if known.End+len(sign) > end || known.End-from > 20000 {
		return -1
	}
	return known.End
}

// dollars reads mathematics between dollars.
func (r *texReader) dollars(at, end, depth int) int {
	sign := "$"
	if strings.HasPrefix(r.src[at:end], "$$") {
		sign = "$$"
	}
	from := at + len(sign)
	to := r.find(sign, from, end)
	for to > from && r.src[to-1] == '\\' {
		to = r.find(sign, to+1, end)
	}
	if to < 0 {
		r.write(sign, at)
		return from
	}
	r.formula(from, to, depth, sign == "$$")
	return to + len(sign)
}

// formula reads mathematics, which is on lines of its own if it is displayed.
func (r *texReader) formula(start, end, depth int, displayed bool) {
	if displayed {
		r.write("\n", start)
	}
	before := r.math
	r.math = true
	r.read(start, end, depth+1)
	r.math = before
	if displayed {
		r.write("\n", end)
	}
}

// run reads a command with its arguments, and returns where it ends.
func (r *texReader) run(at, end, depth int) int {
	name, after := r.command(at, end)
	if sign, ok := texMath[name]; ok && r.math {
		if isTeXLetter(name[0]) && after < end && r.src[after] == ' ' {
			sign += " "
			after++
		}
		r.write(sign, at)
		return after
	}
	if kind := texKinds[name]; kind != "" {
		if from, to, ok := r.argument(after, end); ok {
			return r.withArgument(kind, name, at, span{from, to}, end, depth)
		}
		return after
	}
	switch name {
	case "item":
		return r.nextItem(after, end)
	case "\\", "newline", "linebreak", "cr", "tabularnewline":
		r.write("\n", at)
		return r.skipBracket(after, end)
	case "par", "newpage", "clearpage", "maketitle", "tableofcontents", "bigskip", "medskip", "smallskip":
		r.flush()
		return after
	case "(", "[":
		closing := map[string]string{"(": `\)`, "[": `\]`}[name]
		if to := r.find(closing, after, end); to >= 0 {
			r.formula(after, to, depth, name == "[")
			return to + 2
		}
		return after
	case "verb", "lstinline":
		if after < end && r.src[after] != '{' {
			line, _, _ := strings.Cut(r.src[after+1:min(end, after+1000)], "\n")
			if n := strings.IndexByte(line, r.src[after]); n >= 0 {
				r.write(r.src[after+1:after+1+n], at)
				return after + n + 2
			}
		}
		return after
	}
	return r.otherCommand(name, at, after, end)
}

// withArgument handles a command of [texKinds], whose argument is the range,
// and returns where it ends.
func (r *texReader) withArgument(kind, name string, at int, argument span, end, depth int) int {
	from, to := argument.Start, argument.End
	switch kind {
	case "heading":
		text := strings.ReplaceAll(r.plain(from, to), "\n", " ")
		r.heading(texLevels[name], text, r.label(to+1, end, text), at)
	case "begin":
		return r.environment(r.src[from:to], to+1, end, depth)
	case "end":
		r.endEnvironment(r.src[from:to])
	case "about":
		text := oneLine(r.plain(from, to))
		if name != "date" || !strings.HasPrefix(r.src[from:], `\today`) {
			r.doc.setMeta(name, text)
		}
	case "note":
		r.write(" ("+r.plain(from, to)+")", at)
	case "label":
		r.write("["+oneLine(r.src[from:to])+"]", at)
	case "raw":
		r.write(r.src[from:to], at)
	case "root":
		r.write("√("+r.plain(from, to)+")", at)
	case "fraction":
		below, last, ok := r.argument(to+1, end)
		if !ok {
			break
		}
		r.write(bracketed(r.plain(from, to))+"/"+bracketed(r.plain(below, last)), at)
		to = last
	case "caption":
		r.flush()
		r.read(from, to, depth+1)
		r.flush()
	case "entry":
		r.nextItem(at, at)
		r.write("["+r.src[from:to]+"] ", at)
	}
	return to + 1
}

func bracketed(s string) string {
	if len(s) > 1 && strings.ContainsAny(s, " +-*/=") {
		return "(" + s + ")"
	}
	return s
}

// otherCommand handles commands that are definitions, signs, accents or unknown.
func (r *texReader) otherCommand(name string, at, after, end int) int {
	if name == "def" || strings.HasSuffix(name, "command") { // the name may come without braces
		if at := after + spaces(r.src[after:end]); at < end && r.src[at] == '\\' {
			_, after = r.command(at, end)
			if n := strings.IndexByte(r.src[after:min(end, after+100)], '{'); n >= 0 && r.ends[after+n] > 0 {
				after = int(r.ends[after+n]) + 1
			}
			return min(after, end)
		}
	}
	for n, names := range texDropped {
		if names[name] {
			return r.skipArguments(n, after, end)
		}
	}
	if mark, ok := texAccents[name]; ok {
		return r.accent(mark, after, end)
	}
	sign, ok := texSigns[name]
	if !ok {
		sign, ok = texSpaces[name]
	}
	if ok {
		r.write(sign, at)
		if isTeXLetter(name[0]) {
			after += spaces(r.src[after:end])
		}
		return after
	}
	// The argument of any other command is text.
	if isTeXLetter(name[0]) {
		if next := r.skipOptions(after, end); next < end && r.src[next] == '{' {
			return next
		}
		if after < end && (r.src[after] == ' ' || r.src[after] == '\t') {
			after++
		}
	}
	return after
}

// skipArguments skips up to n arguments.
func (r *texReader) skipArguments(n, at, end int) int {
	for range n {
		_, to, ok := r.argument(at, end)
		if !ok {
			break
		}
		at = to + 1
	}
	return at
}

// label returns the anchor of a heading: the label right after it, or one made
// of its words.
func (r *texReader) label(at, end int, heading string) string {
	at += len(r.src[at:end]) - len(strings.TrimLeft(r.src[at:end], " \t\n"))
	if strings.HasPrefix(r.src[at:end], `\label{`) {
		if to := int(r.ends[at+6]); to > 0 && to <= end {
			return r.src[at+7 : to]
		}
	}
	return slug(r.slugs, oneLine(Clean(heading)))
}

func (r *texReader) nextItem(after, end int) int {
	r.flush()
	n := len(r.lists)
	if n == 0 {
		return after
	}
	l := &r.lists[n-1]
	l.marker = "-"
	if l.number >= 0 {
		l.number++
		l.marker = strconv.Itoa(l.number) + "."
	}
	at := after + spaces(r.src[after:end])
	if at < end && r.src[at] == '[' {
		if to := strings.IndexByte(r.src[at:min(end, at+500)], ']'); to >= 0 {
			if term := r.plain(at+1, at+to); term != "" {
				r.write(term+": ", at)
			}
			return at + to + 1
		}
	}
	return after
}

// accent puts a mark on the next letter.
func (r *texReader) accent(mark rune, after, end int) int {
	at := after + spaces(r.src[after:end])
	braced := at < end && r.src[at] == '{'
	if braced {
		at++
	}
	if strings.HasPrefix(r.src[at:end], `\i`) || strings.HasPrefix(r.src[at:end], `\j`) {
		at++
	}
	letter, size := utf8.DecodeRuneInString(r.src[at:end])
	if size == 0 || !unicode.IsLetter(letter) {
		return after
	}
	r.write(norm.NFC.String(string([]rune{letter, mark})), at)
	at += size
	if braced && at < end && r.src[at] == '}' {
		at++
	}
	return at
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

// argument returns the range inside the next braces.
func (r *texReader) argument(at, end int) (from, to int, ok bool) {
	at = r.skipOptions(at, end)
	if at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) <= end {
		return at + 1, int(r.ends[at]), true
	}
	return 0, 0, false
}

// skipOptions skips white space and short options in square brackets.
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

// skipBracket skips options that follow at once.
func (r *texReader) skipBracket(at, end int) int {
	if at < end && r.src[at] == '[' {
		if n := strings.IndexByte(r.src[at:min(end, at+500)], ']'); n >= 0 {
			return at + n + 1
		}
	}
	return at
}
