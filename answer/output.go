package answer

import (
	"fmt"

	"ibid/retrieve"
)

// An output emits the events of one question.
type output struct {
	yield         func(Event, error) bool
	stopped       bool // the caller broke out of the range; nothing more may be yielded
	warned        map[string]bool
	unreadReasons map[string]string // by passage id, why a kept passage has not been in a step yet
	revised       *revised          // the held events of a revision; nil if there is no revision
}

// A revised holds the events of a revision, which may still be cut.
type revised struct {
	step     int
	text     string // the text shown as Revision
	verified []Event
}

// emit yields an event and reports whether to continue.
func (o *output) emit(e Event) bool {
	if !o.stopped {
		o.stopped = !o.yield(e, nil)
	}
	return !o.stopped
}

func (o *output) warn(format string, args ...any) {
	o.emit(Warning{Message: fmt.Sprintf(format, args...)})
}

// warnOnce warns, unless it has already warned about the same subject.
func (o *output) warnOnce(about, format string, args ...any) {
	if !o.warned[about] {
		o.warned[about] = true
		o.warn(format, args...)
	}
}

// skipPassages reports kept passages that have no label and go into no call.
func (o *output) skipPassages(reason string, passages []retrieve.Passage) {
	if len(passages) == 0 {
		return
	}
	ids := make([]string, len(passages))
	for i, p := range passages {
		ids[i] = p.ID
	}
	o.emitStep(Stepped{Passages: ids, Reason: reason})
}

// emitAnswer emits an event about the answer. During a revision it emits text as
// Revision and holds other events.
func (o *output) emitAnswer(e Event) bool {
	v := o.revised
	if v == nil {
		return o.emit(e)
	}
	if t, ok := e.(Text); ok {
		v.text += t.Text
		return o.emit(Revision{Step: v.step, Text: t.Text})
	}
	v.verified = append(v.verified, e)
	return !o.stopped
}

// endRevision ends the revision. If it is whole, its held events and text are emitted.
func (o *output) endRevision(whole bool) {
	v := o.revised
	o.revised = nil
	switch {
	case whole:
		for _, e := range v.verified {
			o.emit(e)
		}
		if v.text != "" {
			o.emit(Text{Text: v.text})
		}
	case v.text != "":
		o.emit(Revision{Step: v.step, Cut: true})
	}
}

// emitStep emits the end of a step. The lists of labels are never nil.
func (o *output) emitStep(s Stepped) {
	for _, labels := range []*[]int{&s.Labels, &s.Invented, &s.Lost} {
		if *labels == nil {
			*labels = []int{}
		}
	}
	for _, id := range s.Passages {
		if s.Role != "" {
			delete(o.unreadReasons, id)
		} else {
			o.unreadReasons[id] = s.Reason
		}
	}
	o.emit(s)
}
