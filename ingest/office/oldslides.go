package office

import (
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"ibid/ingest/compound"
)

// Records of a presentation of PowerPoint 97 to 2003 (MS-PPT, 2.13.24).
const (
	pptNotesOf   = 1009 // the slide of the notes
	pptPlace     = 1011 // of a slide in the stream, and its number
	pptTextKind  = 3999
	pptText      = 4000
	pptLatin     = 4008
	pptComment   = 12000
	pptString    = 4026
	pptSlideList = 4080
	pptEdit      = 4085
	pptDirectory = 6002
)

const pptEncrypted = 0xf3d1c4df

// A pptRecord is a record, or a container of records.
type pptRecord struct {
	kind, instance uint16
	container      bool
	data           []byte
}

// pptRecords yields the records in data.
func pptRecords(data []byte) func(yield func(pptRecord) bool) {
	return func(yield func(pptRecord) bool) {
		for len(data) >= 8 {
			head := binary.LittleEndian.Uint16(data)
			size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
			r := pptRecord{binary.LittleEndian.Uint16(data[2:]), head >> 4, head&0xf == 0xf, data[8:min(size, uint64(len(data)))]}
			if data = data[min(size, uint64(len(data))):]; !yield(r) {
				return
			}
		}
	}
}

// oldSlides reads a presentation of PowerPoint 97 to 2003.
func (f *file) oldSlides(root compound.Folder) error {
	stream, user := root.Stream("PowerPoint Document"), root.Stream("Current User")
	if len(user) < 20 {
		return errors.New("it is damaged or cut off: the directory of its slides is missing")
	}
	if binary.LittleEndian.Uint32(user[12:]) == pptEncrypted {
		return errors.New("it is protected with a password: save it without one")
	}
	// Each time that a presentation was saved there is a table of what changed, the
	// last one first.
	places := map[uint32]uint32{}
	document := uint32(0)
	for at, n := binary.LittleEndian.Uint32(user[16:]), 0; at > 0 && n < 1000; n++ {
		edit := pptAt(stream, at)
		if edit.kind != pptEdit || len(edit.data) < 20 {
			break
		}
		if n == 0 {
			document = binary.LittleEndian.Uint32(edit.data[16:])
		}
		at = binary.LittleEndian.Uint32(edit.data[8:])
		for table := pptAt(stream, binary.LittleEndian.Uint32(edit.data[12:])).data; len(table) >= 8; {
			head := binary.LittleEndian.Uint32(table)
			first, count := head&(1<<20-1), head>>20
			for table = table[4:]; count > 0 && len(table) >= 4; count-- {
				if _, newer := places[first]; !newer {
					places[first] = binary.LittleEndian.Uint32(table)
				}
				first, table = first+1, table[4:]
			}
		}
	}
	p := pptReader{file: f, stream: stream, places: places, notes: map[uint32]string{}}
	for _, instance := range []uint16{2, 0} { // notes, then slides
		for r := range pptRecords(pptAt(stream, places[document]).data) {
			if r.kind == pptSlideList && r.instance == instance {
				p.list(r.data, instance == 2)
			}
		}
	}
	if p.slides == 0 {
		return errors.New("it is damaged: it has no slides")
	}
	return nil
}

func pptAt(stream []byte, at uint32) (r pptRecord) {
	for r = range pptRecords(stream[min(uint64(at), uint64(len(stream))):]) {
		break
	}
	return r
}

type pptReader struct {
	*file
	stream []byte
	places map[uint32]uint32
	notes  map[uint32]string // by slide
	slides int
}

// list reads the slides of a list: the texts of their outlines are in the list,
// other texts where it says that a slide is.
func (p *pptReader) list(data []byte, notes bool) {
	var shapes []shape
	var place []byte
	end := func() {
		if len(place) < 16 {
			return
		}
		slide := pptAt(p.stream, p.places[binary.LittleEndian.Uint32(place)])
		id := binary.LittleEndian.Uint32(place[12:])
		p.texts(slide.data, &shapes, 0)
		if !notes {
			p.slides++
			p.write(Block{Kind: Page, Level: p.slides})
			p.writeShapes(p.slides, shapes)
			if note := p.notes[id]; note != "" {
				p.write(Block{Text: "Notes: " + note})
			}
			return
		}
		for r := range pptRecords(slide.data) {
			if r.kind == pptNotesOf && len(r.data) >= 4 {
				for _, sh := range shapes {
					if sh.place == "notes" {
						id = binary.LittleEndian.Uint32(r.data)
						p.notes[id] = oneLine(p.notes[id] + " " + lineOf(sh.blocks))
					}
				}
			}
		}
	}
	kind := uint32(0)
	for r := range pptRecords(data) {
		switch r.kind {
		case pptPlace:
			end()
			shapes, place = nil, r.data
		default:
			p.text(r, &kind, &shapes)
		}
	}
	end()
}

// texts finds the texts at any depth of a container.
func (p *pptReader) texts(data []byte, shapes *[]shape, depth int) {
	kind := uint32(4)
	for r := range pptRecords(data) {
		if r.container && depth < 50 {
			if r.kind == pptComment {
				var said []string
				for s := range pptRecords(r.data) {
					if s.kind == pptString {
						said = append(said, compound.UTF16(s.data))
					}
				}
				*shapes = append(*shapes, shape{blocks: []Block{{Text: "Comment: " + strings.Join(said, ": ")}}})
				continue
			}
			p.texts(r.data, shapes, depth+1)
		} else {
			p.text(r, &kind, shapes)
		}
	}
}

// text adds the text in a record, whose kind was in a record before it.
func (p *pptReader) text(r pptRecord, kind *uint32, shapes *[]shape) {
	text := ""
	switch r.kind {
	case pptTextKind:
		if len(r.data) >= 4 {
			*kind = binary.LittleEndian.Uint32(r.data)
		}
		return
	case pptText:
		text = compound.UTF16(r.data)
	case pptLatin:
		if latin, err := charmap.ISO8859_1.NewDecoder().Bytes(r.data); err == nil {
			text = string(latin)
		}
	default:
		return
	}
	sh := shape{place: map[uint32]string{0: "title", 1: "body", 2: "notes", 6: "title"}[*kind]}
	for line := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\r' }) {
		if line = strings.ReplaceAll(line, "\v", "\n"); strings.TrimSpace(line) != "" && line != "*" { // a field for a number or date
			b := Block{Text: line}
			if sh.place == "body" {
				b.Kind, b.Marker = Item, bullet
			}
			sh.blocks = append(sh.blocks, b)
		}
	}
	if len(sh.blocks) > 0 {
		*shapes = append(*shapes, sh)
	}
}
