package office

import (
	"regexp"
	"strings"
)

// formulaSigns maps the parts of a formula to the sign written before them.
var formulaSigns = map[string]string{"den": "/", "sup": "^", "sub": "_", "lim": "_", "rad": "√"}

// formula reads Office Math into one line: fractions as a/b, superscripts as x^y, subscripts as
// x_y, roots with their sign.
func formula(x *xmlReader) string {
	var out strings.Builder
	x.each(func(e element) {
		switch name := e.Name.Local; name {
		case "t":
			out.WriteString(x.text())
		case "chr": // sum or integral
			out.WriteString(attr(e, "val"))
		case "d":
			out.WriteString("(" + formula(x) + ")")
		case "ctrlPr", "rPr", "annotation", "del":
		default:
			text := formula(x)
			if sign := formulaSigns[name]; text != "" && (sign != "" || name == "num") {
				if strings.ContainsAny(text, "+-−=/^_ ") {
					text = "(" + text + ")"
				}
				text = sign + text
			}
			out.WriteString(text)
		}
	})
	return strings.TrimSpace(out.String())
}

// equationCodes matches the codes around the words of a formula or phonetic guide.
var equationCodes = regexp.MustCompile(`\\\* *(?:"[^"]*"|\S+)|\\[a-z]+ ?\d*|[(),]`)

// equationWords returns the words in a field code and reports whether it is a formula.
func equationWords(code string) (string, bool) {
	code, ok := strings.CutPrefix(strings.TrimLeft(code, " "), "EQ ")
	if !ok {
		return "", false
	}
	return oneLine(equationCodes.ReplaceAllString(code, " ")), true
}
