package answer

import (
	"context"
	"strings"

	"ibid/answer/prompt"
	"ibid/retrieve"
)

// suggestTokens is the length of the reply per question.
const suggestTokens = 40

// Suggest asks the model for about n questions that the passages answer, and does not
// check whether they do. It returns nil if no model is set.
func (a *Answerer) Suggest(ctx context.Context, passages []retrieve.Passage, n int) ([]string, error) {
	if a.Model == nil || len(passages) == 0 {
		return nil, nil
	}
	k := a.newCaller(func(Event, error) bool { return true }, nil)
	batches, _, err := k.writer.Pack(passages, prompt.Suggest, prompt.Suggest, 1)
	if err != nil {
		return nil, err
	}
	p, err := k.writePrompt(RoleSuggest, prompt.Slots{Evidence: batches[0], Words: n})
	if err != nil {
		return nil, err
	}
	p.MaxTokens = n * suggestTokens
	c := k.newCall(p)
	if err := c.readWhole(ctx, a.Model); err != nil {
		return nil, callError(p.Role, err)
	}
	var questions []string
	for line := range strings.Lines(string(c.text)) {
		q := findQuestion(strings.TrimLeft(line, "-*•0123456789.) \t"))
		if strings.HasSuffix(q, "?") || strings.HasSuffix(q, "？") || strings.HasSuffix(q, "؟") {
			questions = append(questions, q)
		}
	}
	return questions, nil
}
