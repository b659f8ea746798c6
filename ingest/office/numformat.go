package office

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// formatNumber shows a number as a cell's format has it: dates, percentages,
// decimals, thousands, fixed words around them. What is no number, and a
// format that is not understood, leave it as it is.
func formatNumber(value, format string, from1904 bool) string {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return value
	}
	sections := splitFormat(format)
	section := sections[0]
	switch {
	case section.condition != nil || len(sections) > 1 && sections[1].condition != nil:
		section = sections[len(sections)-1]
		for _, s := range sections {
			if s.condition == nil || s.condition(n) {
				section = s
				break
			}
		}
	case n < 0 && len(sections) > 1:
		section = sections[1]
		if !section.isDate {
			n = -n
		}
	case n == 0 && len(sections) > 2:
		section = sections[2]
	}
	switch {
	case section.isDate:
		if s, ok := formatDate(n, section, from1904); ok {
			return s
		}
		return general(n)
	case section.general:
		s := general(n)
		if len(section.tokens) > 1 {
			return section.around(s)
		}
		return s
	case !section.isNumber:
		if s := section.around(""); strings.TrimSpace(s) != "" {
			return s
		}
		return general(n)
	}
	return section.number(n)
}

// general shows a number with up to eleven digits, as an unformatted cell does.
func general(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	s := strconv.FormatFloat(n, 'g', 11, 64)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	if a := math.Abs(f); a >= 1e-9 && a < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strings.ToUpper(strconv.FormatFloat(f, 'e', -1, 64))
}

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
	textToken    = '@'
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
			add('g', "")
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
			add('g', "")
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

// around gives the fixed words of the section, with the text where the value goes.
func (s formatSection) around(value string) string {
	var out strings.Builder
	for _, t := range s.tokens {
		switch t.kind {
		case 'g':
			out.WriteString(value)
		case literalToken, slashToken:
			out.WriteString(t.text)
		}
	}
	return strings.TrimSpace(out.String())
}

// number shows a number by the digits of the section.
func (s formatSection) number(n float64) string {
	whole, decimals, exponent, fraction := 0, 0, 0, false
	grouped, point := false, false
	last := -1 // token of the last digit
	for i, t := range s.tokens {
		switch {
		case t.kind == slashToken && last >= 0:
			fraction = true
		case t.kind == expToken:
			exponent = 1
		case t.kind == digitToken && strings.Contains("0#?", t.text):
			last = i
			switch {
			case exponent > 0:
				exponent++
			case point:
				decimals++
			case t.text == "0":
				whole++
			}
		case t.kind == digitToken && t.text == ".":
			point = true
		}
	}
	if fraction {
		return s.fraction(n)
	}
	for i, t := range s.tokens {
		switch {
		case t.kind == scaleToken:
			n *= 100
		case t.kind == digitToken && t.text == "," && i < last && last >= 0:
			grouped = true
		case t.kind == digitToken && t.text == "," && i > last && last >= 0: // shown in thousands
			n /= 1000
		}
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	var digits string
	if exponent > 0 {
		digits = strings.ToUpper(strconv.FormatFloat(n, 'e', min(decimals, 30), 64))
	} else {
		// Half away from zero, as spreadsheets round, and not as the binary
		// fraction under it falls.
		if scale := math.Pow(10, float64(decimals)); decimals < 10 && n < 1e15/scale {
			n = math.Round(n*scale*(1+1e-15)) / scale
		}
		digits = strconv.FormatFloat(n, 'f', min(decimals, 30), 64)
		before, after, _ := strings.Cut(digits, ".")
		if len(before) < whole {
			before = strings.Repeat("0", min(whole, 30)-min(len(before), 30)) + before
		}
		if grouped {
			before = thousands(before)
		}
		after = s.optionalDecimals(after)
		digits = before
		if after != "" {
			digits += "." + after
		}
	}
	if strings.Trim(digits, "0.,") == "" {
		sign = ""
	}
	var out strings.Builder
	shown := false
	for _, t := range s.tokens {
		switch t.kind {
		case digitToken, expToken:
			if !shown {
				out.WriteString(digits)
				shown = true
			}
		case literalToken, scaleToken, slashToken:
			out.WriteString(t.text)
		}
	}
	return sign + strings.TrimSpace(out.String())
}

// optionalDecimals takes off zeros at the end that the section does not ask for.
func (s formatSection) optionalDecimals(after string) string {
	must, n, point := 0, 0, false
	for _, t := range s.tokens {
		if t.kind == expToken {
			break
		}
		if t.kind != digitToken {
			continue
		}
		if t.text == "." {
			point = true
		} else if point && t.text != "," {
			if n++; t.text == "0" {
				must = n
			}
		}
	}
	for len(after) > must && strings.HasSuffix(after, "0") {
		after = after[:len(after)-1]
	}
	return after
}

// fraction shows a number as a whole and a fraction with a small denominator.
func (s formatSection) fraction(n float64) string {
	most := 0
	behind := false
	fixed := ""
	for _, t := range s.tokens {
		if t.kind == slashToken {
			behind = true
		} else if behind && t.kind == digitToken {
			most++
		} else if behind && t.kind == literalToken && strings.Trim(t.text, "0123456789") == "" {
			fixed += t.text
		}
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	whole, part := math.Modf(n)
	top, bottom := 0, 1
	if f, err := strconv.Atoi(fixed); err == nil && f > 0 && f < 1000 {
		top, bottom = int(math.Round(part*float64(f))), f
	} else {
		best := math.Inf(1)
		for d := 1; d < int(math.Pow10(min(max(most, 1), 3))); d++ {
			t := math.Round(part * float64(d))
			if off := math.Abs(part - t/float64(d)); off < best-1e-12 {
				best, top, bottom = off, int(t), d
			}
		}
	}
	if top == bottom {
		whole, top = whole+1, 0
	}
	out := sign + strconv.FormatFloat(whole, 'f', -1, 64)
	switch {
	case top == 0:
		return out
	case whole == 0:
		return sign + strconv.Itoa(top) + "/" + strconv.Itoa(bottom)
	}
	return out + " " + strconv.Itoa(top) + "/" + strconv.Itoa(bottom)
}

func thousands(s string) string {
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatDate shows the number of a day. Numeric dates are written year first,
// whatever order the format has: 03/04/2024 is two days, and which one depends
// on where the reader lives.
func formatDate(n float64, s formatSection, from1904 bool) (string, bool) {
	if n < 0 || n >= 2958466 { // 1 January 10000
		return "", false
	}
	var hasDate, hasTime, hasSeconds, stretch, hasDay, hasYear, hasMonth bool
	for i, t := range s.tokens {
		if t.kind != dateToken {
			continue
		}
		switch t.text[0] {
		case 'y':
			hasDate, hasYear = true, true
		case 'd':
			hasDate, hasDay = true, true
		case 'h':
			hasTime = true
		case 's':
			hasTime, hasSeconds = true, true
		case '[':
			stretch = true
			hasSeconds = hasSeconds || t.text == "[s]"
		case 'm':
			if minutes(s.tokens, i) {
				hasTime = true
			} else {
				hasDate, hasMonth = true, true
			}
		}
	}
	seconds := math.Round(n * 86400)
	if stretch {
		h, m, sec := int64(seconds)/3600, int64(seconds)/60%60, int64(seconds)%60
		out := strconv.FormatInt(h, 10) + ":" + two(m)
		if hasSeconds || sec != 0 {
			out += ":" + two(sec)
		}
		return out, true
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if from1904 {
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if n < 60 { // 1900 is taken for a leap year
		epoch = epoch.AddDate(0, 0, 1)
	}
	day := math.Floor(n)
	rest := math.Round((n - day) * 86400)
	at := epoch.AddDate(0, 0, int(day)).Add(time.Duration(rest) * time.Second)
	layout := ""
	switch {
	case hasDate && hasYear && !hasDay && !hasMonth:
		layout = "2006"
	case hasDate && !hasDay && hasYear:
		layout = "2006-01"
	case hasDate && !hasYear && hasDay && hasMonth:
		layout = "2 January"
	case hasDate && !hasYear && hasMonth:
		layout = "January"
	case hasDate && !hasYear && !hasMonth:
		layout = "Monday"
	case hasDate:
		layout = "2006-01-02"
	}
	if hasTime {
		if layout != "" {
			layout += " "
		}
		layout += "15:04"
		if hasSeconds {
			layout += ":05"
		}
	}
	if layout == "" {
		return "", false
	}
	return at.Format(layout), true
}

func two(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// minutes tells whether an m stands for minutes: behind hours or in front of
// seconds.
func minutes(tokens []formatToken, i int) bool {
	for j := i - 1; j >= 0; j-- {
		if tokens[j].kind == dateToken {
			if tokens[j].text == "h" || tokens[j].text == "hh" || tokens[j].text == "[h]" {
				return true
			}
			break
		}
	}
	for j := i + 1; j < len(tokens); j++ {
		if tokens[j].kind == dateToken {
			return tokens[j].text[0] == 's'
		}
	}
	return false
}
