package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// spaced is a text in small letters with one space around each word.
func spaced(s string) string {
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '\''
	}), " ") + " "
}

// An answerUnit is what a number in the answer counts; its form is nil where the
// question does not say.
type answerUnit struct{ form *regexp.Regexp }

// number is a number in figures or in words.
const number = `(?:\d[\d.,:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|` +
	`twenty|thirty|forty|fifty|sixty|ninety|hundred|half|an?)`

var units = []struct {
	cues []string
	form *regexp.Regexp
}{
	{[]string{" how much does ", " how much do ", " how much is ", " how much was ", " how much will ", " how much would ",
		" how much must ", " cost ", " costs ", " price ", " pay ", " charge ", " fee ", " fees ", " how much money "},
		regexp.MustCompile(`(?i)[$€£¥]\s*\d|\d\s*[$€£¥]|` + number +
			`[\s-](?:euros?|dollars?|pounds?|cents?|francs?|marks?|crowns?|yen|eur|usd|gbp|chf|per cent|percent)\b|\bfree\b|\|\s*[^|]*:\s*\d+\b`)},
	{[]string{" how long ", " how soon "},
		regexp.MustCompile(`(?i)\b` + number + `(?:[\s-](?:to|and|or)[\s-]` + number +
			`)?[\s-](?:seconds?|minutes?|hours?|days?|nights?|weeks?|fortnights?|months?|` +
			`seasons?|years?|mornings?|evenings?|metres?|meters?|feet|km)\b`)},
	{[]string{" how far ", " how high ", " how deep ", " how tall ", " how wide "},
		regexp.MustCompile(`(?i)\b` + number +
			`[\s-](?:millimetres?|centimetres?|metres?|meters?|kilometres?|kilometers?|miles?|feet|foot|inches|m|cm|km|ft)\b`)},
	{[]string{" how heavy ", " how much does it weigh ", " what weight "},
		regexp.MustCompile(`(?i)\b` + number + `[\s-](?:kilograms?|kilos?|kg|grams?|g|tonnes?|tons?|pounds?|lbs?)\b`)},
	{[]string{" how fast ", " what speed "},
		regexp.MustCompile(`(?i)\b` + number + `[\s-](?:knots?|km/h|kph|mph|metres? per|kilometres? per|miles per)\b`)},
	{[]string{" how old ", " what age "},
		regexp.MustCompile(`(?i)\b` + number +
			`[\s-](?:years?|months?)\b|\b(?:age|aged|under|over|from|older than|` +
			`younger than|turns?)\s+` + number + `\b|\b1[5-9]\d\d\b|\b20\d\d\b`)},
	{[]string{" what time ", " at what time ", " opening hours ", " open ", " until when "},
		regexp.MustCompile(`(?i)\b\d{1,2}[:.]\d\d\b|\b` + number +
			`\s*(?:o'clock|am|pm|a\.m\.|p\.m\.)|\b(?:noon|midnight)\b|\b(?:half|quarter) past\b|\bat ` + number + `\b`)},
	{[]string{" what year ", " which year "},
		regexp.MustCompile(`\b1\d\d\d\b|\b20\d\d\b`)},
	{[]string{" when ", " what date ", " which date ", " what day ", " which day ", " what month ", " which month "},
		regexp.MustCompile(`(?i)\b(?:january|february|march|april|may|june|july|august|september|october|november|december|` +
			`monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b|\b1\d\d\d\b|\b20\d\d\b|\d{1,2}[:.]\d\d\b`)},
	{[]string{" how often ", " how many times "},
		regexp.MustCompile(`(?i)\b(?:once|twice|every|each|daily|weekly|monthly|yearly|annually|times)\b`)},
	{[]string{" percentage ", " per cent ", " percent "},
		regexp.MustCompile(`(?i)\d\s*%|per ?cent`)},
	{[]string{" how many ", " how much ", " what number "},
		regexp.MustCompile(`(?i)\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|` +
			`twenty|thirty|forty|fifty|sixty|hundred|no|none|both)\b`)},
}

func unitOf(question string) answerUnit {
	q := spaced(question)
	for _, u := range units {
		for _, cue := range u.cues {
			if strings.Contains(q, cue) {
				return answerUnit{u.form}
			}
		}
	}
	return answerUnit{}
}

// in reports whether a text has a number of the unit: 1 for yes, 0 for no, ½
// when the question asks for none.
func (u answerUnit) in(text string) float64 {
	switch {
	case u.form == nil:
		return .5
	case u.form.MatchString(text):
		return 1
	}
	return 0
}

var year = regexp.MustCompile(`\b(?:19|20)\d\d\b`)

func years(text string) []string { return year.FindAllString(text, -1) }

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}
