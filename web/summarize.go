package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// A Summarizer summarizes texts; [answer.Answerer] is one.
type Summarizer interface {
	Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error]
}

// summarizeRequest is the body of POST /api/summarize: one stored document, or
// all that a collection or filter lets through. Run takes up an interrupted
// summary in place of all else.
type summarizeRequest struct {
	Document   string          `json:"document,omitempty"`
	Collection string          `json:"collection,omitempty"`
	Filter     retrieve.Filter `json:"filter,omitzero"`
	Strategy   string          `json:"strategy,omitempty"`
	MaxWords   int             `json:"max_words,omitempty"`
	Run        string          `json:"run,omitempty"`
}

// runHeader carries the id under which an interrupted summary can be taken up.
const runHeader = "Ibid-Run"

// apiRun tells the runs that were begun here from those of the command line,
// whose files are none of a client's business.
const apiRun = "api"

// A runSpec is what a run of a summary is to do.
type runSpec struct {
	By      string           `json:"by"`
	Request summarizeRequest `json:"request"`
}

// summarize summarizes stored documents, by the same two ways as ask.
func (s *server) summarize(c echo.Context) error {
	var r summarizeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	ctx := c.Request().Context()
	run, err := s.run(ctx, &r)
	if err != nil {
		return err
	}
	passages, err := s.whole(ctx, r)
	if err != nil {
		return err
	}
	if s.Ledger != nil && run.Started.IsZero() {
		run.Started = time.Now()
		if err := s.Ledger.Begin(ctx, run); err != nil {
			return fmt.Errorf("beginning a summary: %w", err)
		}
	}
	summary := answer.Summary{Passages: passages, Strategy: r.Strategy, Words: r.MaxWords}
	if s.Ledger != nil {
		summary.Run = &answer.Run{ID: run.ID, Secret: run.Secret, Journal: s.Ledger}
		c.Response().Header().Set(runHeader, run.ID)
	}
	whole := true
	events := func(ctx context.Context) iter.Seq2[answer.Event, error] {
		return cite.Number(noting(&whole, s.Summarizer.Summarize(ctx, summary)), s.citing(c))
	}
	err = s.summarized(c, events)
	var wrong *answer.QuestionError
	if s.Ledger != nil && (err == nil && whole || errors.As(err, &wrong)) {
		// The client may be gone by now.
		err = errors.Join(err, s.Ledger.End(context.WithoutCancel(ctx), run.ID))
	}
	return err
}

func (s *server) summarized(c echo.Context, events func(context.Context) iter.Seq2[answer.Event, error]) error {
	if wantsEvents(c.Request()) {
		return s.stream(c, events)
	}
	a, err := cite.Collect(events(c.Request().Context()))
	if err != nil {
		return fmt.Errorf("summarizing: %w", err)
	}
	return reply(c, http.StatusOK, answered{a, s.indexing()})
}

// noting notes whether the summary came whole.
func noting(whole *bool, events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if _, cut := e.(answer.Incomplete); cut {
				*whole = false
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// run makes a run for the request, or finds the one it names and puts what
// that is to do in the request's place. A new one has no Started yet.
func (s *server) run(ctx context.Context, r *summarizeRequest) (retrieve.Run, error) {
	if r.Run == "" {
		spec, err := json.Marshal(runSpec{apiRun, *r})
		if err != nil {
			return retrieve.Run{}, fmt.Errorf("writing down a summary's request: %w", err)
		}
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		return retrieve.Run{ID: strings.ToLower(rand.Text()[:16]), Secret: secret, Spec: spec}, nil
	}
	unknown := &Problem{Status: http.StatusNotFound, Code: "run_not_found", Field: "run",
		Detail: fmt.Sprintf("there is no unfinished summary %.40q: it has ended, or began more than %d days ago: ask for it anew", r.Run, int(retrieve.MaxRunAge.Hours()/24))}
	if s.Ledger == nil {
		return retrieve.Run{}, unknown
	}
	run, err := s.Ledger.Run(ctx, r.Run)
	if errors.Is(err, retrieve.ErrNotFound) {
		return run, unknown
	}
	if err != nil {
		return run, fmt.Errorf("looking for a summary to take up: %w", err)
	}
	var spec runSpec
	if err := json.Unmarshal(run.Spec, &spec); err != nil || spec.By != apiRun {
		return run, unknown
	}
	*r = spec.Request
	return run, nil
}

// whole gives the documents that a request is about, passage by passage.
func (s *server) whole(ctx context.Context, r summarizeRequest) ([]retrieve.Passage, error) {
	if r.Document == "" && r.Collection == "" && r.Filter == (retrieve.Filter{}) {
		p := invalid("nothing_to_summarize", `say what to summarize: {"document": "ROOT/path"}, or a collection or filter`)
		p.Field = "document"
		return nil, p
	}
	ids := []string{r.Document}
	if r.Document == "" {
		documents, err := s.Library.Documents(ctx, narrowed(r.Filter, r.Collection))
		if err != nil {
			return nil, fmt.Errorf("listing the documents: %w", err)
		}
		ids = ids[:0]
		for _, d := range documents {
			ids = append(ids, d.ID)
		}
	}
	var passages []retrieve.Passage
	for _, id := range ids {
		doc, err := s.Library.Document(ctx, id)
		switch {
		case errors.Is(err, retrieve.ErrNotFound) && r.Document == "":
			continue // removed since it was listed
		case errors.Is(err, retrieve.ErrNotFound):
			return nil, &Problem{Status: http.StatusNotFound, Code: "document_not_found", Field: "document", cause: err,
				Detail: fmt.Sprintf("there is no document %.200q in the library: it may have been renamed or removed since", id)}
		case err != nil:
			return nil, fmt.Errorf("reading %q from the library: %w", id, err)
		}
		passages = append(passages, retrieve.Passages(doc, ingest.Split(doc, ingest.SplitOptions{}))...)
	}
	if len(passages) == 0 {
		return nil, &Problem{Status: http.StatusNotFound, Code: "nothing_to_summarize", Detail: "there is no document with text of that collection or filter in the library"}
	}
	return passages, nil
}
