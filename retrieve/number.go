package retrieve

import (
	"slices"
	"strings"
)

// numeric reports whether a word is a number or version, with or without a
// leading v: 1,234.5 or v1.2.3.
func numeric(word string) bool {
	digits := false
	for i := range len(word) {
		switch c := word[i]; {
		case isDigit(c):
			digits = true
		case c == '.' || c == ',':
		case i == 0 && c|0x20 == 'v':
		default:
			return false
		}
	}
	return digits
}

// number adds a number or version. The notations of different countries have one
// term: 1,234.5 and 1.234,5 and 1'234.5 are 1234.5. A version in a document is
// also found by its prefixes: 1.2.3 by 1.2. Released means that it follows
// letters, which makes it a version, as in go1.26.
func (a *analyser) number(written string, released bool) {
	digits := strings.TrimLeft(written, "vV")
	if len(digits) < len(written) {
		released = true
		if !strings.Contains(digits, ".") { // v2
			a.add(strings.ToLower(written))
			a.indexOnly(digits)
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
			a.number(n, released)
		}
		return
	case other != "":
		a.enter(word{term: other, own: value})
	default:
		a.add(value)
	}
	for _, n := range list {
		a.indexOnly(n)
	}
	if year := yearOf(value); year != "" {
		a.repeat(year)
	} else if released || strings.Count(value, ".") == 2 {
		for at := strings.LastIndexByte(value, '.'); at > 0; at = strings.LastIndexByte(value[:at], '.') {
			a.indexOnly(value[:at])
		}
	}
}

// readNumber reads digits with points and commas. The value is a decimal number
// with a point, or a version; other is its reading in another country. A list of
// numbers has no value, unless it may also be one number.
func readNumber(s string) (value, other string, list []string) {
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	switch {
	case points > 0 && commas > 0:
		last := strings.LastIndexAny(s, ".,")
		decimal, group := s[last:last+1], ","
		if decimal == "," {
			group = "."
		}
		if strings.Count(s, decimal) > 1 || !grouped(s[:last], group) {
			return "", "", strings.Split(s, ",")
		}
		value = strings.ReplaceAll(s[:last], group, "") + "." + s[last+1:]
	case commas > 0 && grouped(s, ","):
		return strings.ReplaceAll(s, ",", ""), "", nil
	case commas == 1:
		value, list = strings.Replace(s, ",", ".", 1), strings.Split(s, ",")
	case commas > 1:
		return "", "", strings.Split(s, ",")
	case points > 0 && grouped(s, ".") && points != 3: // four groups are an address
		return s, strings.ReplaceAll(s, ".", ""), nil
	default:
		value = s
	}
	if whole, fraction, ok := strings.Cut(value, "."); ok && len(fraction) > 1 && strings.Trim(fraction, "0") == "" {
		other = whole // 5.00 is 5, and 5.0 may be a version
	}
	return value, other, list
}

// grouped reports whether a number is written in groups of three digits.
func grouped(s, sign string) bool {
	groups := strings.Split(s, sign)
	first := groups[0]
	if len(groups) < 2 || first == "" || len(first) > 3 || first[0] == '0' {
		return false
	}
	return !slices.ContainsFunc(groups[1:], func(g string) bool { return len(g) != 3 })
}

// yearOf returns the year of a date like 24.12.2024; empty for anything else.
func yearOf(s string) string {
	day, rest, _ := strings.Cut(s, ".")
	month, year, _ := strings.Cut(rest, ".")
	if len(day) > 2 || len(month) > 2 || month == "" || len(year) != 4 || strings.Contains(year, ".") {
		return ""
	}
	return year
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
