package office

import (
	"cmp"
	"path"
	"regexp"
	"strings"
)

// An odfPlace is the position of a paragraph in lists.
type odfPlace struct {
	list   *listKind
	depth  int // 0 outside lists
	counts *[listLevels]int
}

// blocks reads paragraphs, lists and tables at any depth.
func (o *odfReader) blocks(x *xmlReader, at odfPlace, out func(Block)) {
	x.each(o.reader(x, at, out))
	if o.picturePart != "" { // a description would follow the picture in its frame
		o.countPicture(o.picturePart)
		o.picturePart = ""
	}
}

// reader returns a function that reads a block element.
func (o *odfReader) reader(x *xmlReader, at odfPlace, out func(Block)) func(e element) {
	var do func(e element)
	do = func(e element) {
		switch e.Name.Local {
		case "section":
			if attr(e, "display") != "none" {
				x.each(do)
			} else {
				o.countUnread(unseen)
			}
		case "p", "h":
			o.paragraph(x, e, out)
		case "list":
			o.list(x, e, at, out)
		case "table":
			for _, b := range o.table(x, func(out func(Block)) func(e element) { return o.reader(x, odfPlace{}, out) }) {
				out(b)
			}
		case "annotation":
			out(o.annotation(x))
		case "tracked-changes":
			region := ""
			x.find(func(e element) {
				switch e.Name.Local {
				case "changed-region":
					region = attr(e, "id")
				case "deletion":
					o.deleted[region]++
				}
			})
		case "change":
			o.countDeletion(attr(e, "change-id"))
		case "table-of-content", "alphabetical-index", "illustration-index", "table-index", "object-index", "user-index",
			"sequence-decls", "variable-decls", "user-field-decls", "dde-connection-decls", "binary-data",
			"settings", "notes", "event-listeners", "image-map":
		case "frame":
			o.blocks(x, at, out)
		case "image":
			if href := attr(e, "href"); strings.HasPrefix(href, "Pictures/") { // not the preview of an object
				o.picturePart = href
			}
		case "title", "desc":
			if b, ok := picture(x.text()); ok {
				o.picturePart = ""
				out(b)
			}
		case "forms":
			o.form(x, out)
		case "object", "object-ole":
			o.object(x, e, out)
		default:
			x.each(do)
		}
	}
	return do
}

// form reads the values of form controls.
func (o *odfReader) form(x *xmlReader, out func(Block)) {
	x.find(func(e element) {
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
func (o *odfReader) object(x *xmlReader, e element, out func(Block)) {
	found := false
	read := func(x *xmlReader) {
		x.find(func(e element) {
			switch e.Name.Local {
			case "title", "subtitle":
				found = true
				out(Block{Text: "Chart: " + oneLine(x.text()), note: true})
			case "table":
				found = true
				o.reader(x, odfPlace{}, out)(e)
			case "annotation":
				if found = true; attr(e, "encoding") == "" {
					out(o.annotation(x))
				} else { // the source of a formula
					out(Block{Text: oneLine(x.text())})
				}
			}
		})
	}
	switch part := path.Join(attr(e, "href"), "content.xml"); {
	case o.shown[part], o.has(path.Clean(attr(e, "href"))): // a file, which is a document of its own
		return
	case o.has(part):
		o.shown[part] = true
		o.drawing(part, "chart or sheet", read)
	default:
		read(x)
	}
	if !found {
		o.addPartial("an embedded object in it, such as a formula, is not read")
	}
}

func (o *odfReader) paragraph(x *xmlReader, e element, out func(Block)) {
	style := o.styles.resolve(attr(e, "style-name"))
	var after []Block
	var text strings.Builder
	o.inline(x, &text, func(b Block) { after = append(after, o.countHeld(b)) })
	b := Block{Text: text.String()}
	if style.hidden && strings.TrimSpace(b.Text) != "" {
		o.countUnread(unseen)
	} else if strings.TrimSpace(b.Text) != "" {
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
}

var odfSpace = regexp.MustCompile(`[ \n\t\r]+`)

// inline reads the content of a paragraph and passes notes and text boxes to after.
func (o *odfReader) inline(x *xmlReader, text *strings.Builder, after func(Block)) {
	var do func(e element)
	add := func(s []byte) {
		// White space collapses to one space, or to nothing at the start.
		words := odfSpace.ReplaceAllString(string(s), " ")
		if s := text.String(); s == "" || strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\n") {
			words = strings.TrimPrefix(words, " ")
		}
		text.WriteString(words)
	}
	do = func(e element) {
		switch e.Name.Local {
		case "s":
			text.WriteString(strings.Repeat(" ", min(max(number(e, "c", 1), 1), 100)))
		case "tab":
			text.WriteByte('\t')
		case "line-break":
			text.WriteByte('\n')
		case "fieldmark":
			text.WriteString(field(x, e))
		case "note":
			after(o.footnote(x, e))
		case "frame", "custom-shape", "rect", "ellipse", "g", "line", "caption", "text-box", "list", "table":
			o.blocks(x, odfPlace{}, after)
		case "annotation", "object", "object-ole":
			o.reader(x, odfPlace{}, after)(e)
		case "hidden-text":
			o.countUnread(unseen)
		case "ruby-text":
			o.countUnread(rubies)
		case "change":
			o.countDeletion(attr(e, "change-id"))
		case "placeholder", "annotation-end", "tracked-changes", "title", "desc", "script":
		default:
			if e.Name.Local != "span" || !o.styles.resolve(attr(e, "style-name")).hidden {
				x.eachMixed(do, add)
			} else if x.text() != "" {
				o.countUnread(unseen)
			}
		}
	}
	x.eachMixed(do, add)
}

// countDeletion counts deletions at the place where they were made. Their text is at the start of
// the file.
func (o *odfReader) countDeletion(mark string) {
	for range o.deleted[mark] {
		o.countUnread(deletions)
	}
	delete(o.deleted, mark)
}

func (o *odfReader) footnote(x *xmlReader, e element) Block {
	label := "Footnote"
	if attr(e, "note-class") == "endnote" {
		label = "Endnote"
	}
	var blocks []Block
	x.each(func(e element) {
		switch e.Name.Local {
		case "note-citation":
			label += " " + oneLine(x.text())
		case "note-body":
			o.blocks(x, odfPlace{}, func(b Block) { blocks = append(blocks, b) })
		}
	})
	return Block{Text: label + ": " + lineOf(blocks), note: true}
}

func (o *odfReader) annotation(x *xmlReader) Block {
	author := "unnamed"
	var texts []string
	x.each(func(e element) {
		switch e.Name.Local {
		case "creator":
			author = cmp.Or(oneLine(x.text()), author)
		case "p", "list":
			texts = append(texts, oneLine(x.text()))
		}
	})
	return Block{Text: "Comment (" + author + "): " + oneLine(strings.Join(texts, " ")), note: true}
}

// list reads a list with its nested lists.
func (o *odfReader) list(x *xmlReader, e element, at odfPlace, out func(Block)) {
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
	x.each(func(e element) {
		switch e.Name.Local {
		case "list-item":
			o.listItem(x, e, in, out)
		case "list-header":
			o.blocks(x, in, out)
		}
	})
	if at.depth == 0 {
		o.counted = *in.counts
	}
}

// listItem reads an item. Its marker goes before its first block.
func (o *odfReader) listItem(x *xmlReader, e element, in odfPlace, out func(Block)) {
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
	o.blocks(x, in, func(b Block) {
		if marker != "" && !b.note {
			switch b.Kind {
			case Paragraph:
				b.Kind, b.Level, b.Marker = Item, at, marker
			case Heading:
				b.Text = strings.TrimPrefix(marker+" "+b.Text, bullet+" ")
			}
			marker = ""
		}
		out(b)
	})
}
