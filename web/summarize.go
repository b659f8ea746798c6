package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/replay"
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
	Record     *bool           `json:"record,omitempty"`
}

// summaryKind is the kind of a run that summarizes.
const summaryKind = "POST /api/summarize"

// summarize summarizes stored documents, by the same two ways as ask.
func (s *server) summarize(c echo.Context) error {
	var r summarizeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	t, err := s.summaryTask(c, r)
	if err != nil {
		return err
	}
	return s.respond(c, t)
}

// summaryTask reads what is to be summarized.
func (s *server) summaryTask(c echo.Context, r summarizeRequest) (task, error) {
	record := r.Record == nil || *r.Record
	run, err := resume(c, s, summaryKind, r.Run, &r)
	if err != nil {
		return task{}, err
	}
	passages, err := s.whole(c.Request().Context(), r)
	if err != nil {
		return task{}, err
	}
	summary := answer.Summary{Passages: passages, Strategy: r.Strategy, Words: r.MaxWords}
	return task{kind: summaryKind, request: r, record: record, run: run, events: func(ctx context.Context, run *replay.Recorder) iter.Seq2[answer.Event, error] {
		summary.Recorder = run
		return s.Summarizer.Summarize(ctx, summary)
	}}, nil
}

// whole gives the documents that a request is about, passage by passage.
func (s *server) whole(ctx context.Context, r summarizeRequest) ([]retrieve.Passage, error) {
	if r.Document == "" && r.Collection == "" && r.Filter.IsZero() {
		p := invalid("nothing_to_summarize", `say what to summarize: {"document": "ROOT/path"}, or a collection or filter`)
		p.Field = "document"
		return nil, p
	}
	ids := []string{r.Document}
	if r.Document == "" {
		filter, err := narrowed(r.Filter, r.Collection)
		if err != nil {
			return nil, err
		}
		documents, err := s.Library.Documents(ctx, filter)
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
