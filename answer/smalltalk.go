package answer

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ibid/answer/prompt"
	"ibid/answer/replies"
	"ibid/cite/marker"
	"ibid/retrieve"
)

// chatTokens is the longest reply to small talk.
const chatTokens = 80

// replyToTalk replies to small talk without a search: with the model's reply or, if that
// is not suitable, with a fixed sentence.
func (r *asking) replyToTalk(ctx context.Context, language string) error {
	said := sentences[language][talk]
	if r.Model != nil {
		r.writer.Question = r.question.Text
		p, err := r.writePrompt(RoleChat, prompt.Slots{})
		if err != nil {
			return err
		}
		p.MaxTokens = chatTokens
		c := r.newCall(p)
		err = c.readWhole(ctx, r.Model)
		r.addUsage(c)
		switch text := strings.TrimSpace(string(c.text)); {
		case err != nil && (r.NoFallback || ctx.Err() != nil):
			return err
		case err == nil && c.finish == "stop" && text != "" && !aboutPassages(text):
			said = text
		}
	}
	if r.emit(Unanswered{Reason: talk, Text: said, Nearest: []retrieve.Passage{}, Closest: []Closest{}}) {
		r.emitUsage()
	}
	return nil
}

// aboutPassages reports whether a reply to small talk has labels or is a refusal, as if it
// answered a question.
func aboutPassages(text string) bool {
	reason, _ := replies.NonAnswers{NoAnswer: true}.Reason(text)
	return reason != "" || label.MatchString(text)
}

var label = regexp.MustCompile(`\[\s*\d`)

// A courtesy has the phrases of small talk in one language.
type courtesy struct {
	language string
	kinds    map[string]string // the kind of each phrase
}

// The kinds of phrases. Fillers and pleases are small talk only with another phrase.
const (
	greeting = "greetings" // thanks, approval and goodbyes too
	help     = "helps"
	filler   = "fillers"
	please   = "pleases"
)

// Limits of small talk, in words, and of a phrase, in bytes.
const (
	longestTalk   = 14
	longestPhrase = 80
)

// smallTalk returns the language of a text that consists only of phrases that greet, thank or
// ask for help. For any other text language is empty, and rest is the text without greetings
// and thanks before and after the question.
func smallTalk(text string) (language, rest string) {
	all := clauses(text)
	if len(strings.Fields(text)) <= longestTalk {
		for _, c := range courtesies {
			if kinds, ok := c.readPhrases(all...); ok && (kinds[greeting] || kinds[help] || len(kinds) == 0) {
				return c.language, text
			}
		}
	}
	first, end := 0, len(all)
	for first < end && isGreeting(all[first]) && isAsked(strings.Join(all[first+1:], "")) {
		first++
	}
	for end > first && isGreeting(all[end-1]) && isAsked(strings.Join(all[first:end-1], "")) {
		end--
	}
	for end < len(all) && plainWords(all[end]) == "" { // further punctuation of the question
		end++
	}
	if rest = strings.TrimSpace(strings.Join(all[first:end], "")); end < len(all) {
		rest = strings.TrimRight(rest, ",;，；، ")
	}
	return "", rest
}

// clauses splits a text after each punctuation mark.
func clauses(text string) (all []string) {
	for text != "" {
		end := len(text)
		if at := strings.IndexAny(text, ",.!?;:\n，。！？；،؟"); at >= 0 {
			_, size := utf8.DecodeRuneInString(text[at:])
			end = at + size
		}
		all = append(all, text[:end])
		text = text[end:]
	}
	return all
}

// isGreeting reports whether a clause is a greeting in any language, or has no words.
func isGreeting(clause string) bool {
	for _, c := range courtesies {
		if kinds, ok := c.readPhrases(clause); ok && !kinds[help] && (kinds[greeting] || !kinds[filler]) {
			return true
		}
	}
	return false
}

// readPhrases returns the kinds of the phrases in clauses; ok reports whether the clauses consist
// only of phrases. In a clause with a question mark, fillers do not count as phrases.
func (c *courtesy) readPhrases(clauses ...string) (kinds map[string]bool, ok bool) {
	kinds = map[string]bool{}
	for _, clause := range clauses {
		said, asks := plainWords(clause), strings.ContainsAny(clause, "?？؟")
		for said != "" {
			phrase := c.firstPhrase(said)
			kind := c.kinds[phrase]
			if kind == "" || kind == filler && asks {
				return nil, false
			}
			kinds[kind] = true
			said = strings.TrimPrefix(said[len(phrase):], " ")
		}
	}
	return kinds, true
}

// firstPhrase returns the longest phrase that words begin with. In scripts with spaces it ends at
// the end of a word.
func (c *courtesy) firstPhrase(words string) string {
	for end := min(len(words), longestPhrase); end > 0; {
		last, size := utf8.DecodeLastRuneInString(words[:end])
		whole := end == len(words) || words[end] == ' ' || marker.IsUnspaced(last)
		if whole && c.kinds[words[:end]] != "" {
			return words[:end]
		}
		end -= size
	}
	return ""
}

// plainWords returns the words of a text in lower case, separated by a space. It keeps
// numbers, since a text with a number is not small talk.
func plainWords(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		case unicode.IsMark(r):
			return -1
		}
		return ' '
	}, norm.NFC.String(text))
	return strings.Join(strings.Fields(text), " ")
}

// isAsked reports whether a text looks like a question by itself.
func isAsked(text string) bool {
	const words = 3
	return strings.ContainsAny(text, "?？؟") || len(strings.Fields(text)) >= words
}
