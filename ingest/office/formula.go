package office

import "strings"

// formula reads Office Math into one line: a fraction as a/b, a superscript
// as x^y, a subscript as x_y and roots with their sign.
func formula(x *xmlReader) (string, error) {
	text, err := formulaReader{x}.all()
	return strings.TrimSpace(text), err
}

type formulaReader struct{ x *xmlReader }

// all reads everything in the current element.
func (m formulaReader) all() (string, error) {
	var out strings.Builder
	err := m.x.each(func(e element) error {
		text, err := m.element(e)
		out.WriteString(text)
		return err
	})
	return out.String(), err
}

// formulaParts are the structures that are written as their parts in order,
// each after a sign. A sign in front of a part puts brackets round it where
// they are needed.
var formulaParts = map[string][][2]string{
	"f":       {{"", "num"}, {"/", "den"}},
	"sSup":    {{"", "e"}, {"^", "sup"}},
	"sSub":    {{"", "e"}, {"_", "sub"}},
	"sSubSup": {{"", "e"}, {"_", "sub"}, {"^", "sup"}},
	"sPre":    {{"_", "sub"}, {"^", "sup"}, {"", "e"}},
	"rad":     {{"", "deg"}, {"√", "e"}},
	"nary":    {{"", "chr"}, {"_", "sub"}, {"^", "sup"}, {" ", "e"}},
	"func":    {{"", "fName"}, {" ", "e"}},
	"limLow":  {{"", "e"}, {"_", "lim"}},
	"limUpp":  {{"", "e"}, {"^", "lim"}},
}

func (m formulaReader) element(e element) (string, error) {
	switch name := e.Name.Local; name {
	case "t":
		return m.x.text(), nil
	case "d", "m", "eqArr":
		return m.sequence(name)
	case "ctrlPr", "rPr", "annotation", "del":
		return "", nil
	default:
		if formulaParts[name] != nil {
			return m.structure(name)
		}
	}
	return m.all()
}

// structure reads an element of [formulaParts].
func (m formulaReader) structure(name string) (string, error) {
	parts := map[string]string{}
	if name == "nary" {
		parts["chr"] = "∫"
	}
	err := m.x.each(func(e element) error {
		if strings.HasSuffix(e.Name.Local, "Pr") {
			return m.x.each(func(e element) error {
				if e.Name.Local == "chr" && attr(e, "val") != "" {
					parts["chr"] = attr(e, "val")
				}
				return nil
			})
		}
		text, err := m.all()
		parts[e.Name.Local] = strings.TrimSpace(text)
		return err
	})
	var out strings.Builder
	for _, p := range formulaParts[name] {
		text := parts[p[1]]
		if name == "nary" && text == "" {
			continue
		}
		if p[0] != "" && p[0] != " " || name == "f" {
			text = bracketed(text)
		}
		out.WriteString(p[0] + text)
	}
	return out.String(), err
}

// sequence reads brackets, a matrix or a column of equations.
func (m formulaReader) sequence(name string) (string, error) {
	open, between, closing := "(", ", ", ")"
	if name != "d" {
		open, between, closing = "[", "; ", "]"
	}
	var operands []string
	err := m.x.each(func(e element) error {
		if strings.HasSuffix(e.Name.Local, "Pr") {
			return m.x.each(func(e element) error {
				switch e.Name.Local {
				case "begChr":
					open = attr(e, "val")
				case "endChr":
					closing = attr(e, "val")
				}
				return nil
			})
		}
		text, err := m.all()
		operands = append(operands, strings.TrimSpace(text))
		return err
	})
	return open + strings.Join(operands, between) + closing, err
}

// bracketed puts brackets round text that is more than one word.
func bracketed(s string) string {
	if s == "" || isWordLike(s) || strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") && strings.Count(s, "(") == 1 {
		return s
	}
	return "(" + s + ")"
}
