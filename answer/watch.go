package answer

import (
	"errors"
	"iter"

	"ibid/answer/replay"
)

// Watch yields the events of a question or summary, and sets the outcome of its
// recorder, for [replay.Recorder.IsJobDone].
func Watch(r *replay.Recorder, events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	if r == nil {
		return events
	}
	return func(yield func(Event, error) bool) {
		failed, cut := false, false
		for e, err := range events {
			switch e := e.(type) {
			case Stepped:
				failed = failed || e.Reason == modelError || e.Reason == emptyReply
			case Incomplete:
				cut = true
			case Usage:
				if !cut || !failed {
					r.SetOutcome(replay.Done)
				}
			}
			if wrong := (*QuestionError)(nil); errors.As(err, &wrong) {
				r.SetOutcome(replay.Refused)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
