package office

import (
	"cmp"
	"regexp"
	"strings"
)

// styles are the styles of a text document by ID.
type styles map[string]style

type style struct {
	name, parent string
	level        int // heading level from 1; over 9 for body text, 0 if not given
	list         listRef
	hidden       bool // its text is hidden
	title        bool // style of the document's title
	contents     bool // style of lines in a table of contents
	bold         bool
}

// wordStyles reads the styles, up to any damage.
func (f *file) wordStyles(part string) styles {
	all := styles{}
	_ = f.elements(part, func(x *xmlReader, e element) {
		id := attr(e, "styleId")
		if _, there := all[id]; there || e.Name.Local != "style" || len(all) > maxEntries {
			return
		}
		var s style
		x.find(func(e element) {
			switch e.Name.Local {
			case "name":
				s.name = attr(e, "val")
			case "basedOn":
				s.parent = attr(e, "val")
			default:
				s.read(e)
			}
		})
		all[id] = s
	})
	return all
}

// read reads a property of a style or paragraph.
func (s *style) read(e element) {
	switch e.Name.Local {
	case "outlineLvl":
		s.level = number(e, "val", -1) + 1
	case "numPr":
		s.list = listRef{given: true, level: -1}
	case "ilvl":
		s.list.level = number(e, "val", 0)
	case "numId":
		s.list.id = attr(e, "val")
	case "vanish":
		s.hidden = isSwitchOn(e)
	case "b":
		s.bold = isSwitchOn(e)
	}
}

// resolve returns a style with the properties inherited from the styles that it is based on.
func (s styles) resolve(id string) (out style) {
	for range 20 {
		at, ok := s[id]
		name := strings.ToLower(cmp.Or(at.name, id))
		out.level = cmp.Or(out.level, at.level, headingLevel(name))
		out.hidden = out.hidden || at.hidden
		out.bold = out.bold || at.bold
		out.title = out.title || name == "title"
		out.contents = out.contents || strings.HasPrefix(name, "toc ")
		if !out.list.given {
			out.list = at.list
		}
		if id = at.parent; !ok || id == "" {
			break
		}
	}
	return out
}

var headingStyle = regexp.MustCompile(`^heading ?([1-9])$`)

// headingLevel returns the level in the name of a heading style, which programs write in English,
// or 0 for other styles.
func headingLevel(name string) int {
	if m := headingStyle.FindStringSubmatch(name); m != nil {
		return int(m[1][0] - '0')
	}
	return 0
}
