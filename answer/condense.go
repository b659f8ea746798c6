package answer

import (
	"context"
	"errors"
	"regexp"
	"strings"
)

// condenseTokens is how much longer than a question the one that stands alone
// may be.
const condenseTokens = 256

// condense makes a follow-up a question that stands alone. One that does so
// already stays as it was asked, as all do without history or a model, and when
// the model fails.
func (r *run) condense(ctx context.Context) error {
	r.asked = r.question.Text
	if len(r.question.History) == 0 || r.Model == nil || standsAlone(r.asked) {
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
		const role = 4
		e := r.fit(Evidence{text: strings.TrimSpace(inert(t.Content))}, room-role)
		if t.Content = e.text; t.Content == "" {
			continue
		}
		turns = append([]Turn{t}, turns...)
		if room -= r.count(t.Content) + role; room <= role {
			break
		}
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
			c.keepFailed(ctx, err)
			r.tellUnkept(c)
			r.emit(Warning{Message: "the question was searched for as it stands: " + err.Error()})
			return nil
		}
		reply.WriteString(piece)
		if reply.Len() > MaxQuestionBytes || standalone(finishedLines(reply.String())) != "" {
			c.enough = true
			break
		}
	}
	r.spent(c)
	q := standalone(finishedLines(reply.String()))
	switch {
	case q != "":
	case c.finish == "length":
		r.emit(Warning{Message: "the question was searched for as it stands: the model wrote a longer one, and did not come to its end"})
	default:
		q = standalone(reply.String())
	}
	if q != "" && len(q) <= MaxQuestionBytes {
		r.asked = q
	}
	return nil
}

// finishedLines is the part of a reply whose lines have ended.
func finishedLines(reply string) string { return reply[:strings.LastIndexByte(reply, '\n')+1] }

// preamble is how models begin in place of the question alone.
var preamble = regexp.MustCompile(`(?i)^[*_#\s]*(?:(?:sure|certainly|of course|okay|ok|here)\b[^:?]*:|(?:the )?(?:standalone |rewritten |rephrased )?question:)[*_\s]*`)

// standalone finds the question in the reply to condense.tmpl: the first line
// with words of its own, without what models put around it.
func standalone(reply string) string {
	for line := range strings.Lines(reply) {
		line = undressed(preamble.ReplaceAllString(undressed(line), ""))
		if line != "" && !strings.HasSuffix(line, ":") {
			return line
		}
	}
	return ""
}

// undressed takes off the quotes and asterisks around a text.
func undressed(s string) string {
	s = strings.TrimSpace(s)
	for _, pair := range [][2]string{{"**", "**"}, {"*", "*"}, {"`", "`"}, {"\"", "\""}, {"'", "'"}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}} {
		if inner, ok := strings.CutPrefix(s, pair[0]); ok && strings.HasSuffix(inner, pair[1]) {
			s = strings.TrimSpace(strings.TrimSuffix(inner, pair[1]))
		}
	}
	return s
}
