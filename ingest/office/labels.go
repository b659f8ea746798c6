package office

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a label and a column name in characters. A first value of at least valueWords words is not a name.
const (
	maxLabel   = 60
	valueWords = 4
	maxNamed   = 40
)

// AreLabels reports whether the first rows of a file are labels and their values.
func AreLabels(rows [][]string) bool { return areLabels(rows, false) }

// areLabels reports whether rows of two columns are labels and their values, as in a form, rather
// than records below column names. Labels are short and distinct. Colons, a first row that doesn't
// look like column names, and values of different kinds are evidence for labels. A column of
// numbers below a word is evidence against them. If there is no evidence, the result is likely.
func areLabels(rows [][]string, likely bool) bool {
	seen := map[string]bool{}
	var values []string
	colons := 0
	for _, row := range rows {
		if len(row) > 2 {
			return false
		}
		if len(row) < 2 || strings.TrimSpace(row[1]) == "" {
			continue // a title, or a label without a value
		}
		label, value := strings.TrimSpace(row[0]), strings.TrimSpace(row[1])
		if label == "" && len(values) > 0 {
			continue // continues the value above
		}
		if seen[label] || utf8.RuneCountInString(label) > maxLabel || !startsWithLetter(label) {
			return false
		}
		seen[label] = true
		values = append(values, value)
		if strings.HasSuffix(label, ":") || strings.HasSuffix(label, "：") {
			colons++
		}
	}
	if len(values) < 2 {
		return colons == 1 && len(values) == 1
	}
	if colons*2 > len(values) {
		return true
	}
	measures := 0 // numbers, dates and amounts below the first value
	for _, value := range values[1:] {
		if isMeasure(value) {
			measures++
		}
	}
	first := values[0]
	switch {
	case isMeasure(first):
		return !isYear(first) || measures < len(values)-1
	case measures == len(values)-1:
		return false
	}
	return likely || measures > 0 && 2*measures < len(values) || len(strings.Fields(first)) >= valueWords ||
		utf8.RuneCountInString(first) > maxNamed || strings.ContainsFunc(first, unicode.IsDigit)
}

// FirstNames reports whether the first row of a ruled table of at least three rows names the
// columns. The result is false if the columns are labels and values, in one or several pairs.
func FirstNames(rows [][]string) bool {
	if len(rows) < 3 || strings.ContainsAny(strings.Join(rows[0], ""), ":：") || !NamesColumns(rows[0], rows[1]) {
		return false
	}
	isForm := len(rows[0])%2 == 0
	var pairs [][]string
	for i := 0; isForm && i < len(rows[0]); i += 2 {
		for _, row := range rows {
			pairs = append(pairs, row[i:i+2])
		}
		isForm = areLabels(pairs, true)
	}
	return !isForm
}

// Labelled returns a label and its value as text.
func Labelled(row []string) string {
	if len(row) == 0 {
		return ""
	}
	label, value := strings.TrimSpace(row[0]), strings.TrimSpace(strings.Join(row[1:], " "))
	if label == "" || value == "" {
		return label + value
	}
	return strings.TrimRight(label, ":： ") + ": " + value
}

// boldNames returns what bold type shows about a table of two columns: 1 if only the first row is
// bold, which then names the columns; labels if only the first column is bold; 0 otherwise.
func boldNames(rows [][]cell) int {
	var bold, light [2][2]int // counts by row (first or later) and column
	for i, row := range rows {
		for column, c := range row {
			for _, b := range c.blocks {
				if b.bold {
					bold[min(i, 1)][column]++
				} else if strings.TrimSpace(b.Text) != "" {
					light[min(i, 1)][column]++
				}
			}
		}
	}
	switch {
	case bold[0][0] == 0 || light[0][0] > 0:
	case light[1][0] == 0 && light[0][1] > 0 && bold[0][1]+bold[1][1] == 0:
		return labels
	case bold[0][1] > 0 && light[0][1] == 0 && bold[1][1] == 0:
		return 1
	}
	return 0
}

// isMeasure reports whether a value is a number, a date, an amount or similar.
func isMeasure(s string) bool {
	digits, letters := 0, 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			digits++
		} else if unicode.IsLetter(r) {
			letters++
		}
	}
	return digits > 0 && letters <= 3
}

func startsWithLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}
