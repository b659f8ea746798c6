package statement

import (
	"slices"
	"strings"
)

// A Verdict says whether a unit is shown.
type Verdict uint8

// The verdicts.
const (
	Open Verdict = iota
	Keep
	Drop
)

// A Queue holds the units of one answer, in order, until their verdicts are known.
// The zero value is ready to use.
type Queue struct {
	units   []queued
	removed int // units that are no longer in the queue
	closed  bool

	kept, dropped bool    // a claim or verbatim unit was shown, or dropped
	begun         bool    // a unit was shown
	last          Verdict // on the last claim or verbatim unit
	space         *string // the white space before the first unit dropped since the last one shown
}

type queued struct {
	Unit
	verdict Verdict
	shown   string // in place of Text
}

// Push adds the next unit, and returns its number for Decide. Only units that state
// something need a verdict.
func (q *Queue) Push(u Unit) int {
	v := queued{Unit: u, shown: u.Text}
	if u.Kind == Verbatim {
		v.verdict = Keep
	}
	q.units = append(q.units, v)
	return q.removed + len(q.units) - 1
}

// Decide sets the verdict on a unit and the text to show for it.
func (q *Queue) Decide(number int, v Verdict, shown string) {
	u := &q.units[number-q.removed]
	u.verdict, u.shown, u.States = v, shown, true
}

// Close says that the last unit has been pushed.
func (q *Queue) Close() { q.closed = true }

// HasContent reports whether a claim or verbatim unit was shown, or none was dropped.
func (q *Queue) HasContent() bool { return q.kept || !q.dropped }

// Next returns the next piece of the text that may be shown.
func (q *Queue) Next() (text string, ok bool) {
	for len(q.units) > 0 {
		u := q.units[0]
		v := q.verdict()
		if v == Open {
			return "", false
		}
		q.units = q.units[1:]
		q.removed++
		if u.States || u.Kind == Verbatim {
			q.last = v
			q.kept = q.kept || v == Keep
			q.dropped = q.dropped || v == Drop
		}
		if v == Keep {
			return q.separator(u.Space) + u.shown, true
		}
		if q.space == nil {
			q.space = &u.Space
		}
	}
	return "", false
}

// separator returns the white space before a unit that is shown. After dropped units it
// returns the white space before them, if it has more lines.
func (q *Queue) separator(own string) string {
	before := q.space
	q.space = nil
	first := !q.begun
	q.begun = true
	switch {
	case before == nil:
		return own
	case first:
		return *before
	}
	lines := strings.Count(own, "\n")
	if strings.Count(*before, "\n") <= lines {
		return own
	}
	indent := ""
	if lines > 0 {
		indent = own[strings.LastIndexByte(own, '\n')+1:]
	}
	return (*before)[:strings.LastIndexByte(*before, '\n')+1] + indent
}

// verdict returns the verdict on the first unit.
func (q *Queue) verdict() Verdict {
	u, v := q.units[0], Keep
	switch {
	case u.Kind == Verbatim, u.States && (u.Kind != Lead || u.verdict != Keep):
		return u.verdict
	case u.Kind == Lead:
		v = q.leadVerdict(u.isLeadOf, false)
	case u.Kind == Trailer && q.last == Drop:
		v = Drop
	}
	if v == Keep && !q.kept && !u.States {
		// Hold the unit until a statement is kept. If all are dropped, the unit is too.
		return q.leadVerdict(func(Unit, int) bool { return true }, q.dropped)
	}
	return v
}

// leadVerdict returns the verdict on the first unit, which is dropped if all units that belong
// to it are dropped. belongs reports whether a later unit belongs to it, given the number of
// units between the two. fell says that a unit that belongs to it was dropped before.
func (q *Queue) leadVerdict(belongs func(next Unit, i int) bool, fell bool) Verdict {
	open := !q.closed
	for i, u := range q.units[1:] {
		if !belongs(u.Unit, i) {
			open = slices.ContainsFunc(q.units[1:1+i], func(u queued) bool { return u.isOpen() })
			break
		}
		if u.Kind == Lead {
			continue // its own verdict depends on later units
		}
		if u.verdict == Keep {
			return Keep
		}
		open = open || u.isOpen()
		fell = fell || u.verdict == Drop
	}
	switch {
	case open:
		return Open
	case fell:
		return Drop
	}
	return Keep
}

func (u queued) isOpen() bool { return u.States && u.Kind != Lead && u.verdict == Open }

// isLeadOf reports whether a lead introduces a unit, given that it introduces
// the i units between them.
func (u Unit) isLeadOf(next Unit, i int) bool {
	switch {
	case u.level > 0: // a heading introduces all units up to the next one of its level
		return next.level == 0 || next.level > u.level
	case next.level > 0 && next.level < bold:
		return false
	case u.head:
		return next.Text[0] == '|' && strings.Count(next.Space, "\n") == 1
	case i == 0:
		return true
	case u.indent > 0: // an item introduces items that are indented more
		return next.listed && next.indent > u.indent
	}
	return next.listed
}
