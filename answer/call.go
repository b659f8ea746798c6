package answer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"ibid/ingest"
	"ibid/retrieve"
)

// A call is one request to a model, and what it cost.
type call struct {
	prompt Prompt
	count  func(text string) int
	run    *Run // whose journal keeps the reply; nil for none
	again  int  // tells it from the other calls of the run with the same prompt
	text   []byte
	tokens Tokens // what it cost
	made   bool   // a model was asked, or the journal had the reply
	finish string
	// enough is set by who ranges over the reply once what has come will do:
	// the call is finished then, though its reply may be cut.
	enough bool
	unkept error // why the journal does not have it
}

func (r *run) call(p Prompt) *call { return &call{prompt: p, count: r.count, run: r.kept} }

var errUnfinished = errors.New("the reply ended without a finish reason")

// pieces streams the reply to the prompt, from the run's journal if that has
// it, and settles what it cost when the stream ends or is left. A call that is
// finished is in the journal when the range ends; the text does not wait for that.
func (c *call) pieces(ctx context.Context, m Model) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if k, ok := c.known(ctx); ok {
			c.text, c.finish, c.tokens, c.made = k.Text, k.Finish, k.Usage, true
			if len(k.Text) > 0 && !yield(string(k.Text), nil) {
				return
			}
			if k.Failed != "" {
				yield("", errors.New(k.Failed))
				return
			}
		} else if left, err := c.make(ctx, m, yield); left {
			return
		} else if err != nil {
			yield("", err)
			return
		}
		switch c.finish {
		case "":
			yield("", errUnfinished)
		case "content_filter":
			yield("", errors.New("the model's server withheld the reply (content filter)"))
		}
	}
}

// make has the model reply, and tells whether the range was left.
func (c *call) make(ctx context.Context, m Model, yield func(string, error) bool) (left bool, err error) {
	c.made = true
	for piece, err := range m.Complete(ctx, c.prompt) {
		c.tokens = piece.Usage
		if err != nil {
			if c.enough && ctx.Err() == nil {
				c.keep(ctx)
			}
			return false, err
		}
		c.text = append(c.text, piece.Text...)
		c.finish = piece.Finish
		if piece.Text != "" && !yield(piece.Text, nil) {
			left = true
			break
		}
	}
	if c.finish == "" { // no report of the server came
		c.tokens.Prompt += c.count(c.prompt.System) + c.count(c.prompt.User)
		c.tokens.Completion += c.count(string(c.text))
	}
	// Who asks again may be given more than nothing.
	whole := (c.finish == "stop" || c.finish == "length") && len(bytes.TrimSpace(c.text)) > 0
	if whole || left && c.enough {
		c.keep(ctx)
	}
	return left, nil
}

// requests is how many requests the call took, repeated ones included.
func (c *call) requests() int {
	if !c.made {
		return 0
	}
	return max(1, c.tokens.Requests)
}

// spent adds what the call cost to the usage.
func (r *run) spent(c *call) {
	r.usage.Calls += c.requests()
	if c.prompt.Role == RoleJudge {
		r.usage.JudgeCalls += c.requests()
	}
	r.usage.PromptTokens += c.tokens.Prompt
	r.usage.CompletionTokens += c.tokens.Completion
	r.usage.ReasoningTokens += c.tokens.Reasoning
	r.tellUnkept(c)
}

// tellUnkept warns once when the journal lacks a call.
func (r *run) tellUnkept(c *call) {
	if c.unkept != nil && !r.unkept {
		r.unkept = true
		r.emit(Warning{Message: "this cannot be taken up again without repeating calls: " + c.unkept.Error()})
	}
}

// readLeast is the shortest prompt, in tokens, whose count by the server says
// whether it has been cut.
const readLeast = 300

// checkRead warns once when the server has cut the prompt.
func (r *run) checkRead(c *call) {
	if r.warned || !c.tokens.Reported || c.tokens.Prompt <= 0 {
		return
	}
	sent := r.count(c.prompt.System) + r.count(c.prompt.User)
	if sent < readLeast || c.tokens.Prompt >= sent {
		return
	}
	if float64(c.tokens.Prompt) >= ingest.LeastShare(c.prompt.System+"\n"+c.prompt.User)*float64(sent) {
		return
	}
	r.warned = true
	r.emit(Warning{Message: fmt.Sprintf("the model's server read %d of about %d prompt tokens, so it has cut the prompt: raise its context length (OLLAMA_CONTEXT_LENGTH for Ollama), or lower --context-tokens", c.tokens.Prompt, sent)})
}

// write makes a prompt; the fences of its quoted material carry a mark that
// none of it holds.
func (r *run) write(role Role, s Slots) (Prompt, error) {
	s = r.slots(s)
	var err error
	if s.Nonce, err = r.nonce(role, s); err != nil {
		return Prompt{}, err
	}
	return r.prompts().fill(r.template(role), role, s)
}

// slots fills in what all prompts of a run have in common.
func (r *run) slots(s Slots) Slots {
	s.Question = inert(r.asked)
	s.Style = r.style
	if len(s.Evidence) > 0 {
		s.First = s.Evidence[0].label
	}
	if r.summary != nil {
		s.Words = r.summary.Words
	}
	return s
}

// checkSlots tries the templates of the given names on the passages that they
// may come to show, so that a slot which one of the documents lacks is found
// before a model is asked.
func (r *run) checkSlots(passages []retrieve.Passage, names ...string) error {
	if r.Model == nil && r.GateModel == nil {
		return nil
	}
	s := r.slots(Slots{Nonce: sampleNonce})
	for i, p := range passages {
		s.Evidence = append(s.Evidence, evidence(i+1, p))
	}
	for _, name := range names {
		_, err := r.prompts().fill(name, "", s)
		if lacks := (*SlotError)(nil); errors.As(err, &lacks) {
			return lacks
		} else if err != nil {
			return err
		}
	}
	return nil
}

// overhead is how many tokens a prompt takes before there is anything in it.
func (r *run) overhead(role Role, s Slots) (int, error) {
	s = r.slots(s)
	s.Nonce = sampleNonce
	p, err := r.prompts().fill(r.template(role), role, s)
	return r.count(p.System) + r.count(p.User), err
}
