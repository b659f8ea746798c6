package format

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// LaTeX reads LaTeX as text with headings, in linear time: commands and comments
// are removed, lists become items. Formulas, tables and code are kept as
// written. No other file is read and no macro is expanded.
func LaTeX(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	if m := texAbout.FindAllStringSubmatch(src[:min(len(src), 64<<10)], -1); m != nil {
		for _, about := range m {
			doc.setMeta(about[1], texInline(about[2]))
		}
	}
	r := texReader{newLineReader(doc, src, texInline)}
	for r.at = 0; r.at < len(r.lines); r.at++ {
		if strings.Contains(r.lines[r.at], `\begin{document}`) {
			r.at++
			break
		}
	}
	if r.at == len(r.lines) { // a part of a document, without a preamble
		r.at = 0
	}
	r.read(r.next)
	return nil
}

var (
	texAbout   = regexp.MustCompile(`\\(title|author|date)\{((?:[^{}]|\{[^{}]*\}){1,500})\}`)
	texComment = regexp.MustCompile(`(^|[^\\])%.*`)
	texHeading = regexp.MustCompile(`^\s*\\(part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|frametitle)\*?` +
		`(?:\[[^\]]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}(?:\s*\\label\{([^{}]*)\})?`)
	texItem   = regexp.MustCompile(`^\s*\\(?:item|bibitem)\b(?:\s*\[([^\]]*)\])?(.*)$`)
	texKept   = regexp.MustCompile(`^\s*\\begin\{((?:verbatim|lstlisting|minted|Verbatim|alltt|tabularx?|longtable|equation|align|gather|comment|tikzpicture)\*?)\}`)
	texLimits = regexp.MustCompile(`^\s*\\(?:begin|end|maketitle|newcommand|renewcommand|def|usepackage|title|author|date)\b`)

	texLevels = map[string]int{
		"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6, "frametitle": 3,
	}
)

type texReader struct{ lineReader }

// next reads a line, or the lines of an environment that is kept as written.
func (r *texReader) next(line string) {
	if m := texKept.FindStringSubmatch(line); m != nil {
		code := r.until(func(line string) bool { return strings.Contains(line, `\end{`+m[1]+`}`) })
		if m[1] != "comment" && m[1] != "tikzpicture" {
			r.b.Code(strings.Join(code, "\n"))
		}
		return
	}
	bare := texComment.ReplaceAllString(line, "$1")
	if m := texHeading.FindStringSubmatch(bare); m != nil {
		r.heading(texLevels[m[1]], m[2], m[3])
		if rest := bare[len(m[0]):]; strings.TrimSpace(rest) != "" {
			r.add(rest)
		}
	} else if m := texItem.FindStringSubmatch(bare); m != nil {
		r.begin(listItem{0, "-"}, strings.TrimPrefix(m[1]+": "+strings.TrimSpace(m[2]), ": "))
	} else if strings.TrimSpace(line) == "" || texLimits.MatchString(bare) {
		r.flush()
	} else if bare == line || strings.TrimSpace(bare) != "" { // a comment alone ends no paragraph
		r.add(bare)
	}
}

var (
	texFormula = regexp.MustCompile(`\$\$?[^$]+\$\$?|\\\((?s:.{0,1000}?)\\\)|\\\[(?s:.{0,1000}?)\\\]`)
	texAccent  = regexp.MustCompile("\\\\(?:(['`^\"~=.])|([uvHcdrk])\\b)\\s*\\{?\\\\?(\\pL)\\}?")
	texAccents = map[string]string{
		"'": "\u0301", "`": "\u0300", "^": "\u0302", "\"": "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
		"u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "r": "\u030a", "k": "\u0328",
	}
	texSilent  = regexp.MustCompile(`\\(?:label|input|include|includegraphics|index|vspace|hspace)\*?(?:\[[^\]]*\])?\{[^{}]*\}`)
	texNote    = regexp.MustCompile(`\\(?:footnote|thanks)\{((?:[^{}]|\{[^{}]*\})*)\}`)
	texSigns   = strings.NewReplacer(`\\`, "\n", `\,`, " ", `\ss`, "ß", `\ldots`, "…", ` \and`, ",")
	texCommand = regexp.MustCompile(`\\[a-zA-Z@]+\*?(?:\[[^\[\]{}]*\])?[ \t]*|\\([^a-zA-Z])|[{}]`)
	texDashes  = strings.NewReplacer("---", "—", "--", "–", "``", "“", "''", "”", "~", " ")
)

// texInline removes the commands from a block and keeps its formulas.
func texInline(text string) string {
	var out strings.Builder
	end := len(text)
	formulas := texFormula.FindAllStringIndex(strings.ReplaceAll(text, `\$`, "xx"), -1)
	at := 0
	for _, m := range append(formulas, []int{end, end}) {
		words := replaceMatches(texAccent, text[at:m[0]], func(_ string, m []string) string {
			return norm.NFC.String(m[3] + texAccents[m[1]+m[2]])
		})
		words = texNote.ReplaceAllString(texSilent.ReplaceAllString(words, ""), " ($1)")
		out.WriteString(texDashes.Replace(texCommand.ReplaceAllString(texSigns.Replace(words), "$1")))
		out.WriteString(text[m[0]:m[1]])
		at = m[1]
	}
	return out.String()
}
