package office

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPoints limits the values that are read of a chart.
const maxPoints = 10_000

// A series is a row of values of a chart.
type series struct {
	name               string
	categories, values []string
}

// chart reads a chart as its title and a table with a row for each category
// and a column for each series.
func (f *file) chart(part string) []block {
	x, err := f.xml(part)
	if err != nil {
		return nil
	}
	defer x.close()
	var titles []string
	var all []series
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
	if err := x.each(do); err != nil {
		f.note(fmt.Sprintf("a chart could be read only in part: %v", err))
	}
	var out []block
	if len(titles) > 0 {
		out = append(out, block{text: "Chart: " + strings.Join(titles, ", ")})
	}
	if rows := seriesTable(all); len(rows) > 1 {
		out = append(out, block{kind: aTable, rows: rows, names: 1})
	}
	return out
}

// seriesTable puts series side by side, with the categories of the first that
// has any.
func seriesTable(all []series) [][]string {
	var categories []string
	points := 0
	for _, s := range all {
		if len(categories) == 0 {
			categories = s.categories
		}
		points = max(points, len(s.values))
	}
	header := []string{""}
	for i, s := range all {
		if s.name == "" && len(all) > 1 {
			s.name = "Series " + strconv.Itoa(i+1)
		}
		header = append(header, s.name)
	}
	rows := [][]string{header}
	for i := range min(points, maxPoints/max(len(all), 1)) {
		row := []string{at(categories, i)}
		for _, s := range all {
			row = append(row, at(s.values, i))
		}
		rows = append(rows, row)
	}
	return rows
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
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
func cached(x *xmlReader) ([]string, error) {
	var out []string
	format, level := "", 0
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "formatCode":
			format = x.text()
		case "lvl": // of categories with several levels, the innermost comes first
			if level++; level > 1 {
				return nil
			}
			return x.each(do)
		case "pt":
			i, code := number(e, "idx", len(out)), attr(e, "formatCode")
			if code == "" {
				code = format
			}
			return x.each(func(e element) error {
				if e.Name.Local != "v" || i < 0 || i >= maxPoints {
					return nil
				}
				for len(out) <= i {
					out = append(out, "")
				}
				out[i] = formatNumber(oneLine(x.text()), code, false)
				return nil
			})
		case "v":
			out = append(out, oneLine(x.text()))
		case "f", "extLst":
			return nil
		default:
			return x.each(do)
		}
		return nil
	}
	err := x.each(do)
	return out, err
}

// diagram reads the text of a diagram (SmartArt) as a list.
func (f *file) diagram(part string) []block {
	x, err := f.xml(part)
	if err != nil {
		return nil
	}
	defer x.close()
	var out []block
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "pt":
			if kind := attr(e, "type"); kind != "" && kind != "node" && kind != "doc" && kind != "asst" {
				return nil
			}
		case "t":
			if e.Name.Space != "" && strings.HasSuffix(e.Name.Space, "diagram") {
				text, err := drawnText(x)
				if text = strings.TrimSpace(text); text != "" {
					out = append(out, block{kind: anItem, marker: bullet, text: text})
				}
				return err
			}
		case "cxnLst", "bg", "whole", "extLst", "prSet":
			return nil
		}
		return x.each(do)
	}
	if err := x.each(do); err != nil {
		f.note(fmt.Sprintf("a diagram could be read only in part: %v", err))
	}
	return out
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
		case "p":
			if out.Len() > 0 {
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
