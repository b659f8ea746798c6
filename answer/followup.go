package answer

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/answer/extract"
	"ibid/cite/marker"
	"ibid/retrieve"
)

// followUp rewrites a follow-up question as a standalone one by rule. It appends the content words
// of the last answered question and, if that has few, of citedUnder, the heading path that its
// answer cited. Any other question is returned unchanged. A short question may or may not be a
// follow-up; together decides whether to append the words to it.
func followUp(question string, history []Turn, citedUnder string, together func(question, whole string) (bool, error)) (string, error) {
	before := ""
	turns := append(slices.Clip(history), Turn{Role: "user", Content: question})
	for i, t := range turns {
		if t.Role != "user" || len(t.Content) > MaxQuestionBytes || i+1 < len(history) && isRefusal(history[i+1].Content) {
			continue
		}
		asked := t.Content
		if i < len(history) {
			_, asked = smallTalk(asked)
		} else if n := countWords(before, t.Content); n > 0 && n < fewWords {
			before += " " + citedUnder
		}
		whole, sure := completeQuestion(asked, before)
		if !sure && whole != asked {
			if is, err := together(asked, whole); err != nil {
				return "", err
			} else if !is {
				whole = asked
			}
		}
		before = whole
	}
	return before, nil
}

// isRefusal reports whether a reply is a refusal or a reply to small talk.
func isRefusal(reply string) bool {
	for _, said := range sentences {
		for _, text := range said {
			if strings.HasPrefix(strings.TrimSpace(reply), text) { // the closest passages may follow it
				return true
			}
		}
	}
	return false
}

// fewWords is the number of content words that make the subject of a question clear.
// Only names are appended to such a question.
const fewWords = 3

// completeQuestion appends the content words of the previous question if the question may
// be elliptic, and reports whether it certainly is.
func completeQuestion(question, before string) (whole string, elliptic bool) {
	elliptic, short := isElliptic(question, before)
	if before == "" || !elliptic && !short {
		return question, false
	}
	has, replaced := retrieve.Terms(question), numbers.MatchString(question)
	var carried []string
	for _, word := range contentWords(before, question) {
		said := slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(has, t) })
		if !said && !(replaced && numbers.MatchString(word)) {
			carried = append(carried, strings.Trim(word, marks))
			has = append(has, retrieve.Terms(word)...)
		}
	}
	common := func(word string) bool { // a capital at the beginning does not make a name
		return !strings.ContainsFunc(word, unicode.IsUpper) || strings.HasPrefix(strings.TrimLeft(before, marks), word)
	}
	if names := slices.DeleteFunc(slices.Clone(carried), common); len(names) > 0 && countWords(question, before) >= fewWords {
		carried = names
	}
	if whole := question + " " + strings.Join(carried, " "); len(carried) > 0 && len(whole) <= MaxQuestionBytes {
		return whole, elliptic
	}
	return question, false
}

// marks are the punctuation around words.
const marks = "?？¿¡!.,;"

var numbers = regexp.MustCompile(`\d+`)

//go:embed followups.txt
var followUpTable string

// followUpWords are the words of followups.txt by kind and language. An "opening" begins a follow-up
// question; a "reference" refers to the last question, except in an "idle" phrase. "verbless" marks
// languages, with empty lists, in which "who director?" is a complete question.
var followUpWords = func() map[string]map[string][]string {
	words := map[string]map[string][]string{}
	for line := range strings.Lines(followUpTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		kind, language := fields[0], fields[1]
		if words[kind] == nil {
			words[kind] = map[string][]string{}
		}
		for i, phrase := range fields {
			fields[i] = strings.ReplaceAll(phrase, "_", " ")
		}
		words[kind][language] = append(words[kind][language], fields[2:]...)
	}
	return words
}()

// amounts are words of all languages that ask for a number without naming the things to count.
var amounts = slices.Concat(slices.Collect(maps.Values(followUpWords["amount"]))...)

// isElliptic reports whether a question cannot be understood alone. It is elliptic if it has no
// content word, fewer than four and an opening ("and") or a pronoun, or fewer than six and both. In
// a longer question the pronoun usually refers to the question itself: 14 % of SQuAD's questions
// have a pronoun, and this rule calls 1 % elliptic. short reports whether it has fewer than three
// content words, as in "And who is the director?".
func isElliptic(question, before string) (elliptic, short bool) {
	lower := " " + strings.Join(strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}), " ") + " "
	language, own, rest := retrieve.Language(before+" "+question), countWords(question, before), lower
	for found := true; found; { // "and what about"
		found = slices.ContainsFunc(followUpWords["opening"][language], func(p string) bool {
			after, ok := strings.CutPrefix(rest, " "+p+spaceAround(p))
			if ok {
				rest = " " + after
			}
			return ok
		})
	}
	opens := len(rest) < len(lower) && !extract.Asks(rest)
	for _, idle := range followUpWords["idle"][language] {
		lower = strings.ReplaceAll(lower, " "+idle+" ", " ")
	}
	refers := slices.ContainsFunc(followUpWords["reference"][language], func(p string) bool {
		return strings.Contains(lower, spaceAround(p)+p+spaceAround(p))
	})
	_, verbless := followUpWords["verbless"][language]
	asks := own == 1 && strings.Count(rest, " ") == 3 && !verbless // "Who won?"
	return own == 0 || asks || own < 4 && (opens || refers) || own < 6 && opens && refers, own < fewWords
}

// spaceAround returns the separator around a phrase: a space, or "" in scripts without spaces.
func spaceAround(phrase string) string {
	if first, _ := utf8.DecodeRuneInString(phrase); marker.IsUnspaced(first) {
		return ""
	}
	return " "
}

// countWords counts the content words of a question; previous helps to detect its language.
// It returns 0 if all of them are in amounts. In scripts without spaces a term is a pair of
// characters, and two terms count as one word.
func countWords(question, previous string) int {
	if strings.ContainsFunc(question, marker.IsUnspaced) {
		return len(retrieve.Terms(question)) / 2
	}
	words := contentWords(question, previous)
	if !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(amounts, strings.ToLower(strings.Trim(word, marks))) }) {
		return 0
	}
	return len(words)
}

// contentWords returns the words of a question that are search terms. previous helps to
// detect the language of a short question.
func contentWords(question, previous string) []string {
	terms := retrieve.Terms(previous + " " + question)
	return slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		return !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(terms, t) })
	})
}
