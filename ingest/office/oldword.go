package office

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/text/encoding/charmap"

	"ibid/ingest/compound"
)

// Places in the header of a Word file (MS-DOC, 2.5).
const (
	fibFlags      = 10
	fibCounts     = 76 // of the characters of the text, notes, headers, macros, comments, endnotes, boxes
	fibParagraphs = 258
	fibPieces     = 418
)

// An oldWord reads a document of Word 97 to 2003.
type oldWord struct {
	flow
	main, table []byte
	runs        []wordRun
	fields      []bool // of the fields around a character, whether their result has begun
	label       string // of the part: footnotes, comments
}

// A wordRun has the properties of the paragraphs that end in a range of the file.
type wordRun struct {
	start, end uint32
	level      int // of a heading from 1; 0 for none
	item       bool
	inTable    bool
	rowEnds    bool
}

// oldWord reads a document of Word 97 to 2003.
func (f *file) oldWord(root compound.Folder) error {
	main := root.Stream("WordDocument")
	if len(main) < fibPieces+8 {
		return errors.New("it is damaged or cut off: its text is missing")
	}
	if binary.LittleEndian.Uint16(main) != 0xa5ec {
		return &OldError{"it is in the format of Word before 97, which is not supported: save it as .docx"}
	}
	flags := binary.LittleEndian.Uint16(main[fibFlags:])
	if flags&0x100 != 0 {
		return errors.New("it is protected with a password: save it without one")
	}
	d := &oldWord{flow: flow{file: f}, main: main, table: root.Stream("0Table")}
	if flags&0x200 != 0 {
		d.table = root.Stream("1Table")
	}
	d.readRuns(d.part(fibParagraphs))
	counts := main[fibCounts:]
	count := func(i int) int { return int(int32(binary.LittleEndian.Uint32(counts[4*i:]))) }
	ends := []struct {
		label string
		end   int
	}{{"", count(0)}, {"Footnote: ", count(1)}, {"-", count(2)}, {"-", count(3)}, {"Comment: ", count(4)},
		{"Endnote: ", count(5)}, {"", count(6)}}
	at, part, left := 0, 0, ends[0].end
	for c, place := range d.characters(d.part(fibPieces)) {
		for left <= 0 && part+1 < len(ends) {
			d.end(wordRun{})
			part++
			left = ends[part].end
		}
		d.label = ends[part].label
		left--
		at++
		if d.label != "-" { // headers and footers
			d.add(c, place)
		}
		if d.over != nil {
			return d.over
		}
	}
	d.end(wordRun{})
	d.writeRows()
	if at == 0 {
		return errors.New("it is damaged: its text is missing")
	}
	return nil
}

// part returns the part of the table stream that an entry of the header names.
func (d *oldWord) part(entry int) []byte {
	start, size := uint64(binary.LittleEndian.Uint32(d.main[entry:])), uint64(binary.LittleEndian.Uint32(d.main[entry+4:]))
	start = min(start, uint64(len(d.table)))
	return d.table[start:min(start+size, uint64(len(d.table)))]
}

// characters yields the characters of the pieces of text with their places in the
// file.
func (d *oldWord) characters(pieces []byte) func(yield func(rune, uint32) bool) {
	return func(yield func(rune, uint32) bool) {
		for len(pieces) >= 3 && pieces[0] == 1 { // properties
			size := 3 + int(binary.LittleEndian.Uint16(pieces[1:]))
			pieces = pieces[min(size, len(pieces)):]
		}
		if len(pieces) < 5+4 || pieces[0] != 2 {
			return
		}
		pieces = pieces[5:]
		n := (len(pieces) - 4) / 12
		for i := range n {
			length := uint64(binary.LittleEndian.Uint32(pieces[4*i+4:])) - uint64(binary.LittleEndian.Uint32(pieces[4*i:]))
			at := binary.LittleEndian.Uint32(pieces[4*(n+1)+8*i+2:])
			size := uint64(2)
			if at&(1<<30) != 0 { // one byte for a character
				at, size = at&^(1<<30)/2, 1
			}
			start := min(uint64(at), uint64(len(d.main)))
			text := d.main[start:min(start+length*size, uint64(len(d.main)))]
			for ; uint64(len(text)) >= size; text, at = text[size:], at+uint32(size) {
				c := charmap.Windows1252.DecodeByte(text[0])
				if size == 2 {
					c = rune(binary.LittleEndian.Uint16(text))
				}
				if !yield(c, at) {
					return
				}
			}
		}
	}
}

// readRuns reads the properties of paragraphs, from pages of 512 bytes.
func (d *oldWord) readRuns(pages []byte) {
	const page = 512
	n := (len(pages) - 4) / 8
	for i := range max(n, 0) {
		start := uint64(binary.LittleEndian.Uint32(pages[4*(n+1)+4*i:])) * page
		if start+page > uint64(len(d.main)) || len(d.runs) > maxEntries*10 {
			continue
		}
		p := d.main[start : start+page]
		count := int(p[page-1])
		for j := 0; j < count && 4*(count+1)+13*j < page; j++ {
			run := wordRun{start: binary.LittleEndian.Uint32(p[4*j:]), end: binary.LittleEndian.Uint32(p[4*j+4:])}
			at := 2 * int(p[4*(count+1)+13*j])
			if at == 0 || at+4 > page {
				continue
			}
			size := 2*int(p[at]) - 1
			if at++; size < 0 {
				size = 2 * int(p[at])
				at++
			}
			run.read(p[at:min(at+size, page)])
			d.runs = append(d.runs, run)
		}
	}
	slices.SortFunc(d.runs, func(a, b wordRun) int { return cmp.Compare(a.start, b.start) })
}

// read reads the style and the properties of a paragraph. The first styles are
// those of headings.
func (r *wordRun) read(p []byte) {
	if len(p) < 2 {
		return
	}
	if style := binary.LittleEndian.Uint16(p); style >= 1 && style <= listLevels {
		r.level = int(style)
	}
	for p = p[2:]; len(p) >= 3; {
		code := binary.LittleEndian.Uint16(p)
		size := []int{1, 1, 2, 4, 2, 2, 0, 3}[code>>13]
		if size == 0 { // of variable size
			size = 1 + int(p[2])
		}
		switch value := p[2]; code {
		case 0x2416:
			r.inTable = value == 1
		case 0x2417: // the end of a row
			r.rowEnds = value == 1
		case 0x460b: // a list
			r.item = value != 0
		case 0x2640: // outline level
			if value < listLevels {
				r.level = int(value) + 1
			}
		}
		p = p[min(2+size, len(p)):]
	}
}

func (d *oldWord) runAt(place uint32) wordRun {
	i, found := slices.BinarySearchFunc(d.runs, place, func(r wordRun, at uint32) int { return cmp.Compare(r.start, at) })
	if !found {
		i--
	}
	if i >= 0 && place < d.runs[i].end {
		return d.runs[i]
	}
	return wordRun{}
}

// add adds a character. Of fields only the results are text.
func (d *oldWord) add(c rune, place uint32) {
	n := len(d.fields)
	switch {
	case c == 0x13 && n < maxDepth:
		d.fields = append(d.fields, false)
	case c == 0x14 && n > 0:
		d.fields[n-1] = true
	case c == 0x15 && n > 0:
		d.fields = d.fields[:n-1]
	case slices.Contains(d.fields, false):
	case c == '\r' || c == '\f':
		d.end(d.runAt(place))
	case c == 7:
		if d.runAt(place).rowEnds {
			d.endRow()
		} else {
			d.endCell()
		}
	case c == 0x0b:
		d.text.WriteByte('\n')
	case c == 0x1e:
		d.text.WriteByte('-')
	case c >= ' ' || c == '\t':
		d.text.WriteRune(c)
	}
}

// end ends a paragraph.
func (d *oldWord) end(run wordRun) { d.paragraph(run.level, run.item, run.inTable, d.label) }
