package format

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

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
