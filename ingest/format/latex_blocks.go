package format

import "strings"

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
			header = append(header, oneLine(Clean(c)))
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
