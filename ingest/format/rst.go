package format

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	rstDirective = regexp.MustCompile(`^\.\.(?: +(?:\|[^|]*\| +)?([\w:-]+)::)?(?:\s+(.*))?$`) // also matches comments, targets and footnotes
	rstOption    = regexp.MustCompile(`^:[\w -]+:(?:\s.*)?$`)
	rstRole      = regexp.MustCompile(":[\\w:+.-]+:`[~!]?([^`<]*?)(?:\\s*<[^`>]*>)?`")
	rstLink      = regexp.MustCompile("`([^`<]+?)[ \\t]*(\\n?)\\s*<[^`>\\s]*>`__?") // may span two lines
	rstNamed     = regexp.MustCompile("(^|[^`])`([^`]+)`_{0,2}")
	rstLiteral   = regexp.MustCompile("``([^`]+)``")
)

// rstCode are the directives with preformatted content, and rstDropped the directives without text.
var (
	rstCode    = set(`code code-block sourcecode parsed-literal console prompt math command-output`)
	rstDropped = set(`image toctree contents include raw index meta highlight default-role role sectnum literalinclude currentmodule`)
)

// RST reads reStructuredText by converting it to Markdown: directives are replaced by their
// content, and tables are kept as written.
func RST(doc *Document, src string) error {
	src = rstLink.ReplaceAllString(unixLines(src), "$1$2")
	r := rstReader{lines: strings.Split(src, "\n"), levels: make(map[string]int)}
	for r.at < len(r.lines) {
		r.next()
	}
	var b builder
	addMarkdown(&b, strings.Join(r.lines, "\n"), make(map[string]int), 0)
	b.moveTo(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

// An rstReader converts each line to one line of Markdown, so that line numbers stay the same.
type rstReader struct {
	lines  []string
	at     int
	levels map[string]int // level of a heading by the signs around it
	over   string         // sign of the line right above, if it is a rule
}

// next converts a line and the block that it begins.
func (r *rstReader) next() {
	line := strings.TrimRight(r.lines[r.at], " \t")
	trimmed, indent, over := strings.TrimSpace(line), leadingSpace(line), r.over
	r.over = ""
	out := &r.lines[r.at]
	r.at++
	if isTableBorder(line) {
		for *out = "    " + line; r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) != ""; r.at++ {
			r.lines[r.at] = "    " + r.lines[r.at]
		}
		return
	}
	if m := rstDirective.FindStringSubmatch(trimmed); m != nil {
		name, argument := strings.ToLower(m[1]), m[2]
		switch *out = ""; {
		case rstCode[name]:
			r.code(out, indent)
		case rstDropped[name], name == "" && !strings.HasPrefix(argument, "["): // includes comments
			clear(r.block(indent))
		case name != "figure":
			*out = argument
		}
		return
	}
	if sign, ok := underline(line); ok {
		*out, r.over = "", string(sign)
		return
	}
	if r.at < len(r.lines) && isHeadingOver(line, r.lines[r.at]) {
		if sign, ok := underline(r.lines[r.at]); ok {
			signs := over + string(sign)
			if r.levels[signs] == 0 {
				r.levels[signs] = min(len(r.levels)+1, 6)
			}
			*out, r.lines[r.at] = strings.Repeat("#", r.levels[signs])+" "+trimmed, ""
			r.at++
			return
		}
	}
	if indent > 0 && rstOption.MatchString(trimmed) {
		trimmed = ""
	}
	if before, ok := strings.CutSuffix(trimmed, "::"); ok {
		if trimmed = strings.TrimSuffix(before+":", " :"); before == "" {
			trimmed = ""
		}
		if r.at < len(r.lines) && strings.TrimSpace(r.lines[r.at]) == "" {
			r.at++
			r.code(&r.lines[r.at-1], indent)
		}
	}
	trimmed = rstNamed.ReplaceAllString(rstRole.ReplaceAllString(trimmed, "$1"), "$1$2")
	*out = strings.Repeat(" ", min(indent, 3)) + rstLiteral.ReplaceAllString(trimmed, "`$1`")
}

// block returns the following lines that are blank or indented more deeply.
func (r *rstReader) block(indent int) []string {
	start := r.at
	for r.at < len(r.lines) && (strings.TrimSpace(r.lines[r.at]) == "" || leadingSpace(r.lines[r.at]) > indent) {
		r.at++
	}
	return r.lines[start:r.at]
}

// code encloses the following block in a fence and writes its opening line to fence.
func (r *rstReader) code(fence *string, indent int) {
	const sign = "```"
	block, least := r.block(indent), 0
	for i, line := range block {
		trimmed := strings.TrimSpace(line)
		if block[i] = ""; trimmed == "" || least == 0 && rstOption.MatchString(trimmed) {
			continue
		}
		least = cmp.Or(least, leadingSpace(line))
		block[i] = line[min(leadingSpace(line), least):]
	}
	if last := len(block) - 1; least > 0 {
		*fence = sign
		block[last] = strings.TrimPrefix(block[last]+"\n"+sign, "\n")
	}
}

// isTableBorder reports whether a line is the border of a simple table ("=== ====") or of a grid
// ("+---+---+").
func isTableBorder(line string) bool {
	t := strings.TrimSpace(line)
	return len(t) > 4 && (t[0] == '+' && strings.Trim(t, "+-=") == "" && strings.ContainsAny(t, "-=") ||
		t[0] == '=' && strings.Trim(t, "= ") == "" && strings.Contains(t, " "))
}
