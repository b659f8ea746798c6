package retrieve

import (
	"strings"
	"unicode/utf8"
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

// grouped reports whether a number is written in groups of three digits, or as in
// India in groups of two before the last three.
func grouped(s, sign string) bool {
	groups := strings.Split(s, sign)
	first, last := groups[0], groups[len(groups)-1]
	if len(groups) < 2 || len(last) != 3 || first == "" || len(first) > 3 || first[0] == '0' {
		return false
	}
	middle := 3
	if len(groups) > 2 && len(groups[1]) == 2 && len(first) < 3 && sign == "," {
		middle = 2
	}
	for _, g := range groups[1 : len(groups)-1] {
		if len(g) != middle {
			return false
		}
	}
	return true
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

// mostSpaced is the most groups of a number that are separated by ordinary
// spaces: more are columns of a table.
const mostSpaced = 4

// spaced returns the number that begins at start in groups of three digits
// separated by spaces, and its end: 1 234,5 is 1234.5. It is empty if none begins
// there.
func spaced(text string, start int) (number string, end int) {
	count := func(at int) (n int) {
		for at+n < len(text) && isDigit(text[at+n]) {
			n++
		}
		return n
	}
	n := count(start)
	if n == 0 || n > 3 || text[start] == '0' {
		return "", 0
	}
	if before, size := utf8.DecodeLastRuneInString(text[:start]); groups(before) {
		if end := start - size; end > 0 && isDigit(text[end-1]) {
			return "", 0 // the middle of one
		}
	}
	value, at, ordinary := []byte(text[start:start+n]), start+n, false
	found := 1
	for ; ; found++ {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !groups(r) || count(at+size) != 3 {
			break
		}
		ordinary = ordinary || r == ' '
		value = append(value, text[at+size:at+size+3]...)
		at += size + 3
	}
	if found == 1 || ordinary && found > mostSpaced {
		return "", 0
	}
	if at < len(text) && (text[at] == ',' || text[at] == '.') {
		if n := count(at + 1); n > 0 {
			value = append(append(value, '.'), text[at+1:at+1+n]...)
			at += 1 + n
		}
	}
	return string(value), at
}

// groups reports whether r may separate the groups of a number.
func groups(r rune) bool {
	return r == ' ' || r == '\u00a0' || r == '\u2009' || r == '\u202f'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
