package office

import (
	"bytes"
	"strings"

	"ibid/ingest/compound"
)

// Drawing records in formats before 2007 (MS-ODRAW).
const (
	artGroup      = 0xf003
	artShape      = 0xf004
	artPicture    = 0xf007
	artInGroup    = 0xf00f // position of a shape in its group
	artProperties = 0xf00b
	artMore       = 0xf121 // properties added by later versions
	artMost       = 0xf122
	artBlips      = 0xf018 // first kind of picture data
	artLastBlip   = 0xf117
)

// An artRecord is a record or a container of records. Presentations consist of them too.
type artRecord struct {
	cursor
	kind, instance int
	container      bool
}

// artRecords yields the records in data.
func artRecords(data []byte) func(yield func(artRecord) bool) {
	return func(yield func(artRecord) bool) {
		for all := (cursor{data: data}); all.at+8 <= len(data); {
			head := all.number(2)
			r := artRecord{kind: all.number(2), instance: head >> 4, container: head&0xf == 0xf}
			if r.data = all.bytes(all.number(4)); !yield(r) {
				return
			}
		}
	}
}

// Properties of a shape.
const (
	artDrawnText   = 0x00c0
	artPictureID   = 0x0104
	artDescription = 0x0381
	artTable       = 0x039f // of a group whose shapes are table cells
)

// An artReader reads drawings. pictures are in the order of the picture numbers that shapes use.
type artReader struct {
	*file
	delayed  []byte // the stream with the picture data
	pictures [][]byte
	shapes   []artShapeTexts
}

type artShapeTexts struct {
	described, drawn string
	picture          int // number from 1; 0 for none
	table            bool
	left, top        int // in its group
}

// read reads the records of a drawing at any depth.
func (a *artReader) read(data []byte, depth int) {
	for r := range artRecords(data) {
		switch {
		case r.kind == artShape:
			a.shapes = append(a.shapes, shapeTexts(r.data))
		case r.kind == artPicture:
			head := cursor{data: r.bytes(36)}
			head.at = 28
			if blip := r.bytes(len(r.data)); len(blip) > 0 {
				a.pictures = append(a.pictures, blip)
			} else {
				at := min(head.number(4), len(a.delayed))
				a.pictures = append(a.pictures, a.delayed[at:])
			}
		case r.kind >= artBlips && r.kind <= artLastBlip:
			a.pictures = append(a.pictures, r.data)
		case r.container && depth < maxDepth:
			a.read(r.data, depth+1)
		}
	}
}

// shapeTexts reads the properties of a shape. Long values follow the fixed-size entries.
func shapeTexts(data []byte) (s artShapeTexts) {
	for r := range artRecords(data) {
		if r.kind == artInGroup {
			s.left, s.top = int(int32(r.number(4))), int(int32(r.number(4)))
		}
		if r.kind != artProperties && r.kind != artMore && r.kind != artMost {
			continue
		}
		long := cursor{data: r.data, at: 6 * r.instance}
		for range min(r.instance, len(r.data)/6) {
			id, value := r.number(2), r.number(4)
			var text string
			if id&0x8000 != 0 {
				text, _, _ = strings.Cut(compound.UTF16(long.bytes(value)), "\x00")
			}
			switch id & 0x3fff {
			case artDrawnText:
				s.drawn = text
			case artPictureID:
				s.picture = value
			case artDescription:
				s.described = text
			case artTable:
				s.table = true
			}
		}
	}
	return s
}

// texts returns the texts of a shape, and counts a picture without a text.
func (a *artReader) texts(s artShapeTexts) (out []Block) {
	if s.drawn != "" {
		out = append(out, Block{Text: "Drawn text: " + oneLine(s.drawn), note: true})
	}
	if b, ok := picture(s.described); ok {
		return append(out, b)
	}
	if n := s.picture - 1; n >= 0 && n < len(a.pictures) {
		a.countPixels(pixels(a.pictures[n]))
	}
	return out
}

// all returns the texts of all shapes so far.
func (a *artReader) all() (out []Block) {
	for _, s := range a.shapes {
		out = append(out, a.texts(s)...)
	}
	a.shapes = nil
	return out
}

// pixels returns the picture file in a record. The file begins near the start of the record.
func pixels(record []byte) []byte {
	const head = 60
	for _, magic := range []string{"\x89PNG", "\xff\xd8\xff", "GIF8"} {
		if i := bytes.Index(record[:min(head, len(record))], []byte(magic)); i >= 0 {
			return record[i:]
		}
	}
	return nil
}
