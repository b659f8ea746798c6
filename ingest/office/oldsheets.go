package office

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"ibid/ingest/compound"
)

// Records of a workbook of Excel 97 to 2003 (MS-XLS, 2.3).
const (
	xlsFormula   = 0x0006
	xlsEnd       = 0x000a
	xlsHeader    = 0x0014
	xlsFooter    = 0x0015
	xlsNote      = 0x001c
	xls1904      = 0x0022
	xlsPassword  = 0x002f
	xlsContinue  = 0x003c
	xlsSheet     = 0x0085
	xlsObject    = 0x005d
	xlsManyRK    = 0x00bd
	xlsDrawings  = 0x00eb
	xlsDrawing   = 0x00ec
	xlsStyle     = 0x00e0
	xlsMerged    = 0x00e5
	xlsShared    = 0x00fc
	xlsSharedRef = 0x00fd
	xlsTextBox   = 0x01b6
	xlsNumber    = 0x0203
	xlsLabel     = 0x0204
	xlsBool      = 0x0205
	xlsString    = 0x0207
	xlsRK        = 0x027e
	xlsFormat    = 0x041e
	xlsBegin     = 0x0809
)

// A record of a workbook, with the offsets in data at which its continuations begin.
type xlsRecord struct {
	cursor
	kind int
	cuts []int
}

// xlsRecords yields the records from an offset on.
func xlsRecords(stream []byte, at int) func(yield func(xlsRecord) bool) {
	return func(yield func(xlsRecord) bool) {
		all := cursor{data: stream, at: min(max(at, 0), len(stream))}
		for all.at+4 <= len(stream) {
			r := xlsRecord{kind: all.number(2)}
			r.data = all.bytes(all.number(2))
			for next := all; next.number(2) == xlsContinue; next = all {
				if len(r.cuts) == 0 {
					r.data = slices.Clip(r.data) // do not overwrite the stream
				}
				r.cuts = append(r.cuts, len(r.data))
				r.data = append(r.data, next.bytes(next.number(2))...)
				all = next
			}
			if !yield(r) {
				return
			}
		}
	}
}

// text reads a string that begins with a length of sizeOfLength bytes.
func (r *xlsRecord) text(sizeOfLength int) string {
	length, flags := r.number(sizeOfLength), r.number(1)
	runs, extra := 0, 0
	if flags&8 != 0 {
		runs = r.number(2)
	}
	if flags&4 != 0 {
		extra = r.number(4)
	}
	var out []rune
	wide := flags&1 != 0
	for len(out) < length && r.at < len(r.data) {
		if slices.Contains(r.cuts, r.at) {
			wide = r.number(1)&1 != 0
		}
		if wide {
			out = append(out, rune(r.number(2)))
		} else {
			out = append(out, rune(r.number(1)))
		}
	}
	r.at = min(r.at+4*runs+max(extra, 0), len(r.data))
	return string(out)
}

// oldSheets reads a workbook of Excel 97 to 2003.
func (f *file) oldSheets(root compound.Folder) error {
	b := &workbook{file: f, own: map[int]string{}}
	stream := root.Stream("Workbook")
	var sheets []*xlsRecord
	art := &artReader{file: f}
	var drawings []byte
	for record := range xlsRecords(stream, 0) {
		r := &record
		switch r.kind {
		case xlsPassword:
			return errors.New("it is protected with a password: save it without one")
		case xls1904:
			b.from1904 = r.number(2) == 1
		case xlsSheet:
			sheets = append(sheets, r)
		case xlsFormat:
			id := r.number(2)
			b.own[id] = r.text(2)
		case xlsDrawings:
			drawings = append(drawings, r.data...)
		case xlsStyle:
			r.number(2)
			b.addStyle(r.number(2))
		case xlsShared:
			r.number(4)
			for n := r.number(4); n > len(b.shared) && r.at < len(r.data); {
				if err := b.addShared(r.text(2)); err != nil {
					return err
				}
			}
		}
		if r.kind == xlsEnd {
			break
		}
	}
	if len(sheets) == 0 {
		return errors.New("it is damaged or cut off: it has no sheets")
	}
	art.read(drawings, 0)
	for i, r := range sheets {
		at := r.number(4)
		kind := r.number(2) >> 8
		name := cmp.Or(r.text(1), "Sheet"+strconv.Itoa(i+1))
		switch kind {
		case 0:
			b.oldSheet(name, stream, at, art)
		case 2:
			f.countUnread(charts)
		}
		if f.exceeded != nil {
			return f.exceeded
		}
	}
	return nil
}

// oldSheet reads a sheet from its offset in the stream.
func (b *workbook) oldSheet(name string, stream []byte, at int, art *artReader) {
	s := newSheet(b.file, name)
	rows := map[int][]sheetCell{}
	rest := looseTexts{boxes: map[int]int{}}
	var last *sheetCell // a formula whose text follows
	depth := 0
	for record := range xlsRecords(stream, at) {
		r := &record
		add := func(row, column int, text string, value bool) {
			if text != "" && row < maxSheetRows && column < maxSheetColumns {
				rows[row] = append(rows[row], sheetCell{column: column, text: text, value: value})
			}
		}
		if r.kind == xlsBegin {
			if depth++; depth == 2 {
				b.countUnread(charts)
			}
		} else if r.kind == xlsEnd {
			if depth--; depth <= 0 {
				break
			}
		}
		if depth > 1 { // a chart on the sheet
			continue
		}
		switch r.kind {
		case xlsSharedRef, xlsNumber, xlsRK, xlsFormula, xlsLabel, xlsBool:
			row, column, style := r.number(2), r.number(2), r.number(2)
			if text, value := b.oldCell(r, style); r.kind == xlsFormula && !value {
				rows[row] = append(rows[row], sheetCell{column: column})
				last = &rows[row][len(rows[row])-1]
			} else {
				add(row, column, text, value)
			}
		case xlsString:
			if last != nil {
				last.text, last = r.text(2), nil
			}
		case xlsManyRK:
			row, column := r.number(2), r.number(2)
			for ; r.at+6 <= len(r.data)-2; column++ {
				style := r.number(2)
				add(row, column, b.float(decodeRK(uint32(r.number(4))), style), true)
			}
		case xlsMerged:
			for n := r.number(2); n > 0 && r.at < len(r.data); n-- {
				top, bottom, left, right := r.number(2)+1, r.number(2)+1, r.number(2), r.number(2)
				s.merges[top] = append(s.merges[top], cellRange{left, top, right, bottom})
			}
		default:
			rest.add(b, r)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		s.row(n+1, slices.DeleteFunc(rows[n], func(c sheetCell) bool { return c.text == "" }))
	}
	s.writeTop()
	art.read(rest.drawing, 0)
	s.writeRest(append(rest.blocks, art.all()...))
}

// looseTexts collects the texts of a sheet that are in no cell.
type looseTexts struct {
	blocks  []Block
	object  int // the last one
	drawing []byte
	boxes   map[int]int // index in blocks by object
}

func (o *looseTexts) add(b *workbook, r *xlsRecord) {
	switch r.kind {
	case xlsHeader, xlsFooter:
		o.blocks = append(o.blocks, b.readPrinted(r.text(2))...)
	case xlsObject:
		r.at = 4
		if kind := r.number(2); kind == 0x0b || kind == 0x0c || kind == 0x12 { // check boxes, radio buttons and lists
			b.countUnread(fields)
		}
		o.object = r.number(2)
	case xlsDrawing:
		o.drawing = append(o.drawing, r.data...)
	case xlsTextBox:
		if text := textBox(r); text != "" {
			o.boxes[o.object] = len(o.blocks)
			o.blocks = append(o.blocks, Block{Text: text})
		}
	case xlsNote:
		row, column := r.number(2)+1, r.number(2)
		r.number(2)
		if i, ok := o.boxes[r.number(2)]; ok {
			o.blocks[i].Text = fmt.Sprintf("Comment on %s%d: %s", columnName(column), row, oneLine(o.blocks[i].Text))
		}
	}
}

// textBox returns the text of a box or comment, which is in the first continuation of its record.
func textBox(r *xlsRecord) string {
	const length = 10 // offset of the text length
	if len(r.cuts) == 0 || r.cuts[0] < length+2 || r.cuts[0] == len(r.data) {
		return ""
	}
	n, text := int(binary.LittleEndian.Uint16(r.data[length:])), r.data[r.cuts[0]+1:]
	if r.data[r.cuts[0]]&1 != 0 {
		return compound.UTF16(text[:min(2*n, len(text))])
	}
	return latin1(text[:min(n, len(text))])
}

// oldCell returns the text of a cell. value is false if the cell is text, or a formula whose text
// follows.
func (b *workbook) oldCell(r *xlsRecord, style int) (text string, value bool) {
	switch r.kind {
	case xlsSharedRef:
		return b.sharedText(r.number(4)), false
	case xlsLabel:
		return r.text(2), false
	case xlsRK:
		return b.float(decodeRK(uint32(r.number(4))), style), true
	case xlsBool:
		n := r.number(1)
		return truthText(n, r.number(1) != 0), true
	}
	n := r.float()
	bits := math.Float64bits(n)
	if r.kind == xlsFormula && bits>>48 == 0xffff {
		switch kind, n := bits&0xff, int(bits>>16&0xff); kind {
		case 1, 2:
			return truthText(n, kind == 2), true
		default:
			return "", kind == 3
		}
	}
	return b.float(n, style), true
}

func (b *workbook) float(n float64, style int) string {
	return b.number(strconv.FormatFloat(n, 'g', -1, 64), style)
}

var cellErrors = map[int]string{0x00: "#NULL!", 0x07: "#DIV/0!", 0x0f: "#VALUE!", 0x17: "#REF!", 0x1d: "#NAME?", 0x24: "#NUM!"}

// truthText returns the text of a truth value or an error.
func truthText(n int, isError bool) string {
	switch {
	case isError:
		return cmp.Or(cellErrors[n], "#N/A")
	case n == 0:
		return "FALSE"
	}
	return "TRUE"
}

// decodeRK decodes a number stored in 30 bits.
func decodeRK(n uint32) float64 {
	x := math.Float64frombits(uint64(n&^3) << 32)
	if n&2 != 0 {
		x = float64(int32(n) >> 2)
	}
	if n&1 != 0 {
		x /= 100
	}
	return x
}
