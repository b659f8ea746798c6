package office

import (
	"bytes"
	"cmp"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// A linkedPart is a part of a file and its links to other parts.
type linkedPart struct {
	*file
	relations []relation
	shown     map[string]bool // charts, diagrams and pictures already written
	described bool            // the current picture has an alternative text
}

func (f *file) linkedPart(part string) linkedPart {
	return linkedPart{file: f, relations: f.relations(part), shown: map[string]bool{}}
}

// readDrawing reads a chart or diagram once, or the alternative text of a picture. It counts a
// picture without an alternative text.
func (l *linkedPart) readDrawing(e element) (out []Block) {
	read, id := l.chart, "id"
	switch e.Name.Local {
	case "docPr", "cNvPr":
		b, ok := picture(cmp.Or(attr(e, "descr"), attr(e, "title")))
		if l.described = ok; ok {
			out = append(out, b)
		}
		return out
	case "blip", "imagedata":
		part, ok := relationTarget(l.relations, cmp.Or(relationAttr(e, "embed"), relationAttr(e, "id")))
		if ok && !l.shown[part] && !l.described {
			l.shown[part] = true
			l.countPicture(part)
		}
		return nil
	case "relIds":
		read, id = l.diagram, "dm"
	}
	if part, ok := relationTarget(l.relations, relationAttr(e, id)); ok && !l.shown[part] {
		l.shown[part] = true
		out = read(part)
	}
	return out
}

// leastPicture is the number of pixels from which a picture may hold text.
const leastPicture = 200 * 200

// countPicture counts a picture that is large enough to hold text. It ignores metafiles, which are
// previews of embedded objects.
func (f *file) countPicture(part string) {
	if data, err := f.content(part, maxEmbedded); err == nil {
		f.countPixels(data)
	}
}

func (f *file) countPixels(data []byte) {
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height >= leastPicture {
		f.countUnread(pictures)
	}
}

// maxPoints limits the values read from a chart.
const maxPoints = 10_000

// A series is a row of values of a chart.
type series struct {
	name               string
	categories, values []string
}

// chart reads a chart as its title and a table with a row for each series and a column for each
// category.
func (f *file) chart(part string) []Block {
	var titles []string
	var all []series
	f.drawing(part, "chart", func(x *xmlReader) {
		x.find(func(e element) {
			switch e.Name.Local {
			case "title":
				if text := lineOf(drawnBlocks(x, false)); text != "" {
					titles = append(titles, text)
				}
			case "ser":
				if s := readSeries(x); len(all) < 250 {
					all = append(all, s)
				}
			case "userShapes", "externalData", "Fallback":
				x.skip()
			}
		})
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

func readSeries(x *xmlReader) (s series) {
	labels := map[int]string{} // value labels by index
	x.each(func(e element) {
		switch e.Name.Local {
		case "tx":
			s.name = oneLine(strings.Join(cachedValues(x), " "))
		case "cat", "xVal":
			s.categories = cachedValues(x)
		case "val", "yVal":
			s.values = cachedValues(x)
		case "dLbl", "dLbls":
			at := -1
			x.find(func(e element) {
				switch e.Name.Local {
				case "idx":
					at = number(e, "val", -1)
				case "rich": // a text in place of the value
					labels[at] = lineOf(drawnBlocks(x, false))
				}
			})
		}
	})
	for i, label := range labels {
		if label != "" && i >= 0 && i < len(s.values) {
			s.values[i] = strings.TrimSpace(s.values[i] + " (" + label + ")")
		}
	}
	return s
}

// cachedValues reads the cell values stored in a chart.
func cachedValues(x *xmlReader) (out []string) {
	format, level := "", 0
	x.find(func(e element) {
		switch e.Name.Local {
		case "formatCode":
			format = x.text()
		case "lvl": // categories with several levels list the innermost level first
			if level++; level > 1 {
				x.skip()
			}
		case "pt":
			for i := number(e, "idx", 0); len(out) < min(i, maxPoints); {
				out = append(out, "") // missing value
			}
		case "v":
			if len(out) < maxPoints {
				out = append(out, formatNumber(oneLine(x.text()), format, false))
			}
		case "f", "extLst":
			x.skip()
		}
	})
	return out
}

// diagram reads the text of a diagram (SmartArt) as a list.
func (f *file) diagram(part string) (out []Block) {
	f.drawing(part, "diagram", func(x *xmlReader) {
		for _, b := range drawnBlocks(x, false) {
			out = append(out, Block{Kind: Item, Marker: bullet, Text: lineOf([]Block{b})})
		}
	})
	return out
}

// drawing opens the part of a drawing for read. A missing part is ignored.
func (f *file) drawing(part, kind string, read func(x *xmlReader)) {
	if err := f.read(part, read); err != nil && f.has(part) {
		f.addPartial("a %s could be read only in part: %v", kind, err)
	}
}

// oneLine replaces each run of white space with a single space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
