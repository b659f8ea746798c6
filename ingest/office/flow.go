package office

import "strings"

// A flow collects the characters of a text and writes it as paragraphs and tables.
type flow struct {
	*file
	text  strings.Builder
	cells []string
	rows  [][]string
}

// paragraph ends a paragraph. level is its heading level, or 0; marker and depth describe a list
// item.
func (w *flow) paragraph(level int, marker string, depth int, inTable bool, label string) {
	if inTable {
		w.text.WriteByte(' ')
		return
	}
	b := Block{Text: w.text.String()}
	w.text.Reset()
	if strings.TrimSpace(b.Text) == "" {
		return
	}
	w.writeRows()
	switch {
	case label != "":
		b.Text = label + strings.TrimSpace(b.Text)
	case level > 0 && level <= listLevels && len(b.Text) < maxName:
		b.Kind, b.Level = Heading, level
		if marker != "" && marker != bullet {
			b.Text = marker + " " + b.Text
		}
	case marker != "":
		b.Kind, b.Level, b.Marker = Item, depth, marker
	}
	w.write(b)
}

func (w *flow) endCell() {
	w.cells = append(w.cells, oneLine(w.text.String()))
	w.text.Reset()
}

func (w *flow) endRow() {
	w.text.Reset()
	if len(w.cells) > 0 {
		w.rows, w.cells = append(w.rows, w.cells), nil
	}
}

func (w *flow) writeRows() {
	if len(w.rows) > 0 {
		w.write(Block{Kind: Table, Rows: w.rows, Names: unknown})
		w.rows = nil
	}
}
