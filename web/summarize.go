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
// all that match a collection or filter. Run resumes an interrupted summary and
// replaces all other members.
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

// summarize summarizes stored documents. It replies as ask does.
func (a *asking) summarize(c echo.Context) error {
	var r summarizeRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	t, err := a.summaryTask(c, r)
	if err != nil {
		return err
	}
	return a.respond(c, t)
}

// summaryTask checks a request and reads what is to be summarized.
func (a *asking) summaryTask(c echo.Context, r summarizeRequest) (task, error) {
	record := r.Record == nil || *r.Record
	recorder, err := resume(c, a.answering, summaryKind, r.Run, &r)
	if err != nil {
		return task{}, err
	}
	passages, err := a.passagesOf(c.Request().Context(), r)
	if err != nil {
		return task{}, err
	}
	summary := answer.Summary{Passages: passages, Strategy: r.Strategy, Words: r.MaxWords}
	events := func(ctx context.Context, recorder *replay.Recorder) iter.Seq2[answer.Event, error] {
		summary.Recorder = recorder
		return a.summarizer.Summarize(ctx, summary)
	}
	return task{kind: summaryKind, request: r, record: record, recorder: recorder, events: events}, nil
}

// passagesOf returns the whole text of the documents that a request names.
func (a *asking) passagesOf(ctx context.Context, r summarizeRequest) ([]retrieve.Passage, error) {
	if r.Document == "" && r.Collection == "" && r.Filter.IsZero() {
		return nil, invalidField("document", "nothing_to_summarize",
			`say what to summarize: {"document": "ROOT/path"}, or a collection or filter`)
	}
	ids := []retrieve.DocumentInfo{{Document: ingest.Document{ID: r.Document}}}
	if r.Document == "" {
		filter, err := withCollection(r.Filter, r.Collection)
		if err == nil {
			ids, err = a.catalog.Documents(ctx, filter)
		}
		if err != nil {
			return nil, fmt.Errorf("listing the documents: %w", err)
		}
	}
	var passages []retrieve.Passage
	for _, d := range ids {
		doc, err := a.catalog.document(ctx, d.ID, "document")
		if errors.Is(err, retrieve.ErrNotFound) && r.Document == "" {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		passages = append(passages, retrieve.Passages(doc, ingest.Split(doc, ingest.SplitOptions{}))...)
	}
	if len(passages) == 0 {
		return nil, &Problem{Status: http.StatusNotFound, Code: "nothing_to_summarize", Detail: "no document of that collection or filter " +
			"has text"}
	}
	return passages, nil
}
