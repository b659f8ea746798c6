package answer

import (
	_ "embed"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// The reasons of Unanswered.
const (
	nothingFound    = "nothing_found"
	nothingRelevant = "nothing_relevant"
	noAnswer        = "no_answer"
	talk            = "small_talk"

	// uncertain is no reason of Unanswered: it is noAnswer where nothing but the
	// confidence says so.
	uncertain = "uncertain"
)

//go:embed phrases.txt
var phraseTable string

// sentences are what Ibid itself says, by language and reason; greetings are the
// languages of the greetings and thanks that it recognizes.
var sentences, greetings = func() (map[string]map[string]string, map[string]string) {
	sentences, greetings := map[string]map[string]string{}, map[string]string{}
	for line := range strings.Lines(phraseTable) {
		language, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, text, _ := strings.Cut(rest, " ")
		switch {
		case language == "" || language == "#":
		case kind == "greetings":
			for _, greeting := range strings.Split(text, "|") {
				greetings[greeting] = language
			}
		default:
			if sentences[language] == nil {
				sentences[language] = map[string]string{}
			}
			sentences[language][kind] = text
		}
	}
	return sentences, greetings
}()

// refusal is the sentence that states a reason, in the language of the question
// if it is one of the table, else in English.
func refusal(reason, question string) string {
	said, ok := sentences[retrieve.Language(question)]
	if !ok {
		said = sentences["en"]
	}
	return said[reason]
}

// smallTalk returns the language of a text that only greets or thanks; empty if it
// may ask something.
func smallTalk(text string) string {
	if strings.ContainsFunc(text, unicode.IsNumber) {
		return ""
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	return greetings[strings.Join(words, " ")]
}
