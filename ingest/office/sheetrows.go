package office

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A sheetCell is a non-empty cell.
type sheetCell struct {
	column int
	text   string
	value  bool // a number, date, truth value or error
}

// A sheetRow is a non-blank row, with its cells from left to right.
type sheetRow struct {
	number int // from 1
	cells  []sheetCell
}

// RegionRows is the number of rows at the top of a region that are searched for names or labels.
const RegionRows = 8

// A sheet writes its rows as they arrive, each with the names of its columns. A region is a run of
// rows without a blank row. Its first rows give its names.
type sheet struct {
	f          *file
	name       string
	hasHeading bool
	merges     map[int][]cellRange // by first row
	carried    map[int]mergedText  // by column
	names      map[int]string      // of the current region
	top        []sheetRow          // first rows of a region whose names are unknown
	topWritten bool                // the first rows of the region are written
	labels     bool                // the rows of the region are labels and values
	last       int                 // number of the last row
	printed    []Block             // headers and footers
}

func byColumn(c sheetCell, column int) int { return c.column - column }

// maxCarried limits the cells that span into one row.
const maxCarried = 200

// mergedText is the text of a merged cell that spans down to a row.
type mergedText struct {
	text  string
	until int
}

func newSheet(f *file, name string) *sheet {
	f.place = fmt.Sprintf("“%.60s”", name)
	return &sheet{f: f, name: name, merges: map[int][]cellRange{}, carried: map[int]mergedText{}}
}

// anchor returns the fragment that leads to the sheet.
func (s *sheet) anchor() string { return "sheet=" + s.name }

// begin writes the sheet's heading once.
func (s *sheet) begin() {
	if !s.hasHeading {
		s.hasHeading = true
		s.f.write(Block{Kind: Heading, Level: 1, Text: s.name, Anchor: s.anchor()})
	}
}

// writeRest writes the content of the sheet outside its rows.
func (s *sheet) writeRest(blocks []Block) {
	if len(blocks) > 0 {
		s.begin()
		s.f.write(Block{Kind: Untitled, Level: 2, Anchor: s.anchor()})
		s.f.write(blocks...)
	}
}

// row adds the next row.
func (s *sheet) row(n int, cells []sheetCell) {
	if len(cells) == 0 {
		return
	}
	s.begin()
	r := sheetRow{n, s.unmerge(n, cells)}
	if n != s.last+1 {
		s.writeTop()
		s.topWritten = false
	}
	s.last = n
	if s.topWritten {
		s.writeRow(r, s.names)
		return
	}
	if s.top = append(s.top, r); len(s.top) == RegionRows {
		s.writeTop()
	}
}

// unmerge adds to a row the texts of cells that span into it from above.
func (s *sheet) unmerge(n int, cells []sheetCell) []sheetCell {
	slices.SortStableFunc(cells, func(a, b sheetCell) int { return a.column - b.column })
	for column, c := range s.carried {
		if n > c.until {
			delete(s.carried, column)
			continue
		}
		at, found := slices.BinarySearchFunc(cells, column, byColumn)
		if !found {
			cells = slices.Insert(cells, at, sheetCell{column: column, text: c.text})
		}
	}
	for _, r := range s.merges[n] {
		if r.bottom == r.top || len(s.carried) == maxCarried {
			continue
		}
		if i, found := slices.BinarySearchFunc(cells, r.left, byColumn); found {
			s.carried[r.left] = mergedText{cells[i].text, r.bottom}
		}
	}
	return cells
}

// writeTop finds the names in the first rows of a region and writes the rows.
func (s *sheet) writeTop() {
	top := s.top
	s.top, s.topWritten = nil, true
	title := 0 // rows of one cell are titles
	for title < len(top) && len(top[title].cells) == 1 {
		title++
	}
	var names map[int]string
	until := 0
	if s.labels = s.areLabels(top[title:]); !s.labels {
		names, until = s.findNames(top, title)
	}
	if s.labels || names == nil && len(top) > 1 && (title == len(top) || !areNamesOf(s.names, top[title])) {
		s.names = nil // they belong to another table
	}
	for i, r := range top {
		switch {
		case i < title:
			s.writeRow(r, nil)
		case names == nil:
			s.writeRow(r, s.names)
		case i == until:
			s.names = names
			fallthrough
		case i > until:
			s.writeRow(r, s.names)
		}
	}
}

// areLabels reports whether rows of two columns are labels and values.
func (s *sheet) areLabels(rows []sheetRow) bool {
	var texts [][]string
	for _, r := range rows {
		if len(r.cells) > 2 || len(r.cells) == 2 && r.cells[0].value || r.cells[0].column != rows[0].cells[0].column {
			return false
		}
		row := []string{r.cells[0].text}
		if len(r.cells) == 2 {
			row = append(row, r.cells[1].text)
		}
		texts = append(texts, row)
	}
	return areLabels(texts, false)
}

// findNames returns the column names in rows[at] and the index of the first row after them, or nil
// if the row has no names. In a later region, only a row that differs from the next one has names.
func (s *sheet) findNames(rows []sheetRow, at int) (names map[int]string, until int) {
	if at+1 >= len(rows) || len(rows[at].cells) < 2 || len(rows[at+1].cells) < 2 {
		return nil, 0
	}
	first, second := rows[at], rows[at+1]
	groups := slices.ContainsFunc(s.merges[first.number], func(r cellRange) bool { return r.right > r.left && r.bottom == r.top })
	if groups && hasOnlyText(first) && hasOnlyText(second) && at+2 < len(rows) {
		// Names of column groups above the names of single columns.
		over := s.rowNames(first)
		for _, c := range second.cells {
			if name := oneLine(c.text); over[c.column] != name {
				over[c.column] = shortName(strings.TrimSpace(over[c.column] + " " + name))
			}
		}
		return over, at + 2
	}
	if !isNameRow(first, second) || !areNamesOf(s.rowNames(first), second) || s.names != nil && !hasValueBelowText(first, second) {
		return nil, 0
	}
	return s.rowNames(first), at + 1
}

// areNamesOf reports whether names belong to a row's columns and not to another table.
func areNamesOf(names map[int]string, r sheetRow) bool {
	named := 0
	for _, c := range r.cells {
		if names[c.column] != "" {
			named++
		}
	}
	return named > 1
}

// hasValueBelowText reports whether a column has a value below a text.
func hasValueBelowText(first, second sheetRow) bool {
	for _, c := range second.cells {
		if c.value && slices.ContainsFunc(first.cells, func(n sheetCell) bool { return n.column == c.column && !n.value }) {
			return true
		}
	}
	return false
}

// NamesColumns reports whether the first of two rows of texts names the columns.
func NamesColumns(first, second []string) bool {
	row := textRow(first)
	return len(first)-len(row.cells) < 2 && isNameRow(row, textRow(second))
}

// NamesNumbers reports whether the first of two rows names columns of numbers.
func NamesNumbers(first, second []string) bool {
	above, below := textRow(first), textRow(second)
	return NamesColumns(first, second) && (!hasOnlyText(above) || hasValueBelowText(above, below))
}

// isNameRow reports whether the first of two rows names the columns. Years above other values are
// names; so is a single number among texts if it is above numbers. A repeated text is a name only
// if it is above digits.
func isNameRow(first, second sheetRow) bool {
	texts := map[string]bool{}
	values, years, twice := 0, 0, false
	for _, c := range first.cells {
		if !c.value {
			twice = twice || texts[c.text]
			texts[c.text] = true
			if len(c.text) > maxName {
				return false
			}
			continue
		}
		values++
		below := slices.IndexFunc(second.cells, func(b sheetCell) bool { return b.column == c.column })
		if isYear(c.text) && (below < 0 || !isYear(second.cells[below].text)) {
			years++
		}
	}
	return (values == years || values == 1 && len(texts) > 2 && hasValueBelowText(first, second)) &&
		(!twice || digitsBelow(first, second))
}

// digitsBelow reports whether a column has digits below a text without digits.
func digitsBelow(first, second sheetRow) bool {
	digits := func(c sheetCell) bool { return strings.ContainsFunc(c.text, unicode.IsDigit) }
	return slices.ContainsFunc(second.cells, func(c sheetCell) bool {
		return digits(c) && slices.ContainsFunc(first.cells, func(n sheetCell) bool { return n.column == c.column && !digits(n) })
	})
}

// isNumber reports whether a text is a number with a decimal point or comma.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", "."), 64)
	return err == nil
}

// isYear reports whether a text is a year from 1900 to 2100.
func isYear(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1900 && n <= 2100
}

// rowNames returns the texts of a row as names. A merged cell names all its columns.
func (s *sheet) rowNames(r sheetRow) map[int]string {
	names := make(map[int]string, len(r.cells))
	for _, c := range r.cells {
		names[c.column] = shortName(oneLine(c.text))
	}
	for _, m := range s.merges[r.number] {
		for column := m.left + 1; column <= min(m.right, m.left+maxColumns) && names[m.left] != ""; column++ {
			if names[column] == "" {
				names[column] = names[m.left]
			}
		}
	}
	return names
}

// shortName returns a name, or "" if it is too long.
func shortName(s string) string {
	if len(s) > maxName {
		return ""
	}
	return s
}

func hasOnlyText(r sheetRow) bool {
	return !slices.ContainsFunc(r.cells, func(c sheetCell) bool { return c.value })
}

func (s *sheet) writeRow(r sheetRow, of map[int]string) {
	names, texts := make([]string, len(r.cells)), make([]string, len(r.cells))
	if s.labels && len(r.cells) == 2 {
		names, texts, r.cells = []string{""}, []string{Labelled([]string{r.cells[0].text, r.cells[1].text})}, nil
	}
	for i, c := range r.cells {
		names[i], texts[i] = of[c.column], c.text
	}
	s.f.write(Block{Kind: Table, Anchor: s.anchor() + "&row=" + strconv.Itoa(r.number), Rows: [][]string{names, texts}, Names: 1})
}
