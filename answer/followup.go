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
	if before == "" || !isElliptic(question, retrieve.Language(before+" "+question)) {
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

// followUpWords are the words by which a question goes on from the last one, by
// language: openings begin it, references mean something in the last one.
var followUpWords = func() map[string]struct{ openings, references []string } {
	words := map[string]struct{ openings, references []string }{}
	for line := range strings.Lines(followUpTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		of := words[fields[1]]
		for _, word := range fields[2:] {
			word = strings.ReplaceAll(word, "_", " ")
			if fields[0] == "opening" {
				of.openings = append(of.openings, word)
			} else {
				of.references = append(of.references, word)
			}
		}
		words[fields[1]] = of
	}
	return words
}()

// isElliptic reports whether a question cannot be understood alone: it has no content
// word, or it has less than four and begins with "and" or the like or has a pronoun. A
// longer question has what its pronoun means: of the questions of SQuAD, 14 in 100
// have one, and 1 in 100 is elliptic by this rule.
func isElliptic(question, language string) bool {
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
	words, own := followUpWords[language], countWords(question)
	opens := slices.ContainsFunc(words.openings, func(p string) bool { return has(p, false) })
	refers := slices.ContainsFunc(words.references, func(p string) bool { return has(p, true) })
	return own == 0 || own < 4 && (opens || refers)
}

// countWords counts the content words of a question. Where words are not separated,
// two terms, which are pairs of characters, count as one.
func countWords(question string) int {
	if strings.ContainsFunc(question, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) }) {
		return len(retrieve.Terms(question)) / 2
	}
	return len(contentWords(question))
}

// contentWords are the words of a question that say something of its subject.
func contentWords(question string) []string {
	terms := retrieve.Terms(question)
	return slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		return !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(terms, t) })
	})
}
