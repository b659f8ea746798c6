package format

import "strings"

// environment reads what is between \begin and \end, or as much of it as its
// kind asks for, and returns where to read on.
func (r *texReader) environment(name string, at, end, depth int) int {
	bare := strings.TrimSuffix(strings.TrimSpace(name), "*")
	closing := `\end{` + name + `}`
	kind := texEnvironments[bare]
	if kind == "table" && r.math {
		return at
	}
	switch kind {
	case "code":
		return r.codeEnvironment(bare, closing, at, end)
	case "table", "formula", "dropped":
		to := r.closing(name, at, end)
		if kind == "table" {
			r.table(bare, at, to)
		} else if kind == "formula" {
			if _, after, ok := r.argument(at, to); ok && bare == "alignat" {
				at = after + 1
			}
			r.formula(at, to, depth, true)
		}
		return min(end, to+len(closing))
	}
	r.flush()
	switch kind {
	case "list":
		number := -1
		if bare == "enumerate" || bare == "compactenum" {
			number = 0
		}
		r.beginList(number)
		return r.skipOptions(at, end)
	case "bibliography":
		r.heading(2, "References", slug(r.slugs, "References"), at)
		r.beginList(-1)
		if _, to, ok := r.argument(at, end); ok { // the widest label
			return to + 1
		}
	case "abstract":
		r.heading(2, "Abstract", slug(r.slugs, "Abstract"), at)
	case "sized":
		at = r.skipOptions(at, end)
		for at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) < end {
			at = int(r.ends[at]) + 1
		}
	default:
		return r.skipOptions(at, end)
	}
	return at
}

// codeEnvironment writes the lines of an environment unchanged.
func (r *texReader) codeEnvironment(name, closing string, at, end int) int {
	n := strings.Index(r.src[at:end], closing)
	if n < 0 {
		n = end - at
	}
	r.flush()
	from := r.skipBracket(at, at+n)
	if name == "minted" {
		if _, to, ok := r.argument(from, at+n); ok {
			from = to + 1
		}
	}
	r.b.line = r.lineAt(from) + 1
	r.b.Code(r.src[from : at+n])
	return min(end, at+n+len(closing))
}

// maxTeXLists is how deep lists are nested in the text.
const maxTeXLists = 8

func (r *texReader) beginList(number int) {
	if len(r.lists) <= maxTeXLists {
		r.lists = append(r.lists, texList{number: number})
	}
}

func (r *texReader) endEnvironment(name string) {
	switch texEnvironments[name] {
	case "list", "bibliography":
		r.flush()
		r.lists = r.lists[:max(0, len(r.lists)-1)]
	}
}

// closing returns where the environment ends that begins right before at.
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

// A texTable gathers the cells of a table.
type texTable struct {
	rows  [][]string
	lines []int
	cells []string // of the current row
	ruled bool     // a line follows the first row, which names the columns
}

var texRules = strings.NewReplacer(`\hline`, `      `, `\toprule`, `        `, `\midrule`, `        `, `\bottomrule`, `           `)

// table writes the rows of a table.
func (r *texReader) table(name string, at, end int) {
	r.flush()
	at = r.skipOptions(at, end)
	sizes := 1
	if name == "tabularx" || name == "tabulary" {
		sizes = 2
	}
	for range sizes {
		if at < end && r.src[at] == '{' && r.ends[at] > 0 && int(r.ends[at]) < end {
			at = int(r.ends[at]) + 1
		}
	}
	var t texTable
	from := at
	for i := at; i < end; i++ {
		switch r.src[i] {
		case '%':
			i = min(r.lineEnd(i), end)
		case '{':
			if to := int(r.ends[i]); to > 0 && to < end {
				i = to
			}
		case '&':
			r.tableCell(&t, from, i)
			from = i + 1
		case '\\':
			if !strings.HasPrefix(r.src[i:end], `\\`) && !strings.HasPrefix(r.src[i:end], `\tabularnewline`) {
				i++
				break
			}
			r.tableCell(&t, from, i)
			r.tableRow(&t, from)
			_, i = r.command(i, end)
			from = r.skipBracket(i, end)
			i = from - 1
		}
	}
	if from < end {
		r.tableCell(&t, from, end)
		if strings.Join(t.cells, "") != "" {
			r.tableRow(&t, from)
		}
	}
	var header []string
	if len(t.rows) > 1 && t.ruled {
		for _, c := range t.rows[0] {
			header = append(header, oneLine(Clean(c)))
		}
		t.rows, t.lines = t.rows[1:], t.lines[1:]
	}
	for i, row := range t.rows {
		r.b.line = t.lines[i]
		r.b.Row(header, row)
	}
	r.b.last = kindNone // rows of the next table are not of this one
}

func (r *texReader) tableCell(t *texTable, from, to int) {
	text := texRules.Replace(r.src[from:to])
	if len(t.cells) == 0 && len(t.rows) == 1 && text != r.src[from:to] {
		t.ruled = true
	}
	from += len(text) - len(strings.TrimLeft(text, " \n\t"))
	t.cells = append(t.cells, oneLine(r.plain(min(from, to), to)))
}

func (r *texReader) tableRow(t *texTable, from int) {
	t.rows, t.lines, t.cells = append(t.rows, t.cells), append(t.lines, r.lineAt(from)), nil
}
