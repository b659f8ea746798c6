package office

import (
	"bytes"
	"cmp"
	"path"
	"strings"
)

// An odfPlace is the position of a paragraph in lists.
type odfPlace struct {
	list   *listKind
	depth  int // 0 outside any list
	counts *[listLevels]int
}

// blocks reads paragraphs, lists and tables at any depth.
func (o *odfReader) blocks(x *xmlReader, at odfPlace, out func(Block)) error {
	return x.each(o.reader(x, at, out))
}

// reader returns a function that reads an element of blocks.
func (o *odfReader) reader(x *xmlReader, at odfPlace, out func(Block)) func(e element) error {
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
		case "annotation":
			b, err := o.annotation(x)
			out(b)
			return err
		case "tracked-changes", "table-of-content", "alphabetical-index", "illustration-index", "table-index", "object-index", "user-index",
			"sequence-decls", "variable-decls", "user-field-decls", "dde-connection-decls", "binary-data",
			"settings", "notes", "event-listeners", "image-map", "image":
			return nil
		case "title", "desc":
			if b, ok := picture(x.text()); ok {
				out(b)
			}
			return nil
		case "forms":
			return o.form(x, out)
		case "object", "object-ole":
			return o.object(x, e, out)
		}
		return x.each(do)
	}
	return do
}

// form reads the values of the controls of a form.
func (o *odfReader) form(x *xmlReader, out func(Block)) error {
	return x.find(func(e element) {
		value := cmp.Or(attr(e, "current-value"), attr(e, "value"))
		if attr(e, "current-state") == "checked" {
			value = "checked"
		}
		if value != "" && attr(e, "control-implementation") != "" {
			out(Block{Text: cmp.Or(attr(e, "label"), attr(e, "title"), attr(e, "name"), "Field") + ": " + value})
		}
	})
}

// object reads the title and the table of an embedded chart or sheet.
func (o *odfReader) object(x *xmlReader, e element, out func(Block)) error {
	part := path.Join(attr(e, "href"), "content.xml")
	if o.shown[part] {
		return nil
	}
	if o.has(part) {
		o.shown[part] = true
		in, err := o.xml(part)
		if err != nil {
			return err
		}
		defer in.close()
		x = in
	}
	found := false
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "title", "subtitle":
			found = true
			out(Block{Text: "Chart: " + oneLine(x.text())})
			return nil
		case "table":
			found = true
			return o.table(x, out)
		}
		return x.each(do)
	}
	err := x.each(do)
	if !found {
		o.note("an embedded object in it, such as a formula, is not read")
	}
	return err
}

func (o *odfReader) paragraph(x *xmlReader, e element, out func(Block)) error {
	style := o.styles.of(attr(e, "style-name"))
	var after []Block
	var text strings.Builder
	err := o.inline(x, &text, func(b Block) { after = append(after, o.hold(b)) })
	b := Block{Text: text.String()}
	if strings.TrimSpace(b.Text) != "" && !style.hidden {
		switch {
		case style.title:
			b.Kind, b.Level, b.Marker = Heading, 1, titleMarker
		case e.Name.Local == "h":
			b.Kind, b.Level = Heading, number(e, "outline-level", 1)
		case style.level > 0:
			b.Kind, b.Level = Heading, style.level
		}
		out(b)
	}
	for _, b := range after {
		out(b)
	}
	return err
}

// inline reads the content of a paragraph. Notes and boxes go to after.
func (o *odfReader) inline(x *xmlReader, text *strings.Builder, after func(Block)) error {
	var do func(e element) error
	space := func() bool {
		s := text.String()
		return s == "" || strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\n")
	}
	add := func(s []byte) {
		// White space is one space, and none at the start.
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
		case "span":
			if o.styles.of(attr(e, "style-name")).hidden {
				return nil
			}
			return x.mixed(do, add)
		case "ruby-text", "hidden-text", "placeholder", "annotation-end", "tracked-changes", "title", "desc", "script":
			return nil
		case "object", "object-ole":
			return o.object(x, e, after)
		default:
			return x.mixed(do, add)
		}
		return nil
	}
	return x.mixed(do, add)
}

func (o *odfReader) footnote(x *xmlReader, e element) (Block, error) {
	label := "Footnote"
	if attr(e, "note-class") == "endnote" {
		label = "Endnote"
	}
	var blocks []Block
	err := x.each(func(e element) error {
		switch e.Name.Local {
		case "note-citation":
			label += " " + oneLine(x.text())
		case "note-body":
			return o.blocks(x, odfPlace{}, func(b Block) { blocks = append(blocks, b) })
		}
		return nil
	})
	return Block{Text: label + ": " + lineOf(blocks), note: true}, err
}

func (o *odfReader) annotation(x *xmlReader) (Block, error) {
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
	return Block{Text: "Comment (" + author + "): " + oneLine(text.String()), note: true}, err
}

// list reads a list with its nested lists.
func (o *odfReader) list(x *xmlReader, e element, at odfPlace, out func(Block)) error {
	in := odfPlace{list: at.list, depth: min(at.depth+1, listLevels), counts: at.counts}
	if l, ok := o.lists[attr(e, "style-name")]; ok {
		in.list = l
	}
	if in.counts == nil {
		in.counts = new([listLevels]int)
	}
	if attr(e, "continue-numbering") == "true" && at.depth == 0 {
		*in.counts = o.counted
	} else {
		in.counts[in.depth-1] = 0
	}
	defer func() {
		if at.depth == 0 {
			o.counted = *in.counts
		}
	}()
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

// listItem reads an item: the marker goes before its first paragraph, and
// further paragraphs are appended to that.
func (o *odfReader) listItem(x *xmlReader, e element, in odfPlace, out func(Block)) error {
	at := in.depth - 1
	count := &in.counts[at]
	*count++
	marker := bullet
	if start := number(e, "start-value", 0); start > 0 {
		*count = start
	} else if *count == 1 && in.list != nil {
		*count = max(in.list[at].start, 1)
	}
	if in.list != nil && in.list[at].format != bulletFormat {
		marker, _ = itemMarker(in.list, in.counts, at)
	}
	var item *Block
	flush := func() {
		if item != nil {
			out(*item)
			item = nil
		}
	}
	err := o.blocks(x, in, func(b Block) {
		switch {
		case b.Kind == Paragraph && !b.note && item == nil && marker != "":
			b.Kind, b.Level, b.Marker = Item, at, marker
			item, marker = &b, ""
		case b.Kind == Paragraph && !b.note && item != nil:
			item.Text += "\n" + b.Text
		default:
			if b.Kind == Heading && marker != "" && marker != bullet {
				b.Text = marker + " " + b.Text
				marker = ""
			}
			flush()
			out(b)
		}
	})
	flush()
	return err
}
