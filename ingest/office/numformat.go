package office

import (
	"math"
	"strconv"
	"strings"
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

// around gives the fixed words of the section, with the text where the value goes.
func (s formatSection) around(value string) string {
	var out strings.Builder
	for _, t := range s.tokens {
		switch t.kind {
		case valueToken:
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
