package office

import (
	"fmt"
	"strings"
)

// drawings reads the charts and texts on a sheet.
func (b *workbookReader) drawings(relations []relation) (out []block) {
	for _, drawing := range related(relations, "drawing") {
		s := &slideReader{file: b.file, relations: b.relations(drawing), shown: map[string]bool{}}
		if err := s.read(drawing); err != nil && b.over == nil {
			b.note(fmt.Sprintf("a drawing could be read only in part: %v", err))
		}
		for _, sh := range s.shapes {
			out = append(out, sh.blocks...)
		}
	}
	return out
}

// sheetComments reads the comments on cells, threaded or not.
func (b *workbookReader) sheetComments(part string) (out []block) {
	x, err := b.xml(part)
	if err != nil {
		return nil
	}
	defer x.close()
	var authors []string
	var do func(e element) error
	do = func(e element) error {
		switch e.Name.Local {
		case "author":
			authors = append(authors, x.text())
		case "comment", "threadedComment":
			author := b.people[attr(e, "personId")]
			if i := number(e, "authorId", -1); i >= 0 && i < len(authors) {
				author = authors[i]
			}
			text, err := richText(x)
			text = oneLine(text)
			if e.Name.Local == "comment" { // the text begins with the author's name
				text = strings.TrimSpace(strings.TrimPrefix(text, oneLine(author)+":"))
			}
			if text != "" {
				who := attr(e, "ref")
				if author != "" {
					who += ", " + author
				}
				out = append(out, b.hold(block{text: "Comment (" + who + "): " + text}))
			}
			return err
		default:
			return x.each(do)
		}
		return nil
	}
	if err := x.each(do); err != nil && b.over == nil {
		b.note(fmt.Sprintf("comments could be read only in part: %v", err))
	}
	return out
}

// persons returns the authors of threaded comments by id.
func (f *file) persons(part string) map[string]string {
	people := map[string]string{}
	x, err := f.xml(part)
	if err != nil {
		return nil
	}
	defer x.close()
	_ = x.each(func(root element) error { // comments without it have no names
		return x.each(func(e element) error {
			if len(people) < maxEntries {
				people[attr(e, "id")] = attr(e, "displayName")
			}
			return nil
		})
	})
	return people
}
