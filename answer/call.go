package answer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"ibid/answer/prompt"
	"ibid/answer/replay"
	"ibid/answer/replies"
	"ibid/ingest"
)

// A caller makes the calls to models for one question, within its budget, and
// adds up their cost.
type caller struct {
	*output
	writer   *prompt.Writer
	recorder *replay.Recorder // nil if nothing is recorded
	summary  *Summary         // nil for a question
	parallel int
	started  time.Time

	callLimit     int // the most calls, except to judges; less than 0 for no limit
	callsMade     int // calls made, except to judges
	budget        int // the most tokens in all prompts; 0 for no limit
	input         int // tokens in prompts written or planned so far
	reservedShare int // the next prompt may not use 1/reservedShare of the tokens left
	usage         Usage

	verifying sync.WaitGroup // calls that run while an answer is written

	promptCounts map[Prompt]int // verdicts requested with the same prompt

	warnedShort int // the number of shortened passages in the last warning
}

// Values of reservedShare: for marks with more tokens than the sample mark, and for
// proving the answer.
const (
	sparedForMarks = 20
	sparedForProof = 5
)

// newCaller returns the caller of a question, whose events go to yield.
func (a *Answerer) newCaller(yield func(Event, error) bool, recorder *replay.Recorder) *caller {
	w := &prompt.Writer{
		Templates: a.Prompts, ContextTokens: cmp.Or(a.ContextTokens, defaultContextTokens), Count: a.Count,
		StepTokens: a.StepTokens,
	}
	if w.Templates == nil {
		w.Templates = prompt.Default()
	}
	if w.Count == nil {
		w.Count = ingest.CountTokens
	}
	w.Nonce = func(name, system, user string) string {
		if recorder == nil {
			return strings.ToLower(rand.Text()[:8])
		}
		// A resumed request must get the same mark, so that its prompt is found in the journal.
		return recorder.Nonce(name, system, user)
	}
	c := &caller{
		output: &output{yield: yield, warned: map[string]bool{}, unreadReasons: map[string]string{}},
		writer: w, recorder: recorder, promptCounts: map[Prompt]int{},
		callLimit: cmp.Or(a.AnswerCalls, defaultAnswerCalls), parallel: cmp.Or(a.Parallel, defaultParallel), started: time.Now(),
		budget: a.BudgetTokens, reservedShare: sparedForMarks,
	}
	if c.budget > 0 {
		w.Budget = func() int { return (c.budget - c.input) * (c.reservedShare - 1) / c.reservedShare }
	}
	return c
}

func (c *caller) writePrompt(role Role, s prompt.Slots) (Prompt, error) {
	system, user, err := c.writer.Write(c.promptOf(role), s)
	return Prompt{Role: role, System: system, User: user}, err
}

// promptOf returns the name of a role's prompt. Summaries have their own prompts for
// the first call and for refining.
func (c *caller) promptOf(role Role) string {
	if c.summary != nil {
		switch role {
		case RoleAnswer:
			return prompt.Summarize
		case RoleRefine:
			return prompt.Extend
		}
	}
	return string(role)
}

func (c *caller) callsLeft() int {
	if c.callLimit < 0 {
		return math.MaxInt
	}
	return max(0, c.callLimit-c.callsMade)
}

// canAfford reports whether the budget has room for more tokens.
func (c *caller) canAfford(tokens int) bool { return c.budget <= 0 || c.input+tokens <= c.budget }

// leastTokens returns how many tokens of the budget an answer needs at least.
func (c *caller) leastTokens(question string) int { return LeastBudget + c.writer.Count(question) }

func (c *caller) promptSize(p Prompt) int { return c.writer.Size(p.System, p.User) }

// addUsage adds the cost of calls to the usage, and returns that cost.
func (c *caller) addUsage(calls ...*call) (requests, tokens int) {
	for _, k := range calls {
		requests += k.requests()
		tokens += k.tokens.Prompt + k.tokens.Completion
		if k.prompt.Role == RoleJudge || k.prompt.Role == RoleVerify {
			c.usage.JudgeCalls += k.requests()
		} else {
			spent := 0
			if k.made { // more than planned if calls were retried or the server counts differently
				spent = max(k.tokens.Prompt, k.planned)
			}
			c.input += spent - k.planned
		}
		c.usage.PromptTokens += k.tokens.Prompt
		c.usage.CompletionTokens += k.tokens.Completion
		c.usage.ReasoningTokens += k.tokens.Reasoning
		if k.unsaved != nil {
			c.warnOnce("journal", "this cannot be resumed without repeating calls: %s", k.unsaved)
		}
	}
	c.usage.Calls += requests
	return requests, tokens
}

// minCheckedPrompt is the shortest prompt, in tokens, for which the server's
// count shows whether it was cut.
const minCheckedPrompt = 300

// warnCutPrompt warns once when the server has cut the prompt of a call.
func (c *caller) warnCutPrompt(k *call) {
	if !k.tokens.Reported || k.tokens.Prompt <= 0 {
		return
	}
	sent := k.planned
	if k.prompt.Verdict {
		sent = c.promptSize(k.prompt)
	}
	if sent < minCheckedPrompt || float64(k.tokens.Prompt) >= ingest.LeastShare(k.prompt.System+"\n"+k.prompt.User)*float64(sent) {
		return
	}
	c.warnOnce("cut", "the model's server read %d of about %d prompt tokens, so it has cut the prompt: "+
		"raise its context length (OLLAMA_CONTEXT_LENGTH for Ollama), or lower --context-tokens", k.tokens.Prompt, sent)
}

// warnShortened warns when passages have been shortened since it was last called.
func (c *caller) warnShortened() {
	n := c.writer.Shortened()
	if n > c.warnedShort {
		what, flag, most := "the model's context window", "context", c.writer.ContextTokens
		if c.budget > 0 && c.budget < most {
			what, flag, most = "the budget of the question", "budget", c.budget
		}
		c.warn("passages longer than %s were cut off at the end (%d in all): --%s-tokens is %d", what, n, flag, most)
	}
	c.warnedShort = n
}

// describeShortened says how many passages were shortened, if any.
func (c *caller) describeShortened() string {
	n := c.writer.Shortened()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("it lacks the ends of %d passages that are longer than the context window", n)
}

// warnMissed warns that evidence was not read.
func (c *caller) warnMissed(why error) {
	if why != nil {
		c.warn("not everything that was found could be read: %s", why)
	}
}

// emitUsage ends the stream with the cost of the answer.
func (c *caller) emitUsage() {
	c.usage.Took = time.Since(c.started).Milliseconds()
	c.emit(c.usage)
}

// A call is one request to a model, with its reply and its cost.
type call struct {
	prompt     Prompt
	count      func(text string) int
	recorder   *replay.Recorder
	repetition int // distinguishes calls with the same prompt
	text       []byte
	tokens     Tokens
	planned    int  // tokens in its prompt that are already counted in the budget
	made       bool // a model was called, or the journal had the reply
	finish     string
	yes        float64 // the chance of a yes; 0 if unknown
	// enough is set when the consumer needs no more of the reply: the call then
	// counts as complete although its reply is cut.
	enough  bool
	unsaved error // why the call is not in the journal
	err     error // why it failed, once it has ended; set only by callAll
}

func (c *caller) newCall(p Prompt) *call {
	k := &call{prompt: p, count: c.writer.Count, recorder: c.recorder}
	if !p.Verdict { // a judge has reserved the tokens for a verdict
		k.planned = c.promptSize(p)
		c.input += k.planned
	}
	return k
}

func (c *caller) newVerdictCall(role Role, s prompt.Slots) (*call, error) {
	p, err := c.writePrompt(role, s)
	if err != nil {
		return nil, err
	}
	p.MaxTokens, p.Verdict = wordTokens, true
	k := c.newCall(p)
	k.repetition = 2 * c.promptCounts[p]
	c.promptCounts[p]++
	return k, nil
}

var errUnfinished = errors.New("the reply ended without a finish reason")

// pieces streams the reply, from the journal if it is there. When the stream ends or
// the caller stops reading, the cost is known and a complete call has been saved.
func (c *call) pieces(ctx context.Context, m Model) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if c.loadReply(ctx) {
			if len(c.text) > 0 && !yield(string(c.text), nil) {
				return
			}
		} else if left, err := c.requestReply(ctx, m, yield); left {
			return
		} else if err != nil {
			yield("", err)
			return
		}
		if c.finish == "" {
			yield("", errUnfinished)
		}
	}
}

// requestReply asks the model for the reply, and reports whether the caller broke out of
// the range.
func (c *call) requestReply(ctx context.Context, m Model, yield func(string, error) bool) (left bool, err error) {
	c.made = true
	for piece, err := range m.Complete(ctx, c.prompt) {
		c.tokens = piece.Usage
		if err != nil {
			if c.enough && ctx.Err() == nil {
				c.saveReply(ctx)
			}
			return false, err
		}
		c.text = append(c.text, piece.Text...)
		c.finish = piece.Finish
		c.yes = max(c.yes, piece.Yes)
		if piece.Text != "" && !yield(piece.Text, nil) {
			left = true
			break
		}
	}
	if c.finish == "" { // the server did not report its counts
		c.tokens.Prompt += c.count(c.prompt.System) + c.count(c.prompt.User)
		c.tokens.Completion += c.count(string(c.text))
	}
	// An empty reply is not saved, since the next attempt may succeed.
	whole := (c.finish == "stop" || c.finish == "length") && len(bytes.TrimSpace(c.text)) > 0
	if whole || left && c.enough {
		c.saveReply(ctx)
	}
	return left, nil
}

// requests returns how many requests the call took, including retries.
func (c *call) requests() int {
	if !c.made {
		return 0
	}
	return max(1, c.tokens.Requests)
}

// A savedReply is a complete call in the journal.
type savedReply struct {
	Text   []byte  `json:"text"`   // bytes, so that JSON does not change invalid UTF-8
	Finish string  `json:"finish"` // empty if the call was stopped because enough had arrived
	Usage  Tokens  `json:"usage"`
	Yes    float64 `json:"yes,omitempty"`
}

// key returns the key of the call in the journal.
func (c *call) key() string {
	p := c.prompt
	return replay.Key(string(p.Role), p.System, p.User, strconv.Itoa(p.MaxTokens), strconv.Itoa(c.repetition))
}

// loadReply reads the reply from the journal, and reports whether it was there. A
// journal that cannot be read counts as empty.
func (c *call) loadReply(ctx context.Context) bool {
	var s savedReply
	ok, err := c.recorder.Load(ctx, c.key(), &s)
	if err != nil {
		c.unsaved = err
	}
	if ok {
		c.text, c.finish, c.tokens, c.yes, c.made = s.Text, s.Finish, s.Usage, s.Yes, true
	}
	return ok
}

func (c *call) saveReply(ctx context.Context) {
	if err := c.recorder.Save(ctx, c.key(), savedReply{Text: c.text, Finish: c.finish, Usage: c.tokens, Yes: c.yes}); err != nil {
		c.unsaved = err
	}
}

// wordlessError returns the error for a reply that is empty, or was cut before its first
// word. It returns nil for any other reply, even if it consists only of invented labels.
func (c *call) wordlessError(text string) error {
	switch {
	case strings.TrimSpace(text) != "":
	case c.finish == "length":
		return callError(c.prompt.Role, errWordless)
	case len(bytes.TrimSpace(c.text)) == 0:
		return callError(c.prompt.Role, errEmpty)
	}
	return nil
}

func callError(role Role, err error) error {
	return fmt.Errorf("asking the model (%s): %w", role, err)
}

// showReply makes the call and shows its reply piece by piece once it is certain to be
// an answer. It stops once it is certain not to be one, or when show returns false.
func (c *call) showReply(ctx context.Context, m Model, reply *replies.Held, show func(text string) bool) error {
	for piece, err := range c.pieces(ctx, m) {
		if err != nil {
			return callError(c.prompt.Role, err)
		}
		text, enough := reply.Add(piece)
		if enough {
			c.enough = true
			break
		}
		if text != "" && !show(text) {
			break
		}
	}
	return nil
}
