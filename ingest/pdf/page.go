package pdf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	pdf "github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding/unicode"
)

var utf16BE = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)

// Limits of one page. A larger one is a drawing or an attack.
const (
	maxContentBytes = 64 << 20
	maxGlyphs       = 200_000
	maxFormDepth    = 12
)

type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the matrix that applies a, then b.
func (a matrix) mul(b matrix) matrix {
	return matrix{
		a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3],
		a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3],
		a[4]*b[0] + a[5]*b[2] + b[4], a[4]*b[1] + a[5]*b[3] + b[5],
	}
}

// state is the graphics state that q saves and Q restores.
type state struct {
	ctm                        matrix
	font                       *font
	size, charSpace, wordSpace float64
	scale, leading, rise       float64
	mode                       int
}

// A drawing executes the content of one page.
type drawing struct {
	state
	saved     []state
	text      matrix // position of the next glyph
	line      matrix // start of the line
	resources pdf.Value
	fonts     map[string]*font
	glyphs    []glyph
	path      path
	pictures  float64 // total area in square points
	ink       bool    // letters, a picture or a shape were drawn
	unknown   int     // characters without a text
	damage    error   // of the first damaged stream
	depth     int
	begins    bool
	parents   pdf.Value       // structure elements of the page's marked contents, by number
	marked    []markedContent // open marked contents
	described map[int]bool
}

// A markedContent is drawn content that belongs to a structure element.
type markedContent struct {
	number int // on its page; -1 for none
	figure bool
	actual string // its text, if short
	from   int    // index of its first glyph
}

// content returns the readable bytes of a page's content.
func content(v pdf.Value) (out []byte, err error) {
	if v.Kind() != pdf.Array {
		return streamBytes(v)
	}
	for i := range v.Len() {
		part := v.Index(i)
		data, e := streamBytes(part)
		if part.Kind() != pdf.Stream {
			e = errors.New("the file is damaged: part of a page is missing")
		}
		out, err = append(append(out, data...), '\n'), cmp.Or(err, e)
		if len(out) > maxContentBytes {
			break
		}
	}
	return out, err
}

// streamBytes decodes a stream. If the stream is damaged, it returns the data before the damage,
// and the error.
func streamBytes(v pdf.Value) (data []byte, err error) {
	if v.Kind() != pdf.Stream {
		return nil, nil
	}
	defer func() {
		// The library panics on unknown filters and on damage.
		if r := recover(); r != nil {
			data, err = nil, fmt.Errorf("%v", r)
			if name, ok := strings.CutPrefix(err.Error(), "unknown filter "); ok {
				err = filterError(name)
			}
		}
	}()
	if v.Key("Length").Kind() != pdf.Integer { // else the library reads it as empty
		return nil, errors.New("the file is damaged: the length of a page's content is missing")
	}
	in := v.Reader()
	defer in.Close()
	data, err = io.ReadAll(io.LimitReader(in, maxContentBytes))
	if err == nil && len(data) == maxContentBytes {
		err = fmt.Errorf("a page has more than %d MB of content", maxContentBytes>>20)
	}
	return data, err
}

// A filterError names a filter that the library cannot decode.
type filterError string

func (e filterError) Error() string {
	return fmt.Sprintf("the filter %.40q is not supported: save it again with another program", string(e))
}

// draw executes a content stream.
func (d *drawing) draw(src []byte) {
	interpret(src, func(op string, args []operand) {
		if len(d.glyphs) < maxGlyphs {
			d.operator(op, args)
		}
	})
}

func numbers(args []operand, n int) ([]float64, bool) {
	if len(args) < n {
		return nil, false
	}
	out := make([]float64, n)
	for i, a := range args[len(args)-n:] {
		out[i] = a.num
	}
	return out, true
}

// operator executes an operator.
func (d *drawing) operator(op string, args []operand) {
	switch op {
	case "f", "F", "f*", "B", "B*", "b", "b*", "S", "s", "sh", "BI", "Tj", "TJ", "'", "\"":
		d.ink = true
	}
	if o, ok := operations[op]; ok {
		if n, ok := numbers(args, o.operands); ok {
			o.do(d, n)
		}
		return
	}
	last := len(args) - 1
	switch {
	case op == "BMC", op == "BDC":
		d.mark(args)
	case last < 0:
	case op == "Do":
		d.form(args[0].str)
	case op == "Tf" && last > 0 && args[last-1].kind == opName:
		d.font, d.size = d.fontNamed(args[last-1].str), args[last].num
	case op == "Tj":
		d.show(args)
	case op == "TJ":
		d.show(args[last].items)
	case op == "'":
		d.move(0, -d.leading)
		d.show(args)
	case op == "\"" && last > 1:
		d.wordSpace, d.charSpace = args[0].num, args[1].num
		d.move(0, -d.leading)
		d.show(args[2:])
	}
}

// operations are the operators without operands or with numbers as operands.
var operations = map[string]struct {
	operands int
	do       func(d *drawing, n []float64)
}{
	"q": {0, func(d *drawing, _ []float64) {
		if len(d.saved) < 512 {
			d.saved = append(d.saved, d.state)
		}
	}},
	"Q": {0, func(d *drawing, _ []float64) {
		if n := len(d.saved); n > 0 {
			d.state, d.saved = d.saved[n-1], d.saved[:n-1]
		}
	}},
	"cm":  {6, func(d *drawing, n []float64) { d.ctm = matrix(n).mul(d.ctm) }},
	"EMC": {0, func(d *drawing, _ []float64) { d.unmark() }},

	"Tc": {1, func(d *drawing, n []float64) { d.charSpace = n[0] }},
	"Tw": {1, func(d *drawing, n []float64) { d.wordSpace = n[0] }},
	"Tz": {1, func(d *drawing, n []float64) { d.scale = n[0] / 100 }},
	"TL": {1, func(d *drawing, n []float64) { d.leading = n[0] }},
	"Ts": {1, func(d *drawing, n []float64) { d.rise = n[0] }},
	"Tr": {1, func(d *drawing, n []float64) { d.mode = int(n[0]) }},

	"BT": {0, func(d *drawing, _ []float64) { d.text, d.line, d.begins = identity, identity, true }},
	"Tm": {6, func(d *drawing, n []float64) { d.text, d.line, d.begins = matrix(n), matrix(n), true }},
	"T*": {0, func(d *drawing, _ []float64) { d.move(0, -d.leading) }},
	"Td": {2, func(d *drawing, n []float64) { d.move(n[0], n[1]) }},
	"TD": {2, func(d *drawing, n []float64) {
		d.leading = -n[1]
		d.move(n[0], n[1])
	}},

	"m":  {2, (*drawing).beginLine},
	"re": {4, (*drawing).rectangle},
	"l":  {2, func(d *drawing, n []float64) { d.path.lineTo(d.place(n[0], n[1])) }},
	"c":  {0, (*drawing).dropCurve}, "v": {0, (*drawing).dropCurve}, "y": {0, (*drawing).dropCurve},
	"h": {0, func(d *drawing, _ []float64) { d.path.close() }},
	"s": {0, (*drawing).closeAndStroke}, "b": {0, (*drawing).closeAndStroke}, "b*": {0, (*drawing).closeAndStroke},
	"S": {0, (*drawing).stroke}, "B": {0, (*drawing).stroke}, "B*": {0, (*drawing).stroke},
	"f": {0, (*drawing).fill}, "F": {0, (*drawing).fill}, "f*": {0, (*drawing).fill},
	"n": {0, func(d *drawing, _ []float64) { d.path.parts = nil }},
}

// mark begins a marked content.
func (d *drawing) mark(args []operand) {
	m := markedContent{number: -1, figure: len(args) > 0 && args[0].str == "Figure", from: len(d.glyphs)}
	if len(args) == 2 {
		entries := args[1].entries()
		if number, ok := entries["MCID"]; ok {
			m.number = int(number.num)
		}
		m.actual = textOf(entries["ActualText"].str)
	}
	if len(d.marked) < maxGlyphs {
		d.marked = append(d.marked, m)
	}
}

// textOf decodes a text string in UTF-16 with a byte order mark. It returns "" for other encodings
// and for texts longer than a glyph.
func textOf(s string) string {
	s, ok := strings.CutPrefix(s, "\xfe\xff")
	text, err := utf16BE.NewDecoder().String(s)
	if !ok || err != nil || len(text) > longestGlyph {
		return ""
	}
	return text
}

// unmark ends a marked content. Its actual text, if given, becomes one glyph in place of the drawn
// ones, since a letter with marks may be drawn as several glyphs in any order.
func (d *drawing) unmark() {
	n := len(d.marked) - 1
	if n < 0 {
		return
	}
	m := d.marked[n]
	d.marked = d.marked[:n]
	if m.actual == "" || m.from >= len(d.glyphs) {
		return
	}
	drawn := d.glyphs[m.from:]
	whole := slices.MaxFunc(drawn, func(a, b glyph) int { return cmp.Compare(a.X1-a.X0, b.X1-b.X0) })
	for _, g := range drawn {
		if g.Turn != whole.Turn || math.Abs(g.Y-whole.Y) > 0.6*whole.Size {
			return // it spans several lines
		}
		whole.X0, whole.X1 = min(whole.X0, g.X0), max(whole.X1, g.X1)
	}
	whole.Text, whole.Begins = m.actual, drawn[0].Begins
	d.glyphs = append(d.glyphs[:m.from], whole)
}

// addAlternative adds the alternative text of the figure or picture drawn at a position, once. The
// text is from the structure element of the enclosing marked content.
func (d *drawing) addAlternative(x, y float64, picture bool) {
	for _, m := range d.marked {
		if m.number < 0 || d.described[m.number] || !m.figure && !picture {
			continue
		}
		d.described[m.number] = true
		owner := d.parents.Index(m.number)
		for range 3 { // a caption or a link may be in between
			if text := alternative(owner); text != "" {
				place := matrix{1, 0, 0, 1, x, y}.mul(d.ctm)
				d.note("Picture: "+text, place[4], place[5])
				return
			}
			owner = owner.Key("P")
		}
	}
}

// alternative returns the alternative text of a structure element, or "" if it has only one word.
func alternative(part pdf.Value) string {
	words := strings.Fields(part.Key("Alt").Text())
	if len(words) < 2 {
		return ""
	}
	return strings.Join(words, " ")
}

// unmarkedPictures returns, by page, the pictures of a structure that have a position but no marked
// content. LibreOffice 7.4 writes such files.
func unmarkedPictures(structure pdf.Value) map[string][]pdf.Value {
	defer func() { _ = recover() }() // damage loses only these texts
	found := make(map[string][]pdf.Value)
	visited := 0
	var visit func(part pdf.Value, depth int)
	visit = func(part pdf.Value, depth int) {
		if visited++; visited > maxEntries || depth > maxDepth {
			return
		}
		kids := part.Key("K")
		if kids.IsNull() && part.Key("A").Key("BBox").Len() == 4 && alternative(part) != "" {
			page := part.Key("Pg").String()
			found[page] = append(found[page], part)
		}
		for i := range kids.Len() {
			if kid := kids.Index(i); kid.Kind() == pdf.Dict {
				visit(kid, depth+1)
			}
		}
	}
	visit(structure, 0)
	return found
}

// entryOf returns the entry with a number in a number tree.
func entryOf(tree pdf.Value, number int64, depth int) pdf.Value {
	for i := 0; i+1 < tree.Key("Nums").Len(); i += 2 {
		if tree.Key("Nums").Index(i).Int64() == number {
			return tree.Key("Nums").Index(i + 1)
		}
	}
	for i := range tree.Key("Kids").Len() {
		kid := tree.Key("Kids").Index(i)
		if limits := kid.Key("Limits"); depth < maxFormDepth && limits.Index(0).Int64() <= number && number <= limits.Index(1).Int64() {
			return entryOf(kid, number, depth+1)
		}
	}
	return pdf.Value{}
}

func (d *drawing) move(x, y float64) {
	d.line = matrix{1, 0, 0, 1, x, y}.mul(d.line)
	d.text, d.begins = d.line, true
}

func (d *drawing) fontNamed(name string) *font {
	v := d.resources.Key("Font").Key(name)
	key := v.String() // forms may use other names for the same font
	f := d.fonts[key]
	if f == nil {
		f = newFont(v)
		d.fonts[key] = f
	}
	return f
}

// show draws strings. The numbers between them move the pen.
func (d *drawing) show(args []operand) {
	for _, a := range args {
		switch a.kind {
		case opNumber:
			d.advance(-a.num / 1000 * d.size)
		case opString:
			d.showString(a.str)
		}
	}
}

func (d *drawing) advance(by float64) {
	if d.font != nil && d.font.vertical {
		d.text = matrix{1, 0, 0, 1, 0, by}.mul(d.text)
		return
	}
	d.text = matrix{1, 0, 0, 1, by * d.scale, 0}.mul(d.text)
}

func (d *drawing) showString(s string) {
	if d.font == nil {
		d.unknown += len(s)
		return
	}
	for _, c := range d.font.chars(s) {
		m := matrix{d.size * d.scale, 0, 0, d.size, 0, d.rise}.mul(d.text).mul(d.ctm)
		by := c.width*d.size + d.charSpace
		if c.space {
			by += d.wordSpace
		}
		if c.text == "" {
			d.unknown++
		} else if d.mode != 7 {
			d.add(c, m)
		}
		if d.font.vertical {
			by = -d.size - d.charSpace
		}
		d.advance(by)
		if len(d.glyphs) >= maxGlyphs {
			return
		}
	}
}

// add records a glyph, rotated so that its line runs to the right.
func (d *drawing) add(c char, m matrix) {
	turn := int(math.Round(math.Atan2(m[1], m[0])/(math.Pi/2))+4) % 4
	x, y := turnPoint(turn, m[4], m[5])
	length := math.Hypot(m[0], m[1]) * c.width
	g := glyph{
		Text: c.text, X0: x, X1: x + length, Y: y, Size: math.Hypot(m[2], m[3]), Turn: turn, Bold: d.font.bold, Begins: d.begins,
	}
	if !g.isValid() {
		return
	}
	d.begins = false
	d.glyphs = append(d.glyphs, g)
}

// form draws a nested content stream, or records a picture.
func (d *drawing) form(name string) {
	switch x := d.resources.Key("XObject").Key(name); x.Key("Subtype").Name() {
	case "Form":
		d.drawForm(x)
	case "Image": // it fills the unit square
		d.ink = true
		d.pictures += math.Abs(d.ctm[0]*d.ctm[3] - d.ctm[1]*d.ctm[2])
		d.addAlternative(0, 1, true)
	}
}

// Limits of the annotations of a page.
const (
	maxAnnotations = 5000
	maxComment     = 10_000 // bytes
)

// lineOfNote is the line height of a note in points.
const lineOfNote = 10

// annotations draws fields and notes at their position on the page, and comments below it.
func (d *drawing) annotations(list pdf.Value) {
	comments := -100.0
	page := d.glyphs[:len(d.glyphs):len(d.glyphs)] // without annotations
	for i := range min(list.Len(), maxAnnotations) {
		a := list.Index(i)
		const hidden, noView = 1 << 1, 1 << 5
		if a.Key("F").Int64()&(hidden|noView) != 0 {
			continue
		}
		switch a.Key("Subtype").Name() {
		case "Widget":
			d.field(a, page)
		case "FreeText":
			d.appearance(a, a.Key("Contents").Text())
		case "Text", "Highlight", "Underline", "Squiggly", "StrikeOut", "Caret", "Ink", "Square", "Circle", "Line", "Polygon", "Stamp":
			if text := strings.TrimSpace(a.Key("Contents").Text()); text != "" && len(text) < maxComment {
				comments -= lineOfNote * float64(2+strings.Count(text, "\n"))
				d.note("Comment: "+text, 0, comments)
			}
		}
	}
}

// rectangle returns the corners of an annotation; ok is false if the annotation has no rectangle.
func rectangle(a pdf.Value) (left, bottom, right, top float64, ok bool) {
	r := a.Key("Rect")
	x, y, x2, y2 := r.Index(0).Float64(), r.Index(1).Float64(), r.Index(2).Float64(), r.Index(3).Float64()
	return min(x, x2), min(y, y2), max(x, x2), max(y, y2), r.Len() == 4
}

// appearance draws the appearance of an annotation, or its text if it has no appearance.
func (d *drawing) appearance(a pdf.Value, text string) {
	left, bottom, _, top, ok := rectangle(a)
	look := a.Key("AP").Key("N")
	box := look.Key("BBox")
	switch {
	case !ok:
	case look.Kind() == pdf.Stream:
		d.state = state{ctm: matrix{1, 0, 0, 1, left - box.Index(0).Float64(), bottom - box.Index(1).Float64()}, scale: 1}
		d.drawForm(look)
	default:
		d.note(text, left, top)
	}
}

// inherited returns an entry of a field or of its nearest ancestor.
func inherited(a pdf.Value, key string) pdf.Value {
	for depth := 0; depth < maxFormDepth && a.Key(key).IsNull(); depth++ {
		a = a.Key("Parent")
	}
	return a.Key(key)
}

// field draws a form field on the line of its label: a check box or radio button as [x] or [ ],
// with its name if it has no label. Push buttons have no value.
func (d *drawing) field(a pdf.Value, page []glyph) {
	const radio, push = 1 << 15, 1 << 16
	left, bottom, right, top, ok := rectangle(a)
	flags, isButton := inherited(a, "Ff").Int64(), inherited(a, "FT").Name() == "Btn"
	if !ok || isButton && flags&push != 0 {
		return
	}
	label, found := labelOf(page, left, bottom, right, top, isButton)
	drawn := len(d.glyphs)
	if !isButton {
		value := inherited(a, "V")
		text := value.Text()
		for i := range min(value.Len(), maxAnnotations) { // several may be selected
			text += value.Index(i).Text() + "\n"
		}
		d.appearance(a, text)
		added := d.glyphs[drawn:]
		switch apart := func(g glyph) bool { return g.Y != added[0].Y || g.Turn != 0 }; {
		case len(added) == 0:
		case !found && !textAbove(page, left, right, top) && nameOf(a) != "":
			d.glyphs = slices.Insert(d.glyphs, drawn, labelBefore(added[0], nameOf(a)+":"))
		case found && !slices.ContainsFunc(added, apart): // it is a single line
			for i := range added {
				added[i].Y = label.Y
			}
		}
		return
	}
	state := cmp.Or(a.Key("AS").Name(), inherited(a, "V").Name())
	text := "[ ]"
	if state != "" && state != "Off" {
		text = "[x]"
	}
	if !found {
		text += " " + nameOf(a)
		for _, option := range a.Key("AP").Key("N").Keys() {
			if flags&radio != 0 && option != "Off" {
				text += ": " + option
			}
		}
		label.Y = (bottom+top)/2 - 0.35*lineOfNote
	}
	if d.note(text, left, label.Y+lineOfNote); found && len(d.glyphs) > drawn {
		sign := &d.glyphs[drawn]
		if sign.X1 = min(sign.X1, right); label.X0 > left {
			sign.X1 = max(label.X0-wordGap*2*label.Size, left)
		}
	}
}

// nameOf returns the description of a field without a label on the page, or else its name.
func nameOf(a pdf.Value) string {
	return cmp.Or(inherited(a, "TU").Text(), inherited(a, "T").Text())
}

// textAbove reports whether there is a label close above a field.
func textAbove(page []glyph, left, right, top float64) bool {
	return slices.ContainsFunc(page, func(g glyph) bool {
		return g.Turn == 0 && g.X0 < right && g.X1 > left && g.Y > top-0.5*g.Size && g.Y < top+1.2*g.Size && !isBlank(g.Text)
	})
}

// labelBefore returns a label to the left of a glyph, as a word of its line.
func labelBefore(g glyph, label string) glyph {
	g.Text, g.X1 = label, g.X0-2*wordGap*g.Size
	g.X0 = g.X1 - g.Size*float64(len(label))/2
	return g
}

// labelOf returns a glyph of the text next to a field: on its left, or preferably on its right if
// it is a button.
func labelOf(page []glyph, left, bottom, right, top float64, isButton bool) (label glyph, found bool) {
	const farthest = 200.0
	least := farthest
	for _, g := range page {
		gap := left - g.X1
		if isButton {
			gap = max(3*gap, g.X0-right)
		}
		if middle := g.Y + 0.3*g.Size; g.Turn == 0 && middle > bottom && middle < top && gap > -g.Size && gap < least && !isBlank(g.Text) {
			label, least, found = g, gap, true
		}
	}
	return label, found
}

// note adds the text of a field or note without an appearance, one glyph per line, from the upper
// left corner of its rectangle.
func (d *drawing) note(text string, x, y float64) {
	const size = lineOfNote
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		y -= size
		g := glyph{Text: line, X0: x, X1: x + size*float64(len(line))/2, Y: y, Size: size, Begins: true}
		if strings.TrimSpace(line) != "" && g.isValid() {
			d.glyphs = append(d.glyphs, g)
		}
	}
}

func (d *drawing) drawForm(x pdf.Value) {
	if d.depth >= maxFormDepth {
		return
	}
	outer := *d
	d.depth++
	if m := x.Key("Matrix"); m.Len() == 6 {
		var n matrix
		for i := range n {
			n[i] = m.Index(i).Float64()
		}
		d.ctm = n.mul(d.ctm)
	}
	if r := x.Key("Resources"); r.Kind() == pdf.Dict {
		d.resources = r
	}
	d.saved = nil
	data, err := streamBytes(x)
	d.draw(data)
	inner := *d
	*d = outer
	d.glyphs, d.pictures, d.unknown, d.damage = inner.glyphs, inner.pictures, inner.unknown, cmp.Or(inner.damage, err)
	d.ink = inner.ink
}
