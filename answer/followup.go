package answer

import (
	_ "embed"
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
// answer cited. Any other question is returned unchanged. For a short question it is uncertain
// whether it is a follow-up: then together decides whether to append the words.
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

// fewWords is the number of content words with which a question says enough about its
// subject. To such a question only names are appended.
const fewWords = 3

// completeQuestion appends the content words of the question before if the question may be
// elliptic, and reports whether it certainly is.
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
	common := func(word string) bool { // the capital of the first word makes no name
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

// followUpWords are the words that mark a follow-up question, by language. Openings begin it;
// references refer to the last question, except in idle phrases. In a verbless language "who
// director?" is a complete question. amounts, in all languages together, are words that ask for a
// number without naming the things to count.
var followUpWords, amounts = readFollowUps()

type followUpSet struct {
	openings, references, idle []string
	verbless                   bool
}

func readFollowUps() (map[string]followUpSet, map[string]bool) {
	words, amounts := map[string]followUpSet{}, map[string]bool{}
	for line := range strings.Lines(followUpTable) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		of := words[fields[1]]
		of.verbless = of.verbless || fields[0] == "verbless"
		for _, word := range fields[2:] {
			word = strings.ReplaceAll(word, "_", " ")
			switch fields[0] {
			case "opening":
				of.openings = append(of.openings, word)
			case "reference":
				of.references = append(of.references, word)
			case "idle":
				of.idle = append(of.idle, word)
			case "amount":
				amounts[word] = true
			}
		}
		words[fields[1]] = of
	}
	return words, amounts
}

// isElliptic reports whether a question cannot be understood alone. It is elliptic if it has no
// content word, fewer than four and an opening ("and") or a pronoun, or fewer than six and both. In
// a longer question the pronoun usually refers to the question itself: 14 % of SQuAD's questions
// have a pronoun, and this rule takes 1 % for elliptic. short reports whether it has fewer than
// three content words, as in "And who is the director?".
func isElliptic(question, before string) (elliptic, short bool) {
	lower := " " + strings.Join(strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}), " ") + " "
	words, own, rest := followUpWords[retrieve.Language(before+" "+question)], countWords(question, before), lower
	for found := true; found; { // "and what about"
		found = slices.ContainsFunc(words.openings, func(p string) bool {
			after, ok := strings.CutPrefix(rest, " "+p+spaceAround(p))
			if ok {
				rest = " " + after
			}
			return ok
		})
	}
	opens := len(rest) < len(lower) && !extract.Asks(rest)
	for _, idle := range words.idle {
		lower = strings.ReplaceAll(lower, " "+idle+" ", " ")
	}
	refers := slices.ContainsFunc(words.references, func(p string) bool { return strings.Contains(lower, spaceAround(p)+p+spaceAround(p)) })
	asks := own == 1 && strings.Count(rest, " ") == 3 && !words.verbless // "Who won?"
	return own == 0 || asks || own < 4 && (opens || refers) || own < 6 && opens && refers, own < fewWords
}

// spaceAround returns the separator around a phrase: a space, or "" in scripts without spaces.
func spaceAround(phrase string) string {
	if first, _ := utf8.DecodeRuneInString(phrase); marker.IsUnspaced(first) {
		return ""
	}
	return " "
}

// countWords counts the content words of a question; previous helps to tell its language. It
// returns 0 if all are amounts. In scripts without spaces a term is a pair of characters, and
// two terms count as one word.
func countWords(question, previous string) int {
	if strings.ContainsFunc(question, marker.IsUnspaced) {
		return len(retrieve.Terms(question)) / 2
	}
	words := contentWords(question, previous)
	if !slices.ContainsFunc(words, func(word string) bool { return !amounts[strings.ToLower(strings.Trim(word, marks))] }) {
		return 0
	}
	return len(words)
}

// contentWords returns the words of a question that are search terms. previous helps to tell
// the language of a short question.
func contentWords(question, previous string) []string {
	terms := retrieve.Terms(previous + " " + question)
	return slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		return !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(terms, t) })
	})
}
