package answer

import "fmt"

// An output is where the events of one question go.
type output struct {
	yield   func(Event, error) bool
	stopped bool // the range was left; nothing may be yielded any more
	warned  map[string]bool
	unread  map[string]bool // by passage id: those that went into no step so far
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

// warnOnce warns, unless it has about the same.
func (o *output) warnOnce(about, format string, args ...any) {
	if !o.warned[about] {
		o.warned[about] = true
		o.warn(format, args...)
	}
}

// emitStep emits how a step ended, with its lists of labels never nil.
func (o *output) emitStep(s Stepped) {
	for _, labels := range []*[]int{&s.Labels, &s.Invented, &s.Lost} {
		if *labels == nil {
			*labels = []int{}
		}
	}
	for _, id := range s.Passages {
		if s.Role != "" {
			delete(o.unread, id)
		} else {
			o.unread[id] = true
		}
	}
	o.emit(s)
}
