package office

import (
	"strings"
)

// A linkedPart is a part of a file with the parts that it links to.
type linkedPart struct {
	*file
	relations []relation
	shown     map[string]bool // charts and diagrams that have been written
}

func (f *file) linkedPart(part string) linkedPart {
	return linkedPart{file: f, relations: f.relations(part), shown: map[string]bool{}}
}

// drawn reads a chart or a diagram once, or the alternative text of a picture.
func (l *linkedPart) drawn(e element) (out []Block) {
	read, id := l.chart, "id"
	switch e.Name.Local {
	case "docPr", "cNvPr":
		if b, ok := picture(attr(e, "descr")); ok {
			out = append(out, b)
		}
		return out
	case "relIds":
		read, id = l.diagram, "dm"
	}
	if part, ok := byID(l.relations, relationAttr(e, id)); ok && !l.shown[part] {
		l.shown[part] = true
		out = read(part)
	}
	return out
}

// maxPoints limits the values that are read of a chart.
const maxPoints = 10_000

// A series is a row of values of a chart.
type series struct {
	name               string
	categories, values []string
}

// chart reads a chart as its title and a table with a row for each series and a
// column for each category.
func (f *file) chart(part string) []Block {
	var titles []string
	var all []series
	f.drawing(part, "chart", func(x *xmlReader) error {
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "title":
				text, err := drawnText(x)
				if text = oneLine(text); text != "" {
					titles = append(titles, text)
				}
				return err
			case "ser":
				s, err := readSeries(x)
				if len(all) < 250 {
					all = append(all, s)
				}
				return err
			case "userShapes", "externalData", "Fallback":
				return nil
			}
			return x.each(do)
		}
		return x.each(do)
	})
	var out []Block
	if len(titles) > 0 {
		out = append(out, Block{Text: "Chart: " + strings.Join(titles, ", ")})
	}
	if len(all) > 0 {
		rows := [][]string{append([]string{""}, all[0].categories...)}
		for _, s := range all {
			rows = append(rows, append([]string{s.name}, s.values...))
		}
		out = append(out, Block{Kind: Table, Rows: rows, Names: 1})
	}
	return out
}

func readSeries(x *xmlReader) (s series, err error) {
	err = x.each(func(e element) error {
		var err error
		switch e.Name.Local {
		case "tx":
			var name []string
			name, err = cached(x)
			s.name = oneLine(strings.Join(name, " "))
		case "cat", "xVal":
			s.categories, err = cached(x)
		case "val", "yVal":
			s.values, err = cached(x)
		}
		return err
	})
	return s, err
}

// cached reads the cell values that are stored in a chart.
func cached(x *xmlReader) (out []string, err error) {
	format, level := "", 0
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "formatCode":
			format = x.text()
		case "lvl": // of categories with several levels, the innermost comes first
			if level++; level == 1 {
				return x.each(do)
			}
		case "pt":
			for i := number(e, "idx", 0); len(out) < min(i, maxPoints); {
				out = append(out, "") // it is missing
			}
			return x.each(do)
		case "v":
			if len(out) < maxPoints {
				out = append(out, formatNumber(oneLine(x.text()), format, false))
			}
		case "f", "extLst":
		default:
			return x.each(do)
		}
		return nil
	}
	return out, x.each(do)
}

// diagram reads the text of a diagram (SmartArt) as a list.
func (f *file) diagram(part string) (out []Block) {
	f.drawing(part, "diagram", func(x *xmlReader) error {
		text, err := drawnText(x)
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, Block{Kind: Item, Marker: bullet, Text: line})
			}
		}
		return err
	})
	return out
}

// drawing opens the part of a drawing, if there is one, for read.
func (f *file) drawing(part, kind string, read func(x *xmlReader) error) {
	x, err := f.xml(part)
	if err != nil {
		return
	}
	defer x.close()
	if err := read(x); err != nil {
		f.note("a %s could be read only in part: %v", kind, err)
	}
}

// drawnText returns the paragraphs of a drawing's text, a line each.
func drawnText(x *xmlReader) (string, error) {
	var out strings.Builder
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "t", "v":
			out.WriteString(x.text())
			return nil
		case "br":
			out.WriteByte('\n')
			return nil
		case "p", "pt": // in a paragraph, or in a point of a diagram
			if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
				out.WriteByte('\n')
			}
		case "oMath":
			s, err := formula(x)
			out.WriteString(s)
			return err
		case "Fallback", "f":
			return nil
		}
		return x.each(do)
	}
	err := x.each(do)
	return out.String(), err
}

// oneLine replaces each run of white space with a single space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
