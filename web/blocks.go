package web

import (
	"encoding/json"
	"errors"
	"fmt"

	"ibid/cite"
)

// A blockEvent is a block of the answer as HTML: the event "block", or "marked" for
// a final block with its unsupported sentences marked.
type blockEvent struct {
	// Draft is the step of the draft that the block belongs to; 0 for the answer.
	Draft int    `json:"draft,omitempty"`
	Index int    `json:"index"`
	HTML  string `json:"html"`
	// Final means that the block does not change any more.
	Final bool `json:"final"`
}

// A rendering turns a text into blocks while it grows. Its final blocks are those
// of the whole text, however the text is split into events.
type rendering struct {
	markdown *markdown
	draft    int
	plain    bool // see answer.Text
	text     []byte
	numbers  map[int]int // of sources, and the length of the text when each was announced
	starts   []int       // of the final blocks
	open     int         // where the open block begins
	rendered int         // length of the text at the last rendering
	shown    string      // the open block as it was sent last
}

func newRendering(m *markdown, draft int) *rendering {
	return &rendering{markdown: m, draft: draft, numbers: map[int]int{}}
}

// whole renders an answer that has ended.
func (m *markdown) whole(a cite.Answer) (html string, err error) {
	numbers := map[int]int{}
	for _, p := range a.Places {
		if at, known := numbers[p.Number]; !known || p.Start < at {
			numbers[p.Number] = p.Start
		}
	}
	parts, err := m.render(piece{source: []byte(a.Text), plain: a.Plain, numbers: numbers, doubts: a.Unsupported})
	for _, p := range parts {
		html += p.html
	}
	return html, err
}

func (r *rendering) announce(n int) {
	if _, known := r.numbers[n]; !known {
		r.numbers[n] = len(r.text)
	}
}

// hasGrown reports whether there is enough new text to render the open block again:
// the longer the block, the more, so that all renderings take linear time.
func (r *rendering) hasGrown() bool {
	enough := 1
	if open := len(r.text) - r.open; open > 4<<10 {
		enough = open / 32
	}
	return len(r.text) >= r.rendered+enough
}

func (r *rendering) piece(from, to int, doubts []cite.Unsupported) piece {
	return piece{source: r.text[from:to], at: from, plain: r.plain, numbers: r.numbers, doubts: doubts}
}

// advance returns the blocks that have closed and the open one, or at the end all
// that are left.
func (r *rendering) advance(end bool) ([]blockEvent, error) {
	r.rendered = len(r.text)
	var out []blockEvent
	// The kind of block that a line begins is known at its end.
	upto := len(r.text)
	for !end && upto > r.open && r.text[upto-1] != '\n' {
		upto--
	}
	parts, err := r.markdown.render(r.piece(r.open, upto, nil))
	if err != nil {
		return nil, err
	}
	from := r.open
	for i, p := range parts {
		if i == len(parts)-1 && !end {
			r.open = from + p.start
			break
		}
		out = append(out, blockEvent{r.draft, len(r.starts), p.html, true})
		r.starts = append(r.starts, from+p.start)
		r.shown = ""
	}
	if end {
		r.open = len(r.text)
		return out, nil
	}
	if parts, err = r.markdown.render(r.piece(r.open, len(r.text), nil)); err != nil {
		return nil, err
	}
	html := ""
	for _, p := range parts {
		html += p.html
	}
	if html != r.shown {
		r.shown = html
		out = append(out, blockEvent{r.draft, len(r.starts), html, false})
	}
	return out, nil
}

// markedBlocks returns the final blocks with doubtful sentences, which are marked.
func (r *rendering) markedBlocks(doubts []cite.Unsupported) ([]blockEvent, error) {
	var out []blockEvent
	for i, start := range r.starts {
		end := len(r.text)
		if i+1 < len(r.starts) {
			end = r.starts[i+1]
		}
		for len(doubts) > 0 && doubts[0].TextEnd <= start {
			doubts = doubts[1:]
		}
		if len(doubts) == 0 {
			break
		}
		if doubts[0].TextStart >= end {
			continue
		}
		parts, err := r.markdown.render(r.piece(start, end, doubts))
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			out = append(out, blockEvent{r.draft, i, p.html, true})
		}
	}
	return out, nil
}

// A pageStream sends the blocks of an answer between its events.
type pageStream struct {
	markdown *markdown
	write    func(kind string, v any) error
	answer   *rendering
	draft    *rendering // of the current step; nil without one
}

// beforeEvent is called before each event is sent: the last blocks of a text go before
// the event that ends it.
func (p *pageStream) beforeEvent(kind string, data []byte) error {
	switch kind {
	case "text":
		return p.endDraft()
	case "unanswered", "incomplete", "error", "done":
		if err := errors.Join(p.endDraft(), p.advance(p.answer, true)); err != nil {
			return err
		}
	}
	if kind != "done" {
		return nil
	}
	var a struct {
		Unsupported []cite.Unsupported `json:"unsupported"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("reading the end of the answer: %w", err)
	}
	events, err := p.answer.markedBlocks(a.Unsupported)
	if err != nil {
		return err
	}
	return p.send("marked", events)
}

func (p *pageStream) afterEvent(kind string, data []byte) error {
	var e struct {
		Number, Step int
		Text         string
		Final, Plain bool
	}
	switch kind {
	case "cited", "text", "draft":
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("reading the event %s: %w", kind, err)
		}
	default:
		return nil
	}
	growing := p.answer
	switch kind {
	case "cited":
		p.answer.announce(e.Number)
		return nil
	case "draft":
		if p.draft != nil && p.draft.draft != e.Step {
			if err := p.endDraft(); err != nil {
				return err
			}
		}
		if p.draft == nil {
			p.draft = newRendering(p.markdown, e.Step)
		}
		growing = p.draft
	}
	growing.text, growing.plain = append(growing.text, e.Text...), e.Plain
	switch {
	case e.Final:
		return p.endDraft()
	case growing.hasGrown():
		return p.advance(growing, false)
	}
	return nil
}

func (p *pageStream) endDraft() error {
	r := p.draft
	if r == nil {
		return nil
	}
	p.draft = nil
	return p.advance(r, true)
}

func (p *pageStream) advance(r *rendering, end bool) error {
	events, err := r.advance(end)
	if err != nil {
		return err
	}
	return p.send("block", events)
}

func (p *pageStream) send(kind string, events []blockEvent) error {
	for _, e := range events {
		if err := p.write(kind, e); err != nil {
			return err
		}
	}
	return nil
}
