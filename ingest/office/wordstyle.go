package office

import (
	"strconv"
	"strings"
	"unicode"
)

// wordStyles are the styles of a text document, by id.
type wordStyles map[string]wordStyle

type wordStyle struct {
	name, basedOn string
	outline       int // 0 is the outermost; -1 when not given
	list          listRef
	hidden        bool // its text is not shown
}

// wordStyles reads the styles. Of a damaged part, the first styles count.
func (f *file) wordStyles(part string) wordStyles {
	styles := wordStyles{}
	_ = f.elements(part, func(x *xmlReader, e element) error {
		if e.Name.Local != "style" || len(styles) > maxEntries {
			return nil
		}
		s := wordStyle{outline: -1}
		id := attr(e, "styleId")
		if _, there := styles[id]; there {
			return nil
		}
		err := x.each(func(e element) error {
			switch e.Name.Local {
			case "name":
				s.name = attr(e, "val")
			case "basedOn":
				s.basedOn = attr(e, "val")
			case "pPr":
				return x.each(func(e element) error {
					switch e.Name.Local {
					case "outlineLvl":
						s.outline = number(e, "val", -1)
					case "numPr":
						s.list.given = true
						return readListRef(x, &s.list)
					}
					return nil
				})
			case "rPr":
				return x.each(func(e element) error {
					if e.Name.Local == "vanish" {
						s.hidden = on(e)
					}
					return nil
				})
			}
			return nil
		})
		styles[id] = s
		return err
	})
	return styles
}

// A paragraphStyle is the effect of a style on its paragraphs.
type paragraphStyle struct {
	level    int // of a heading from 1; 0 for body text
	title    bool
	contents bool // a line of a table of contents
	list     listRef
}

// paragraph resolves a style and those it is based on.
func (s wordStyles) paragraph(id string) (p paragraphStyle) {
	known := false // the level is known
	for range 20 {
		style, ok := s[id]
		if !ok {
			break
		}
		name := strings.ToLower(style.name)
		if !known && style.outline >= 0 {
			known = true
			if style.outline < 9 {
				p.level = style.outline + 1
			}
		}
		if n := headingLevel(name); !known && n > 0 {
			known, p.level = true, n
		}
		p.title = p.title || name == "title"
		p.contents = p.contents || strings.HasPrefix(name, "toc ")
		if !p.list.given && style.list.given {
			p.list = style.list
		}
		if id = style.basedOn; id == "" {
			break
		}
	}
	return p
}

// isHidden reports whether a style's text is hidden.
func (s wordStyles) isHidden(id string) bool {
	for range 20 {
		style, ok := s[id]
		if !ok {
			return false
		}
		if style.hidden {
			return true
		}
		id = style.basedOn
	}
	return false
}

// headingLevel returns the level in the name of a heading style, in the
// languages of the programs; 0 for other styles.
func headingLevel(name string) int {
	word := strings.TrimRightFunc(name, func(r rune) bool { return unicode.IsDigit(r) || unicode.IsSpace(r) })
	level, err := strconv.Atoi(strings.TrimSpace(name[len(word):]))
	if err != nil || level < 1 || level > 9 {
		return 0
	}
	switch strings.TrimSpace(word) {
	case "heading", "überschrift", "titre", "título", "titulo", "titolo", "kop", "rubrik", "overskrift", "otsikko",
		"nagłówek", "nadpis", "címsor", "başlık", "заголовок", "επικεφαλίδα", "titlu", "naslov", "pealkiri", "virsraksts",
		"标题", "標題", "見出し", "제목", "tiêu đề", "หัวเรื่อง", "عنوان", "כותרת", "encabezado", "tajuk":
		return level
	}
	return 0
}
