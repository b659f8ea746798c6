package answer

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// followUp makes a question that needs the ones before it a standalone one by rule:
// with the content words of the last that it lacks. Any other question is returned
// unchanged.
func followUp(question string, history []Turn) string {
	before := ""
	for _, t := range history {
		if t.Role == "user" && len(t.Content) <= MaxQuestionBytes {
			before = completed(strings.TrimSpace(t.Content), before)
		}
	}
	return completed(question, before)
}

func completed(question, before string) string {
	if before == "" || !isElliptic(question) {
		return question
	}
	has, replaced := retrieve.Terms(question), numbers.MatchString(question)
	var carried []string
	for _, word := range contentWords(before) {
		said := slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(has, t) })
		if !said && !(replaced && numbers.MatchString(word)) {
			carried = append(carried, strings.Trim(word, "?？¿¡!.,;"))
		}
	}
	if whole := question + " " + strings.Join(carried, " "); len(carried) > 0 && len(whole) <= MaxQuestionBytes {
		return whole
	}
	return question
}

var numbers = regexp.MustCompile(`\d+`)

//go:embed followups.txt
var followUpTable string

// openings begin a question that goes on from the last one; references are words
// that mean something in it.
var openings, references = func() (openings, references []string) {
	for line := range strings.Lines(followUpTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		for _, word := range fields[2:] {
			word = strings.ReplaceAll(word, "_", " ")
			if fields[0] == "opening" {
				openings = append(openings, word)
			} else {
				references = append(references, word)
			}
		}
	}
	return openings, references
}()

// isElliptic reports whether a question cannot be understood alone: it begins with
// "and" or the like, has a pronoun, or has less than two words that say something.
func isElliptic(question string) bool {
	lower := " " + strings.Join(strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}), " ") + " "
	has := func(phrase string, anywhere bool) bool {
		if first := []rune(phrase)[0]; unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			at := strings.Index(strings.TrimSpace(lower), phrase)
			return at == 0 || anywhere && at > 0
		}
		at := strings.Index(lower, " "+phrase+" ")
		return at == 0 || anywhere && at > 0
	}
	return slices.ContainsFunc(openings, func(p string) bool { return has(p, false) }) ||
		slices.ContainsFunc(references, func(p string) bool { return has(p, true) }) ||
		len(contentWords(question)) < 2
}

// contentWords are the words of a question that say something of its subject.
func contentWords(question string) []string {
	terms := retrieve.Terms(question)
	return slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		return !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(terms, t) })
	})
}
