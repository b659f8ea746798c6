package web

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"ibid/answer"
	"ibid/cite"
)

// An answerMeter measures one answer.
type answerMeter struct {
	*Metrics
	tracer trace.Tracer
	ctx    context.Context
	kind   string // "ask" or "summarize"
	began  time.Time
	found  time.Time // when the search ended, or zero
	gated  time.Time // when all passages were judged, or zero
	text   bool      // there is some

	sources             int
	refused, incomplete bool
}

// errLeft means that the reader stopped reading.
var errLeft = errors.New("the reader left")

func (m *answerMeter) observeStage(name string, from time.Time) {
	m.stages.WithLabelValues(m.kind, name).Observe(time.Since(from).Seconds())
}

// endGate ends the stage of the gate, once.
func (m *answerMeter) endGate() {
	if m.gated.IsZero() && !m.found.IsZero() {
		m.gated = time.Now()
		m.observeStage("gate", m.found)
		m.span("gate", m.found)
	}
}

// passRaw measures the events of the answerer.
func (m *answerMeter) passRaw(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				m.found = time.Now()
				m.observeStage("retrieve", m.began)
				m.span("retrieve", m.began, attribute.Int("ibid.passages", len(e.Passages)))
			case answer.Judged:
				m.verdicts.WithLabelValues(string(e.Decision), e.By).Inc()
			case answer.Kept:
				m.endGate()
			case answer.Unanswered:
				m.endGate()
				m.refused = true
				m.refusals.WithLabelValues(e.Reason).Inc()
			case answer.Stepped:
				m.dropped.Add(float64(len(e.Invented)))
			case answer.Incomplete:
				m.incomplete = true
			case answer.Warning:
				m.warnings.Inc()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// passNumbered measures the events with numbers, and returns how they ended.
func (m *answerMeter) passNumbered(events iter.Seq2[answer.Event, error], yield func(answer.Event, error) bool) error {
	for e, err := range events {
		switch e := e.(type) {
		case answer.Text:
			if !m.text {
				m.text = true
				m.observeStage("first_text", m.began)
			}
		case cite.Cited:
			m.sources++
		case cite.Quoted:
			m.citations.WithLabelValues(string(e.Verdict)).Inc()
		case cite.Unsupported:
			m.unsupported.WithLabelValues(e.Reason).Inc()
		}
		if !yield(e, err) && err == nil {
			return errLeft
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end counts how the answer ended.
func (m *answerMeter) end(ctx context.Context, err error) {
	outcome := "answered"
	switch {
	case ctx.Err() != nil || errors.Is(err, errLeft) || errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	case m.refused:
		outcome = "refused"
	case m.incomplete:
		outcome = "incomplete"
	}
	m.answers.WithLabelValues(m.kind, outcome).Inc()
	if m.gated.IsZero() {
		m.gated = m.began
	}
	m.span("answer", m.gated, attribute.String("ibid.outcome", outcome), attribute.Int("ibid.sources", m.sources))
	if outcome == "canceled" || outcome == "failed" {
		return
	}
	m.observeStage("whole", m.began)
	if !m.refused {
		m.Metrics.sources.Observe(float64(m.sources))
	}
}
