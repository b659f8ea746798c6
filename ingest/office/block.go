package office

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Block is a piece of a document.
type Block struct {
	Kind   Kind
	Level  int    // heading or section level from 1, list level from 0, or page number
	Anchor string // leads to a heading, section or row; may be empty
	Marker string // of a list item
	Text   string
	Rows   [][]string // of a table
	Names  int        // number of leading rows that name the columns
	HTML   []byte

	note bool // written after the text it belongs to, outside its table
	bold bool // all words are bold
}

// A Kind is the kind of a [Block].
type Kind uint8

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	Item
	Table    // with an anchor, a single row that can be cited
	Page     // begins the page or slide
	Untitled // begins text without a heading, or a row
	HTML     // a page of HTML
)

const (
	pieceCost   = 64 // overhead of a block in bytes
	maxName     = 200
	titleMarker = "title" // marks the heading that is the document's title
	bullet      = "-"     // marks items of unnumbered lists
	unknown     = -1      // number of header rows, to be found from the rows
	likely      = -2      // one header row, unless the rows are labels and values
	labels      = -3      // no header row: the rows are labels and values
)

// write writes blocks in order and counts their bytes.
func (f *file) write(blocks ...Block) {
	f.held = 0
	for _, b := range blocks {
		n := len(b.Text) + len(b.HTML)
		switch b.Kind {
		case Page:
			f.place = fmt.Sprintf("slide %d", b.Level)
			fallthrough
		case Untitled:
			f.out(b)
			continue
		case Heading:
			f.place = fmt.Sprintf("“%.60s”", oneLine(b.Text))
			if b.Marker == titleMarker {
				f.meta("title", b.Text)
				f.below = 1
			} else {
				b.Level += f.below
			}
			b.Level = min(max(b.Level, 1), 9)
		case Table:
			b.setNames()
			n = b.cost()
		}
		if n > 0 && f.spendBytes(n+len(b.Marker)+len(b.Anchor)) {
			f.out(b)
		}
	}
}

func (f *file) spendBytes(n int) bool {
	f.textBytes += int64(n) + pieceCost
	switch {
	case f.exceeded != nil:
	case f.textBytes > maxText:
		f.exceeded = &limitError{fmt.Sprintf("it has more than %d MB of text: split it", maxText>>20)}
	case f.textBytes > freeText && f.textBytes > maxRatio*f.size:
		f.exceeded = &limitError{fmt.Sprintf("its text is over %d times its size because of repetition, like a zip bomb", maxRatio)}
	}
	return f.exceeded == nil
}

// countHeld counts a block that is written later.
func (f *file) countHeld(b Block) Block {
	if f.held++; f.held > maxHeld && f.exceeded == nil {
		f.exceeded = &limitError{fmt.Sprintf("a table in it has more than %d cells and paragraphs: save it as a sheet", maxHeld)}
	}
	return b
}

// cost returns the size of a table in bytes, including the column names repeated in each row.
func (b Block) cost() (n int) {
	for i, row := range b.Rows {
		for c, cell := range row {
			if i > 0 || b.Anchor == "" {
				n += len(cell)
			}
			if i > 0 && c < len(b.Rows[0]) && cell != "" {
				n += min(len(b.Rows[0][c]), maxName)
			}
		}
	}
	return n
}

// setNames sets how many rows of a table name the columns. If the number is unknown, setNames finds
// it from the rows. A table of labels and values has no header rows, and long texts are not names.
func (b *Block) setNames() {
	names := b.Names
	switch {
	case names >= 0:
	case names == labels, areLabels(b.Rows, names == unknown):
		for i, row := range b.Rows {
			b.Rows[i] = []string{Labelled(row)}
		}
	case names == likely, len(b.Rows) > 1 && len(b.Rows[0]) > 1 && isNameRow(textRow(b.Rows[0]), textRow(b.Rows[1])):
		names = 1
	}
	if names > 0 && !slices.ContainsFunc(b.Rows[min(names, len(b.Rows)):], func(row []string) bool { return strings.Join(row, "") != "" }) {
		names = 0 // there are no rows below them
	}
	for _, row := range b.Rows[:max(names, 0)] {
		for _, cell := range row {
			if len(cell) > maxName {
				names = 0
			}
		}
	}
	b.Names = max(names, 0)
}

// textRow returns texts as a sheet row.
func textRow(texts []string) (r sheetRow) {
	for i, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			r.cells = append(r.cells, sheetCell{column: i, text: text, value: isNumber(text)})
		}
	}
	return r
}

// A cell is a table cell.
type cell struct {
	blocks []Block
	span   int  // columns
	merged bool // continues the cell above
}

// maxColumns limits the span of a cell.
const maxColumns = 1000

// lineOf returns the text of blocks on one line.
func lineOf(blocks []Block) string {
	var parts []string
	for _, b := range blocks {
		if b.note {
			continue
		}
		for _, row := range b.Rows {
			parts = append(parts, row...)
		}
		if b.Marker != bullet && b.Kind == Item {
			parts = append(parts, b.Marker)
		}
		parts = append(parts, b.Text)
	}
	return oneLine(strings.Join(parts, " "))
}

// tableBlocks returns a table as blocks: its rows, or the content of its cells if it only lays out
// the page.
func tableBlocks(rows [][]cell, names int) []Block {
	columns, layout := 0, false
	var all, notes []Block
	for _, row := range rows {
		columns = max(columns, len(row))
		for _, c := range row {
			all, notes = append(all, c.blocks...), append(notes, notesIn(c.blocks)...)
			for _, b := range c.blocks {
				layout = layout || b.Kind == Heading || b.Kind == HTML || b.Kind == Table && len(b.Rows) > 1
			}
		}
	}
	if columns <= 1 || layout {
		return all
	}
	if names < 0 && columns == 2 {
		names = cmp.Or(boldNames(rows), names)
	}
	texts := make([][]string, len(rows))
	grid := 0
	for i, row := range rows {
		for _, c := range row {
			text := lineOf(c.blocks)
			if at := len(texts[i]); c.merged && i > 0 && at < len(texts[i-1]) {
				text = texts[i-1][at]
			}
			if grid += c.span; grid > maxHeld {
				c.span = 1 // no real table is that wide and long
			}
			for n := range min(max(c.span, 1), maxColumns-min(len(texts[i]), maxColumns)) {
				// A name applies to all columns that its cell spans.
				if n > 0 && i >= names && (i > 0 || names != likely) {
					text = ""
				}
				texts[i] = append(texts[i], text)
			}
		}
	}
	return append([]Block{{Kind: Table, Rows: texts, Names: names}}, notes...)
}
