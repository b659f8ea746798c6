package web

import (
	"context"
	"errors"
	"iter"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
)

// An answerMeter measures one answer.
type answerMeter struct {
	*Metrics
	kind  string // "ask" or "summarize"
	began time.Time
	found time.Time // when the search ended, or zero
	gated bool      // all passages were judged
	text  bool      // there is some

	refused, incomplete, fellBack bool
}

// errLeft means that the reader stopped reading.
var errLeft = errors.New("the reader left")

func (m *answerMeter) observeStage(name string, from time.Time) {
	m.stages.WithLabelValues(m.kind, name).Observe(time.Since(from).Seconds())
}

// endGate ends the stage of the gate, once.
func (m *answerMeter) endGate() {
	if !m.gated && !m.found.IsZero() {
		m.gated = true
		m.observeStage("gate", m.found)
	}
}

// pass measures the events of an answer with numbers, and returns how they ended.
func (m *answerMeter) pass(events iter.Seq2[answer.Event, error], yield func(answer.Event, error) bool) error {
	for e, err := range events {
		m.measure(e)
		if !yield(e, err) && err == nil {
			return errLeft
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *answerMeter) measure(e answer.Event) {
	switch e := e.(type) {
	case answer.Retrieved:
		m.found = time.Now()
		m.observeStage("retrieve", m.began)
	case answer.Kept:
		m.endGate()
	case answer.Unanswered:
		m.endGate()
		m.refused = true
		m.refusals.WithLabelValues(e.Reason).Inc()
	case answer.Fallback:
		m.fellBack = true
	case answer.Incomplete:
		m.incomplete = true
	case answer.Text:
		if !m.text {
			m.text = true
			m.observeStage("first_text", m.began)
		}
	}
}

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
	case m.fellBack:
		outcome = "fallback"
	}
	m.answers.WithLabelValues(m.kind, outcome).Inc()
	if outcome != "canceled" && outcome != "failed" {
		m.observeStage("whole", m.began)
	}
}

// Model returns a model whose calls are measured; nil for nil.
func (m *Metrics) Model(model answer.Model) answer.Model {
	if model == nil {
		return nil
	}
	return observedModel{model, m}
}

type observedModel struct {
	answer.Model
	m *Metrics
}

func (w observedModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		role, start := string(p.Role), time.Now()
		var used answer.Tokens
		var text []byte
		finished := false
		var failed error
		for piece, err := range w.Model.Complete(ctx, p) {
			used, failed = piece.Usage, err
			finished = finished || piece.Finish != "" || err != nil
			if !finished { // the server's own counts come at the end
				text = append(text, piece.Text...)
			}
			if !yield(piece, err) {
				break
			}
		}
		if !finished {
			used.Prompt += ingest.CountTokens(p.System) + ingest.CountTokens(p.User)
			used.Completion += ingest.CountTokens(string(text))
		}
		w.m.recordCall(role, time.Since(start), used, failed)
	}
}

func (m *Metrics) recordCall(role string, took time.Duration, used answer.Tokens, err error) {
	m.calls.WithLabelValues(role).Observe(took.Seconds())
	m.tokens.WithLabelValues(role, "prompt").Add(float64(used.Prompt))
	m.tokens.WithLabelValues(role, "completion").Add(float64(used.Completion))
	m.tokens.WithLabelValues(role, "reasoning").Add(float64(used.Reasoning))
	if err != nil {
		m.failures.WithLabelValues(role, failureKind(err)).Inc()
	}
}

func failureKind(err error) string {
	var e *openai.Error
	switch {
	case errors.As(err, &e):
		return string(e.Kind)
	case errors.Is(err, context.Canceled):
		return string(openai.Canceled)
	}
	return "other"
}
