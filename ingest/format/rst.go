package format

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	rstDirective = regexp.MustCompile(`^\.\.(?: +(?:\|[^|]*\| +)?([\w:-]+)::)?(?:\s+(.*))?$`) // also comments, targets and footnotes
	rstOption    = regexp.MustCompile(`^:[\w -]+:(?:\s.*)?$`)
	rstRole      = regexp.MustCompile(":[\\w:+.-]+:`[~!]?([^`<]*?)(?:\\s*<[^`>]*>)?`")
	rstLink      = regexp.MustCompile("`([^`<]+?)[ \\t]*(\\n?)\\s*<[^`>\\s]*>`__?") // also over two lines
	rstNamed     = regexp.MustCompile("(^|[^`])`([^`]+)`_{0,2}")
	rstLiteral   = regexp.MustCompile("``([^`]+)``")
)

const rstFence = "```"

// rstCode are directives whose content is preformatted, rstDropped those without
// text.
var (
	rstCode    = set(`code code-block sourcecode parsed-literal console prompt math command-output`)
	rstDropped = set(`image toctree contents include raw index meta highlight default-role role sectnum literalinclude currentmodule`)
)

// RST reads reStructuredText as the Markdown that says nearly the same: directives are
// replaced by their content, and tables are kept as written.
func RST(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	src = rstLink.ReplaceAllString(src, "$1$2")
	r := rstReader{lines: strings.Split(src, "\n"), levels: make(map[string]int)}
	for r.at = 0; r.at < len(r.lines); r.at++ {
		r.lines[r.at] = r.next(strings.TrimRight(r.lines[r.at], " \t"))
	}
	var b builder
	markdownInto(&b, strings.Join(r.lines, "\n"), make(map[string]int), 0)
	b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// An rstReader replaces each line by one of Markdown, so that their numbers stay.
type rstReader struct {
	lines  []string
	at     int
	levels map[string]int // of headings, by the signs around them
	inside string         // "code", "dropped" or "table", of which the next line may be
	indent int            // of the line before what it is inside of
	fenced bool           // the fence of the code is written
	least  int            // indentation of code; 0 before its first line
	over   string         // the sign of a line of signs right above
}

// next returns a line in Markdown.
func (r *rstReader) next(line string) string {
	trimmed, indent := strings.TrimSpace(line), leading(line)
	over := r.over
	r.over = ""
	switch r.inside {
	case "table":
		if trimmed != "" {
			return "    " + line
		}
		r.inside = ""
	case "dropped":
		if trimmed == "" || indent > r.indent {
			return ""
		}
		r.inside = ""
	case "code":
		switch {
		case trimmed == "" && !r.fenced:
			r.fenced = true
			return rstFence
		case trimmed == "" || r.least == 0 && rstOption.MatchString(trimmed):
			return ""
		case indent > r.indent:
			r.least = cmp.Or(r.least, indent)
			return line[min(indent, r.least):]
		}
		r.inside = ""
		if last := &r.lines[r.at-1]; *last == rstFence { // there is no code
			*last = ""
		} else if r.fenced {
			*last += rstFence
		}
	}
	if isTableBorder(line) {
		r.inside = "table"
		return "    " + line
	}
	if m := rstDirective.FindStringSubmatch(trimmed); m != nil {
		return r.directive(m[1], m[2], indent)
	}
	if heading, ok := r.title(line, over); ok {
		return heading
	}
	if indent > 0 && rstOption.MatchString(trimmed) {
		return ""
	}
	if before, ok := strings.CutSuffix(trimmed, "::"); ok {
		r.inside, r.indent, r.least, r.fenced = "code", indent, 0, false
		if trimmed = strings.TrimSuffix(before+":", " :"); before == "" {
			trimmed = ""
		}
	}
	text := rstNamed.ReplaceAllString(rstRole.ReplaceAllString(trimmed, "$1"), "$1$2")
	return strings.Repeat(" ", min(indent, 3)) + rstLiteral.ReplaceAllString(text, "`$1`")
}

// directive returns the argument of a directive, a footnote, or nothing of a comment.
func (r *rstReader) directive(name, argument string, indent int) string {
	name = strings.ToLower(name)
	switch {
	case rstCode[name]:
		r.inside, r.indent, r.least, r.fenced = "code", indent, 0, true
		return rstFence
	case name != "" && !rstDropped[name]:
		if name != "figure" {
			return argument
		}
	case !strings.HasPrefix(argument, "["):
		r.inside, r.indent = "dropped", indent
	default:
		return argument
	}
	return ""
}

// title returns a heading with an underline, and maybe an overline; nothing of a
// transition.
func (r *rstReader) title(line, over string) (heading string, ok bool) {
	if sign, ok := underline(line); ok {
		r.over = string(sign)
		return "", true
	}
	if r.at+1 == len(r.lines) || !isHeadingOver(line, r.lines[r.at+1]) {
		return "", false
	}
	sign, ok := underline(r.lines[r.at+1])
	if !ok {
		return "", false
	}
	signs := over + string(sign)
	if r.levels[signs] == 0 {
		r.levels[signs] = min(len(r.levels)+1, 6)
	}
	r.lines[r.at+1] = ""
	return strings.Repeat("#", r.levels[signs]) + " " + strings.TrimSpace(line), true
}

// isTableBorder reports whether a line is the border of a simple table
// ("=== ====") or of a grid ("+---+---+").
func isTableBorder(line string) bool {
	t := strings.TrimSpace(line)
	return len(t) > 4 && (t[0] == '+' && strings.Trim(t, "+-=") == "" && strings.ContainsAny(t, "-=") ||
		t[0] == '=' && strings.Trim(t, "= ") == "" && strings.Contains(t, " "))
}
