package office

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxSheetColumns = 16_384    // limit of the format
	maxSheetRows    = 1_048_576 // limit of the format
	maxShared       = 64 << 20  // bytes of shared strings
	maxStyles       = 1 << 16   // limit of the format
	maxMergeScan    = 32 << 20  // bytes; larger sheets are not read twice
	maxMerges       = 20_000
)

// A workbook holds the data that its sheets share.
type workbook struct {
	*file
	shared   []string
	size     int            // bytes of shared strings
	own      map[int]string // the file's own number formats
	formats  []string       // number formats by cell style
	from1904 bool
}

// addShared adds a shared string.
func (b *workbook) addShared(text string) error {
	const header = 16 // bytes of an empty string
	if b.size += len(text) + header; b.size > 2*maxShared {
		return &limitError{fmt.Sprintf("it has more than %d MB of shared text", maxShared>>20)}
	}
	b.shared = append(b.shared, text)
	return nil
}

// sharedText returns a shared string.
func (b *workbook) sharedText(i int) string {
	if i < 0 || i >= len(b.shared) {
		return ""
	}
	return b.shared[i]
}

// addStyle adds the number format of the next cell style.
func (b *workbook) addStyle(id int) {
	if len(b.formats) < maxStyles {
		b.formats = append(b.formats, cmp.Or(b.own[id], builtinFormats[id]))
	}
}

// number formats a number in the style of its cell.
func (b *workbook) number(value string, style int) string {
	format := ""
	if style >= 0 && style < len(b.formats) {
		format = b.formats[style]
	}
	return formatNumber(value, format, b.from1904)
}

// workbook reads sheets (xlsx, xlsm, xltx), including hidden ones. Each sheet is a section, and
// each row is a section in it with the anchor "sheet=NAME&row=N", where N is the row number in the
// sheet.
func (f *file) workbook(main string) error {
	f.meta("title", f.properties())
	relations := f.relations(main)
	b := &workbook{file: f, own: map[int]string{}}
	if at := relatedParts(relations, "sharedStrings"); len(at) > 0 {
		b.readShared(at[0])
	}
	if at := relatedParts(relations, "styles"); len(at) > 0 {
		b.readFormats(at[0])
	}
	n := 0
	read := map[string]bool{}
	return f.elements(main, func(x *xmlReader, e element) {
		switch e.Name.Local {
		case "workbookPr":
			b.from1904 = attr(e, "date1904") == "1" || attr(e, "date1904") == "true"
		case "sheets":
			x.each(func(e element) {
				part, ok := relationTarget(relations, relationAttr(e, "id"))
				if n++; ok && !read[part] && f.exceeded == nil {
					read[part] = true
					b.sheet(part, cmp.Or(attr(e, "name"), "Sheet"+strconv.Itoa(n)))
				}
			})
		}
	})
}

func (b *workbook) readShared(part string) {
	err := b.elements(part, func(x *xmlReader, e element) {
		if e.Name.Local == "si" {
			x.err = cmp.Or(b.addShared(richText(x)), x.err)
		}
	})
	b.notePartial(err, "the texts of its cells could be read only in part")
}

// richText reads the runs of a text, without its pronunciation.
func richText(x *xmlReader) string {
	var out strings.Builder
	x.find(func(e element) {
		switch e.Name.Local {
		case "t":
			out.WriteString(x.text())
		case "rPh", "phoneticPr", "rPr":
			x.skip()
		}
	})
	return unescapeCell(out.String())
}

var escapedCell = regexp.MustCompile(`_x([0-9A-Fa-f]{4})_`)

// unescapeCell decodes characters that XML does not allow: _x000D_ is a carriage return.
func unescapeCell(s string) string {
	return escapedCell.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.ParseUint(m[2:6], 16, 16) // four hexadecimal digits
		return string(rune(n))
	})
}

// readFormats reads the number format of each cell style, up to any damage.
func (b *workbook) readFormats(part string) {
	_ = b.elements(part, func(x *xmlReader, e element) {
		x.each(func(inner element) {
			switch id := number(inner, "numFmtId", 0); {
			case e.Name.Local == "numFmts" && len(b.own) < maxEntries:
				b.own[id] = attr(inner, "formatCode")
			case e.Name.Local == "cellXfs" && inner.Name.Local == "xf":
				b.addStyle(id)
			}
		})
	})
}

// sheet reads one sheet, up to any damage.
func (b *workbook) sheet(part, name string) {
	s := newSheet(b.file, name)
	b.readMerges(part, s)
	row := 0
	err := b.elements(part, func(x *xmlReader, e element) {
		part := e.Name.Local
		x.each(func(e element) {
			switch {
			case part == "headerFooter":
				s.printed = append(s.printed, b.readPrinted(x.text())...)
			case part == "dataValidations":
				if text := oneLine(attr(e, "promptTitle") + " " + attr(e, "prompt")); text != "" {
					s.printed = append(s.printed, Block{Text: fmt.Sprintf("Hint on %.40s: %s", attr(e, "sqref"), text)})
				}
			case part == "sheetData" && e.Name.Local == "row":
				row = min(max(number(e, "r", row+1), 1), maxSheetRows)
				s.row(row, b.cells(x))
			}
		})
	})
	b.endSheet(s, part, err)
}

// endSheet writes the pending rows of a sheet, its drawings and its comments. err is the reason why
// the sheet was not read completely.
func (b *workbook) endSheet(s *sheet, part string, err error) {
	s.writeTop()
	relations := b.relations(part)
	rest := append(b.drawings(relations), s.printed...)
	comments := relatedParts(relations, "comments")
	if len(comments) == 0 { // otherwise they include the comments of the threads
		comments = relatedParts(relations, "threadedComment")
	}
	for _, part := range comments {
		rest = append(rest, b.comments(part)...)
	}
	s.writeRest(rest)
	b.notePartial(err, "the sheet %.100q could be read only in part or not at all", s.name)
}

// printedCodes matches the codes in a printed header or footer: fonts, colours, sizes and fields.
// printedParts matches the start of its left, centre and right parts.
var printedCodes, printedParts = regexp.MustCompile(`&(?:"[^"]*"|K[0-9A-F]{6}|\d+|.)`), regexp.MustCompile(`&[LCR]`)

// readPrinted returns a sheet's printed header or footer, without page numbers.
func (b *workbook) readPrinted(text string) []Block {
	var parts []string
	for _, part := range printedParts.Split(text, -1) {
		if !strings.Contains(part, "&P") {
			parts = append(parts, printedCodes.ReplaceAllString(part, " "))
		}
	}
	return b.headerOrFooter(runningHeads, []Block{{Text: strings.Join(parts, " ")}})
}

// readMerges reads the merged cells of a sheet. They follow the rows in the file, so a sheet is
// read twice unless it is too large.
func (b *workbook) readMerges(part string, s *sheet) {
	if b.parts[partName(part)].size > maxMergeScan {
		return
	}
	data, err := b.content(part, maxMergeScan)
	if err != nil || !bytes.Contains(data, []byte("mergeCell ")) {
		return // the second pass reports damage
	}
	n := 0
	newXML(bytes.NewReader(data)).find(func(e element) {
		if r, ok := readRange(attr(e, "ref")); ok && e.Name.Local == "mergeCell" && n < maxMerges {
			n++
			s.merges[r.top] = append(s.merges[r.top], r)
		}
	})
}

// drawings reads the charts and texts on a sheet.
func (b *workbook) drawings(relations []relation) (out []Block) {
	for _, drawing := range relatedParts(relations, "drawing") {
		s := &slideReader{linkedPart: b.linkedPart(drawing)}
		b.notePartial(s.readShapes(drawing), "a drawing could be read only in part")
		for _, sh := range s.shapes {
			out = append(out, sh.blocks...)
		}
	}
	return out
}

// cells reads the cells of a row.
func (b *workbook) cells(x *xmlReader) (out []sheetCell) {
	column := -1
	x.each(func(e element) {
		if e.Name.Local != "c" {
			return
		}
		column++
		if c, _, ok := cellPlace(attr(e, "r")); ok {
			column = c
		}
		c := b.cell(x, attr(e, "t"), number(e, "s", -1))
		c.column = column
		if c.text = strings.TrimSpace(c.text); c.text != "" && column >= 0 && column < maxSheetColumns {
			out = append(out, c)
		}
	})
	return out
}

func (b *workbook) cell(x *xmlReader, kind string, style int) (c sheetCell) {
	value, inline, computed := "", "", false
	x.each(func(e element) {
		switch e.Name.Local {
		case "f":
			computed = true
		case "v":
			value = x.text()
		case "is":
			inline = richText(x)
		}
	})
	if computed && value == "" && kind != "str" {
		b.addPartial("the results of formulas are not in the file: open it in a spreadsheet program and save it to have them read")
	}
	trimmed := strings.TrimSpace(value)
	switch kind {
	case "s":
		if i, err := strconv.Atoi(trimmed); err == nil {
			c.text = b.sharedText(i)
		}
		return c
	case "inlineStr":
		return sheetCell{text: inline}
	case "str":
		return sheetCell{text: unescapeCell(value)}
	case "b":
		c.text = map[string]string{"1": "TRUE", "0": "FALSE"}[trimmed]
	case "e":
		c.text = value
	case "d":
		c.text = strings.TrimSuffix(value, "T00:00:00")
	default:
		c.text = b.number(trimmed, style)
	}
	c.value = true
	return c
}

var cellName = regexp.MustCompile(`^\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})$`)

// cellPlace parses a cell reference such as "AB12": column from 0, row from 1.
func cellPlace(ref string) (column, row int, ok bool) {
	m := cellName.FindStringSubmatch(ref)
	if m == nil {
		return 0, 0, false
	}
	for _, c := range strings.ToUpper(m[1]) {
		column = column*26 + int(c-'A') + 1
	}
	row, _ = strconv.Atoi(m[2]) // seven digits
	return column - 1, row, column <= maxSheetColumns && row <= maxSheetRows
}

// A cellRange is a rectangle of cells: columns from 0, rows from 1.
type cellRange struct{ left, top, right, bottom int }

func readRange(ref string) (r cellRange, ok bool) {
	first, last, two := strings.Cut(ref, ":")
	if !two {
		last = first
	}
	var ok1, ok2 bool
	r.left, r.top, ok1 = cellPlace(first)
	r.right, r.bottom, ok2 = cellPlace(last)
	return r, ok1 && ok2 && r.right >= r.left && r.bottom >= r.top
}
