package answer

import (
	"context"
	"errors"
	"strings"
)

// condenseTokens is how much longer than a question the one that stands alone
// may be.
const condenseTokens = 256

// condense makes a follow-up a question that stands alone. Without history or
// a model, and when the model fails, the question stays as it was asked.
func (r *run) condense(ctx context.Context) error {
	r.asked = r.question.Text
	if len(r.question.History) == 0 || r.Model == nil {
		return nil
	}
	// Half of the window is for the history, latest turns first, less where
	// the question is long.
	length := r.count(r.asked) + condenseTokens
	overhead, err := r.overhead(RoleCondense, Slots{})
	if err != nil {
		return err
	}
	room := min(r.window()/2, r.window()-overhead-length)
	var turns []Turn
	for i := len(r.question.History) - 1; i >= 0; i-- {
		t := r.question.History[i]
		t.Content = strings.TrimSpace(inert(t.Content))
		if room -= r.count(t.Content) + 4; room < 0 {
			break
		}
		turns = append([]Turn{t}, turns...)
	}
	if len(turns) == 0 {
		return nil
	}
	prompt, err := r.write(RoleCondense, Slots{History: turns})
	if err != nil {
		return err
	}
	prompt.MaxTokens = length
	c := r.call(prompt)
	var reply strings.Builder
	for piece, err := range c.pieces(ctx, r.Model) {
		if err != nil {
			r.spent(c)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if u := unusable(nil); errors.As(err, &u) && u.Unusable() {
				return asking(RoleCondense, err)
			}
			r.emit(Warning{Message: "the question was searched for as it stands: " + err.Error()})
			return nil
		}
		reply.WriteString(piece)
		if reply.Len() > MaxQuestionBytes || strings.Contains(strings.TrimSpace(reply.String()), "\n") {
			c.enough = true
			break
		}
	}
	r.spent(c)
	line, _, ended := strings.Cut(strings.TrimSpace(reply.String()), "\n")
	if c.finish == "length" && !ended {
		r.emit(Warning{Message: "the question was searched for as it stands: the model wrote a longer one, and did not come to its end"})
		return nil
	}
	line = strings.Trim(strings.TrimSpace(line), "\"")
	if line != "" && len(line) <= MaxQuestionBytes {
		r.asked = line
	}
	return nil
}
