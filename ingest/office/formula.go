package office

import "strings"

// formula reads Office Math into one line: a fraction as a/b, what stands
// above as x^y and below as x_y, roots with their sign.
func formula(x *xmlReader) (string, error) {
	m := formulaReader{x: x}
	var out strings.Builder
	err := x.mixed(func(e element) error {
		s, err := m.element(e)
		out.WriteString(s)
		return err
	}, nil)
	return strings.TrimSpace(out.String()), err
}

type formulaReader struct{ x *xmlReader }

// in reads all that is in the current element.
func (m formulaReader) in() (string, error) {
	var out strings.Builder
	err := m.x.each(func(e element) error {
		s, err := m.element(e)
		out.WriteString(s)
		return err
	})
	return out.String(), err
}

func (m formulaReader) element(e element) (string, error) {
	switch e.Name.Local {
	case "t":
		return m.x.text(), nil
	case "f", "sSup", "sSub", "sSubSup", "sPre", "rad", "nary", "func", "limLow", "limUpp", "acc", "bar", "groupChr", "d", "m", "eqArr":
		return m.structure(e.Name.Local)
	case "ctrlPr", "rPr", "annotation", "del":
		return "", nil
	}
	return m.in()
}

// structure reads an element whose parts have names.
func (m formulaReader) structure(name string) (string, error) {
	parts := map[string]string{}
	var operands []string // those that may be many
	begin, end, separator, char := "(", ")", ", ", ""
	err := m.x.each(func(e element) error {
		part := e.Name.Local
		if strings.HasSuffix(part, "Pr") {
			return m.x.each(func(e element) error {
				switch e.Name.Local {
				case "begChr":
					begin = attr(e, "val")
				case "endChr":
					end = attr(e, "val")
				case "sepChr":
					separator = attr(e, "val")
				case "chr":
					char = attr(e, "val")
				}
				return nil
			})
		}
		var s string
		var err error
		if part == "mr" {
			var cells []string
			err = m.x.each(func(e element) error {
				s, err := m.in()
				cells = append(cells, strings.TrimSpace(s))
				return err
			})
			s = strings.Join(cells, ", ")
		} else {
			s, err = m.in()
		}
		s = strings.TrimSpace(s)
		parts[part] = s
		if part == "e" || part == "mr" {
			operands = append(operands, s)
		}
		return err
	})
	e := parts["e"]
	switch name {
	case "f":
		return group(parts["num"]) + "/" + group(parts["den"]), err
	case "sSup":
		return e + "^" + group(parts["sup"]), err
	case "sSub":
		return e + "_" + group(parts["sub"]), err
	case "sSubSup":
		return e + "_" + group(parts["sub"]) + "^" + group(parts["sup"]), err
	case "sPre":
		return "_" + group(parts["sub"]) + "^" + group(parts["sup"]) + e, err
	case "rad":
		sign := map[string]string{"": "√", "2": "√", "3": "∛", "4": "∜"}[parts["deg"]]
		if sign == "" {
			sign = group(parts["deg"]) + "√"
		}
		return sign + group(e), err
	case "nary":
		if char == "" {
			char = "∫"
		}
		if parts["sub"] != "" {
			char += "_" + group(parts["sub"])
		}
		if parts["sup"] != "" {
			char += "^" + group(parts["sup"])
		}
		return char + " " + e, err
	case "func":
		return parts["fName"] + " " + e, err
	case "limLow":
		return e + "_" + group(parts["lim"]), err
	case "limUpp":
		return e + "^" + group(parts["lim"]), err
	case "d":
		return begin + strings.Join(operands, separator) + end, err
	case "m":
		return "[" + strings.Join(operands, "; ") + "]", err
	case "eqArr":
		return strings.Join(operands, "; "), err
	}
	return e, err
}

// group puts brackets round what would be read apart without them.
func group(s string) string {
	if s == "" || isWordLike(s) || strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") && strings.Count(s, "(") == 1 {
		return s
	}
	return "(" + s + ")"
}
