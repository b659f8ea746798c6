package answer

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/retrieve"
)

// The reasons of Unanswered.
const (
	nothingFound    = "nothing_found"
	nothingRelevant = "nothing_relevant"
	noAnswer        = "no_answer"
	talk            = "small_talk"

	// uncertain is not a reason of Unanswered: it is noAnswer where nothing but the
	// confidence says so.
	uncertain = "uncertain"
)

//go:embed phrases.txt
var phraseTable string

// sentences are what Ibid itself says, by language and reason; greetings are the
// languages of the greetings and thanks that it recognizes, and helps of what else is
// said to a program and about no document.
var sentences, greetings, helps = func() (map[string]map[string]string, map[string]string, map[string]string) {
	sentences, greetings, helps := map[string]map[string]string{}, map[string]string{}, map[string]string{}
	for line := range strings.Lines(phraseTable) {
		language, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, text, _ := strings.Cut(rest, " ")
		switch {
		case language == "" || language == "#":
		case kind == "greetings" || kind == "helps":
			for said := range strings.SplitSeq(text, "|") {
				if helps[said] = language; kind == "greetings" {
					greetings[said] = language
				}
			}
		default:
			if sentences[language] == nil {
				sentences[language] = map[string]string{}
			}
			sentences[language][kind] = text
		}
	}
	return sentences, greetings, helps
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

// ClosestWords introduce the closest passages, in the language of the refusal before them.
func ClosestWords(refusal string) string {
	said := sentences["en"]
	for _, of := range sentences {
		if of[noAnswer] == refusal || of[uncertain] == refusal {
			said = of
		}
	}
	return said["closest"]
}

// smallTalk returns the language of a text that only greets, thanks or asks for help; else
// it is empty, and rest is the text without a greeting before a question.
func smallTalk(text string) (language, rest string) {
	rest = text
	for at := 0; at < len(text); {
		clause := text[at:]
		if end := strings.IndexAny(clause, ",.!?;:\n，。！？；،؟"); end >= 0 {
			clause = clause[:end]
		}
		said := strings.Join(strings.FieldsFunc(strings.ToLower(clause), func(r rune) bool { return !unicode.IsLetter(r) }), " ")
		said = strings.TrimSuffix(said, " ibid")
		switch {
		case strings.ContainsFunc(clause, unicode.IsNumber) || said != "" && helps[said] == "":
			return "", rest
		case language == "":
			language = helps[said]
		}
		_, size := utf8.DecodeRuneInString(text[at+len(clause):])
		at += len(clause) + size
		if next := strings.TrimSpace(text[at:]); (said == "" || greetings[said] != "") && isAsked(next) {
			rest = next
		}
	}
	return language, rest
}

// isAsked reports whether a text looks like a question by itself.
func isAsked(text string) bool {
	const words = 3
	return strings.ContainsAny(text, "?？؟") || len(strings.Fields(text)) >= words
}
