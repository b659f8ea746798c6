// Package trial tests a model on a few bundled questions in several languages,
// before its verdicts and answers are trusted.
//
// [Run] makes about 54 short calls with the usual prompts. Their documents are invented,
// so that no model knows the answers. One document contradicts common knowledge, which
// shows whether the answers come from the passages.
package trial

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"ibid/answer"
	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// Limits of a trial, and of each answer in tokens. A trial that reaches a limit ends with
// the results so far.
const (
	maxTokens = 15_000
	maxTime   = 3 * time.Minute
	maxReply  = 256
)

// A Question is one of the bundled questions.
type Question struct {
	Text   string
	Answer string // words that every right answer has

	known               string // the common knowledge that the passage contradicts, if any
	passage, right      string // a passage that has the answer, and a statement that gives it
	otherPassage, wrong string // another passage, and a statement that does not answer the question or contradicts the passage
}

//go:embed questions.txt
var table string

// Questions returns the bundled questions.
func Questions() (all []Question) {
	for block := range strings.SplitSeq(table, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(block) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			fields[name] = text
		}
		if fields["question"] != "" {
			all = append(all, Question{fields["question"], fields["answer"], fields["known"],
				fields["passage"], fields["right"], fields["from"], fields["wrong"]})
		}
	}
	return all
}

// A Result is the result of a trial.
type Result struct {
	Judge  Judge  `json:"judge"`
	Writer Writer `json:"writer"`
	Tokens int    `json:"tokens"` // of all calls
}

// Judge says how well a model tells right statements from wrong ones.
type Judge struct {
	Verdicts int     `json:"verdicts"`
	AUROC    float64 `json:"auroc"` // 0.5 is chance
	// Ratio is the share of wrong statements that it rejects, divided by the share of
	// right statements that it rejects.
	Ratio float64 `json:"ratio"`
	Yes   float64 `json:"yes"` // the share of statements that it accepts, if half of them are right
	// Bias is the mean chance of a yes about a right statement if its passage comes
	// first of two, minus the mean if it comes second.
	Bias float64 `json:"bias"`
}

// Writer says how well a model answers from passages.
type Writer struct {
	Answerable   int `json:"answerable"` // questions that their passages answer
	Right        int `json:"right"`      // answerable questions with a right answer
	Cited        int `json:"cited"`      // right answers that cite the passage
	Contrary     int `json:"contrary"`   // questions whose passages contradict common knowledge
	Stayed       int `json:"stayed"`     // contrary questions answered from the passages alone
	Unanswerable int `json:"unanswerable"`
	Refused      int `json:"refused"` // unanswerable questions without an answer
}

// The limits of trust.
const (
	mostBias      = .25 // a judge with more is shown one passage at a time
	leastAUROC    = .7  // a judge with less is not used
	LeastVerdicts = 12  // a judge with fewer is trusted
	leastRight    = .75 // a writer with a lower share is replaced by quotes
)

// Trust returns how far the model is trusted. A model with few results is trusted.
func (r Result) Trust() answer.Trust {
	var t answer.Trust
	if j := r.Judge; j.Verdicts >= LeastVerdicts {
		t.NoJudge, t.Ratio, t.OnePassage = j.AUROC < leastAUROC, j.Ratio, math.Abs(j.Bias) > mostBias
	}
	switch w := r.Writer; {
	case float64(w.Right) < leastRight*float64(w.Answerable):
		t.Distrust = fmt.Sprintf("it answered %d of %d questions that its passages answer", w.Right, w.Answerable)
	case t.NoJudge && w.Unanswerable > 0 && w.Refused == 0:
		t.Distrust = fmt.Sprintf("it answered all %d questions that its passages do not answer", w.Unanswerable)
	}
	return t
}

// Run tests the models of an answerer. It calls turn before each step. It returns an
// error if turn or a call fails; the model may work later.
func Run(ctx context.Context, a *answer.Answerer, turn func(context.Context) error) (Result, error) {
	t := &trial{model: *a}
	t.model.NoFallback, t.model.Trust, t.model.BudgetTokens = true, nil, 0
	t.model.Gate, t.model.Unproved = answer.GateOff, answer.UnprovedOff
	spent := &spending{dearest: 1}
	judge := cmp.Or(a.GateModel, a.Model)
	t.model.Model, t.model.GateModel = &meteredModel{a.Model, spent}, &meteredModel{judge, spent}
	left := maxTime
	for _, step := range t.steps() {
		if err := turn(ctx); err != nil {
			return Result{}, err
		}
		start := time.Now()
		limited, cancel := context.WithTimeout(ctx, left)
		err := step(limited)
		cancel()
		left -= time.Since(start)
		if left <= 0 || errors.Is(err, errSpent) {
			break
		}
		if err != nil {
			return Result{}, err
		}
	}
	t.Tokens = spent.tokens
	t.Judge = figuresOf(t.right, t.wrong)
	return t.Result, ctx.Err()
}

// A spending is the cost of a trial's calls so far.
type spending struct {
	tokens  int
	dearest float64 // the largest ratio of the server's token count of a prompt to Ibid's
	longest int     // the longest reply in tokens, including thoughts
}

var errSpent = errors.New("the tokens of the trial are spent")

// A meteredModel refuses a call that could exceed the tokens of a trial. It estimates the
// cost of the call from the calls before it.
type meteredModel struct {
	answer.Model
	*spending
}

func (m *meteredModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		if p.MaxTokens == 0 {
			p.MaxTokens = maxReply
		}
		size := ingest.CountTokens(p.System) + ingest.CountTokens(p.User)
		if m.tokens+int(math.Ceil(m.dearest*float64(size)))+max(p.MaxTokens, m.longest) > maxTokens {
			yield(answer.Piece{}, errSpent)
			return
		}
		var cost answer.Tokens
		said, ended := 0, false
		defer func() {
			if !ended { // the server has not reported the cost
				cost.Prompt += size
				cost.Completion += said
			}
			m.tokens += cost.Prompt + cost.Completion
			m.dearest = max(m.dearest, float64(cost.Prompt)/float64(size))
			m.longest = max(m.longest, cost.Completion)
		}()
		for piece, err := range m.Model.Complete(ctx, p) {
			cost, ended = piece.Usage, err != nil || piece.Finish != ""
			said += ingest.CountTokens(piece.Text)
			if !yield(piece, err) {
				return
			}
		}
	}
}

// A trial is one run of the test.
type trial struct {
	model answer.Answerer
	Result
	right, wrong []float64 // the chances of a yes about right statements, in pairs, and wrong ones
}

// steps returns the steps of the trial. The most informative ones come first.
func (t *trial) steps() (steps []func(context.Context) error) {
	all := Questions()
	for n, i := range []int{0, 3, 4, 8, 10, 12} { // two of them are unanswerable
		steps = append(steps, func(ctx context.Context) error { return t.writeAnswer(ctx, all, i, n%3 != 1) })
	}
	for i := range 3 * len(all) {
		steps = append(steps, func(ctx context.Context) error { return t.judgeStatement(ctx, all, i/3, i%3) })
	}
	return steps
}

// judgeStatement asks for a verdict on a statement, and shows its passage and an unrelated one.
// turn is 0 for the right statement with its passage first, 1 for the right statement with its
// passage last, and 2 for the wrong statement. Every second question is asked in other words.
func (t *trial) judgeStatement(ctx context.Context, all []Question, i, turn int) error {
	q, to := all[i], &t.right
	shown, statement := []retrieve.Passage{passage(q.passage), passage(all[(i+1)%len(all)].otherPassage)}, q.right
	if turn == 2 {
		shown[0], statement, to = passage(q.otherPassage), q.wrong, &t.wrong
	}
	if turn == 1 || turn == 2 && i/2%2 == 1 {
		slices.Reverse(shown)
	}
	yes, err := t.model.Verify(ctx, q.Text, statement, shown, i%2 == 0)
	if err == nil {
		*to = append(*to, yes)
	}
	return err
}

// writeAnswer asks a question about some passages, with or without the one that answers it.
func (t *trial) writeAnswer(ctx context.Context, all []Question, i int, answerable bool) error {
	q, next := all[i], all[(i+1)%len(all)]
	found := sample{passage(q.otherPassage), passage(next.passage), passage(next.otherPassage)}
	place := i % (len(found) + 1)
	if answerable {
		found = slices.Insert(found, place, passage(q.passage))
	}
	t.model.Retriever = found
	var text strings.Builder
	for e, err := range t.model.Ask(ctx, answer.Question{Text: q.Text, Strategy: "stuff"}) {
		if err != nil {
			return err
		}
		if said, ok := e.(answer.Text); ok {
			text.WriteString(said.Text)
		}
	}
	w := &t.Writer
	if !answerable {
		w.Unanswerable++
		if text.Len() == 0 {
			w.Refused++
		}
		return nil
	}
	w.Answerable++
	said := strings.ToLower(text.String())
	right := strings.Contains(said, strings.ToLower(q.Answer))
	if q.known != "" {
		w.Contrary++
		if right && !strings.Contains(said, q.known) {
			w.Stayed++
		}
	}
	if right {
		w.Right++
		if slices.Contains(marker.Labels(text.String(), len(found)), place+1) {
			w.Cited++
		}
	}
	return nil
}

// figuresOf computes a Judge from the verdicts on right and on wrong statements.
func figuresOf(right, wrong []float64) Judge {
	j := Judge{Verdicts: len(right) + len(wrong)}
	if len(right) == 0 || len(wrong) == 0 {
		return j
	}
	for _, r := range right {
		for _, w := range wrong {
			j.AUROC += [3]float64{0, .5, 1}[1+cmp.Compare(r, w)]
		}
	}
	j.AUROC /= float64(len(right) * len(wrong))
	noes := func(all []float64) (n float64) {
		for _, yes := range all {
			if yes < .5 {
				n++
			}
		}
		return n
	}
	j.Yes = 1 - noes(right)/float64(2*len(right)) - noes(wrong)/float64(2*len(wrong))
	for i := 1; i < len(right); i += 2 {
		j.Bias += (right[i-1] - right[i]) / float64(len(right)/2)
	}
	// Add half a verdict of each kind, since there are few verdicts.
	share := func(all []float64) float64 { return (noes(all) + .5) / float64(len(all)+1) }
	j.Ratio = math.Max(1, share(wrong)/share(right))
	return j
}

// A sample is a Retriever that finds the same passages for any question.
type sample []retrieve.Passage

func (s sample) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) { return s, nil }

func passage(text string) retrieve.Passage {
	return retrieve.Passage{
		Chunk: ingest.Chunk{ID: text, Document: "sample", Text: text, End: len(text)},
		Title: "Notes", Scores: retrieve.Scores{Dense: .5, Lexical: .5, Coverage: .5},
	}
}
