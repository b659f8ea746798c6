package format

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// An htmlTable reads the rows of a table from top to bottom.
type htmlTable struct {
	header        []string
	hasNames      bool           // a row of column names was read
	hasRows       bool           // a row of other cells was read
	above         []spanningCell // by column
	repeatedBytes *int           // bytes of repeated texts on the page
}

// spanningCell is the last cell read in a column. It may span further rows.
type spanningCell struct {
	text string
	rows int // rows that it still spans
}

// Limits of spans and of the texts repeated for them.
const (
	maxColspan     = 64
	maxRowspan     = 200
	maxHTMLColumns = 500     // columns with cells
	maxHTMLName    = 200     // bytes of a repeated text
	maxHTMLAgain   = 4 << 20 // bytes of all repeated texts
)

// row returns the cells of a row, one per column, and whether all of them are column names. A cell
// that spans rows is repeated in each row, and a name that spans columns in each column.
func (t *htmlTable) row(tr *html.Node) (cells []string, names bool) {
	add := func(text string, rows int) {
		c := len(cells)
		if cells = append(cells, text); c >= maxHTMLColumns {
			return
		}
		if c == len(t.above) {
			t.above = append(t.above, spanningCell{})
		}
		if t.above[c] = (spanningCell{rows: rows}); rows > 0 {
			t.above[c].text = t.repeatText(text)
		}
	}
	// addSpanning adds the cells of earlier rows that span this one, up to the next free column.
	addSpanning := func() {
		for c := len(cells); c < len(t.above) && t.above[c].rows > 0; c++ {
			add(t.above[c].text, t.above[c].rows-1)
		}
	}
	inHead := tr.Parent != nil && tr.Parent.DataAtom == atom.Thead
	names = !t.hasRows
	own := 0
	for c := range tr.ChildNodes() {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
			continue
		}
		addSpanning()
		own++
		isName := c.DataAtom == atom.Th || inHead
		names = names && isName
		columns, rows := spanOf(c, "colspan", maxColspan), spanOf(c, "rowspan", maxRowspan)
		text := oneLine(seenText(c))
		for i := range columns {
			if i == 1 {
				if text = t.repeatText(text); !isName {
					text = ""
				}
			}
			add(text, rows-1)
		}
	}
	for len(cells) < len(t.above) { // a row may end before the cells that span it
		if addSpanning(); len(cells) < len(t.above) {
			add("", 0)
		}
	}
	names = names && len(cells) > 1 && (own > 1 || t.hasNames)
	t.hasNames = t.hasNames || names
	t.hasRows = t.hasRows || !names && own > 0
	return cells, names
}

// repeatText returns the text to repeat in another cell, or "" if it is too long.
func (t *htmlTable) repeatText(text string) string {
	if *t.repeatedBytes += len(text); len(text) > maxHTMLName || *t.repeatedBytes > maxHTMLAgain {
		return ""
	}
	return text
}

// addNames adds the cells of a row to the column names.
func (t *htmlTable) addNames(cells []string) {
	for i, c := range cells {
		if len(oneLine(Clean(c))) > maxHTMLName {
			cells[i] = ""
		}
	}
	t.header = mergeNames(t.header, cells)
}

func spanOf(cell *html.Node, key string, most int) int {
	// Invalid values count as zero.
	n, _ := strconv.Atoi(strings.TrimSpace(attr(cell, key)))
	return min(max(n, 1), most)
}

// isLayout reports whether a table only lays out the page: it contains tables, headings, code or
// paragraphs, and no row has two cells with words.
func isLayout(table *html.Node) bool {
	if attr(table, "role") == "presentation" || find(table, func(c *html.Node) bool {
		switch c.DataAtom {
		case atom.Table:
			return c != table
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre:
			return true
		}
		return false
	}) != nil {
		return true
	}
	return hasParagraphs(table) && find(table, func(row *html.Node) bool {
		worded := 0
		for cell := range row.ChildNodes() {
			if row.DataAtom == atom.Tr && strings.TrimSpace(rawText(cell)) != "" {
				worded++
			}
		}
		return worded > 1
	}) == nil
}

// hasParagraphs reports whether an element contains paragraphs or two consecutive line breaks.
func hasParagraphs(in *html.Node) bool {
	return find(in, func(c *html.Node) bool {
		next := c.NextSibling
		for next != nil && next.Type == html.TextNode && strings.TrimSpace(next.Data) == "" {
			next = next.NextSibling
		}
		return c.DataAtom == atom.P || c.DataAtom == atom.Br && next != nil && next.DataAtom == atom.Br
	}) != nil
}

var cellRoles = []string{"cell", "gridcell", "columnheader", "rowheader"}

// tabulate converts elements with the roles of tables, rows and cells to tables. If such a table
// has words outside its cells, its cells become blocks instead.
func tabulate(root *html.Node) {
	for n := range root.Descendants() {
		switch role := attr(n, "role"); {
		case n.DataAtom == atom.Td, n.DataAtom == atom.Th, n.DataAtom == atom.Table:
		case slices.Contains(cellRoles, role):
			n.DataAtom = map[bool]atom.Atom{true: atom.Th, false: atom.Td}[role == "columnheader"]
			n.Data = n.DataAtom.String()
		case role == "table", role == "grid":
			var rows [][]*html.Node
			outside := wordLength(n)
			for _, row := range elementsInRole(n, "row") {
				cells := elementsInRole(row, cellRoles...)
				for _, cell := range cells {
					outside -= wordLength(cell)
				}
				rows = append(rows, cells)
			}
			if outside == 0 {
				n.Data, n.DataAtom, n.FirstChild, n.LastChild = "table", atom.Table, nil, nil
				for _, cells := range rows {
					tr := &html.Node{Type: html.ElementNode, Data: "tr", DataAtom: atom.Tr}
					n.AppendChild(tr)
					for _, cell := range cells {
						cell.Parent.RemoveChild(cell)
						tr.AppendChild(cell)
					}
				}
			}
		}
	}
}

// wordLength returns the length of the words in an element, without white space.
func wordLength(n *html.Node) int { return len(strings.Join(strings.Fields(rawText(n)), "")) }

// elementsInRole returns the outermost descendants that have one of the roles.
func elementsInRole(in *html.Node, roles ...string) (found []*html.Node) {
	for c := range in.ChildNodes() {
		if slices.Contains(roles, attr(c, "role")) {
			found = append(found, c)
		} else {
			found = append(found, elementsInRole(c, roles...)...)
		}
	}
	return found
}
