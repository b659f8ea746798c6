package eval

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// counted is a number of things, with the word for one of them.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// quoted puts texts into quotation marks.
func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = "“" + t + "”"
	}
	return strings.Join(out, ", ")
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// excerpt folds white space and cuts a text behind n characters.
func excerpt(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// cut gives the bytes of a text from start to end, as far as there are.
func cut(s string, start, end int) string {
	start = max(0, min(start, len(s)))
	end = max(start, min(end, len(s)))
	return strings.ToValidUTF8(s[start:end], "")
}

// pageNames names the pages of a question.
func (q Question) pageNames() string {
	var names []string
	for i, pages := range q.Pages {
		for _, n := range pages {
			names = append(names, fmt.Sprintf("%s, page %d", q.Documents[i], n))
		}
	}
	return strings.Join(names, "; ")
}

// A Unit says what a figure counts, and how it is written.
type Unit string

// The units.
const (
	ShareUnit   Unit = "share"   // of something, 0 to 1
	SecondsUnit Unit = "seconds" // written as ms or s
	CountUnit   Unit = "count"   // a mean of something counted
	MoneyUnit   Unit = "money"   // in the currency of the prices
)

// Write writes a value in its unit.
func (u Unit) Write(x float64) string {
	switch u {
	case ShareUnit:
		return fmt.Sprintf("%.3f", x)
	case SecondsUnit:
		switch a := math.Abs(x); {
		case a < .0005:
			return fmt.Sprintf("%.0f µs", x*1e6)
		case a < .0995:
			return fmt.Sprintf("%.1f ms", x*1e3)
		case a < .9995:
			return fmt.Sprintf("%.0f ms", x*1e3)
		}
		return fmt.Sprintf("%.2f s", x)
	case MoneyUnit:
		return fmt.Sprintf("%.6f", x)
	}
	if x == math.Trunc(x) {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// WriteChange writes a difference in its unit, with a sign.
func (u Unit) WriteChange(x float64) string {
	s := u.Write(math.Abs(x))
	switch {
	case x > 0:
		return "+" + s
	case x < 0:
		return "−" + s
	}
	return s
}

// width is how many columns a text takes, about: one for each character.
func width(s string) int { return utf8.RuneCountInString(s) }
