package office

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"ibid/ingest/compound"
)

// Offsets in the header of a Word file (MS-DOC, 2.5).
const (
	fibFlags      = 10
	fibCounts     = 76 // number of characters in the text, notes, headers, macros, comments, endnotes, boxes
	fibCharacters = 250
	fibParagraphs = 258
	fibPieces     = 418
	fibDrawings   = 554
	fibLists      = 738
	fibOverrides  = 746
)

// An oldWord reads a document of Word 97 to 2003.
type oldWord struct {
	flow
	main, table []byte
	pictures    []byte
	seen        map[int]bool // offsets of pictures
	paragraphs  wordRuns
	marked      wordRuns        // hidden and deleted characters, and pictures
	lastDeleted int             // offset of the last deletion
	fields      []bool          // enclosing fields: whether their result has begun
	label       string          // of the current part: footnotes, comments
	code        strings.Builder // of the last field
	lists       numbering
	left        int // objects not yet named
}

// A wordRun has the properties of the characters in a range of the file, or of the paragraphs that
// end there.
type wordRun struct {
	start, end int
	level      int // heading level from 1; 0 for none
	list       listRef
	inTable    bool
	rowEnds    bool
	deleted    bool
	hidden     bool
	picture    int  // offset in the stream of pictures, plus 1; 0 for none
	other      bool // the picture character belongs to a form or object
}

// wordRuns are runs in file order.
type wordRuns []wordRun

// oldWord reads a document of Word 97 to 2003.
func (f *file) oldWord(root compound.Folder) error {
	d := &oldWord{flow: flow{file: f}, main: root.Stream("WordDocument"), pictures: root.Stream("Data"), seen: map[int]bool{},
		left: len(root.Folder("ObjectPool").Names("_"))}
	if len(d.main) < fibPieces+8 {
		return errors.New("it is damaged or cut off: its text is missing")
	}
	head := cursor{data: d.main}
	if head.number(2) != 0xa5ec {
		return &OldError{"it is in a format older than Word 97, which is not supported: save it as .docx"}
	}
	head.at = fibFlags
	flags := head.number(2)
	if flags&0x100 != 0 {
		return errors.New("it is protected with a password: save it without one")
	}
	d.table = root.Stream(map[bool]string{false: "0Table", true: "1Table"}[flags&0x200 != 0])
	d.paragraphs = d.readRuns(d.part(fibParagraphs), 13)
	d.marked = slices.DeleteFunc(d.readRuns(d.part(fibCharacters), 1), func(r wordRun) bool {
		return !r.deleted && !r.hidden && r.picture == 0
	})
	d.readLists()
	head.at = fibCounts
	labels := []string{"Footnote: ", runningHeads, "-", "Comment: ", "Endnote: ", ""} // of the parts after the text
	at, left := 0, int32(head.number(4))
	for c, place := range d.characters(d.part(fibPieces)) {
		for left <= 0 && len(labels) > 0 {
			d.end(wordRun{})
			d.label, labels, left = labels[0], labels[1:], int32(head.number(4))
		}
		left--
		at++
		if d.label != "-" { // macros
			d.add(c, place)
		}
		if d.exceeded != nil {
			return d.exceeded
		}
	}
	d.end(wordRun{})
	d.writeRows()
	d.place = ""
	d.write(d.drawings()...)
	for range d.left {
		d.countUnread(objects)
	}
	if at == 0 {
		return errors.New("it is damaged: its text is missing")
	}
	return nil
}

// part returns the part of the table stream named by an entry of the header.
func (d *oldWord) part(entry int) cursor {
	in := cursor{data: d.main, at: entry}
	out := cursor{data: d.table, at: in.number(4)}
	return cursor{data: out.bytes(in.number(4))}
}

// characters yields the characters of the text and their offsets in the file.
func (d *oldWord) characters(in cursor) func(yield func(rune, int) bool) {
	return func(yield func(rune, int) bool) {
		kind := in.number(1)
		for ; kind == 1; kind = in.number(1) { // properties
			in.bytes(in.number(2))
		}
		n := (in.number(4) - 4) / 12
		if kind != 2 {
			return
		}
		pieces := cursor{data: in.bytes(12*n + 4)}
		for i := range min(n, len(pieces.data)/12) {
			pieces.at = 4 * i
			first := pieces.number(4)
			length := pieces.number(4) - first
			pieces.at = 4*(n+1) + 8*i + 2
			text := cursor{data: d.main, at: pieces.number(4)}
			wide := text.at&(1<<30) == 0
			if !wide { // one byte per character
				text.at = text.at &^ (1 << 30) / 2
			}
			for ; length > 0 && text.at < len(text.data); length-- {
				at := text.at
				var c rune
				if wide {
					c = rune(text.number(2))
				} else {
					c = charmap.Windows1252.DecodeByte(byte(text.number(1)))
				}
				if !yield(c, at) {
					return
				}
			}
		}
	}
}

// readRuns reads the properties of characters, whose entries have one byte, or of paragraphs, from
// pages of 512 bytes.
func (d *oldWord) readRuns(pages cursor, entry int) (runs wordRuns) {
	const page = 512
	n := (len(pages.data) - 4) / 8
	pages.at = 4 * (n + 1)
	for range max(n, 0) {
		in := cursor{data: d.main, at: pages.number(4) * page}
		p := cursor{data: in.bytes(page)}
		if len(p.data) < page || len(runs) > maxEntries*10 {
			continue
		}
		count := int(p.data[page-1])
		for j := 0; j < count && 4*(count+1)+entry*j < page; j++ {
			p.at = 4 * j
			run := wordRun{start: p.number(4), end: p.number(4)}
			p.at = 2 * int(p.data[4*(count+1)+entry*j])
			if p.at == 0 || p.at+4 > page {
				continue
			}
			size := p.number(1)
			if entry > 1 {
				if size = 2*size - 1; size < 0 {
					size = 2 * p.number(1)
				}
				if style := p.number(2); style >= 1 && style <= listLevels { // heading styles come first
					run.level = style
				}
				size -= 2
			}
			run.read(p.bytes(size))
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b wordRun) int { return cmp.Compare(a.start, b.start) })
	return runs
}

// read reads properties.
func (r *wordRun) read(properties []byte) {
	p := cursor{data: properties}
	for p.at+3 <= len(p.data) {
		code := p.number(2)
		value := int(p.data[p.at])
		size := []int{1, 1, 2, 4, 2, 2, 1 + value, 3}[code>>13] // the seventh has a variable size
		switch operand := (cursor{data: p.bytes(size)}); code {
		case 0x0800:
			r.deleted = value == 1
		case 0x083c:
			r.hidden = value == 1
		case 0x6a03:
			r.picture = operand.number(4) + 1
		case 0x0806, 0x080a:
			r.other = value == 1
		case 0x2416:
			r.inTable = value == 1
		case 0x2417: // end of a row
			r.rowEnds = value == 1
		case 0x460b: // list
			r.list.given, r.list.id = true, strconv.Itoa(operand.number(2))
		case 0x260a:
			r.list.level = value
		case 0x2640: // outline level
			if value < listLevels {
				r.level = value + 1
			}
		}
	}
}

// readLists reads the lists, their levels, and the references through which paragraphs name them
// (MS-DOC, 2.9.131 and 2.9.150).
func (d *oldWord) readLists() {
	d.lists = numbering{kinds: map[string]*listKind{}, lists: map[string]*list{}, counters: map[string]*[listLevels]int{}}
	in := cursor{data: d.main, at: fibLists}
	all := cursor{data: d.table, at: in.number(4)}
	n := min(all.number(2), maxEntries)
	lists := cursor{data: all.bytes(28 * n)} // their levels follow
	for ; lists.at+28 <= len(lists.data); lists.bytes(1) {
		id, kind := strconv.Itoa(lists.number(4)), &listKind{}
		lists.bytes(22)
		d.lists.kinds[id] = kind
		levels := listLevels
		if lists.number(1)&1 != 0 {
			levels = 1
		}
		for i := range levels {
			kind[i] = oldLevel(&all)
		}
	}
	in = d.part(fibOverrides)
	n = min(in.number(4), maxEntries, len(in.data)/16)
	refs := cursor{data: in.bytes(16 * n)}
	for i := range n {
		l := newList(strconv.Itoa(refs.number(4)))
		refs.bytes(8)
		levels := refs.number(1)
		refs.bytes(3)
		d.lists.lists[strconv.Itoa(i+1)] = l
		in.bytes(4)
		for range levels {
			start, what := in.number(4), in.number(4)
			at, own := what&15, listLevel{}
			if what&0x20 != 0 {
				own = oldLevel(&in)
				start = own.start
			}
			if at < listLevels && what&0x20 != 0 {
				l.levels[at] = &own
			}
			if at < listLevels && what&0x10 != 0 {
				l.starts[at] = start
			}
		}
	}
}

// oldFormats maps the number formats of items. All other formats are written as decimal numbers.
var oldFormats = map[int]string{1: "upperRoman", 2: "lowerRoman", 3: "upperLetter", 4: "lowerLetter",
	22: "decimalZero", 23: bulletFormat, 255: "none"}

// oldLevel reads a level of a list. Characters below 9 in its text are placeholders for the numbers
// of the levels.
func oldLevel(in *cursor) listLevel {
	level := listLevel{start: in.number(4), format: oldFormats[in.number(1)]}
	flags := in.number(1)
	level.legal = flags&4 != 0
	in.bytes(18)
	characters, paragraph := in.number(1), in.number(1)
	in.bytes(2 + paragraph + characters)
	text := compound.UTF16(in.bytes(2 * in.number(2)))
	for _, c := range text[:min(len(text), 64)] {
		if c < listLevels {
			level.text += "%" + strconv.Itoa(int(c)+1)
		} else {
			level.text += string(c)
		}
	}
	return level
}

// runAt returns the run at an offset of the file.
func (all wordRuns) runAt(place int) wordRun {
	i, found := slices.BinarySearchFunc(all, place, func(r wordRun, at int) int { return cmp.Compare(r.start, at) })
	if !found {
		i--
	}
	if i >= 0 && place < all[i].end {
		return all[i]
	}
	return wordRun{}
}

// add adds a character. Only the results of fields are text.
func (d *oldWord) add(c rune, place int) {
	n := len(d.fields)
	switch {
	case c == 0x13 && n < maxDepth:
		d.fields = append(d.fields, false)
		d.code.Reset()
	case c == 0x14 && n > 0:
		d.fields[n-1] = true
	case c == 0x15 && n > 0:
		d.endField()
	case slices.Contains(d.fields, false):
		if d.code.Len() > 0 || c != ' ' {
			d.code.WriteRune(c)
		}
	case c == '\r' || c == '\f':
		d.end(d.paragraphs.runAt(place))
	case c == 7:
		if d.paragraphs.runAt(place).rowEnds {
			d.endRow()
		} else {
			d.endCell()
		}
	case c == 0x0b:
		d.text.WriteByte('\n')
	case c == 0x1e:
		d.text.WriteByte('-')
	case c == 1:
		d.addPicture(d.marked.runAt(place))
	case c >= ' ' || c == '\t':
		d.addLetter(c, d.marked.runAt(place))
	}
}

// addPicture adds the alternative text of a picture, once.
func (d *oldWord) addPicture(run wordRun) {
	if run.picture > 0 && !run.other && !run.deleted && !run.hidden && !d.seen[run.picture] {
		d.seen[run.picture] = true
		for _, b := range d.inlinePicture(run.picture - 1) {
			d.text.WriteString(" (" + b.Text + ") ")
		}
	}
}

// addLetter adds a letter, or counts its run if it is deleted or hidden.
func (d *oldWord) addLetter(c rune, run wordRun) {
	if !run.deleted && !run.hidden {
		d.text.WriteRune(c)
	} else if c > ' ' && run.start != d.lastDeleted {
		d.lastDeleted = run.start
		d.countUnread(map[bool]string{true: deletions, false: unseen}[run.deleted])
	}
}

func (d *oldWord) endField() {
	n := len(d.fields) - 1
	code := d.code.String()
	if words, ok := equationWords(code); ok && !d.fields[n] {
		d.text.WriteString(words)
		d.code.Reset()
	} else if rest, ok := strings.CutPrefix(code, "EMBED "); ok {
		end := strings.IndexFunc(rest+" ", func(c rune) bool { return c <= ' ' })
		d.countUnreadAt(objects, rest[:end])
		d.left--
	} else if strings.HasPrefix(code, "FORMCHECKBOX") || strings.HasPrefix(code, "FORMDROPDOWN") {
		d.countUnread(fields)
	}
	d.fields = d.fields[:n]
}

// inlinePicture reads the picture at an offset of the picture stream: its size, the size of its
// head, its kind, a name if the kind is 0x66, and a drawing (MS-DOC, 2.9.192).
func (d *oldWord) inlinePicture(at int) []Block {
	in := cursor{data: d.pictures, at: at}
	in = cursor{data: in.bytes(max(in.number(4), 4) - 4), at: 0}
	head := in.number(2) - 4
	if kind := in.number(2); kind == 0x66 {
		in.at = head
		in.bytes(in.number(1))
	} else if in.at = head; kind != 0x64 {
		return nil
	}
	a := &artReader{file: d.file}
	a.read(in.bytes(len(in.data)), 0)
	return a.all()
}

// drawings reads the pictures and shapes without a position in the text: the list of pictures, then
// the drawings, each after one byte (MS-DOC, 2.9.172).
func (d *oldWord) drawings() []Block {
	in := d.part(fibDrawings)
	a := &artReader{file: d.file, delayed: d.main}
	for in.at+8 <= len(in.data) {
		start := in.at
		in.at += 4
		n := in.number(4)
		end := min(start+8+n, len(in.data))
		a.read(in.data[start:end], 0)
		in.at = end + 1
	}
	return a.all()
}

// end ends a paragraph.
func (d *oldWord) end(run wordRun) {
	if d.label == runningHeads && !run.inTable {
		text := d.text.String()
		d.text.Reset()
		d.write(d.headerOrFooter(runningHeads, []Block{{Text: text}})...)
		return
	}
	marker, depth := "", 0
	if strings.TrimSpace(d.text.String()) != "" {
		marker, depth, _ = d.lists.next(run.list)
	}
	d.paragraph(run.level, marker, depth, run.inTable, d.label)
}
