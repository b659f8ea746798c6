package office

import (
	"errors"
	"slices"
	"strings"

	"ibid/ingest/compound"
)

// Records of a presentation of PowerPoint 97 to 2003 (MS-PPT, 2.13.24).
const (
	pptNotesOf   = 1009 // the slide of the notes
	pptPlace     = 1011 // a slide's offset in the stream and its number
	pptRefersTo  = 3009 // an object that a shape shows
	pptEmbeds    = 4044 // an object's number and names
	pptControl   = 4078 // the same for a control
	pptNumber    = 4035
	pptTextKind  = 3999
	pptText      = 4000
	pptLatin     = 4008
	pptComment   = 12000
	pptString    = 4026
	pptHeads     = 4057 // header and footer of a slide
	pptShown     = 4058 // which of them are shown
	pptSlideList = 4080
	pptObjects   = 1033
	pptEdit      = 4085
	pptTagged    = 5003 // records of later versions
	pptDirectory = 6002
)

const pptEncrypted = 0xf3d1c4df

// oldSlides reads a presentation of PowerPoint 97 to 2003.
func (f *file) oldSlides(root compound.Folder) error {
	user := cursor{data: root.Stream("Current User"), at: 12}
	if len(user.data) < 20 {
		return errors.New("it is damaged or cut off: the directory of its slides is missing")
	}
	if user.number(4) == pptEncrypted {
		return errors.New("it is protected with a password: save it without one")
	}
	p := &pptReader{artReader: artReader{file: f, delayed: root.Stream("Pictures")}, stream: root.Stream("PowerPoint Document"),
		places: map[int]int{}, notes: map[int]string{}, objects: map[int]string{}}
	// Each save added a table of changed records. The last table comes first.
	for at, n := user.number(4), 0; at > 0 && n < 1000; n++ {
		edit := p.recordAt(at)
		if edit.kind != pptEdit || len(edit.data) < 20 {
			break
		}
		edit.at = 8
		at = edit.number(4)
		table := p.recordAt(edit.number(4))
		if n == 0 {
			p.document = edit.number(4)
		}
		for table.at+8 <= len(table.data) {
			head := table.number(4)
			for first, count := head&(1<<20-1), head>>20; count > 0 && table.at+4 <= len(table.data); first, count = first+1, count-1 {
				place := table.number(4)
				if _, newer := p.places[first]; !newer {
					p.places[first] = place
				}
			}
		}
	}
	p.artReader.read(p.recordAt(p.places[p.document]).data, 0)
	p.artReader.shapes = nil // the shapes so far belong to no slide
	p.listObjects(p.recordAt(p.places[p.document]).data)
	for _, instance := range []int{2, 0} { // notes, then slides
		for r := range artRecords(p.recordAt(p.places[p.document]).data) {
			if r.kind == pptSlideList && r.instance == instance {
				p.list(r.data, instance == 2)
			}
		}
	}
	f.place = "" // remaining objects have no known place
	for _, name := range p.objects {
		f.countUnreadAt(objects, name)
	}
	if p.slides == 0 {
		return errors.New("it is damaged: it has no slides")
	}
	return nil
}

type pptReader struct {
	artReader
	objects  map[int]string // program names by number, of objects not yet shown on a slide
	stream   []byte
	places   map[int]int    // offsets of records by number
	document int            // number of the document record
	notes    map[int]string // by slide
	slides   int
	shapes   []shape // of the current slide
	edges    []Block // its header and footer
	kind     int     // of the next text
	inTable  bool    // the shapes of the group are table cells
}

// recordAt returns the record at an offset.
func (p *pptReader) recordAt(place int) (r artRecord) {
	for r = range artRecords(p.stream[min(place, len(p.stream)):]) {
		break
	}
	return r
}

// list reads a list of slides. The list holds the outline text of each slide; other texts are at
// the slide's offset.
func (p *pptReader) list(data []byte, notes bool) {
	var place cursor
	p.shapes, p.kind = nil, 0
	for r := range artRecords(data) {
		if r.kind == pptPlace {
			p.slide(place, notes)
			p.shapes, place = nil, r.cursor
		} else {
			p.text(r)
		}
	}
	p.slide(place, notes)
}

// slide writes a slide, or stores the notes of a slide.
func (p *pptReader) slide(place cursor, notes bool) {
	if len(place.data) < 16 {
		return
	}
	slide := p.recordAt(p.places[place.number(4)])
	place.at = 12
	id := place.number(4)
	if !notes {
		p.slides++
		p.write(Block{Kind: Page, Level: p.slides})
	}
	p.texts(slide.data, 0)
	if !notes {
		p.writeShapes(p.slides, append(p.shapes, shape{blocks: p.edges}))
		p.edges = nil
		if note := p.notes[id]; note != "" {
			p.write(Block{Text: "Notes: " + note})
		}
		return
	}
	for r := range artRecords(slide.data) {
		if r.kind == pptNotesOf && len(r.data) >= 4 {
			id = r.number(4)
			for _, sh := range p.shapes {
				if sh.place == "notes" || sh.place == "" {
					p.notes[id] = oneLine(p.notes[id] + " " + lineOf(sh.blocks))
				}
			}
		}
	}
}

// listObjects lists the embedded objects of the document.
func (p *pptReader) listObjects(data []byte) {
	for list := range artRecords(data) {
		for r := range artRecords(list.data) {
			if list.kind != pptObjects || r.kind != pptEmbeds && r.kind != pptControl {
				continue
			}
			number, name := 0, ""
			for s := range artRecords(r.data) {
				switch {
				case s.kind == pptNumber:
					s.at = 8
					number = s.number(4)
				case s.kind == pptString && s.instance == 2:
					name = compound.UTF16(s.data)
				}
			}
			p.objects[number] = name
		}
	}
}

// texts finds the texts at any depth of a container.
func (p *pptReader) texts(data []byte, depth int) {
	defer func(kind int) { p.kind = kind }(p.kind)
	p.kind = 4
	for r := range artRecords(data) {
		switch {
		case r.kind == pptRefersTo:
			number := r.number(4)
			if name, ok := p.objects[number]; ok {
				p.countUnreadAt(objects, name)
				delete(p.objects, number)
			}
		case !r.container && r.kind != pptTagged || depth == 50:
			p.text(r)
		case r.kind == artGroup:
			from := len(p.shapes)
			p.inTable = false
			p.texts(r.data, depth+1)
			if p.inTable {
				p.shapes = append(p.shapes[:from], tableOf(p.shapes[from:])...)
			}
			p.inTable = false
		case r.kind == artShape:
			s, from := shapeTexts(r.data), len(p.shapes)
			if blocks := p.artReader.texts(s); len(blocks) > 0 {
				p.shapes = append(p.shapes, shape{blocks: blocks})
			}
			p.texts(r.data, depth+1)
			for i := range p.shapes[from:] {
				p.shapes[from+i].left, p.shapes[from+i].top = s.left, s.top
			}
			p.inTable = p.inTable || s.table
		case r.kind == pptComment:
			var said []string
			for s := range artRecords(r.data) {
				if s.kind == pptString && s.instance < 2 { // author and text; 2 is the initials
					said = append(said, compound.UTF16(s.data))
				}
			}
			p.shapes = append(p.shapes, shape{blocks: []Block{{Text: "Comment: " + strings.Join(said, ": ")}}})
		case r.kind == pptHeads:
			shown := 0
			for s := range artRecords(r.data) {
				switch {
				case s.kind == pptShown:
					s.at = 2
					shown = s.number(2) >> 3
				case s.kind == pptString && s.instance > 0 && shown>>s.instance&1 == 1: // 1 is the header and 2 the footer
					p.edges = append(p.edges, p.headerOrFooter(runningHeads, []Block{{Text: compound.UTF16(s.data)}})...)
				}
			}
		default:
			p.texts(r.data, depth+1)
		}
	}
}

// tableOf arranges the texts of cells into rows and columns by position. It returns the cells
// unchanged if they would fill hardly any of the table.
func tableOf(cells []shape) []shape {
	const sparse = 20
	var lefts, tops []int
	for _, c := range cells {
		lefts, tops = append(lefts, c.left), append(tops, c.top)
	}
	slices.Sort(lefts)
	slices.Sort(tops)
	lefts, tops = slices.Compact(lefts), slices.Compact(tops)
	if len(lefts)*len(tops) >= sparse*len(cells) {
		return cells
	}
	rows := make([][]string, len(tops))
	for i := range rows {
		rows[i] = make([]string, len(lefts))
	}
	for _, c := range cells {
		column, _ := slices.BinarySearch(lefts, c.left)
		row, _ := slices.BinarySearch(tops, c.top)
		rows[row][column] = strings.TrimSpace(rows[row][column] + " " + lineOf(c.blocks))
	}
	return []shape{{blocks: []Block{{Kind: Table, Rows: rows, Names: unknown}}}}
}

// text adds the text of a record. The record before it gives its kind.
func (p *pptReader) text(r artRecord) {
	text := ""
	switch r.kind {
	case pptTextKind:
		p.kind = r.number(4)
	case pptText:
		text = compound.UTF16(r.data)
	case pptLatin:
		text = latin1(r.data)
	}
	sh := shape{place: map[int]string{0: "title", 1: "body", 2: "notes", 6: "title"}[p.kind]}
	for line := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\r' }) {
		if line = strings.ReplaceAll(line, "\v", "\n"); strings.TrimSpace(line) != "" && line != "*" { // "*" is a field for a number or date
			b := Block{Text: line}
			if sh.place == "body" {
				b.Kind, b.Marker = Item, bullet
			}
			sh.blocks = append(sh.blocks, b)
		}
	}
	if len(sh.blocks) > 0 {
		p.shapes = append(p.shapes, sh)
	}
}
