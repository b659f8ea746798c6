package ingest

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTeXDepth is how deep groups and environments are followed; what stands
// deeper is left out.
const maxTeXDepth = 60

// readLaTeX reads LaTeX as text with headings, in linear time: commands and
// comments are taken off, mathematics stays readable, lists and tables become
// lines. No other file is read and no macro is expanded.
func readLaTeX(doc *Document, data []byte) error {
	src, err := decode(data, "")
	if err != nil {
		return err
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	r := texReader{doc: doc, src: src, ends: matchBraces(src), slugs: make(map[string]int), line: 1, seen: make(map[string]Span)}
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
	seen    map[string]Span // where signs were found last
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
			// A comment takes its line end with it, unless it is all of the line.
			at := r.lineEnd(i)
			if i > start && r.src[i-1] != '\n' {
				at = min(at+1, end)
			}
			i = max(at, i+1)
		case '{':
			if to := int(r.ends[i]); to > 0 && to <= end {
				r.read(i+1, to, depth+1)
				i = to + 1
			} else {
				i++
			}
		case '}':
			i++
		case '$':
			i = r.dollars(i, end, depth)
		case '~':
			r.write(" ", i)
			i++
		case '&':
			r.write(" ", i)
			i++
		case '\n':
			if next := i + 1 + spaces(r.src[i+1:end]); next < end && r.src[next] == '\n' && !r.math {
				r.flush()
				i = next
			} else {
				r.write("\n", i)
				i++
			}
		case '`':
			if strings.HasPrefix(r.src[i:end], "``") {
				r.write("“", i)
				i += 2
			} else {
				r.write("‘", i)
				i++
			}
		case '\'':
			if strings.HasPrefix(r.src[i:end], "''") && !r.math {
				r.write("”", i)
				i += 2
			} else {
				r.write("'", i)
				i++
			}
		case '-':
			n := 1
			for n < 3 && i+n < end && r.src[i+n] == '-' {
				n++
			}
			r.write([...]string{"-", "–", "—"}[n-1], i)
			i += n
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

func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// find gives where a sign that ends mathematics stands next; -1 if it does not
// before end, or so far off that it ends something else.
func (r *texReader) find(sign string, from, end int) int {
	known, ok := r.seen[sign]
	if !ok || from < known.Start || from > known.End {
		known = Span{from, len(r.src)}
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
	n := r.find(sign, from, end) - from
	for n > 0 && r.src[from+n-1] == '\\' {
		n = r.find(sign, from+n+1, end) - from
	}
	if n < 0 {
		r.write(sign, at)
		return from
	}
	if sign == "$$" {
		r.display(from, from+n, depth)
	} else {
		r.inMath(from, from+n, depth)
	}
	return from + n + len(sign)
}

func (r *texReader) inMath(start, end, depth int) {
	before := r.math
	r.math = true
	r.read(start, end, depth+1)
	r.math = before
}

// display reads a formula that stands on lines of its own.
func (r *texReader) display(start, end, depth int) {
	r.write("\n", start)
	r.inMath(start, end, depth)
	r.write("\n", end)
}

// run reads a command with its arguments, and gives where it ends.
func (r *texReader) run(at, end, depth int) int {
	name, after := r.command(at, end)
	if r.math {
		if sign, ok := texMath[name]; ok {
			if isTeXLetter(name[0]) && after < end && r.src[after] == ' ' {
				sign += " "
				after++
			}
			r.write(sign, at)
			return after
		}
	}
	if level := texLevels[name]; level > 0 {
		if from, to, ok := r.argument(after, end); ok {
			r.flush()
			heading := strings.ReplaceAll(r.plain(from, to), "\n", " ")
			r.b.line = r.lineAt(at)
			r.b.Heading(level, heading, r.label(to+1, end, heading))
			return to + 1
		}
		return after
	}
	switch name {
	case "begin":
		if from, to, ok := r.argument(after, end); ok {
			return r.environment(r.src[from:to], to+1, end, depth)
		}
		return after
	case "end":
		if _, to, ok := r.argument(after, end); ok {
			return to + 1
		}
		return after
	case "title", "author", "date", "subtitle", "keywords":
		if from, to, ok := r.argument(after, end); ok {
			r.about(name, from, to)
			return to + 1
		}
		return after
	case "item":
		return r.nextItem(after, end)
	case "\\", "newline", "linebreak", "cr", "tabularnewline":
		r.write("\n", at)
		return r.skipBracket(after, end)
	case "par", "newpage", "clearpage", "maketitle", "tableofcontents", "bigskip", "medskip", "smallskip":
		r.flush()
		return after
	case "(":
		if to := r.find(`\)`, after, end); to >= 0 {
			r.inMath(after, to, depth)
			return to + 2
		}
		return after
	case "[":
		if to := r.find(`\]`, after, end); to >= 0 {
			r.display(after, to, depth)
			return to + 2
		}
		return after
	case "footnote", "thanks":
		if from, to, ok := r.argument(after, end); ok {
			r.write(" ("+r.plain(from, to)+")", at)
			return to + 1
		}
		return after
	case "cite", "citep", "citet", "citeauthor", "citeyear", "parencite", "textcite", "autocite", "ref", "eqref", "autoref", "cref", "Cref", "pageref", "nameref":
		if from, to, ok := r.argument(after, end); ok {
			r.write("["+oneLine(r.src[from:to])+"]", at)
			return to + 1
		}
		return after
	case "href":
		if _, to, ok := r.argument(after, end); ok {
			return to + 1
		}
		return after
	case "url", "path", "nolinkurl":
		if from, to, ok := r.argument(after, end); ok {
			r.write(r.src[from:to], at)
			return to + 1
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
	case "frac", "dfrac", "tfrac", "binom":
		return r.fraction(at, after, end, depth)
	case "sqrt":
		if from, to, ok := r.argument(after, end); ok {
			r.write("√("+r.plain(from, to)+")", at)
			return to + 1
		}
		return after
	case "caption":
		if from, to, ok := r.argument(after, end); ok {
			r.flush()
			r.read(from, to, depth+1)
			r.flush()
			return to + 1
		}
		return after
	}
	if name == "def" || strings.HasSuffix(name, "command") { // the name may stand without braces
		if at := after + spaces(r.src[after:end]); at < end && r.src[at] == '\\' {
			_, after = r.command(at, end)
			if n := strings.IndexByte(r.src[after:min(end, after+100)], '{'); n >= 0 && r.ends[after+n] > 0 {
				after = int(r.ends[after+n]) + 1
			}
			return min(after, end)
		}
	}
	if n, ok := texDropped[name]; ok { // with so many arguments
		for range n {
			_, to, ok := r.argument(after, end)
			if !ok {
				break
			}
			after = to + 1
		}
		return after
	}
	if marks, ok := texAccents[name]; ok {
		return r.accent(marks, after, end)
	}
	if sign, ok := texSigns[name]; ok {
		r.write(sign, at)
		if isTeXLetter(name[0]) {
			after += spaces(r.src[after:end])
		}
		return after
	}
	// Of any other command the argument in braces is text like any other.
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

func (r *texReader) skipBracket(at, end int) int {
	if at < end && r.src[at] == '[' {
		if n := strings.IndexByte(r.src[at:min(end, at+50)], ']'); n >= 0 {
			return at + n + 1
		}
	}
	return at
}

// label gives the anchor of a heading: the label right behind it, or one made
// of its words.
func (r *texReader) label(at, end int, heading string) string {
	at += len(r.src[at:end]) - len(strings.TrimLeft(r.src[at:end], " \t\n"))
	if strings.HasPrefix(r.src[at:end], `\label{`) {
		if to := int(r.ends[at+6]); to > 0 && to <= end {
			return r.src[at+7 : to]
		}
	}
	return slug(r.slugs, oneLine(clean(heading)))
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

func (r *texReader) fraction(at, after, end, depth int) int {
	above, to, ok := r.argument(after, end)
	if !ok {
		return after
	}
	below, last, ok := r.argument(to+1, end)
	if !ok {
		return after
	}
	r.write(bracketed(r.plain(above, to))+"/"+bracketed(r.plain(below, last)), at)
	return last + 1
}

func bracketed(s string) string {
	if len(s) > 1 && strings.ContainsAny(s, " +-*/=") {
		return "(" + s + ")"
	}
	return s
}

// accent puts a mark on the letter that comes next.
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

// environment reads what stands between \begin and \end.
func (r *texReader) environment(name string, at, end, depth int) int {
	bare := strings.TrimSuffix(strings.TrimSpace(name), "*")
	close := `\end{` + name + `}`
	switch bare {
	case "verbatim", "lstlisting", "minted", "Verbatim", "alltt", "comment", "filecontents":
		n := strings.Index(r.src[at:end], close)
		if n < 0 {
			n = end - at
		}
		if bare != "comment" && bare != "filecontents" {
			r.flush()
			from := at
			if bare == "minted" || bare == "lstlisting" || bare == "Verbatim" {
				from = r.skipBracket(at, at+n)
				if bare == "minted" {
					if _, to, ok := r.argument(from, at+n); ok {
						from = to + 1
					}
				}
			}
			r.b.line = r.lineAt(from) + 1
			r.b.Code(r.src[from : at+n])
		}
		return min(end, at+n+len(close))
	case "itemize", "enumerate", "description", "compactitem", "compactenum":
		return r.list(bare, close, at, end, depth)
	case "tabular", "tabularx", "longtable", "tabu", "tblr", "array", "tabulary":
		if r.math {
			break
		}
		to := r.closing(name, at, end)
		r.table(bare, at, to, depth)
		return min(end, to+len(close))
	case "equation", "align", "gather", "multline", "displaymath", "eqnarray", "math", "alignat", "flalign":
		to := r.closing(name, at, end)
		from := at
		if bare == "alignat" {
			if _, behind, ok := r.argument(at, to); ok {
				from = behind + 1
			}
		}
		r.display(from, to, depth)
		return min(end, to+len(close))
	case "tikzpicture", "pspicture", "picture", "thebibliography", "pgfplots", "axis":
		to := r.closing(name, at, end)
		if bare == "thebibliography" {
			r.bibliography(at, to, depth)
		}
		return min(end, to+len(close))
	case "abstract":
		r.flush()
		r.b.line = r.lineAt(at)
		r.b.Heading(2, "Abstract", slug(r.slugs, "Abstract"))
	case "figure", "table", "wrapfigure", "minipage", "multicols", "center", "quote", "quotation", "titlepage", "frame", "block":
		r.flush()
		at = r.skipOptions(at, end)
		if bare == "minipage" || bare == "multicols" || bare == "wrapfigure" {
			for at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) < end {
				at = int(r.ends[at]) + 1
			}
		}
	default:
		r.flush()
	}
	return at
}

// closing gives where the environment ends that begins right before at.
func (r *texReader) closing(name string, at, end int) int {
	open, close := `\begin{`+name+`}`, `\end{`+name+`}`
	for depth, from := 1, at; ; {
		n := strings.Index(r.src[from:end], close)
		if n < 0 {
			return end
		}
		depth += strings.Count(r.src[from:from+n], open) - 1
		if depth == 0 {
			return from + n
		}
		from += n + len(close)
	}
}

func (r *texReader) list(name, close string, at, end, depth int) int {
	if len(r.lists) > 8 || depth > maxTeXDepth-2 {
		return at
	}
	r.flush()
	to := r.closing(strings.TrimSuffix(strings.TrimPrefix(close, `\end{`), "}"), at, end)
	number := -1
	if strings.HasSuffix(name, "enumerate") || name == "compactenum" {
		number = 0
	}
	r.lists = append(r.lists, texList{number: number})
	r.read(r.skipOptions(at, to), to, depth+1)
	r.flush()
	r.lists = r.lists[:len(r.lists)-1]
	return min(end, to+len(close))
}

// table writes the rows of a table. What stands over the first line across is
// taken for the names of its columns.
func (r *texReader) table(name string, at, end, depth int) {
	r.flush()
	at = r.skipOptions(at, end)
	for range 2 {
		if at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) < end {
			at = int(r.ends[at]) + 1
			if name != "tabularx" && name != "tabulary" {
				break
			}
		}
	}
	type row struct {
		cells []string
		ruled bool
		line  int
	}
	var rows []row
	var cells []string
	ruled := false
	from := at
	cell := func(to int) {
		text := r.src[from:to]
		for _, rule := range []string{`\hline`, `\toprule`, `\midrule`, `\bottomrule`} {
			if strings.Contains(text, rule) {
				ruled = true
				text = strings.ReplaceAll(text, rule, strings.Repeat(" ", len(rule)))
			}
		}
		start := from + len(text) - len(strings.TrimLeft(text, " \n\t"))
		if len(cells) == 0 && len(rows) > 0 && ruled {
			rows[len(rows)-1].ruled = true
		}
		ruled = false
		cells = append(cells, oneLine(r.cell(start, to)))
	}
	for i := at; i < end; i++ {
		switch r.src[i] {
		case '%':
			i = min(r.lineEnd(i), end)
		case '{':
			if to := int(r.ends[i]); to > 0 && to < end {
				i = to
			}
		case '&':
			cell(i)
			from = i + 1
		case '\\':
			if strings.HasPrefix(r.src[i:end], `\\`) || strings.HasPrefix(r.src[i:end], `\tabularnewline`) {
				cell(i)
				rows = append(rows, row{cells, false, r.lineAt(from)})
				cells = nil
				_, i = r.command(i, end)
				i = r.skipBracket(i, end)
				from = i
				i--
			} else {
				i++
			}
		}
	}
	if from < end {
		cell(end)
		if strings.Join(cells, "") != "" {
			rows = append(rows, row{cells, false, r.lineAt(from)})
		}
	}
	var header []string
	if len(rows) > 1 && rows[0].ruled {
		for _, c := range rows[0].cells {
			header = append(header, oneLine(clean(c)))
		}
		rows = rows[1:]
	}
	for _, row := range rows {
		r.b.line = row.line
		r.b.Row(header, row.cells)
	}
	r.b.last = kindNone // rows of the next table are not of this one
}

// cell gives the text of a table's cell.
func (r *texReader) cell(start, end int) string {
	if start >= end {
		return ""
	}
	return r.plain(start, end)
}

// bibliography writes the entries of a list of references as a list.
func (r *texReader) bibliography(at, end, depth int) {
	r.flush()
	if _, to, ok := r.argument(at, end); ok {
		at = to + 1
	}
	r.b.line = r.lineAt(at)
	r.b.Heading(2, "References", slug(r.slugs, "References"))
	for entry := at; entry < end; {
		n := strings.Index(r.src[entry:end], `\bibitem`)
		if n < 0 {
			break
		}
		from := entry + n + len(`\bibitem`)
		key, to, ok := r.argument(from, end)
		if !ok {
			entry = from
			continue
		}
		next := strings.Index(r.src[to:end], `\bibitem`)
		if next < 0 {
			next = end - to
		}
		r.b.line = r.lineAt(from)
		r.b.Item(0, "-", "["+r.src[key:to]+"] "+strings.ReplaceAll(r.plain(to+1, to+next), "\n", " "))
		entry = to + next
	}
}
