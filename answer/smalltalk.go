package answer

import (
	"context"
	"regexp"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// chatTokens is room for a sentence.
const chatTokens = 80

// chat replies to small talk without a search: with the model's words, or where it
// has none with a fixed sentence.
func (r *asking) chat(ctx context.Context, language string) error {
	said := sentences[language][talk]
	if r.Model != nil {
		r.writer.Question = r.question.Text
		p, err := r.write(RoleChat, prompt.Slots{})
		if err != nil {
			return err
		}
		p.MaxTokens = chatTokens
		c := r.call(p)
		err = c.collect(ctx, r.Model)
		r.addUsage(c)
		switch text := strings.TrimSpace(string(c.text)); {
		case err != nil && (r.NoFallback || ctx.Err() != nil):
			return err
		case err == nil && c.finish == "stop" && text != "" && !aboutPassages(text):
			said = text
		}
	}
	if r.emit(Unanswered{Reason: talk, Text: said, Nearest: []retrieve.Passage{}, Closest: []Closest{}}) {
		r.finish()
	}
	return nil
}

// aboutPassages reports whether a reply to small talk is one to a question: it has labels,
// or is a refusal.
func aboutPassages(text string) bool {
	reason, _ := nonAnswers{noAnswer: true}.reason(text)
	return reason != "" || label.MatchString(text)
}

var label = regexp.MustCompile(`\[\s*\d`)
