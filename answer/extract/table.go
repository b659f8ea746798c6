package extract

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/retrieve"
)

// A table is the rows of one table that are in the passages.
type table struct {
	q      *query
	rows   []*sentence
	cells  [][]cell // of each row
	above  coverage // of the headings
	cut    bool     // rows may be missing
	needed []int    // needs that the values of a row must have
}

const (
	maxRows  = 8   // rows that are quoted together
	atTokens = 200 // the least length of a passage whose table may continue in the next one
)

// tables finds the tables of the passages.
func (d *Reading) tables(kept []retrieve.Passage, all [][]sentence) (tables []*table) {
	known := map[string]*table{}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(kept[a].Start, kept[b].Start) })
	for _, i := range order {
		p, in := kept[i], all[i]
		for k := range in {
			cells := cellsOf(in[k].text)
			if !isRow(in[k].text) || len(cells) < 2 || cells[0].name == "" {
				continue
			}
			title := lastTitle(in, k)
			above := title.text
			if p.Heading, _ = p.PlaceAt(p.Start + in[k].span.Start); isHeading(above, p) {
				above = "" // not before the rows in later passages
			}
			key := strings.Join([]string{p.Document, p.Heading, above, cells[0].name, cells[len(cells)-1].name}, "\n")
			t := known[key]
			if t == nil {
				t = &table{q: d.query, above: d.passages[p.ID].head.union(d.query.coverageOf(title.terms))}
				known[key], tables = t, append(tables, t)
			}
			t.cut = t.cut || k == 0 && p.Start > 0 || k == len(in)-1 && p.Tokens >= atTokens ||
				len(t.rows) > 0 && t.rows[0].passage != i
			t.rows, t.cells = append(t.rows, &in[k]), append(t.cells, cells)
		}
	}
	return tables
}

// chooseRows marks the rows that a question about several rows asks for, such as "which rooms
// have a screen", to be quoted together, and rules out the other rows. It also rules out rows that
// only refer to the row that the question names.
func (d *Reading) chooseRows(kept []retrieve.Passage, all [][]sentence) {
	if d.foreign != nil {
		return
	}
	k := d.query.needs.kind
	for _, t := range d.tables(kept, all) {
		t.dropReferences()
		if k.is("way", "yes", "reason") {
			continue
		}
		asked, several := t.rowsAsked()
		for i, row := range t.rows {
			if several && len(asked) <= maxRows {
				row.together = slices.Index(asked, i) + 1
			}
			row.other = row.other || several && row.together == 0
		}
	}
}

// asksWhose matches a question about the rows that refer to another: "Whose deputy is Mira?", "Who
// has Mira as deputy?".
var asksWhose = regexp.MustCompile(`(?i)(?:^|\PL)(?:whose|wessen|(?:who|wer) (?:has|have|hat|haben))\PL`)

// dropReferences rules out rows with the name of another row in a cell, such as "Piet Holm |
// Deputy: Mira Lund", if the question has a word of that name, no further word of the row's name, and the
// table has a row of Mira Lund. If the question asks whose deputy she is, that row is ruled out.
func (t *table) dropReferences() {
	whose := asksWhose.MatchString(t.q.text)
	spaced := func(text string) string { return " " + strings.Join(lowerWords(text), " ") + " " }
	for i, own := range t.cells {
		name := own[nameCells(own)-1].value
		if asked := t.q.coverageOf(termSet(name)); hasWord(name) && slices.Contains(asked, 1) {
			for k, cells := range t.cells {
				named := nameCells(cells)
				refers := slices.ContainsFunc(cells[named:], func(c cell) bool { return strings.Contains(spaced(c.value), spaced(name)) })
				other := t.q.coverageOf(termSet(cells[named-1].value))
				if refers && t.q.needs.lacksWord(other, asked) && !t.q.needs.lacksWord(asked, other) {
					row := k
					if whose {
						row = i
					}
					t.rows[row].other = true
				}
			}
		}
	}
}

// rowsAsked returns the rows that a question about several rows asks for: rows with the values
// or the yes that it asks for, with the most or least of a column, or all rows. several is false
// if the question names one row, or if that is unknown.
func (t *table) rowsAsked() (asked []int, several bool) {
	superlative, sign := superlativeOf(t.q.text)
	is, names := t.q.coverageOf(termSet(t.cells[0][0].name)), make(coverage, len(t.q.needs.terms))
	for _, c := range t.cells[0][1:] {
		names = names.union(t.q.coverageOf(termSet(c.name)))
	}
	kind, about := t.q.needs.kind, sign != 0 || slices.Contains(is, 1)
	named, partly := t.setNeeded(is.union(names), superlative)
	if named || !about || len(t.rows) < 2 {
		return nil, false
	}
	counted := func(by coverage) bool {
		return slices.ContainsFunc(t.q.needs.counted, func(i int) bool { return by[i] == 1 })
	}
	if kind.is("number") && sign == 0 && counted(is) && !counted(names) {
		return nil, true // no row says how many rows exist
	}
	for i := range t.rows {
		if t.hasNeeded(i) {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 && partly && sign == 0 { // the missing words may have another meaning
		return nil, false
	}
	columns := t.q.columnsAsked(t.cells[0][1:])
	affirms, values := t.findAffirmingRows(columns, asked)
	switch {
	case sign != 0:
		return t.extreme(columns, asked, sign), true
	case affirms:
		return values, true
	}
	if len(t.needed) == 0 && t.cut {
		asked = nil
	}
	return asked, true
}

// setNeeded sets t.needed from the needs that the names of columns do not cover. It reports
// whether the question names a row, and whether some rows have a needed word.
func (t *table) setNeeded(columns coverage, superlative []string) (names, partly bool) {
	for i := range t.q.needs.terms {
		if columns[i] == 1 || t.q.needs.asksOnly(i, superlative) {
			continue
		}
		named, of := t.countRowsWith(i)
		names = names || named > 0 && named < len(t.rows) && of == 0
		if t.above[i] < 1 {
			t.needed, partly = append(t.needed, i), partly || of > 0
		}
	}
	return names, partly
}

// countRowsWith counts the rows with a need in their name, or a similar word if no name has it, and the
// other cells with the need.
func (t *table) countRowsWith(need int) (named, others int) {
	alike := 0
	for _, cells := range t.cells {
		for k, c := range cells {
			covers := t.q.coverageOf(termSet(c.value))[need]
			switch names := k < nameCells(cells); {
			case names && covers == 1:
				named++
			case names && covers >= namesAlike:
				alike++
			case k > 0 && covers == 1:
				others++
			}
		}
	}
	if named == 0 {
		named = alike
	}
	return named, others
}

// hasNeeded reports whether row i has all needed words. Numbers count only in the columns that
// the question names, if any.
func (t *table) hasNeeded(i int) bool {
	columns := t.q.columnsAsked(t.cells[i][1:])
	has := make(coverage, len(t.q.needs.terms))
	for k, c := range t.cells[i][1:] {
		covers := t.q.coverageOf(termSet(c.value))
		for n, need := range t.q.needs.terms {
			if !need.number || columns[k] || !slices.Contains(columns, true) {
				has[n] = max(has[n], covers[n])
			}
		}
	}
	return !slices.ContainsFunc(t.needed, func(n int) bool { return has[n] < 1 })
}

// findAffirmingRows returns the rows with a yes, or a no for a negated question, in the first asked
// column that holds only yes and no. affirms is false if there is no such column.
func (t *table) findAffirmingRows(columns []bool, rows []int) (affirms bool, asked []int) {
	yes, no := kindNamed("yes").words, kindNamed("yes").conditions
	for k, column := range t.cells[0][1:] {
		if !columns[k] || slices.ContainsFunc(t.cells, func(cells []cell) bool { return !yes[strings.ToLower(valueOf(cells, column.name))] }) {
			continue
		}
		denied := t.q.needs.denied || denials.MatchString(t.q.text)
		return true, slices.DeleteFunc(slices.Clone(rows), func(i int) bool {
			return no[strings.ToLower(valueOf(t.cells[i], column.name))] != denied
		})
	}
	return false, nil
}

// extreme returns the rows with the largest values, or the smallest if sign is -1, in the asked
// columns, or in all columns of numbers if no column is asked for. It returns nil if columns
// disagree.
func (t *table) extreme(columns []bool, rows []int, sign float64) (asked []int) {
	if t.cut || len(rows) == 0 {
		return nil
	}
	for k, column := range t.cells[0][1:] {
		if !columns[k] && slices.Contains(columns, true) {
			continue
		}
		var most []int
		best, unit, numbers := 0., "", true
		for _, i := range rows {
			n, of, ok := quantity(valueOf(t.cells[i], column.name))
			numbers = numbers && ok && (i == rows[0] || of == unit)
			switch n, unit = sign*n, of; {
			case i == rows[0] || n > best:
				best, most = n, []int{i}
			case n == best:
				most = append(most, i)
			}
		}
		switch {
		case !numbers && columns[k], numbers && asked != nil && !slices.Equal(asked, most):
			return nil
		case numbers:
			asked = most
		}
	}
	return asked
}

func valueOf(cells []cell, column string) string {
	if at := slices.IndexFunc(cells, func(c cell) bool { return c.name == column }); at >= 0 {
		return cells[at].value
	}
	return ""
}

// superlativeOf returns the words of a question that ask for the most (sign 1) or the least
// (sign -1).
func superlativeOf(question string) (words []string, sign float64) {
	asked := " " + strings.Join(lowerWords(question), " ") + " "
	longest := ""
	for name, of := range map[string]float64{"most": 1, "least": -1} {
		for phrase := range kindNamed(name).words {
			further := len(phrase) > len(longest) || len(phrase) == len(longest) && phrase < longest // ties do not depend on the order of maps
			if further && strings.Contains(asked, " "+phrase+" ") {
				longest, sign = phrase, of
			}
		}
	}
	return strings.Fields(longest), sign
}

var quantityForm = regexp.MustCompile(`^(\D*)(\d[\d.,:'\s\x{a0}\x{202f}]*\d|\d)(\D*)$`)

// quantity reads the number of a cell; unit is the text around it.
func quantity(value string) (n float64, unit string, ok bool) {
	m := quantityForm.FindStringSubmatch(value)
	if m == nil {
		return 0, "", false
	}
	digits := strings.NewReplacer("'", "", " ", "", "\u00a0", "", "\u202f", "", ":", ".").Replace(m[2])
	if at := strings.LastIndexAny(digits, ".,"); at >= 0 {
		whole, part := strings.NewReplacer(".", "", ",", "").Replace(digits[:at]), digits[at+1:]
		if digits = whole + "." + part; len(part) == 3 && whole != "0" { // thousands
			digits = whole + part
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	return n, strings.TrimSpace(m[1]) + strings.TrimSpace(m[3]), err == nil
}
