package office

import "strings"

// formulaSigns precede the parts of a formula.
var formulaSigns = map[string]string{"den": "/", "sup": "^", "sub": "_", "lim": "_"}

// formula reads Office Math into one line: a fraction as a/b, a superscript
// as x^y, a subscript as x_y and roots with their sign.
func formula(x *xmlReader) (string, error) {
	text, err := formulaParts(x)
	return strings.TrimSpace(text), err
}

// formulaParts reads everything in the current element.
func formulaParts(x *xmlReader) (string, error) {
	var out strings.Builder
	err := x.each(func(e element) error {
		name := e.Name.Local
		switch name {
		case "t":
			out.WriteString(x.text())
			return nil
		case "ctrlPr", "rPr", "annotation", "del":
			return nil
		case "d", "m", "eqArr", "nary":
			text, err := formulaSequence(x, name)
			out.WriteString(text)
			return err
		}
		text, err := formulaParts(x)
		switch text = strings.TrimSpace(text); {
		case text == "" || strings.HasSuffix(name, "Pr"):
		case formulaSigns[name] != "" || name == "num":
			out.WriteString(formulaSigns[name] + bracketed(text))
		case name == "rad":
			out.WriteString("√" + bracketed(text))
		case name == "fName":
			out.WriteString(text + " ")
		default:
			out.WriteString(text)
		}
		return err
	})
	return out.String(), err
}

// formulaSequence reads brackets, a matrix, a column of equations, or a sum.
func formulaSequence(x *xmlReader, name string) (string, error) {
	open, between, closing := "(", ", ", ")"
	switch name {
	case "nary":
		open, between, closing = "∫", "", ""
	case "m", "eqArr":
		open, between, closing = "[", "; ", "]"
	}
	var operands []string
	err := x.each(func(e element) error {
		if strings.HasSuffix(e.Name.Local, "Pr") {
			return x.each(func(e element) error {
				switch e.Name.Local {
				case "begChr", "chr":
					open = attr(e, "val")
				case "endChr":
					closing = attr(e, "val")
				}
				return nil
			})
		}
		text, err := formulaParts(x)
		if text = strings.TrimSpace(text); name == "nary" && text != "" {
			if sign := formulaSigns[e.Name.Local]; sign != "" {
				text = sign + bracketed(text)
			} else {
				text = " " + text
			}
		}
		operands = append(operands, text)
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
