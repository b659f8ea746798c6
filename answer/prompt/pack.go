package prompt

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// contextMargin is the share of the context window that is used, since the
// model's tokenizer is not Ibid's.
const contextMargin = .85

// minRoom is the least number of tokens of evidence that a prompt has room for.
const minRoom = 64

// A Writer writes and measures the prompts of one question or summary.
type Writer struct {
	Templates *Templates
	// ContextTokens is the model's context window, prompt and reply together.
	ContextTokens int
	// Count measures text in tokens.
	Count func(text string) int
	// Nonce makes the mark of a prompt's fences, given the prompt with a sample
	// mark.
	Nonce func(name, system, user string) string

	// Question, Style and Words are slots of every prompt.
	Question, Style string
	Words           int

	// StepTokens limits a batch of more than one passage; 0 means no limit.
	StepTokens int
	// Budget, if not nil, is how many tokens the next prompt may have.
	Budget func() int

	shortened map[int]bool // by label
}

// Window returns how many tokens prompt and reply may have together.
func (w *Writer) Window() int { return int(contextMargin * float64(w.ContextTokens)) }

// Reply returns how many tokens are reserved for an answer.
func (w *Writer) Reply() int { return w.Window() / 5 }

// Write fills in the named prompt.
func (w *Writer) Write(name string, s Slots) (system, user string, err error) {
	s = w.addCommon(s)
	s.Nonce = rand.Text() // new, so no document contains it
	if system, user, err = w.Templates.fill(name, s); err != nil {
		return "", "", err
	}
	with := func(text, nonce string) string { return strings.ReplaceAll(text, s.Nonce, nonce) }
	nonce := w.Nonce(name, with(system, sampleNonce), with(user, sampleNonce))
	return with(system, nonce), with(user, nonce), nil
}

// addCommon fills in the slots that all prompts of a question share.
func (w *Writer) addCommon(s Slots) Slots {
	s.Question, s.Style, s.Words = Inert(w.Question), w.Style, w.Words
	s.Statement = oneLine(s.Statement)
	if len(s.Evidence) > 0 {
		s.First = s.Evidence[0].label
	}
	return s
}

// Size returns the number of tokens in a prompt.
func (w *Writer) Size(system, user string) int { return w.Count(system) + w.Count(user) }

// Overhead returns the number of tokens in a prompt without evidence or parts.
// first is the first label that the prompt names.
func (w *Writer) Overhead(name string, first int) (int, error) {
	system, user, err := w.Templates.fill(name, w.addCommon(Slots{Nonce: sampleNonce, First: first}))
	return w.Size(system, user), err
}

// Longest returns how many tokens a prompt may have if a reply must fit too.
func (w *Writer) Longest() int {
	if w.Budget == nil {
		return w.Window() - w.Reply()
	}
	return min(w.Window()-w.Reply(), w.Budget())
}

// ErrBudget reports that the budget has no room for a prompt with a passage.
var ErrBudget = errors.New("the budget of tokens is spent")

// Room returns how many tokens of evidence fit into a prompt, with room for the
// reply, and for the draft if the prompt shows one.
func (w *Writer) Room(name string) (int, error) {
	fixed, err := w.Overhead(name, 0)
	if err != nil {
		return 0, err
	}
	room := w.Longest() - fixed
	if w.Budget != nil && w.Budget() < fixed+minRoom {
		return 0, ErrBudget
	}
	if name == Refine || name == Extend {
		room = min(room, w.Window()-2*w.Reply()-fixed)
	}
	return max(room, minRoom), nil
}

// Cost returns the number of tokens that evidence needs in a prompt: its texts, their
// fences and the other text of the template.
func (w *Writer) Cost(evidence ...Evidence) (tokens int, err error) {
	bare := slices.Clone(evidence)
	for i := range bare {
		tokens += w.Count(bare[i].text)
		bare[i].text = ""
	}
	var around strings.Builder
	err = w.Templates.byName[Answer].ExecuteTemplate(&around, "evidence", Slots{Nonce: sampleNonce, Evidence: bare})
	return tokens + w.Count(around.String()), err
}

// Fit shortens a text to about the given number of tokens at most, at
// the end of a sentence if possible.
func (w *Writer) Fit(text string, tokens int) string {
	for total := w.Count(text); total > tokens && text != ""; total = w.Count(text) {
		limit := len(text) * max(tokens, 0) / total * 19 / 20
		end := 0
		for s := range ingest.Sentences(text) {
			if s.End > limit {
				break
			}
			end = s.End
		}
		if end == 0 {
			return Clip(text, limit)
		}
		text = text[:end]
	}
	return text
}

// Clip shortens s to at most n bytes, at a character boundary, and marks the
// cut. It returns "" if n is 0 or less.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// A Batch is the evidence of one prompt.
type Batch []Evidence

// Labels are the labels of the evidence, in order.
func (b Batch) Labels() []int {
	out := make([]int, len(b))
	for i, e := range b {
		out[i] = e.label
	}
	return out
}

// Truncate cuts a piece of evidence to about the given number of tokens at most.
func (w *Writer) Truncate(e Evidence, tokens int) Evidence {
	e.text = w.Fit(e.text, tokens)
	return e
}

// Shorten is like Truncate and counts the cut passages for [Writer.Shortened].
func (w *Writer) Shorten(e Evidence, tokens int) Evidence {
	short := w.Truncate(e, tokens)
	if len(short.text) < len(e.text) {
		if w.shortened == nil {
			w.shortened = map[int]bool{}
		}
		w.shortened[e.label] = true
	}
	return short
}

// Shortened returns how many passages were shortened, each counted once.
func (w *Writer) Shortened() int { return len(w.shortened) }

// Pack packs the passages in order into at most the given number of batches, and
// returns how many passages fit. Their labels count from 1. The first batch is for
// the prompt named first, later batches are for the prompt named later. A passage is
// shortened only if it does not fit the context window. A passage longer than
// StepTokens gets a batch of its own.
func (w *Writer) Pack(passages []retrieve.Passage, first, later string, most int) (batches []Batch, packed int, err error) {
	all := make(Batch, len(passages))
	for i, p := range passages {
		all[i] = NewEvidence(i+1, p)
	}
	if w.StepTokens == 0 && len(all) > 0 && most > 0 { // measured at once, since they usually fit
		room, err := w.Room(first)
		if err != nil {
			return nil, 0, err
		}
		if cost, err := w.Cost(all...); err != nil || cost <= room {
			return []Batch{all}, len(all), err
		}
	}
	var open Batch
	room, used := 0, 0
	for _, e := range all {
		cost, err := w.Cost(e)
		if err != nil {
			return nil, 0, err
		}
		limit := room
		if w.StepTokens > 0 {
			limit = min(room, w.StepTokens)
		}
		if len(open) > 0 && used+cost > limit {
			batches, open = append(batches, open), nil
		}
		if len(open) == 0 {
			if len(batches) >= most {
				break
			}
			name := first
			if len(batches) > 0 {
				name = later
			}
			if room, err = w.Room(name); err != nil {
				return nil, 0, err
			}
			used = 0
			if cost > room {
				cost -= w.Count(e.text)
				e = w.Shorten(e, room-cost)
				cost += w.Count(e.text)
			}
		}
		open = append(open, e)
		used += cost
		packed++
	}
	if len(open) > 0 {
		batches = append(batches, open)
	}
	return batches, packed, nil
}
