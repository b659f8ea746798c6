package office

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// formatNumber formats a number in the number format of its cell: decimals, thousands, percentages,
// dates, times and fixed text. It returns a value that is not a number unchanged. For formats with
// conditions, fractions, exponents or multiples, it formats the number as in an unformatted cell.
func formatNumber(value, format string, from1904 bool) string {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return value
	}
	sections := parseFormat(format)
	s := sections[0]
	switch {
	case n < 0 && len(sections) > 1:
		if s = sections[1]; len(s.date) == 0 {
			n = -n
		}
	case n == 0 && len(sections) > 2:
		s = sections[2]
	}
	switch text, isTime := s.formatTime(n, from1904); {
	case s.other, strings.HasSuffix(s.digits, ","), len(s.date) > 0 && !isTime:
		return formatGeneral(n)
	case isTime:
		return text
	case s.digits != "":
		return s.formatNumber(n)
	case s.value:
		return strings.TrimSpace(s.before + formatGeneral(n) + s.after)
	}
	return cmp.Or(strings.TrimSpace(s.before), formatGeneral(n))
}

// formatGeneral formats a number with up to eleven digits, as in an unformatted cell.
func formatGeneral(n float64) string {
	if a := math.Abs(n); n != math.Trunc(n) || a >= 1e15 {
		// Parsing a number just formatted can't fail.
		n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', 11, 64), 64)
		if a < 1e-9 || a >= 1e15 {
			return strings.ToUpper(strconv.FormatFloat(n, 'e', -1, 64))
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// A numberFormat is a parsed section of a number format.
type numberFormat struct {
	before, after string // fixed text around the number
	digits        string // "#,##0.00"
	value         bool   // it has a placeholder for the whole value ("General", "@")
	other         bool   // it has a condition, a fraction or an exponent
	percent       bool
	date          []byte // one letter of "ymdhs" per run of it, or 'H' for elapsed time
}

var formatTokens = regexp.MustCompile(`(?is)"([^"]*)"?|\\(.)|[_*].|\[([^\]]*)\]?|general|am/pm|a/p|e[+-]|y+|m+|d+|h+|s+|.`)

// parseFormat parses a number format into its sections for positive numbers, negative numbers and
// zero, which are separated by semicolons.
func parseFormat(format string) []numberFormat {
	const longest = 255
	if len(format) > longest {
		format = ""
	}
	sections := make([]numberFormat, 1)
	for _, m := range formatTokens.FindAllStringSubmatch(format, -1) {
		f, token, text := &sections[len(sections)-1], strings.ToLower(m[0]), ""
		switch c := token[0]; {
		case c == ';':
			sections = append(sections, numberFormat{})
		case c == '"', c == '\\':
			text = m[1] + m[2]
		case c == '_': // a space as wide as the next character
			text = " "
		case c == '*', token == "am/pm", token == "a/p":
		case c == '[':
			text = f.parseBracket(m[3])
		case token == "general", c == '@':
			f.value = true
		case strings.IndexByte("ymdhs", c) >= 0:
			f.date = append(f.date, c)
		case strings.IndexByte("0#?.,", c) >= 0:
			f.digits += token
		case c == '%':
			f.percent, text = true, "%"
		case c == '/', c == 'e' && len(token) > 1:
			f.other = f.other || len(f.date) == 0
		default:
			text = m[0]
		}
		if f.digits != "" || f.value {
			f.after += text
		} else {
			f.before += text
		}
	}
	return sections
}

// parseBracket parses the content of square brackets: elapsed time, a condition, or a currency
// sign, which it returns. It ignores colours and languages.
func (f *numberFormat) parseBracket(in string) (sign string) {
	switch low := strings.ToLower(in); {
	case low == "":
	case strings.Trim(low, "h") == "" || strings.Trim(low, "m") == "" || strings.Trim(low, "s") == "":
		f.date = append(f.date, 'H')
	case in[0] == '$':
		sign, _, _ = strings.Cut(in[1:], "-")
	case strings.ContainsRune("<>=", rune(in[0])):
		f.other = true
	}
	return sign
}

// formatNumber formats a number with the digits of the format.
func (f *numberFormat) formatNumber(n float64) string {
	if f.percent {
		n *= 100
	}
	wholePlaces, places, _ := strings.Cut(f.digits, ".")
	sign, decimals := "", min(len(places), 30)
	if n < 0 {
		sign, n = "-", -n
	}
	// Round half away from zero, as spreadsheets do, despite binary fractions.
	if scale := math.Pow(10, float64(decimals)); decimals < 10 && n < 1e15/scale {
		n = math.Round(n*scale*(1+1e-15)) / scale
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(n, 'f', decimals, 64), ".")
	whole = strings.Repeat("0", max(min(strings.Count(wholePlaces, "0"), 30)-len(whole), 0)) + whole
	for i := len(whole) - 3; i > 0 && strings.Contains(wholePlaces, ","); i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	for len(fraction) > strings.LastIndexByte(places, '0')+1 && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	digits := strings.TrimSuffix(whole+"."+fraction, ".")
	if strings.Trim(digits, "0.,") == "" {
		sign = ""
	}
	return sign + strings.TrimSpace(f.before+digits+f.after)
}

// formatTime formats a number of days as a date, a time or elapsed time. It writes dates year
// first, whatever the format, since 03/04/2024 means different days in different countries.
func (f *numberFormat) formatTime(n float64, from1904 bool) (text string, ok bool) {
	if len(f.date) == 0 || n < 0 || n >= 2958466 { // 1 January 10000
		return "", false
	}
	has := map[byte]bool{}
	for i, c := range f.date {
		if c == 'm' && (i > 0 && strings.ContainsRune("hH", rune(f.date[i-1])) || i+1 < len(f.date) && f.date[i+1] == 's') {
			c = 'h' // minutes
		}
		has[c] = true
	}
	if has['H'] {
		seconds := int64(math.Round(n * 86400))
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60), true
	}
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if from1904 {
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if n < 60 { // Excel treats 1900 as a leap year
		epoch = epoch.AddDate(0, 0, 1)
	}
	day, part := math.Modf(n)
	at := epoch.AddDate(0, 0, int(day)).Add(time.Duration(math.Round(part*86400)) * time.Second)
	return at.Format(dateLayout(has)), true
}

// dateLayout returns the layout of a date whose format has these codes.
func dateLayout(has map[byte]bool) string {
	key := ""
	for _, c := range []byte("ymd") {
		if has[c] {
			key += string(c)
		}
	}
	layout := map[string]string{"ymd": "2006-01-02", "ym": "2006-01", "y": "2006", "yd": "2006", "md": "2 January", "m": "January",
		"d": "Monday"}[key]
	if has['h'] || has['s'] {
		layout += " 15:04"
	}
	if has['s'] {
		layout += ":05"
	}
	return strings.TrimSpace(layout)
}

// builtinFormats are the number formats that files refer to by number (ECMA-376 part 1, 18.8.30).
var builtinFormats = map[int]string{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "#,##0", 6: "#,##0", 7: "#,##0.00",
	8: "#,##0.00", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "yyyy-mm-dd", 16: "d mmmm", 17: "yyyy-mm", 18: "h:mm", 19: "h:mm:ss",
	20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 41: "#,##0",
	42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss"}
