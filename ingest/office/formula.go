package office

import (
	"strings"
	"unicode"
)

// formulaSigns precede the parts of a formula.
var formulaSigns = map[string]string{"den": "/", "sup": "^", "sub": "_", "lim": "_"}

// formula reads Office Math into one line: a fraction as a/b, a superscript
// as x^y, a subscript as x_y and roots with their sign.
func formula(x *xmlReader) string {
	var out strings.Builder
	closing := "" // of brackets
	x.each(func(e element) {
		switch name := e.Name.Local; name {
		case "t":
			out.WriteString(x.text())
		case "ctrlPr", "rPr", "annotation", "del":
		case "dPr", "naryPr":
			open := map[string]string{"dPr": "(", "naryPr": "∫"}[name]
			if name == "dPr" {
				closing = ")"
			}
			x.each(func(e element) {
				switch e.Name.Local {
				case "begChr", "chr":
					open = attr(e, "val")
				case "endChr":
					closing = attr(e, "val")
				}
			})
			out.WriteString(open)
		default:
			switch text := formula(x); {
			case text == "" || strings.HasSuffix(name, "Pr"):
			case name == "rad":
				out.WriteString("√" + bracketed(text))
			case name == "fName" || name == "mr":
				out.WriteString(text + " ")
			case formulaSigns[name] != "" || name == "num":
				out.WriteString(formulaSigns[name] + bracketed(text))
			default:
				out.WriteString(text)
			}
		}
	})
	return strings.TrimSpace(out.String() + closing)
}

// bracketed puts brackets round text that is more than one word.
func bracketed(s string) string {
	isWord := !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) && r != '.' && r != ','
	})
	if isWord || strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") && strings.Count(s, "(") == 1 {
		return s
	}
	return "(" + s + ")"
}
