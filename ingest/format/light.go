package format

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A lightMarkup is a markup language whose headings, code and lines without text are recognised.
// All other markup is kept.
type lightMarkup struct {
	heading *regexp.Regexp // level and text
	about   *regexp.Regexp // key and value of metadata
	code    *regexp.Regexp // begins and ends a block of code
	dropped *regexp.Regexp // markup without text
	plain   *regexp.Regexp // markup around words; its group matches the words
	rule    *regexp.Regexp // a rule in a table
	isMD    bool           // lists, tables and emphasis are written as in Markdown
	inline  func(string) string
}

var (
	asciiDoc = lightMarkup{
		heading: regexp.MustCompile(`^(={1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?$`),
		about:   regexp.MustCompile(`(?m)^:(author|revdate|keywords|description): (.+)$`),
		code:    regexp.MustCompile(`^-{4,}$`),
		dropped: regexp.MustCompile(`^//.*|^\[.*\]$`),
		plain:   regexp.MustCompile("`([^`]+)`"),
	}
	org = lightMarkup{
		heading: regexp.MustCompile(`^(\*{1,6})[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?(\S.*?)(?:[ \t]+:[\w@:]+:)?$`),
		about:   regexp.MustCompile(`(?im)^#\+(title|author|date|description|language|keywords):[ \t]*(.+)$`),
		code:    regexp.MustCompile(`(?i)^[ \t]*#\+(?:begin|end)_(?:src|example|export)\b`),
		dropped: regexp.MustCompile(`^[ \t]*(?:#(?:[+ ].*)?|:[\w-]+:.*|\|-[-+|]*)$`),
		plain:   regexp.MustCompile(`\[\[[^\[\]]+\]\[([^\[\]]+)\]\]`),
		rule:    regexp.MustCompile(`^[ \t]*\|-[-+|]*$`),
		isMD:    true,
	}
	laTeX = lightMarkup{
		heading: regexp.MustCompile(`^\s*\\(part|chapter|section|subsection|subsubsection|paragraph|frametitle)\*?(?:\[[^\]]*\])?\{(.+?)\}` +
			`(?:\s*\\label\{[^{}]*\})?\s*$`),
		about: regexp.MustCompile(`\\(title|author|date)\{((?:[^{}]|\{[^{}]*\}){1,500})\}`),
		code:  regexp.MustCompile(`^\s*\\(?:begin|end)\{(?:verbatim|lstlisting|minted|tabular[x*]?|longtable|equation\*?|align\*?)\}`),
		dropped: regexp.MustCompile(`^%.*|[ \t]%.*|^\s*\\(?:documentclass|usepackage|(?:re)?newcommand|def|title|author|date)\b.*|` +
			`\\(?:begin|end|label|input|include|includegraphics|index|vspace|hspace)\*?(?:\[[^\]]*\])?\{[^{}]*\}(?:\[[^\]]*\])?(?:\{[^{}]*\})?`),
		plain:  regexp.MustCompile(`\\(?:emph|text\w\w|underline|caption)\{([^{}]*)\}`),
		inline: texInline,
	}
	texLevels = map[string]int{
		"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "frametitle": 3,
	}
)

var (
	texFormula = regexp.MustCompile(`\$\$?[^$]+\$\$?|\\\(.*?\\\)|\\\[.*?\\\]`)
	texAccent  = regexp.MustCompile("\\\\(?:(['`^\"~=.])|([uvHcdrk])\\b)\\s*\\{?\\\\?(\\pL)\\}?")
	texAccents = map[string]string{
		"'": "\u0301", "`": "\u0300", "^": "\u0302", "\"": "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
		"u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "r": "\u030a", "k": "\u0328",
	}
	texItem    = regexp.MustCompile(`^\s*\\(?:item|bibitem)\b\s*(?:\[([^\]]*)\])?(?:\{[^{}]*\})?`)
	texNote    = regexp.MustCompile(`\\(?:footnote|thanks)\{([^{}]*)\}`)
	texCommand = regexp.MustCompile(`\\[a-zA-Z@]+\*?(?:\[[^\[\]{}]*\])?[ \t]*|\\([^a-zA-Z])|[{}]`)
	texSigns   = strings.NewReplacer(`\\`, " ", `\,`, " ", `\ss`, "ß", `\ldots`, "…", ` \and`, ",")
	texDashes  = strings.NewReplacer("---", "—", "--", "–", "``", "“", "''", "”", "~", " ")
)

// texInline removes the commands from a line but keeps its formulas.
func texInline(line string) string {
	var out strings.Builder
	if m := texItem.FindStringSubmatch(line); m != nil {
		line = strings.TrimPrefix(m[1]+": ", ": ") + strings.TrimSpace(line[len(m[0]):])
		out.WriteString("- ")
	}
	formulas := texFormula.FindAllStringIndex(strings.ReplaceAll(line, `\$`, "xx"), -1)
	at := 0
	for _, m := range append(formulas, []int{len(line), len(line)}) {
		words := texAccent.ReplaceAllStringFunc(line[at:m[0]], func(accent string) string {
			m := texAccent.FindStringSubmatch(accent)
			return norm.NFC.String(m[3] + texAccents[m[1]+m[2]])
		})
		words = texNote.ReplaceAllString(words, " ($1)")
		out.WriteString(texDashes.Replace(texCommand.ReplaceAllString(texSigns.Replace(words), "$1")))
		out.WriteString(line[m[0]:m[1]])
		at = m[1]
	}
	return out.String()
}

// words returns a line, or a part of a line, without its markup.
func (m lightMarkup) words(line string) string {
	line = m.plain.ReplaceAllString(line, "$1")
	if m.inline != nil {
		line = m.inline(line)
	}
	return line
}

// AsciiDoc reads AsciiDoc as text with headings.
func AsciiDoc(doc *Document, src string) error { return asciiDoc.read(doc, src) }

// Org reads Org by converting it to Markdown.
func Org(doc *Document, src string) error { return org.read(doc, src) }

// LaTeX reads LaTeX as text with headings and lists, and keeps formulas, tables and code as
// written. It reads no other files and expands no macros.
func LaTeX(doc *Document, src string) error { return laTeX.read(doc, src) }

// read converts each line to one line of Markdown, so that line numbers stay the same.
func (m lightMarkup) read(doc *Document, src string) error {
	src = unixLines(src)
	for _, about := range m.about.FindAllStringSubmatch(src[:min(len(src), 64<<10)], -1) {
		doc.setMeta(strings.ToLower(about[1]), m.words(about[2]))
	}
	lines := strings.Split(src, "\n")
	isRow := func(i int) bool { return i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "|") }
	inCode := false
	for i, line := range lines {
		line = strings.TrimRight(line, " \t")
		switch heading := m.heading.FindStringSubmatch(line); {
		// In AsciiDoc, such a line below text underlines a heading.
		case m.code.MatchString(line) && (inCode || i == 0 || lines[i-1] == "" || line[0] != '-'):
			lines[i], inCode = "```", !inCode
		case inCode:
		case heading != nil:
			level := texLevels[heading[1]]
			if level == 0 {
				level = len(heading[1])
			}
			lines[i] = strings.Repeat("#", level) + " " + m.words(heading[2])
		case m.isMD && isRow(i-1) && m.rule.MatchString(line):
			if lines[i] = strings.ReplaceAll(line, "+", "|"); isRow(i - 2) {
				lines[i] = "| |" // a Markdown table has only one rule
			}
		default:
			lines[i] = m.words(m.dropped.ReplaceAllString(line, ""))
		}
	}
	var b builder
	write := scanMarkdown
	if m.isMD {
		write = addMarkdown
	}
	write(&b, strings.Join(lines, "\n"), make(map[string]int), 0)
	b.moveTo(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}
