package web

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// An answerMeter measures one answer.
type answerMeter struct {
	*Metrics
	tracer trace.Tracer // nil for no traces
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
				m.verdicts.WithLabelValues(known(string(e.Decision), string(answer.Relevant), string(answer.Irrelevant),
					string(answer.Unparsable), string(answer.Errored)),
					known(e.By, "score", "model", "unjudged")).Inc()
			case answer.Kept:
				m.endGate()
			case answer.Unanswered:
				m.endGate()
				m.refused = true
				m.refusals.WithLabelValues(known(e.Reason, "nothing_found", "nothing_relevant", "no_answer")).Inc()
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
			m.citations.WithLabelValues(known(string(e.Verdict), string(support.Quoted), string(support.Supported), string(support.Weak))).Inc()
		case cite.Unsupported:
			m.unsupported.WithLabelValues(known(e.Reason, "uncited", "weak")).Inc()
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

// Model returns a model whose calls are measured; nil for nil.
func (m *Metrics) Model(model answer.Model) answer.Model {
	if model == nil {
		return nil
	}
	return measuredModel{model, m}
}

type measuredModel struct {
	answer.Model
	m *Metrics
}

func (w measuredModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		role := roleName(p.Role)
		start := time.Now()
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
		w.m.called(role, time.Since(start), used, failed)
	}
}

func roleName(r answer.Role) string {
	return known(string(r), string(answer.RoleJudge), string(answer.RoleAnswer), string(answer.RoleRefine), string(answer.RoleMap),
		string(answer.RoleCollapse), string(answer.RoleCombine), string(answer.RoleRerank), string(answer.RoleCondense))
}

// called counts a call to a model.
func (m *Metrics) called(role string, took time.Duration, used answer.Tokens, err error) {
	m.calls.WithLabelValues(role).Observe(took.Seconds())
	m.upstream.WithLabelValues(role).Add(float64(max(1, used.Requests)))
	m.tokens.WithLabelValues(role, "prompt").Add(float64(used.Prompt))
	m.tokens.WithLabelValues(role, "completion").Add(float64(used.Completion))
	m.tokens.WithLabelValues(role, "reasoning").Add(float64(used.Reasoning))
	if m.cost != nil {
		m.cost.Add((m.price.In*float64(used.Prompt) + m.price.Out*float64(used.Completion)) / 1e6)
	}
	if err != nil {
		m.failures.WithLabelValues(role, failureKind(err)).Inc()
	}
}

// failureKind is the kind of a failed call.
func failureKind(err error) string {
	var e *openai.Error
	switch {
	case errors.As(err, &e):
		return known(string(e.Kind), string(openai.Down), string(openai.TimedOut), string(openai.Canceled), string(openai.RateLimited),
			string(openai.OutOfQuota),
			string(openai.Unauthorized), string(openai.NotFound), string(openai.ContextLength), string(openai.Filtered), string(openai.Rejected),
			string(openai.ServerFailed), string(openai.Cut), string(openai.BadReply))
	case errors.Is(err, context.Canceled):
		return string(openai.Canceled)
	}
	return "other"
}

// Embedder returns an embedder whose calls are measured.
func (m *Metrics) Embedder(e retrieve.Embedder) retrieve.Embedder {
	return withVocabulary(measuredEmbedder{e, m}, e)
}

// withVocabulary gives a wrapped embedder the vocabulary of the other, if it has one.
func withVocabulary(around, e retrieve.Embedder) retrieve.Embedder {
	if v, ok := e.(retrieve.Vocabulary); ok {
		return struct {
			retrieve.Embedder
			retrieve.Vocabulary
		}{around, v}
	}
	return around
}

type measuredEmbedder struct {
	retrieve.Embedder
	m *Metrics
}

func (w measuredEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	start := time.Now()
	rows, err := w.Embedder.Embed(ctx, texts)
	w.m.embeds.Observe(time.Since(start).Seconds())
	w.m.embedded.Add(float64(len(rows)))
	if err != nil {
		w.m.embedFailed.Inc()
	}
	return rows, err
}
