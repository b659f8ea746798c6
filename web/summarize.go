package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"

	"ibid/answer"
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

// summarize summarizes stored documents, by the same two ways as ask.
func (s *server) summarize(c echo.Context) error {
	const kind = "POST /api/summarize"
	var r summarizeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	ctx := c.Request().Context()
	run, err := resume(ctx, s, kind, r.Run, &r)
	if err != nil {
		return err
	}
	passages, err := s.whole(ctx, r)
	if err != nil {
		return err
	}
	if run == nil {
		run = s.begin(ctx, kind, r)
	}
	summary := answer.Summary{Passages: passages, Strategy: r.Strategy, Words: r.MaxWords, Run: run}
	return s.respond(c, run, func(ctx context.Context) iter.Seq2[answer.Event, error] {
		return s.Summarizer.Summarize(ctx, summary)
	})
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
