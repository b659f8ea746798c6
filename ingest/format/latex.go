package format

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// LaTeX reads LaTeX as text with headings, in linear time: commands and
// comments are removed, mathematics is kept as written, lists and tables become
// lines. No other file is read and no macro is expanded.
func LaTeX(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	r := texReader{lineReader: newLineReader(doc, src, texInline), preamble: strings.Contains(src, `\begin{document}`)}
	r.read(r.next, anyLevel)
	return nil
}

var (
	texDefines = regexp.MustCompile(`^\s*\\(?:(?:re)?new|provide|def\b|let\b|DeclareMath)`)
	texComment = regexp.MustCompile(`(^|[^\\])%.*`)
	// texParts are the commands that begin or end a block, which may be in the
	// middle of a line.
	texParts = regexp.MustCompile(`\\(begin|end|item|bibitem|caption|title|author|date|maketitle|par|` +
		`part|chapter|(?:sub){0,2}section|(?:sub)?paragraph|frametitle)\b\*?`)
	texLevels = map[string]int{
		"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6, "frametitle": 3,
	}
	texLists = set(`itemize enumerate description compactitem compactenum thebibliography`)
	// texWhole are the environments that are read at once, with the kind of their
	// content.
	texWhole = map[string]string{
		"verbatim": "code", "lstlisting": "code", "minted": "code", "Verbatim": "code", "alltt": "code",
		"tabular": "table", "tabularx": "table", "longtable": "table", "tabulary": "table",
		"equation": "math", "align": "math", "gather": "math", "multline": "math", "displaymath": "math", "eqnarray": "math",
		"comment": "dropped", "filecontents": "dropped", "tikzpicture": "dropped", "pspicture": "dropped", "picture": "dropped",
	}
	texSized   = regexp.MustCompile(`^(?:\{[^{}]*\}){1,2}`)
	texOptions = regexp.MustCompile(`^[ \t]*\[[^\[\]]*\]`)
	texLabeled = regexp.MustCompile(`^\s*\\label\{([^{}]*)\}`)
	texRules   = regexp.MustCompile(`\\(?:hline|toprule|midrule|bottomrule|(?:cline|cmidrule)(?:\([lr]+\))?\{[^{}]*\})`)
)

type texReader struct {
	lineReader
	preamble bool  // \begin{document} follows
	lists    []int // the numbers of the items in the lists around the line; -1 in those without
}

// next reads a line, and those of the block that it begins.
func (r *texReader) next(line string) {
	if bare := texComment.ReplaceAllString(line, "$1"); bare != line {
		if line = bare; strings.TrimSpace(line) == "" { // it does not end a paragraph
			return
		}
	}
	switch {
	case strings.TrimSpace(line) == "":
		r.flush()
	case texDefines.MatchString(line):
		return
	}
	for line != "" {
		m := texParts.FindStringSubmatchIndex(line)
		if m == nil {
			m = []int{len(line), len(line), 0, 0}
		}
		if text := line[:m[0]]; !r.preamble && strings.TrimSpace(text) != "" {
			r.add(text)
		}
		line = r.part(line[m[2]:m[3]], line[m[1]:])
	}
}

// part reads a command, given the rest of its line, and returns the rest of the
// last line that it read.
func (r *texReader) part(name, rest string) string {
	switch name {
	case "":
		return rest
	case "item":
		return r.beginItem(rest)
	case "par", "maketitle":
		r.flush()
		return rest
	}
	argument, rest := r.argument(rest)
	switch name {
	case "begin":
		return r.environment(argument, rest)
	case "end":
		if r.flush(); texLists[argument] {
			r.lists = r.lists[:max(0, len(r.lists)-1)]
		}
	case "title", "author", "date":
		if argument != `\today` {
			r.doc.setMeta(name, texInline(argument))
		}
	case "caption":
		r.begin(listItem{}, argument)
		r.flush()
	case "bibitem":
		r.beginItem("")
		return "[" + argument + "] " + rest
	default:
		anchor := ""
		if m := texLabeled.FindStringSubmatch(rest[:min(len(rest), 200)] + "\n" + r.line(r.at+1)); m != nil {
			anchor = m[1]
		}
		r.heading(texLevels[name], argument, anchor, r.slug)
	}
	return rest
}

// cutMatch returns a text without a match of the pattern at its start.
func cutMatch(pattern *regexp.Regexp, text string) string {
	return text[len(pattern.FindString(text)):]
}

// maxTeXArgument is the length of the longest argument.
const maxTeXArgument = 4000

// argument returns the text between the next braces, which may close in a later
// line, and the rest of that line.
func (r *texReader) argument(rest string) (inside, after string) {
	rest = cutMatch(texOptions, rest)
	if !strings.HasPrefix(rest, "{") {
		return "", rest
	}
	for depth, i := 0, 0; i < maxTeXArgument; i++ {
		if i == len(rest) {
			if r.line(r.at+1) == "" {
				break
			}
			r.at++
			rest += "\n" + r.line(r.at)
		}
		switch rest[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest[1:i], rest[i+1:]
			}
		}
	}
	return "", rest[1:]
}

// beginItem begins an item of the innermost list.
func (r *texReader) beginItem(rest string) string {
	n := len(r.lists)
	if n == 0 {
		return rest
	}
	marker := "-"
	if r.lists[n-1] >= 0 {
		r.lists[n-1]++
		marker = strconv.Itoa(r.lists[n-1]) + "."
	}
	text := strings.TrimSpace(rest)
	if m := texOptions.FindString(text[:min(len(text), 500)]); m != "" {
		text = strings.Trim(m, " \t[]") + ": " + text[len(m):]
	}
	r.begin(listItem{n - 1, marker}, "")
	return text
}

// environment begins an environment, or reads all of it.
func (r *texReader) environment(name, rest string) string {
	bare := strings.TrimSuffix(name, "*")
	if kind := texWhole[bare]; kind != "" {
		start := r.at
		body, after := r.body(name, rest)
		switch kind {
		case "code":
			if _, code, ok := strings.Cut(body, "\n"); ok { // options are in the first line
				body = code
			}
			r.b.Code(body)
		case "math":
			r.b.Paragraph(body)
		case "table":
			r.rows(body, start)
		}
		return after
	}
	r.flush()
	switch bare {
	case "document":
		r.preamble = false
	case "abstract":
		r.heading(2, "Abstract", "", r.slug)
	case "thebibliography":
		r.heading(2, "References", "", r.slug)
	}
	if texLists[bare] {
		number := -1
		if bare == "enumerate" || bare == "compactenum" {
			number = 0
		}
		r.lists = append(r.lists, number)
	}
	return cutMatch(texSized, cutMatch(texOptions, rest))
}

// body returns the content of an environment, and the rest of the line of its
// end.
func (r *texReader) body(name, rest string) (body, after string) {
	closing := `\end{` + name + `}`
	r.mark(r.at)
	if body, after, ok := strings.Cut(rest, closing); ok {
		r.flush()
		return body, after
	}
	lines := r.until(func(line string) bool { return strings.Contains(line, closing) })
	last, after, _ := strings.Cut(r.line(r.at), closing)
	return strings.Join(slices.Concat([]string{rest}, lines, []string{last}), "\n"), after
}

// rows reads the rows of a table, the first of which names the columns if a line
// follows it.
func (r *texReader) rows(body string, at int) {
	body = cutMatch(texSized, cutMatch(texOptions, body))
	var rows []tableRow
	headed := false
	for text := range strings.SplitSeq(strings.ReplaceAll(body, `\&`, `\textampersand{}`), `\\`) {
		bare := texRules.ReplaceAllString(cutMatch(texOptions, text), "")
		headed = headed || len(rows) == 1 && texRules.MatchString(text)
		start := at + strings.Count(text[:leading(text)], "\n")
		if at += strings.Count(text, "\n"); strings.TrimSpace(bare) != "" {
			rows = append(rows, tableRow{strings.Split(bare, "&"), start})
		}
	}
	r.table(rows, headed)
}

var (
	texLiteral = regexp.MustCompile(`\\[%&$#_{}]|\$\$?|\\\(|\\\[|\\verb\W`)
	texKept    = regexp.MustCompile("\x00([0-9]+)\x00")
	texAccent  = regexp.MustCompile("\\\\(?:(['`^\"~=.])|([uvHcdrk])\\b)\\s*\\{?\\\\?(\\pL)\\}?")
	texGroup   = regexp.MustCompile(`(?:\\([a-zA-Z]+)\*?[ \t]*(?:\[[^\[\]{}]*\])*)?\{([^{}]*)\}`)
	texTwice   = regexp.MustCompile(`\\(?:multicolumn|multirow|setlength|addtolength|setcounter|addtocounter|` +
		`rule|fontsize|resizebox)\{[^{}]*\}\{[^{}]*\}`)
	texCommand = regexp.MustCompile(`\\([a-zA-Z@]+)\*?[ \t]*|\\([^a-zA-Z])(?:\[[^\[\]]*\])?`)
	texSpace   = regexp.MustCompile(`[ \t]+`)
	texReturn  = regexp.MustCompile(`\s*\n\s*`)

	texDropped = set(`label input include includegraphics bibliography bibliographystyle pagestyle thispagestyle vspace hspace index
		nocite color textcolor href cline cmidrule selectlanguage foreignlanguage lstset hypersetup usepackage`)
	texLabels  = set(`cite citep citet citeauthor citeyear parencite textcite autocite ref eqref autoref cref Cref pageref nameref`)
	texAccents = map[string]string{
		"'": "\u0301", "`": "\u0300", "^": "\u0302", "\"": "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
		"u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "r": "\u030a", "k": "\u0328",
	}
	texSigns = map[string]string{
		"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "i": "i",
		"ldots": "…", "dots": "…", "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "euro": "€", "textdegree": "°",
		"textbackslash": `\`, "textasciitilde": "~", "textless": "<", "textgreater": ">", "LaTeX": "LaTeX", "TeX": "TeX",
		"textampersand": "&", "quad": " ", "qquad": " ", "and": ", ", "newline": "\n", "\\": "\n", ",": " ", ";": " ", ":": " ", " ": " ",
	}
	texPunctuation = strings.NewReplacer(" , ", ", ", "---", "—", "--", "–", "``", "“", "''", "”", "`", "‘",
		"~", " ", "&", " ", "{", "", "}", "")
)

// maxTeXGroups is how deep groups in a block are resolved.
const maxTeXGroups = 8

// texInline removes the commands from a block and keeps its formulas.
func texInline(text string) string {
	text, kept := texKeep(strings.ReplaceAll(text, "\x00", ""))
	text = replaceMatches(texAccent, text, func(_ string, m []string) string { return norm.NFC.String(m[3] + texAccents[m[1]+m[2]]) })
	text = texTwice.ReplaceAllString(text, "")
	for range maxTeXGroups {
		before := text
		text = replaceMatches(texGroup, text, func(_ string, m []string) string {
			switch {
			case texDropped[m[1]]:
				return ""
			case texLabels[m[1]]:
				return "[" + m[2] + "]"
			case m[1] == "footnote" || m[1] == "thanks":
				return " (" + m[2] + ")"
			}
			return texSigns[m[1]] + m[2]
		})
		if text == before {
			break
		}
	}
	text = texCommand.ReplaceAllStringFunc(text, func(s string) string {
		m := texCommand.FindStringSubmatch(s)
		return texSigns[m[1]+m[2]]
	})
	text = texReturn.ReplaceAllString(texSpace.ReplaceAllString(texPunctuation.Replace(text), " "), "\n")
	return replaceMatches(texKept, text, func(_ string, m []string) string {
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= len(kept) {
			return ""
		}
		return kept[n]
	})
}

// texKeep puts numbers between zero bytes in place of formulas, literal text and
// escaped signs, and returns the characters that they mean.
func texKeep(text string) (string, []string) {
	var out strings.Builder
	var kept []string
	for {
		m := texLiteral.FindStringIndex(text)
		if m == nil {
			break
		}
		open, rest := text[m[0]:m[1]], text[m[1]:]
		keep, after := "", rest
		switch {
		case open[0] == '$' || open == `\(` || open == `\[`:
			closing := strings.NewReplacer("(", ")", "[", "]").Replace(open)
			if inside, _, ok := strings.Cut(rest[:min(len(rest), maxTeXArgument)], closing); ok {
				if after = rest[len(inside)+len(closing):]; len(open) == 1 && !strings.Contains(inside, `\`) {
					keep = inside // a letter or a number
				} else {
					keep = open + inside + closing
				}
			}
		case len(open) == 2:
			keep = open[1:]
		default: // \verb
			if inside, _, ok := strings.Cut(rest[:min(len(rest), 1000)], open[len(open)-1:]); ok {
				keep, after = inside, rest[len(inside)+1:]
			}
		}
		out.WriteString(text[:m[0]])
		if keep != "" {
			out.WriteString("\x00" + strconv.Itoa(len(kept)) + "\x00")
			kept = append(kept, keep)
		}
		text = after
	}
	out.WriteString(text)
	return out.String(), kept
}
