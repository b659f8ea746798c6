package format

import (
	"strconv"
	"strings"
)

// table writes the rows of a table.
func (r *adocReader) table(lines []string, start int) {
	var cells []string
	var at []int // line of each cell
	columns := r.columns()
	headed := strings.Contains(r.options, "header")
	for i, line := range lines {
		places := adocCells.FindAllStringIndex(line, -1)
		before := line
		if len(places) > 0 {
			before = line[:places[0][0]]
		}
		if n := len(cells); n > 0 && strings.TrimSpace(before) != "" {
			cells[n-1] += "\n" + before
		}
		if len(cells) == 0 && len(places) > 1 { // the first row
			if columns == 0 {
				columns = len(places)
			}
			headed = headed || i+1 < len(lines) && strings.TrimSpace(lines[i+1]) == "" && !strings.Contains(r.options, "noheader")
		}
		for j, p := range places {
			end := len(line)
			if j+1 < len(places) {
				end = places[j+1][0]
			}
			cells, at = append(cells, line[p[1]:end]), append(at, i)
		}
	}
	if columns == 0 {
		columns = max(1, len(cells))
	}
	for i := range cells {
		cells[i] = oneLine(Clean(r.inline(cells[i])))
	}
	var header []string
	if headed && len(cells) > columns {
		header, cells, at = cells[:columns], cells[columns:], at[columns:]
	}
	for len(cells) > 0 {
		n := min(columns, len(cells))
		r.b.line = r.skipped + start + at[0] + 1
		r.b.Row(header, cells[:n])
		cells, at = cells[n:], at[n:]
	}
	r.b.last = kindNone // rows of the next table are not of this one
	r.options = ""
}

// columns gives the number of columns that is said in front of a table; 0 if
// none is.
func (r *adocReader) columns() int {
	m := adocColumns.FindStringSubmatch(r.options)
	if m == nil {
		return 0
	}
	columns := 0
	for column := range strings.SplitSeq(strings.Trim(m[1], `"`), ",") {
		n, err := strconv.Atoi(strings.SplitN(column, "*", 2)[0])
		if err != nil || !strings.Contains(column, "*") {
			n = 1
		}
		columns += min(n, 100)
	}
	return columns
}
