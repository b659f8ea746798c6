package office

import (
	"regexp"
	"strings"
)

// formulaSigns precede the parts of a formula.
var formulaSigns = map[string]string{"den": "/", "sup": "^", "sub": "_", "lim": "_", "rad": "√"}

// formula reads Office Math into one line: a fraction as a/b, a superscript
// as x^y, a subscript as x_y and roots with their sign.
func formula(x *xmlReader) string {
	var out strings.Builder
	x.each(func(e element) {
		switch name := e.Name.Local; name {
		case "t":
			out.WriteString(x.text())
		case "chr": // a sum or an integral
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

// equationCodes are those around the words of a formula, or of their pronunciation.
var equationCodes = regexp.MustCompile(`\\\* *(?:"[^"]*"|\S+)|\\[a-z]+ ?\d*|[(),]`)

// equationWords returns the words in the code of a field that is a formula, and reports
// whether it is one.
func equationWords(code string) (string, bool) {
	code, ok := strings.CutPrefix(strings.TrimLeft(code, " "), "EQ ")
	if !ok {
		return "", false
	}
	return oneLine(equationCodes.ReplaceAllString(code, " ")), true
}
