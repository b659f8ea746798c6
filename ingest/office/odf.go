package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// maxFlatToken is the length of a token in a flat file, where pictures are
// written as text.
const maxFlatToken = 32 << 20

// openDocument reads texts, sheets, presentations and drawings of the
// OpenDocument format (odt, ods, odp, odg and their templates).
func (f *file) openDocument() error {
	if f.encryptedBy("META-INF/manifest.xml", "encryption-data") {
		return errors.New("it is protected with a password: save it without one")
	}
	o := newOpenDocument(f, "")
	for _, part := range []string{"meta.xml", "styles.xml"} {
		if x, err := f.xml(part); err == nil {
			if err := o.document(x); err != nil {
				f.note(fmt.Sprintf("%s in it could be read only in part: %v", part, err))
			}
			x.close()
		}
	}
	x, err := f.xml("content.xml")
	if err != nil {
		return fmt.Errorf("its text (content.xml) cannot be read: %w", err)
	}
	defer x.close()
	return o.end(o.document(x))
}

// flatOpenDocument reads the same in one file of XML (fodt, fods, fodp).
func (f *file) flatOpenDocument(data []byte) error {
	if len(data) > maxOut {
		return &limitError{fmt.Sprintf("it is larger than %d MB", maxOut>>20)}
	}
	o := newOpenDocument(f, "")
	return o.end(o.document(newXML(io.NopCloser(bytes.NewReader(data)), maxFlatToken)))
}

// encryptedBy reports whether a part has an element that stands for encryption.
func (f *file) encryptedBy(part, name string) bool {
	x, err := f.xml(part)
	if err != nil {
		return false
	}
	defer x.close()
	found := false
	var do func(e element) error
	do = func(e element) error {
		found = found || e.Name.Local == name
		return x.each(do)
	}
	_ = x.each(do) // a damaged one encrypts nothing
	return found
}

type odfStyle struct {
	parent string
	name   string // as people see it
	level  int    // of a heading
	hidden bool
}

type odfList struct {
	levels [listLevels + 1]odfLevel // from 1
}

type odfLevel struct {
	format, prefix, suffix string
	start, shown           int // how many levels of numbers are shown
}

type odfReader struct {
	*file
	folder string // of the parts that it leads to
	depth  int    // of documents in documents
	styles map[string]odfStyle
	lists  map[string]odfList
	title  string // of the properties
	below  int    // 1 when all headings stand below the title
	page   int    // or sheet, the last
}

func newOpenDocument(f *file, folder string) *odfReader {
	return &odfReader{file: f, folder: folder, styles: map[string]odfStyle{}, lists: map[string]odfList{}}
}

// end gives the title of the properties the last word.
func (o *odfReader) end(err error) error {
	o.w.Meta("title", o.title)
	return err
}

// document reads one file of XML, which may hold any of the document's parts.
func (o *odfReader) document(x *xmlReader) error {
	return x.each(func(root element) error {
		return x.each(func(e element) error {
			switch e.Name.Local {
			case "meta":
				return o.meta(x)
			case "styles", "automatic-styles":
				return o.readStyles(x)
			case "body":
				return o.body(x)
			}
			return nil
		})
	})
}

func (o *odfReader) meta(x *xmlReader) error {
	return x.each(func(e element) error {
		text := x.text()
		switch e.Name.Local {
		case "title":
			o.title = strings.TrimSpace(text)
		case "initial-creator", "creator":
			o.w.Meta("author", text)
		case "creation-date":
			o.w.Meta("created", text)
		case "date":
			o.w.Meta("modified", text)
		case "keyword":
			o.w.Meta("keywords", text)
		case "language", "description":
			o.w.Meta(e.Name.Local, text)
		}
		return nil
	})
}

func (o *odfReader) readStyles(x *xmlReader) error {
	return x.each(func(e element) error {
		if len(o.styles)+len(o.lists) > maxEntries {
			return nil
		}
		name := attr(e, "name")
		switch e.Name.Local {
		case "style":
			s := odfStyle{parent: attr(e, "parent-style-name"), name: cmp.Or(attr(e, "display-name"), name), level: number(e, "default-outline-level", 0)}
			err := x.each(func(e element) error {
				s.hidden = s.hidden || e.Name.Local == "text-properties" && attr(e, "display") == "none"
				return nil
			})
			o.styles[name] = s
			return err
		case "list-style":
			var l odfList
			err := x.each(func(e element) error {
				at := number(e, "level", 0)
				if at < 1 || at > listLevels {
					return nil
				}
				level := odfLevel{start: number(e, "start-value", 1), shown: number(e, "display-levels", 1),
					prefix: attr(e, "num-prefix"), suffix: attr(e, "num-suffix")}
				if e.Name.Local == "list-level-style-number" {
					level.format = attr(e, "num-format")
				}
				if len(level.prefix)+len(level.suffix) > 64 {
					level.prefix, level.suffix = "", ""
				}
				l.levels[at] = level
				return nil
			})
			o.lists[name] = l
			return err
		}
		return nil
	})
}

// is reports whether a style is, or is based on, the one that has this name.
func (o *odfReader) is(style, name string) bool {
	for range 20 {
		s, ok := o.styles[style]
		if style == name || ok && s.name == name {
			return true
		}
		if style = s.parent; style == "" {
			return false
		}
	}
	return false
}

// outline gives the level of headings that a style makes of its paragraphs.
func (o *odfReader) outline(style string) int {
	for range 20 {
		s, ok := o.styles[style]
		if !ok || s.level > 0 {
			return s.level
		}
		style = s.parent
	}
	return 0
}

func (o *odfReader) body(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "spreadsheet":
			return o.sheets(x)
		case "presentation", "drawing":
			return o.pages(x)
		}
		return o.blocks(x, odfPlace{}, o.out)
	})
}

// out writes a block as it comes.
func (o *odfReader) out(b block) {
	if b.kind == aHeading {
		if b.marker == titleMarker {
			o.w.Meta("title", b.text)
			o.below = 1
		} else {
			b.level += o.below
		}
	}
	o.write(b)
}

// An odfPlace says where in lists a paragraph stands.
type odfPlace struct {
	list   *odfList
	level  int // 0 is outside any list
	counts *[listLevels + 1]int
}

// blocks reads paragraphs, lists and tables, in whatever they are wrapped.
func (o *odfReader) blocks(x *xmlReader, at odfPlace, out func(block)) error {
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "section":
			if attr(e, "display") == "none" {
				return nil
			}
		case "p", "h":
			return o.paragraph(x, e, out)
		case "list":
			return o.list(x, e, at, out)
		case "table":
			return o.table(x, out)
		case "object", "object-ole":
			return o.object(x, e, out)
		case "annotation":
			b, err := o.annotation(x)
			out(b)
			return err
		case "tracked-changes", "table-of-content", "alphabetical-index", "illustration-index", "table-index", "object-index", "user-index",
			"forms", "sequence-decls", "variable-decls", "user-field-decls", "dde-connection-decls", "title", "desc", "binary-data",
			"settings", "notes", "event-listeners", "image-map", "plot-area", "legend", "image":
			if e.Name.Local == "title" && strings.HasSuffix(e.Name.Space, "chart:1.0") {
				return x.each(do)
			}
			return nil
		}
		return x.each(do)
	}
	return x.each(do)
}

func (o *odfReader) paragraph(x *xmlReader, e element, out func(block)) error {
	style := attr(e, "style-name")
	var after []block
	var text strings.Builder
	err := o.inline(x, &text, func(b block) { after = append(after, o.hold(b)) })
	b := block{text: text.String()}
	if strings.TrimSpace(b.text) != "" && !o.hides(style) {
		switch level := o.outline(style); {
		case o.is(style, "Title"):
			b.kind, b.level, b.marker = aHeading, 1, titleMarker
		case e.Name.Local == "h":
			b.kind, b.level = aHeading, number(e, "outline-level", 1)
		case level > 0:
			b.kind, b.level = aHeading, level
		}
		out(b)
	}
	for _, b := range after {
		out(b)
	}
	return err
}

// hides reports whether text of the style is not shown.
func (o *odfReader) hides(style string) bool {
	for range 20 {
		s, ok := o.styles[style]
		if !ok {
			return false
		}
		if s.hidden {
			return true
		}
		style = s.parent
	}
	return false
}

// inline reads what stands in a paragraph. Notes, boxes and objects come
// after it.
func (o *odfReader) inline(x *xmlReader, text *strings.Builder, after func(block)) error {
	var do func(e element) error
	space := func() bool {
		s := text.String()
		return s == "" || strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\n")
	}
	add := func(s []byte) {
		// White space of the file is one space, and none at the start.
		for i, word := range bytes.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' }) {
			if lead := i > 0 || strings.ContainsRune(" \n\t\r", rune(s[0])); lead && !space() {
				text.WriteByte(' ')
			}
			text.Write(word)
		}
		if len(s) > 0 && strings.ContainsRune(" \n\t\r", rune(s[len(s)-1])) && !space() {
			text.WriteByte(' ')
		}
	}
	do = func(e element) error {
		switch e.Name.Local {
		case "s":
			text.WriteString(strings.Repeat(" ", min(max(number(e, "c", 1), 1), 100)))
		case "tab":
			text.WriteByte('\t')
		case "line-break":
			text.WriteByte('\n')
		case "note":
			b, err := o.footnote(x, e)
			after(b)
			return err
		case "annotation":
			b, err := o.annotation(x)
			after(b)
			return err
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "caption", "text-box", "list", "table":
			return o.blocks(x, odfPlace{}, after)
		case "object", "object-ole":
			return o.object(x, e, after)
		case "span":
			if o.hides(attr(e, "style-name")) {
				return nil
			}
			return x.mixed(do, add)
		case "ruby-text", "hidden-text", "placeholder", "annotation-end", "tracked-changes", "title", "desc", "script":
			return nil
		default:
			return x.mixed(do, add)
		}
		return nil
	}
	return x.mixed(do, add)
}

func (o *odfReader) footnote(x *xmlReader, e element) (block, error) {
	label := "Footnote"
	if attr(e, "note-class") == "endnote" {
		label = "Endnote"
	}
	var blocks []block
	err := x.each(func(e element) error {
		switch e.Name.Local {
		case "note-citation":
			label += " " + oneLine(x.text())
		case "note-body":
			return o.blocks(x, odfPlace{}, func(b block) { blocks = append(blocks, b) })
		}
		return nil
	})
	return block{text: label + ": " + oneLine(cell{blocks: blocks}.text()), note: true}, err
}

func (o *odfReader) annotation(x *xmlReader) (block, error) {
	author := "unnamed"
	var text strings.Builder
	err := x.each(func(e element) error {
		switch e.Name.Local {
		case "creator":
			author = cmp.Or(oneLine(x.text()), author)
		case "p", "list":
			text.WriteString(x.text() + " ")
		}
		return nil
	})
	return block{text: "Comment (" + author + "): " + oneLine(text.String()), note: true}, err
}

// list reads a list and those in it.
func (o *odfReader) list(x *xmlReader, e element, at odfPlace, out func(block)) error {
	in := odfPlace{list: at.list, level: min(at.level+1, listLevels), counts: at.counts}
	if l, ok := o.lists[attr(e, "style-name")]; ok {
		in.list = &l
	}
	if in.counts == nil {
		in.counts = new([listLevels + 1]int)
	}
	in.counts[in.level] = 0
	return x.each(func(e element) error {
		switch e.Name.Local {
		case "list-item":
			return o.listItem(x, e, in, out)
		case "list-header":
			return o.blocks(x, in, out)
		}
		return nil
	})
}

// listItem reads an item: its first paragraph is led by the marker, and
// further ones go on with it.
func (o *odfReader) listItem(x *xmlReader, e element, in odfPlace, out func(block)) error {
	level := odfLevel{}
	if in.list != nil {
		level = in.list.levels[in.level]
	}
	in.counts[in.level]++
	if start := number(e, "start-value", 0); start > 0 {
		in.counts[in.level] = start
	} else if in.counts[in.level] == 1 && level.start > 1 {
		in.counts[in.level] = level.start
	}
	var item *block
	flush := func() {
		if item != nil {
			out(*item)
			item = nil
		}
	}
	marker := in.marker(level)
	err := o.blocks(x, in, func(b block) {
		switch {
		case b.kind == aParagraph && !b.note && item == nil && marker != "":
			b.kind, b.level, b.marker = anItem, in.level-1, marker
			item, marker = &b, ""
		case b.kind == aParagraph && !b.note && item != nil:
			item.text += "\n" + b.text
		default:
			if b.kind == aHeading && marker != "" && marker != bullet {
				b.text = marker + " " + b.text
				marker = ""
			}
			flush()
			out(b)
		}
	})
	flush()
	return err
}

// marker writes what stands in front of the item that is counted.
func (in odfPlace) marker(level odfLevel) string {
	if level.format == "" {
		return bullet
	}
	var numbers []string
	for i := max(1, in.level-level.shown+1); i <= in.level; i++ {
		format := level.format
		if in.list != nil && in.list.levels[i].format != "" {
			format = in.list.levels[i].format
		}
		name := map[string]string{"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "一, 二, 三, ...": "chineseCounting"}[format]
		numbers = append(numbers, itemNumber(name, max(in.counts[i], 1)))
	}
	return level.prefix + strings.Join(numbers, ".") + level.suffix
}

// table reads a table of a text or a slide.
func (o *odfReader) table(x *xmlReader, out func(block)) error {
	var rows [][]cell
	down := map[int]int{} // rows that a cell still covers, by column
	names := -1
	heads := false
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "table-row":
			row, err := o.tableRow(x, down)
			for range min(max(number(e, "number-rows-repeated", 1), 1), maxRepeats) {
				o.hold(block{})
				rows = append(rows, row)
			}
			return err
		case "table-header-rows":
			heads = true
			err := x.each(do)
			if names < 0 {
				names = len(rows)
			}
			return err
		case "title", "desc", "table-column", "table-columns", "table-header-columns", "forms":
			return nil
		}
		return x.each(do)
	}
	err := x.each(do)
	if !heads || names >= len(rows) {
		names = -1
	}
	for _, b := range tableBlocks(rows, names) {
		out(b)
	}
	return err
}

// maxRepeats bounds how often a row or cell may be repeated that holds anything.
const maxRepeats = 1000

func (o *odfReader) tableRow(x *xmlReader, down map[int]int) (row []cell, err error) {
	column := 0
	err = x.each(func(e element) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		covered := e.Name.Local == "covered-table-cell"
		c := cell{span: 1}
		o.hold(block{})
		err := o.blocks(x, odfPlace{}, func(b block) { c.blocks = append(c.blocks, o.hold(b)) })
		for range min(max(number(e, "number-columns-repeated", 1), 1), maxColumns-min(column, maxColumns)) {
			switch last := len(row) - 1; {
			case covered && down[column] > 0:
				down[column]--
				row = append(row, cell{span: 1, merged: true})
			case covered && last >= 0:
				row[last].span++
			default:
				row = append(row, c)
			}
			if rows := number(e, "number-rows-spanned", 1); rows > 1 && !covered {
				down[column] = rows - 1
			}
			column++
		}
		return err
	})
	return row, err
}

// object reads a chart or a formula that is a document of its own.
func (o *odfReader) object(x *xmlReader, e element, out func(block)) error {
	if href := attr(e, "href"); href != "" && o.depth < 2 {
		folder := path.Join(o.folder, strings.TrimPrefix(href, "./"))
		in, err := o.xml(path.Join(folder, "content.xml"))
		if err != nil {
			return nil // a picture of it stands beside it
		}
		defer in.close()
		return o.embedded(in, folder, out)
	}
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "math":
			return mathParagraph(x, out)
		case "document":
			return x.each(func(e element) error {
				if e.Name.Local == "body" {
					return o.blocks(x, odfPlace{}, out)
				}
				return nil
			})
		}
		return x.each(do)
	}
	return x.each(do)
}

func (o *odfReader) embedded(x *xmlReader, folder string, out func(block)) error {
	inner := newOpenDocument(o.file, folder)
	inner.depth = o.depth + 1
	err := x.each(func(root element) error {
		if root.Name.Local == "math" {
			return mathParagraph(x, out)
		}
		return x.each(func(e element) error {
			if e.Name.Local == "body" {
				return inner.blocks(x, odfPlace{}, out)
			}
			return nil
		})
	})
	if err != nil && o.over == nil {
		o.note(fmt.Sprintf("an object in it could be read only in part: %v", err))
		err = nil
	}
	return err
}

// mathParagraph reads MathML as the row of its signs.
func mathParagraph(x *xmlReader, out func(block)) error {
	var text strings.Builder
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "mi", "mn", "mo", "mtext", "ms":
			text.WriteString(oneLine(x.text()))
			return nil
		case "annotation", "annotation-xml":
			return nil
		case "mfrac", "msup", "msub", "msubsup":
			sign := map[string]string{"mfrac": "/", "msup": "^", "msub": "_", "msubsup": "_"}[e.Name.Local]
			i := 0
			return x.each(func(e element) error {
				if i++; i == 3 {
					text.WriteByte('^')
				} else if i == 2 {
					text.WriteString(sign)
				}
				return do(e)
			})
		case "msqrt":
			text.WriteString("√")
		}
		return x.each(do)
	}
	err := x.each(do)
	out(block{text: text.String()})
	return err
}

// pages reads slides, or the pages of a drawing.
func (o *odfReader) pages(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.Name.Local != "page" {
			return nil
		}
		o.page++
		o.w.Page(o.page)
		var shapes []shape
		var notes, comments []block
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "notes":
				return x.each(func(e element) error {
					if attr(e, "class") != "notes" {
						return nil
					}
					return o.blocks(x, odfPlace{}, func(b block) { notes = append(notes, b) })
				})
			case "g", "a":
				return x.each(do)
			case "annotation":
				b, err := o.annotation(x)
				comments = append(comments, b)
				return err
			case "forms", "animations", "par", "event-listeners":
				return nil
			}
			sh := shape{place: attr(e, "class"), top: -1}
			if y, err := strconv.ParseFloat(strings.TrimRight(attr(e, "y"), "cminptx"), 64); err == nil && y >= 0 && y < 1e4 {
				sh.top = int(y * 100)
			}
			err := o.blocks(x, odfPlace{}, func(b block) {
				if b.kind == aHeading {
					b.kind, b.marker = aParagraph, ""
				}
				sh.blocks = append(sh.blocks, b)
			})
			switch {
			case attr(e, "placeholder") == "true", sh.place == "header", sh.place == "footer", sh.place == "date-time", sh.place == "page-number":
			default:
				shapes = append(shapes, sh)
			}
			return err
		}
		err := x.each(do)
		o.writeShapes(o.page, shapes)
		o.writeNotes(notes)
		o.write(comments...)
		return err
	})
}

// sheets reads the sheets of a workbook as [file.workbook] does.
func (o *odfReader) sheets(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.Name.Local != "table" {
			return nil
		}
		o.page++
		s := newSheet(o.file, cmp.Or(attr(e, "name"), "Sheet"+strconv.Itoa(o.page)))
		n := 0
		linked := false
		var after []block
		var do func(e element) error
		do = func(e element) error {
			switch e.Name.Local {
			case "table-source": // what is kept of another file
				linked = true
			case "table-row":
				cells, err := o.sheetRow(x, s, n+1, &after)
				repeats := max(number(e, "number-rows-repeated", 1), 1)
				if !linked {
					for i := range min(repeats, maxRepeats, max(len(cells)*maxRepeats, 1)) {
						if n+1+i <= maxSheetRows && o.over == nil {
							s.row(n+1+i, append([]sheetCell(nil), cells...))
						}
					}
				}
				n = min(n+repeats, maxSheetRows)
				return err
			case "shapes":
				return o.blocks(x, odfPlace{}, func(b block) { after = append(after, b) })
			case "table-row-group", "table-rows", "table-header-rows":
				return x.each(do)
			}
			return nil
		}
		err := x.each(do)
		s.end()
		if !linked {
			s.rest(after)
		}
		return err
	})
}

// sheetRow reads the cells of a row. after takes what belongs to cells but
// does not stand in them.
func (o *odfReader) sheetRow(x *xmlReader, s *sheet, n int, after *[]block) (out []sheetCell, err error) {
	column := 0
	err = x.each(func(e element) error {
		if e.Name.Local != "table-cell" && e.Name.Local != "covered-table-cell" {
			return nil
		}
		var texts []string
		err := o.blocks(x, odfPlace{}, func(b block) {
			if b.note || b.kind == aTable {
				*after = append(*after, b)
				return
			}
			texts = append(texts, cell{blocks: []block{b}}.text())
		})
		kind := attr(e, "value-type")
		c := sheetCell{text: strings.TrimSpace(strings.Join(texts, "\n")), value: kind != "" && kind != "string"}
		if c.text == "" {
			c.text = cmp.Or(attr(e, "string-value"), attr(e, "date-value"), attr(e, "time-value"), attr(e, "boolean-value"), attr(e, "value"))
		}
		repeats := max(number(e, "number-columns-repeated", 1), 1)
		if c.text != "" {
			right := column + number(e, "number-columns-spanned", 1) - 1
			bottom := n + number(e, "number-rows-spanned", 1) - 1
			if right > column || bottom > n {
				s.merges[n] = append(s.merges[n], cellRange{column, n, min(right, maxSheetColumns), min(bottom, maxSheetRows)})
			}
			for i := range min(repeats, maxRepeats) {
				c.column = column + i
				out = append(out, c)
			}
		}
		column = min(column+repeats, maxSheetColumns)
		return err
	})
	return out, err
}
