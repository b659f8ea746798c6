package office

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxSheetColumns = 16_384    // of the format
	maxSheetRows    = 1_048_576 // of the format
	maxShared       = 64 << 20  // bytes of shared strings
	maxMergeScan    = 32 << 20  // bytes of a sheet up to which it is read twice
	maxMerges       = 20_000
)

// workbook reads sheets (xlsx, xlsm, xltx). Each is a section, and each row is
// a section in it with the anchor "sheet=NAME&row=N", where N is the row
// number in the sheet. Hidden sheets are read too.
func (f *file) workbook(main string) error {
	title := f.properties()
	f.meta("title", title)
	relations := f.relations(main)
	b := &workbookReader{file: f}
	if at := related(relations, "sharedStrings"); len(at) > 0 {
		b.readShared(at[0])
	}
	if at := related(relations, "styles"); len(at) > 0 {
		b.readFormats(at[0])
	}
	if f.over != nil {
		return f.over
	}
	n := 0
	read := map[string]bool{}
	return f.elements(main, func(x *xmlReader, e element) error {
		switch e.Name.Local {
		case "workbookPr":
			b.from1904 = on1(attr(e, "date1904"))
		case "sheets":
			return x.each(func(e element) error {
				part, ok := byID(relations, relationAttr(e, "id"))
				if n++; !ok || read[part] {
					return nil
				}
				read[part] = true
				name := cmp.Or(attr(e, "name"), "Sheet"+strconv.Itoa(n))
				err := b.sheet(part, name)
				if err != nil && f.over == nil {
					f.note("the sheet %.100q could be read only in part or not at all: %v", name, err)
					err = nil
				}
				return err
			})
		}
		return nil
	})
}

func on1(s string) bool { return s == "1" || s == "true" }

// A workbookReader holds the data that the sheets of a workbook share.
type workbookReader struct {
	*file
	shared   []byte // all strings, joined
	ends     []uint32
	formats  []string // number formats by cell style
	from1904 bool
}

// text returns a shared string.
func (b *workbookReader) text(i int) string {
	if i < 0 || i >= len(b.ends) {
		return ""
	}
	start := uint32(0)
	if i > 0 {
		start = b.ends[i-1]
	}
	return string(b.shared[start:b.ends[i]])
}

func (b *workbookReader) readShared(part string) {
	x, err := b.xml(part)
	if err != nil {
		b.note("the texts of its cells could not be read: %v", err)
		return
	}
	defer x.close()
	err = x.each(func(root element) error {
		return x.each(func(e element) error {
			if e.Name.Local != "si" {
				return nil
			}
			text, err := richText(x)
			if len(b.shared)+len(text) > maxShared {
				return &limitError{fmt.Sprintf("it has more than %d MB of shared text", maxShared>>20)}
			}
			b.shared = append(b.shared, text...)
			b.ends = append(b.ends, uint32(len(b.shared)))
			return err
		})
	})
	if err != nil {
		b.note("the texts of its cells could be read only in part: %v", err)
	}
}

// richText reads a text in runs, without its pronunciation.
func richText(x *xmlReader) (string, error) {
	var out strings.Builder
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "t":
			out.WriteString(x.text())
			return nil
		case "rPh", "phoneticPr", "rPr":
			return nil
		}
		return x.each(do)
	}
	err := x.each(do)
	return unescapeCell(out.String()), err
}

// unescapeCell decodes characters that XML does not allow: _x000D_ is a
// carriage return.
func unescapeCell(s string) string {
	for at := 0; ; {
		i := strings.Index(s[at:], "_x")
		if i < 0 {
			return s
		}
		at += i
		if at+7 > len(s) || s[at+6] != '_' {
			at += 2
			continue
		}
		n, err := strconv.ParseUint(s[at+2:at+6], 16, 16)
		if err != nil {
			at += 2
			continue
		}
		s = s[:at] + string(rune(n)) + s[at+7:]
		at++
	}
}

// readFormats reads the number format of each cell style. Of a damaged part,
// the first ones count.
func (b *workbookReader) readFormats(part string) {
	own := map[int]string{}
	_ = b.elements(part, func(x *xmlReader, e element) error {
		switch e.Name.Local {
		case "numFmts":
			return x.each(func(e element) error {
				if len(own) < maxEntries {
					own[number(e, "numFmtId", -1)] = attr(e, "formatCode")
				}
				return nil
			})
		case "cellXfs":
			return x.each(func(e element) error {
				if e.Name.Local != "xf" || len(b.formats) > 1<<16 {
					return nil
				}
				id := number(e, "numFmtId", 0)
				code, ok := own[id]
				if !ok {
					code = builtinFormat(id)
				}
				b.formats = append(b.formats, code)
				return nil
			})
		}
		return nil
	})
}

// sheet reads one sheet.
func (b *workbookReader) sheet(part, name string) error {
	relations := b.relations(part)
	s := newSheet(b.file, name)
	for _, r := range b.merges(part) {
		s.merges[r.top] = append(s.merges[r.top], r)
	}
	row := 0
	err := b.elements(part, func(x *xmlReader, e element) error {
		if e.Name.Local != "sheetData" {
			return nil
		}
		return x.each(func(e element) error {
			if e.Name.Local != "row" {
				return nil
			}
			row = min(max(number(e, "r", row+1), 1), maxSheetRows)
			cells, err := b.cells(x)
			s.row(row, cells)
			return err
		})
	})
	s.end()
	if b.over != nil {
		return b.over
	}
	rest := b.drawings(relations)
	for _, comments := range related(relations, "comments") {
		rest = append(rest, b.comments(comments, "comment")...)
	}
	s.rest(rest)
	return err
}

// drawings reads the charts and texts on a sheet.
func (b *workbookReader) drawings(relations []relation) (out []Block) {
	for _, drawing := range related(relations, "drawing") {
		s := &slideReader{file: b.file, relations: b.relations(drawing), shown: map[string]bool{}}
		if err := s.read(drawing); err != nil && b.over == nil {
			b.note("a drawing could be read only in part: %v", err)
		}
		for _, sh := range s.shapes {
			out = append(out, sh.blocks...)
		}
	}
	return out
}

// cells reads the cells of a row.
func (b *workbookReader) cells(x *xmlReader) ([]sheetCell, error) {
	var out []sheetCell
	column := -1
	err := x.each(func(e element) error {
		if e.Name.Local != "c" {
			return nil
		}
		column++
		if c, _, ok := cellPlace(attr(e, "r")); ok {
			column = c
		}
		kind, style := attr(e, "t"), number(e, "s", -1)
		value, inline, computed := "", "", false
		err := x.each(func(e element) error {
			var err error
			switch e.Name.Local {
			case "f":
				computed = true
			case "v":
				value = x.text()
			case "is":
				inline, err = richText(x)
			}
			return err
		})
		if computed && value == "" && kind != "str" {
			b.note("the results of formulas are not in the file: open it in a spreadsheet program and save it to have them read")
		}
		c := sheetCell{column: column}
		switch kind {
		case "s":
			i, err := strconv.Atoi(strings.TrimSpace(value))
			if err == nil {
				c.text = b.text(i)
			}
		case "inlineStr":
			c.text = inline
		case "str":
			c.text = unescapeCell(value)
		case "b":
			c.text, c.value = map[string]string{"1": "TRUE", "0": "FALSE"}[strings.TrimSpace(value)], true
		case "e":
			c.text, c.value = value, true
		case "d":
			c.text, c.value = strings.TrimSuffix(value, "T00:00:00"), true
		default:
			format := ""
			if style >= 0 && style < len(b.formats) {
				format = b.formats[style]
			}
			c.text, c.value = formatNumber(strings.TrimSpace(value), format, b.from1904), true
		}
		if c.text = strings.TrimSpace(c.text); c.text != "" && column >= 0 && column < maxSheetColumns {
			out = append(out, c)
		}
		return err
	})
	return out, err
}
