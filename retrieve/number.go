package retrieve

import (
	"regexp"
	"strings"
)

// numeric matches a number or version, with or without a leading v: 1,234.5 or v1.2.3.
var numeric = regexp.MustCompile(`^[vV]?[.,]*[0-9][.,0-9]*$`)

// addNumber adds a number or version. The notations of different countries share one term: 1,234.5,
// 1.234,5 and 1'234.5 are 1234.5. A version in a document is also found by its prefixes: 1.2.3 by
// 1.2. Released means that the number follows letters, as in go1.26, which makes it a version.
func (a *analyser) addNumber(written string, released bool) {
	digits := strings.TrimLeft(written, "vV")
	if len(digits) < len(written) {
		released = true
		if !strings.Contains(digits, ".") { // v2
			a.add(strings.ToLower(written))
			a.addIndexOnly(digits)
			return
		}
	}
	value, other, list := readNumber(digits)
	if released {
		other = ""
	}
	switch {
	case value == "":
		for _, n := range list {
			a.addNumber(n, released)
		}
		return
	case other != "":
		a.appendWord(word{term: other, stem: value})
	default:
		a.add(value)
	}
	for _, n := range list {
		a.addIndexOnly(n)
	}
	if date := dated.FindStringSubmatch(value); date != nil {
		a.addRepeat(date[1])
	} else if released || strings.Count(value, ".") == 2 {
		for at := strings.LastIndexByte(value, '.'); at > 0; at = strings.LastIndexByte(value[:at], '.') {
			a.addIndexOnly(value[:at])
		}
	}
}

// readNumber reads digits with points and commas. The value is a decimal number with a point, or a
// version; other is the number that s means in another country. If s is a list of numbers, list
// contains them and value is empty, unless s may also be a single number.
func readNumber(s string) (value, other string, list []string) {
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	switch {
	case points > 0 && commas > 0:
		last := strings.LastIndexAny(s, ".,")
		decimal, group := s[last:last+1], ","
		if decimal == "," {
			group = "."
		}
		if strings.Count(s, decimal) > 1 || !grouped[group].MatchString(s[:last]) {
			return "", "", strings.Split(s, ",")
		}
		value = strings.ReplaceAll(s[:last], group, "") + "." + s[last+1:]
	case commas > 0 && grouped[","].MatchString(s):
		return strings.ReplaceAll(s, ",", ""), "", nil
	case commas == 1:
		value, list = strings.Replace(s, ",", ".", 1), strings.Split(s, ",")
	case commas > 1:
		return "", "", strings.Split(s, ",")
	case points > 0 && grouped["."].MatchString(s) && points != 3: // four groups are an address
		return s, strings.ReplaceAll(s, ".", ""), nil
	default:
		value = s
	}
	if whole, fraction, ok := strings.Cut(value, "."); ok && len(fraction) > 1 && strings.Trim(fraction, "0") == "" {
		other = whole // 5.00 is 5, and 5.0 may be a version
	}
	return value, other, list
}

// grouped maps a separator to the pattern of numbers that it divides into groups of three digits.
var grouped = map[string]*regexp.Regexp{
	",": regexp.MustCompile(`^[1-9][0-9]{0,2}(?:,[0-9]{3})+$`), ".": regexp.MustCompile(`^[1-9][0-9]{0,2}(?:\.[0-9]{3})+$`),
}

// dated matches a date like 24.12.2024.
var dated = regexp.MustCompile(`^[0-9]{0,2}\.[0-9]{1,2}\.([0-9]{4})$`)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
