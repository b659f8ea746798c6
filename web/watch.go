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

// cited numbers the citations of an answer. Every answer of the server goes
// through here, and is measured on its way.
func (s *server) cited(ctx context.Context, kind string, events iter.Seq2[answer.Event, error], o cite.Options) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		w := &watch{Metrics: s.Metrics, tracer: s.Tracer, ctx: ctx, kind: kindName(kind), began: time.Now()}
		w.end(ctx, w.numbered(cite.Number(w.raw(events), o), yield))
	}
}

// A watch measures one answer.
type watch struct {
	*Metrics
	tracer trace.Tracer // nil for no traces
	ctx    context.Context
	kind   string // "ask" or "summarize"
	began  time.Time
	found  time.Time // zero before the search has ended
	gated  time.Time // zero before all was judged
	text   bool

	sources             int
	refused, incomplete bool
}

// errLeft says that the reader left the range.
var errLeft = errors.New("the reader left")

func (w *watch) stage(name string, from time.Time) {
	w.stages.WithLabelValues(w.kind, name).Observe(time.Since(from).Seconds())
}

// judgedAll ends the stage of the gate, once.
func (w *watch) judgedAll() {
	if w.gated.IsZero() && !w.found.IsZero() {
		w.gated = time.Now()
		w.stage("gate", w.found)
		w.spanned("gate", w.found)
	}
}

// raw looks at what the answerer says.
func (w *watch) raw(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				w.found = time.Now()
				w.stage("retrieve", w.began)
				w.spanned("retrieve", w.began, attribute.Int("ibid.passages", len(e.Passages)))
			case answer.Judged:
				w.verdicts.WithLabelValues(known(string(e.Decision), string(answer.Relevant), string(answer.Irrelevant), string(answer.Unparsable), string(answer.Errored)),
					known(e.By, "score", "model", "unjudged")).Inc()
			case answer.Kept:
				w.judgedAll()
			case answer.Unanswered:
				w.judgedAll()
				w.refused = true
				w.refusals.WithLabelValues(known(e.Reason, "nothing_found", "nothing_relevant", "no_answer")).Inc()
			case answer.Stepped:
				w.dropped.Add(float64(len(e.Invented)))
			case answer.Incomplete:
				w.incomplete = true
			case answer.Warning:
				w.warnings.Inc()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// numbered passes on what has numbers, and gives the error that it ended in.
func (w *watch) numbered(events iter.Seq2[answer.Event, error], yield func(answer.Event, error) bool) error {
	for e, err := range events {
		switch e := e.(type) {
		case answer.Text:
			if !w.text {
				w.text = true
				w.stage("first_text", w.began)
			}
		case cite.Cited:
			w.sources++
		case cite.Quoted:
			w.citations.WithLabelValues(known(string(e.Verdict), string(support.Quoted), string(support.Supported), string(support.Weak))).Inc()
		case cite.Unsupported:
			w.unsupported.WithLabelValues(known(e.Reason, "uncited", "weak")).Inc()
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
func (w *watch) end(ctx context.Context, err error) {
	outcome := "answered"
	switch {
	case ctx.Err() != nil || errors.Is(err, errLeft) || errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	case w.refused:
		outcome = "refused"
	case w.incomplete:
		outcome = "incomplete"
	}
	w.answers.WithLabelValues(w.kind, outcome).Inc()
	if w.gated.IsZero() {
		w.gated = w.began
	}
	w.spanned("answer", w.gated, attribute.String("ibid.outcome", outcome), attribute.Int("ibid.sources", w.sources))
	if outcome == "canceled" || outcome == "failed" {
		return
	}
	w.stage("whole", w.began)
	if !w.refused {
		w.Metrics.sources.Observe(float64(w.sources))
	}
}

// Model gives a model whose calls are measured; nil for nil.
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
			if !finished { // the server's counts come with the end
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

// failureKind is the kind of a call that failed.
func failureKind(err error) string {
	var e *openai.Error
	switch {
	case errors.As(err, &e):
		return known(string(e.Kind), string(openai.Down), string(openai.TimedOut), string(openai.Canceled), string(openai.RateLimited), string(openai.OutOfQuota),
			string(openai.Unauthorized), string(openai.NotFound), string(openai.ContextLength), string(openai.Filtered), string(openai.Rejected),
			string(openai.ServerFailed), string(openai.Cut), string(openai.BadReply))
	case errors.Is(err, context.Canceled):
		return string(openai.Canceled)
	}
	return "other"
}

// Embedder gives an embedder whose calls are measured.
func (m *Metrics) Embedder(e retrieve.Embedder) retrieve.Embedder {
	return withVocabulary(measuredEmbedder{e, m}, e)
}

// withVocabulary is an embedder that stands around another, and knows the words
// that the other knows, if it knows any.
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
