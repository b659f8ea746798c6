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

// followUp makes a question that needs the ones before it a standalone one by rule:
// with the content words of the last answered one that it lacks, and of the heading path
// that was cited if that has few. Any other question is returned unchanged. A short question
// may need them or not: together reports whether the documents have what it asks for next to
// what was asked before.
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

// isRefusal reports whether a reply says that the documents do not answer, or only greets.
func isRefusal(reply string) bool {
	for _, said := range sentences {
		for _, text := range said {
			if strings.HasPrefix(strings.TrimSpace(reply), text) { // closest passages may follow
				return true
			}
		}
	}
	return false
}

// fewWords is the number of content words from which a question says enough of its
// subject: then only the names of the one before are carried.
const fewWords = 3

// completeQuestion adds to a question the content words of the one before where it may be
// elliptic, and reports whether it is.
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
	common := func(word string) bool { // the first word has a capital too
		return !strings.ContainsFunc(word, unicode.IsUpper) || strings.HasPrefix(strings.TrimLeft(before, marks), word)
	}
	if names := slices.DeleteFunc(slices.Clone(carried), common); len(names) > 0 && countWords(question, before) >= fewWords {
		carried = names // the question says enough of the rest
	}
	if whole := question + " " + strings.Join(carried, " "); len(carried) > 0 && len(whole) <= MaxQuestionBytes {
		return whole, elliptic
	}
	return question, false
}

// marks are around words.
const marks = "?？¿¡!.,;"

var numbers = regexp.MustCompile(`\d+`)

//go:embed followups.txt
var followUpTable string

// followUpWords are the words by which a question goes on from the last one, by
// language: openings begin it, references mean something in the last one, except in idle phrases. Amounts, of
// all languages, ask for a number without saying of what. In a verbless language "who director?" is whole.
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

// isElliptic reports whether a question cannot be understood alone: it has no content
// word, it has less than four and begins with "and" or the like or has a pronoun, or less
// than six and both. A longer question has what its pronoun means: of the questions of SQuAD, 14 in 100
// have one, and 1 in 100 is elliptic by this rule. One with less than three is short, also
// with a question word after the "and", as in "And who is the director?".
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

// spaceAround returns what is around a phrase in a text: a space, if its script has any.
func spaceAround(phrase string) string {
	if first, _ := utf8.DecodeRuneInString(phrase); marker.IsUnspaced(first) {
		return ""
	}
	return " "
}

// countWords counts the content words of a question, which is next to another one; 0 if
// all are amounts. In scripts without spaces two terms, which are pairs of characters,
// count as one word.
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

// contentWords are the words of a question that say something of its subject. A short
// one may have too few words to tell its language, and the one before it has more.
func contentWords(question, previous string) []string {
	terms := retrieve.Terms(previous + " " + question)
	return slices.DeleteFunc(strings.Fields(question), func(word string) bool {
		return !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool { return slices.Contains(terms, t) })
	})
}
