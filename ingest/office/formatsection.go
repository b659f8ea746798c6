package office

import (
	"strconv"
	"strings"
)

// A formatToken is a piece of a number format.
type formatToken struct {
	kind byte // one of the kinds below
	text string
}

const (
	literalToken = 'l'
	digitToken   = '0' // of "0#?.,": where the digits go
	scaleToken   = '%'
	expToken     = 'E'
	dateToken    = 'd' // a run of one of "ymdhs", "am/pm", or a stretch of time "[h]"
	valueToken   = 'g' // where the value goes as it is
	slashToken   = '/'
)

type formatSection struct {
	tokens                    []formatToken
	isDate, isNumber, general bool
	condition                 func(float64) bool
}

// maxFormat is the length over which a format is none.
const maxFormat = 255

// splitFormat reads a number format: up to four sections, parted by semicolons.
func splitFormat(format string) []formatSection {
	if len(format) > maxFormat {
		format = ""
	}
	var out []formatSection
	var s formatSection
	add := func(kind byte, text string) { s.tokens = append(s.tokens, formatToken{kind, text}) }
	end := func() {
		if len(s.tokens) == 0 && !s.isNumber {
			s.general = len(out) == 0
		}
		out = append(out, s)
		s = formatSection{}
	}
	r := []rune(format)
	for i := 0; i < len(r); i++ {
		c := r[i]
		switch {
		case c == ';':
			end()
		case c == '"':
			j := i + 1
			for j < len(r) && r[j] != '"' {
				j++
			}
			add(literalToken, string(r[i+1:j]))
			i = j
		case c == '\\' && i+1 < len(r):
			i++
			add(literalToken, string(r[i]))
		case c == '_' && i+1 < len(r): // as wide as the next character
			i++
			add(literalToken, " ")
		case c == '*' && i+1 < len(r): // fills the cell
			i++
		case c == '[':
			j := i + 1
			for j < len(r) && r[j] != ']' {
				j++
			}
			s.bracket(string(r[i+1:j]), add)
			i = j
		case strings.HasPrefix(strings.ToLower(string(r[i:min(i+7, len(r))])), "general"):
			s.general = true
			add(valueToken, "")
			i += 6
		case strings.HasPrefix(strings.ToLower(string(r[i:min(i+5, len(r))])), "am/pm"):
			s.isDate = true
			add(dateToken, "am/pm")
			i += 4
		case strings.HasPrefix(strings.ToLower(string(r[i:min(i+3, len(r))])), "a/p"):
			s.isDate = true
			add(dateToken, "am/pm")
			i += 2
		case strings.ContainsRune("yYmMdDhHsS", c) || (c == 'e' || c == 'g' || c == 'b') && !s.isNumber:
			j := i
			for j < len(r) && lower(r[j]) == lower(c) {
				j++
			}
			s.isDate = true
			run := strings.ToLower(string(r[i:j]))
			switch run[0] {
			case 'e': // the year in a local era
				run = "yyyy"
			case 'g', 'b':
				run = ""
			}
			if run != "" {
				add(dateToken, run)
			}
			i = j - 1
		case (c == 'E' || c == 'e') && i+1 < len(r) && (r[i+1] == '+' || r[i+1] == '-'):
			add(expToken, string(r[i+1]))
			i++
		case strings.ContainsRune("0#?", c):
			s.isNumber = true
			add(digitToken, string(c))
		case c == '.' || c == ',':
			add(digitToken, string(c))
		case c == '%':
			s.isNumber = true
			add(scaleToken, "%")
		case c == '/':
			add(slashToken, "/")
		case c == '@':
			s.general = true
			add(valueToken, "")
		default:
			add(literalToken, string(c))
		}
	}
	end()
	for i := range out {
		if out[i].isDate {
			out[i].isNumber = false // 0 in it stands for parts of seconds
		}
	}
	return out
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// bracket reads what stands in square brackets: stretches of time, currencies,
// conditions; colours mean nothing here.
func (s *formatSection) bracket(in string, add func(byte, string)) {
	low := strings.ToLower(in)
	switch {
	case low == "":
	case strings.Trim(low, "h") == "" || strings.Trim(low, "m") == "" || strings.Trim(low, "s") == "":
		s.isDate = true
		add(dateToken, "["+low[:1]+"]")
	case in[0] == '$':
		sign, _, _ := strings.Cut(in[1:], "-")
		add(literalToken, sign)
	case strings.ContainsRune("<>=", rune(in[0])):
		number := strings.TrimLeft(in, "<>=")
		limit, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return
		}
		switch in[:len(in)-len(number)] {
		case "<":
			s.condition = func(n float64) bool { return n < limit }
		case "<=":
			s.condition = func(n float64) bool { return n <= limit }
		case ">":
			s.condition = func(n float64) bool { return n > limit }
		case ">=":
			s.condition = func(n float64) bool { return n >= limit }
		case "=":
			s.condition = func(n float64) bool { return n == limit }
		case "<>":
			s.condition = func(n float64) bool { return n != limit }
		}
	}
}

// builtinFormat gives the number formats that files name by number only (ECMA-376
// part 1, 18.8.30).
func builtinFormat(id int) string {
	const whole, cents, date = "#,##0", "#,##0.00", "yyyy-mm-dd"
	formats := [...]string{
		1: "0", 2: "0.00", 3: whole, 4: cents, 5: whole, 6: whole, 7: cents, 8: cents,
		9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
		14: date, 15: date, 16: "d mmmm", 17: "yyyy-mm",
		18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
		27: date, 28: date, 29: date, 30: date, 31: date, 32: "h:mm", 33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 36: date,
		37: whole, 38: whole, 39: cents, 40: cents, 41: whole, 42: cents, 43: whole, 44: cents,
		45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss", 48: "##0.0E+0",
		50: date, 51: date, 52: date, 53: date, 54: date, 57: date, 58: date,
	}
	if id < 0 || id >= len(formats) {
		return ""
	}
	return formats[id]
}
