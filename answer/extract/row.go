package extract

import (
	"slices"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// A cell is a cell of a table row, with the name of its column if known. Rows are written as
// "Kind: Adult | A year: 155".
type cell struct{ name, value string }

// isRow reports whether a sentence is a table row.
func isRow(s string) bool { return strings.Contains(s, " | ") || strings.HasPrefix(s, "|") }

func cellsOf(row string) (cells []cell) {
	for text := range strings.SplitSeq(row, "|") {
		c := cell{value: strings.TrimSpace(text)}
		if name, value, named := strings.Cut(c.value, ": "); named {
			c = cell{name, value}
		}
		if c.value != "" {
			cells = append(cells, c)
		}
	}
	return cells
}

func (c cell) String() string {
	if c.name == "" {
		return c.value
	}
	return c.name + ": " + c.value
}

// cellShare is the share of the question's weight in cells that it covers entirely, such as "Adult"
// in "Kind: Adult | A year: 155".
func (q *query) cellShare(row string) float64 {
	if !isRow(row) {
		return 0
	}
	covered := make(coverage, len(q.needs.terms))
	for _, c := range cellsOf(row) {
		if terms := termSet(c.value); len(terms) > 0 && q.precision(terms) > .99-notAlike/2 {
			covered = covered.union(q.coverageOf(terms))
		}
	}
	return q.needs.exactShare(covered)
}

// writeRow writes the name of a row and the cells that the question asks for, such as "Adult – A
// year: 155". It returns the row unchanged if most cells have no column name: it may be a
// command, such as "curl … | sh".
func (q *query) writeRow(row string) string {
	cells, columns := cellsOf(row), 0
	for _, c := range cells {
		if c.name != "" && !strings.Contains(c.name, "`") {
			columns++
		}
	}
	if 2*columns < len(cells) || columns == 0 {
		return row
	}
	named := nameCells(cells)
	shown := slices.Concat(cells[:named], q.askedFor(cells[named:]))
	var b strings.Builder
	for i, c := range shown {
		switch {
		case i == 0 && hasWord(c.value):
			b.WriteString(c.value)
			continue
		case i == 1 && hasWord(shown[0].value):
			b.WriteString(" – ")
		case i > 0:
			b.WriteString("; ")
		}
		b.WriteString(c.String())
	}
	return b.String()
}

// nameCells returns the number of cells that name a row: 2 for a code or number and a name after it.
func nameCells(cells []cell) int {
	if len(cells) > 2 && !hasWord(cells[0].value) && hasWord(cells[1].value) {
		return 2
	}
	return 1
}

// hasWord reports whether a text has three consecutive letters that are not all capitals: names
// do, codes do not.
func hasWord(text string) bool {
	letters, lower := 0, false
	for _, r := range text {
		if !unicode.IsLetter(r) {
			letters, lower = 0, false
			continue
		}
		letters++
		lower = lower || !unicode.IsUpper(r)
		if lower && (letters >= 3 || unspaced(r)) {
			return true
		}
	}
	return false
}

// askedFor returns the cells whose columns the question asks for; if there are no such columns,
// the cells with a value of the asked kind. Cells with a value from the question are added,
// since they identify the row. If no cell is asked for, it returns all.
func (q *query) askedFor(cells []cell) []cell {
	wanted, k := q.columnsAsked(cells), q.needs.kind
	for _, bar := range []string{"", "| "} { // if no cell has a currency, a bar makes each a row, in which a bare number is an amount
		if slices.Contains(wanted, true) || !k.isDistinctive() {
			break
		}
		for i, c := range cells {
			wanted[i] = k.foundIn(bar+c.value, q.text) == 1
		}
	}
	if !slices.Contains(wanted, true) {
		return cells
	}
	var shown []cell
	for i, c := range cells {
		if wanted[i] || len(q.needs.askedOf(termSet(c.value))) > 0 {
			shown = append(shown, c)
		}
	}
	return shown
}

// columnsAsked reports, for each cell, whether the question names its column. A column of
// another year does not count, and "First train" does not if "Last train" has more words of the
// question.
func (q *query) columnsAsked(cells []cell) []bool {
	asked := q.years
	has, wanted := make([][]string, len(cells)), make([]bool, len(cells)) // has: terms of the question in each column name
	for i, c := range cells {
		if of := years(c.name); len(asked) == 0 || len(of) == 0 || meet(asked, of) {
			has[i] = q.needs.askedOf(termSet(c.name))
		}
	}
	for i := range cells {
		wanted[i] = len(has[i]) > 0 && !slices.ContainsFunc(has, func(other []string) bool {
			return len(other) > len(has[i]) && !slices.ContainsFunc(has[i], func(t string) bool { return !slices.Contains(other, t) })
		})
	}
	return wanted
}

// otherYears reports whether a row is about other years than the question: by the names of its
// columns or, if these have no years, by its cells and headings. A row with years as columns and
// no other word of the question is ruled out too: the row asked for may lack that year.
func (q *query) otherYears(row string, p retrieve.Passage) bool {
	asked, named, about := q.years, false, q.foreign
	for _, c := range cellsOf(row) {
		of := len(years(c.name)) > 0
		named, about = named || of, about || !of && len(q.needs.askedOf(termSet(c.value))) > 0
	}
	of := years(row)
	if !named {
		of = append(of, years(p.Title+" "+p.Heading+" "+p.Path)...)
	}
	return len(asked) > 0 && (named && !about || len(of) > 0 && !meet(asked, of))
}

// lacksPrice reports whether a row lacks an amount of money although only an amount answers. A
// bare number is an amount if the headings or the column name have a word for prices, or if the
// question names the column.
func (q *query) lacksPrice(row string, p retrieve.Passage) bool {
	k := q.needs.kind
	if !q.demandsKind() || k.name != "amount" {
		return false
	}
	priced := func(text string) bool { return k.asks.occurIn(lowerWords(text)) }
	return !priced(p.Title+" "+p.Heading+" "+p.Path) && !slices.ContainsFunc(cellsOf(row), func(c cell) bool {
		name := termSet(c.name)
		return k.foundIn(c.value, q.text) == 1 ||
			bareNumber.MatchString(c.value) && (priced(c.name) || len(name) > 0 && q.precision(name) >= alike)
	})
}

// namesAlike is the least similarity of two words for one thing: "big" and "large" have .48,
// "monthly" and "yearly" .44.
const namesAlike = .45
