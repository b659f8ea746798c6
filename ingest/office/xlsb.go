package office

import (
	"cmp"
	"strconv"

	"ibid/ingest/compound"
)

// Records of a binary workbook (MS-XLSB, 2.3).
const (
	xlsbRow         = 0
	xlsbRK          = 2
	xlsbError       = 3
	xlsbBool        = 4
	xlsbReal        = 5
	xlsbText        = 6
	xlsbSharedRef   = 7
	xlsbFormulaText = 8
	xlsbFormulaReal = 9
	xlsbFormulaBool = 10
	xlsbFormulaErr  = 11
	xlsbShortBlank  = 12 // first record without a column
	xlsbShared      = 19
	xlsbFormat      = 44
	xlsbStyle       = 47
	xlsbRichText    = 62
	xlsbProperties  = 153
	xlsbSheet       = 156
	xlsbMerged      = 176
	xlsbPrinted     = 479
	xlsbStyles      = 617
	xlsbStylesEnd   = 618
	xlsbComment     = 635
	xlsbCommentText = 637
)

// maxBinaryPart is the largest part, in bytes, that is read.
const maxBinaryPart = 64 << 20

// xlsbRecords calls each with the records of a part.
func (f *file) xlsbRecords(part string, each func(kind int, r *cursor)) error {
	data, err := f.content(part, maxBinaryPart)
	all := cursor{data: data}
	for all.at < len(data) && f.exceeded == nil {
		kind := all.varint(2)
		r := cursor{data: all.bytes(all.varint(4))}
		each(kind, &r)
	}
	return err
}

// varint reads a number of seven bits per byte, in at most the given number of bytes.
func (c *cursor) varint(most int) (n int) {
	for i := range most {
		b := c.number(1)
		if n |= b & 0x7f << (7 * i); b < 0x80 {
			break
		}
	}
	return n
}

// utf16Text reads a text preceded by its length in characters; -1 means no text.
func (c *cursor) utf16Text() string {
	n := c.number(4)
	if n >= len(c.data) {
		n = 0
	}
	return compound.UTF16(c.bytes(2 * n))
}

// binaryWorkbook reads a binary workbook (xlsb) like [file.workbook].
func (f *file) binaryWorkbook(main string) error {
	f.meta("title", f.properties())
	relations := f.relations(main)
	b := &workbook{file: f, own: map[int]string{}}
	for _, part := range relatedParts(relations, "sharedStrings") {
		err := f.xlsbRecords(part, func(kind int, r *cursor) {
			if kind == xlsbShared {
				r.number(1)
				if err := b.addShared(r.utf16Text()); err != nil {
					f.exceeded = err
				}
			}
		})
		b.notePartial(err, "the texts of its cells could be read only in part")
	}
	inStyles := false
	for _, part := range relatedParts(relations, "styles") {
		_ = f.xlsbRecords(part, func(kind int, r *cursor) { // keeps the styles before any damage
			switch {
			case kind == xlsbFormat && len(b.own) < maxEntries:
				id := r.number(2)
				b.own[id] = r.utf16Text()
			case kind == xlsbStyles, kind == xlsbStylesEnd:
				inStyles = kind == xlsbStyles
			case kind == xlsbStyle && inStyles:
				r.number(2)
				b.addStyle(r.number(2))
			}
		})
	}
	n, read := 0, map[string]bool{}
	return f.xlsbRecords(main, func(kind int, r *cursor) {
		switch kind {
		case xlsbProperties:
			b.from1904 = r.number(4)&1 != 0
		case xlsbSheet:
			n++
			for _, r.at = range []int{8, 12} { // the first version had it at 12
				if part, ok := relationTarget(relations, r.utf16Text()); ok && !read[part] {
					read[part] = true
					b.binarySheet(part, cmp.Or(r.utf16Text(), "Sheet"+strconv.Itoa(n)))
					return
				}
			}
		}
	})
}

func (b *workbook) binarySheet(part, name string) {
	s := newSheet(b.file, name)
	err := b.xlsbRecords(part, func(kind int, r *cursor) {
		if kind == xlsbMerged && len(s.merges) < maxMerges {
			top, bottom, left, right := r.number(4)+1, r.number(4)+1, r.number(4), r.number(4)
			s.merges[top] = append(s.merges[top], cellRange{left, top, right, bottom})
		}
	})
	var cells []sheetCell
	row, column := 0, -1
	if err == nil {
		err = b.xlsbRecords(part, func(kind int, r *cursor) {
			switch {
			case kind == xlsbPrinted:
				for r.number(2); r.at < len(r.data); {
					s.printed = append(s.printed, b.readPrinted(r.utf16Text())...)
				}
				return
			case kind == xlsbRow:
				s.row(row, cells)
				cells, row, column = nil, min(r.number(4)+1, maxSheetRows), -1
				return
			case kind > xlsbShortBlank && kind < xlsbShared:
				kind -= xlsbShortBlank - 1
				column++
			case kind <= xlsbFormulaErr || kind == xlsbRichText:
				column = r.number(4)
			default:
				return
			}
			style := r.number(3)
			r.number(1)
			if c := b.binaryCell(kind, style, r); c.text != "" && column < maxSheetColumns {
				c.column = column
				cells = append(cells, c)
			}
		})
	}
	s.row(row, cells)
	b.endSheet(s, part, err)
}

// binaryComments reads the comments on a sheet.
func (f *file) binaryComments(part string) (out []Block, err error) {
	label := ""
	err = f.xlsbRecords(part, func(kind int, r *cursor) {
		switch kind {
		case xlsbComment:
			r.number(4)
			row := r.number(4) + 1
			r.number(4)
			label = "Comment on " + columnName(r.number(4)) + strconv.Itoa(row) + ": "
		case xlsbCommentText:
			r.number(1)
			out = append(out, Block{Text: label + oneLine(r.utf16Text())})
		}
	})
	return out, err
}

// columnName returns the letters of a column numbered from 0.
func columnName(n int) string {
	name := ""
	for n++; n > 0 && len(name) < 3; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

func (b *workbook) binaryCell(kind, style int, r *cursor) sheetCell {
	switch kind {
	case xlsbRK:
		return sheetCell{text: b.float(decodeRK(uint32(r.number(4))), style), value: true}
	case xlsbReal, xlsbFormulaReal:
		return sheetCell{text: b.float(r.float(), style), value: true}
	case xlsbBool, xlsbFormulaBool, xlsbError, xlsbFormulaErr:
		return sheetCell{text: truthText(r.number(1), kind == xlsbError || kind == xlsbFormulaErr), value: true}
	case xlsbSharedRef:
		return sheetCell{text: b.sharedText(r.number(4))}
	case xlsbRichText:
		r.number(1)
		return sheetCell{text: r.utf16Text()}
	case xlsbText, xlsbFormulaText:
		return sheetCell{text: r.utf16Text()}
	}
	return sheetCell{}
}
