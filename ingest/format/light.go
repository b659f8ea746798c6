package format

import (
	"regexp"
	"strings"
)

// A lightMarkup is a markup language of which headings, code, and lines without text are
// known. All other markup stays.
type lightMarkup struct {
	heading *regexp.Regexp // its level, and its text
	about   *regexp.Regexp // key and value of metadata
	code    *regexp.Regexp // begins and ends a block of code
	dropped *regexp.Regexp // what is no text
	plain   *regexp.Regexp // markup around words, which are its group
	rule    *regexp.Regexp // in a table
	isMD    bool           // its lists, tables and emphasis are those of Markdown
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
		code:  regexp.MustCompile(`^\s*\\(?:begin|end)\{(?:verbatim|lstlisting|minted)\}`),
		dropped: regexp.MustCompile(`^%.*|[ \t]%.*|^\s*\\(?:documentclass|usepackage|(?:re)?newcommand|def|title|author|date)\b.*|` +
			`\\(?:begin|end|label|input)\{[^{}]*\}(?:\[[^\]]*\])?(?:\{[^{}]*\})?|\\(?:maketitle|centering|hline)\b`),
		plain: regexp.MustCompile(`\\(?:emph|text\w\w|underline|caption)\{([^{}]*)\}|\\item\b`),
	}
	texLevels = map[string]int{
		"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "frametitle": 3,
	}
)

// AsciiDoc reads AsciiDoc as text with headings.
func AsciiDoc(doc *Document, data []byte) error { return asciiDoc.read(doc, data) }

// Org reads Org as the Markdown that says the same.
func Org(doc *Document, data []byte) error { return org.read(doc, data) }

// LaTeX reads LaTeX as text with headings. Formulas and most commands stay. No other
// file is read and no macro is expanded.
func LaTeX(doc *Document, data []byte) error { return laTeX.read(doc, data) }

// read writes each line as one of Markdown, so that their numbers stay.
func (m lightMarkup) read(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	for _, about := range m.about.FindAllStringSubmatch(src[:min(len(src), 64<<10)], -1) {
		doc.setMeta(strings.ToLower(about[1]), m.plain.ReplaceAllString(about[2], "$1"))
	}
	lines := strings.Split(src, "\n")
	isRow := func(i int) bool { return i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "|") }
	inCode := false
	for i, line := range lines {
		line = strings.TrimRight(line, " \t")
		switch heading := m.heading.FindStringSubmatch(line); {
		// In AsciiDoc, such a line below words underlines a heading.
		case m.code.MatchString(line) && (inCode || i == 0 || lines[i-1] == "" || line[0] != '-'):
			lines[i], inCode = "```", !inCode
		case inCode:
		case heading != nil:
			level := texLevels[heading[1]]
			if level == 0 {
				level = len(heading[1])
			}
			lines[i] = strings.Repeat("#", level) + " " + m.plain.ReplaceAllString(heading[2], "$1")
		case m.isMD && isRow(i-1) && m.rule.MatchString(line):
			if lines[i] = strings.ReplaceAll(line, "+", "|"); isRow(i - 2) {
				lines[i] = "| |" // of Markdown, a table has one rule
			}
		default:
			lines[i] = m.plain.ReplaceAllString(m.dropped.ReplaceAllString(line, ""), "$1")
		}
	}
	var b builder
	write := scanMarkdown
	if m.isMD {
		write = markdownInto
	}
	write(&b, strings.Join(lines, "\n"), make(map[string]int), 0)
	b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}
