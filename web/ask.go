package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/cite"
	"ibid/retrieve"
)

// askRequest is the body of POST /api/ask. Run takes up an interrupted answer
// in place of all else; Record false has none kept of it.
type askRequest struct {
	Question   string          `json:"question,omitempty"`
	History    []answer.Turn   `json:"history,omitempty"`
	Collection string          `json:"collection,omitempty"`
	Strategy   string          `json:"strategy,omitempty"`
	TopK       int             `json:"top_k,omitempty"`
	Diversity  float64         `json:"diversity,omitempty"`
	Filter     retrieve.Filter `json:"filter,omitzero"`
	Style      string          `json:"style,omitempty"`
	Run        string          `json:"run,omitempty"`
	Record     *bool           `json:"record,omitempty"`
}

// askKind is the kind of a run that answers a question.
const askKind = "POST /api/ask"

// searchRequest is the body of POST /api/search.
type searchRequest struct {
	Question   string          `json:"question"`
	TopK       int             `json:"top_k"`
	Diversity  float64         `json:"diversity"`
	Collection string          `json:"collection"`
	Filter     retrieve.Filter `json:"filter"`
}

// answered is the whole reply: the answer, and how far the library behind it was read.
type answered struct {
	cite.Answer
	Indexing Indexing `json:"indexing"`
}

// ask answers a question. JSON is the fold of the same stream of events that
// goes out as server-sent events, so that the two cannot differ.
func (s *server) ask(c echo.Context) error {
	var r askRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	t, err := s.askTask(c, r)
	if err != nil {
		return err
	}
	return s.respond(c, t)
}

// askTask checks a question.
func (s *server) askTask(c echo.Context, r askRequest) (task, error) {
	record := r.Record == nil || *r.Record
	run, err := resume(c, s, askKind, r.Run, &r)
	if err != nil {
		return task{}, err
	}
	if err := checkQuestion(&r.Question, r.TopK, r.Diversity); err != nil {
		return task{}, err
	}
	if err := checkHistory(r.History); err != nil {
		return task{}, err
	}
	filter, err := s.scope(c.Request().Context(), r.Filter, r.Collection)
	if err != nil {
		return task{}, err
	}
	q := answer.Question{Text: r.Question, History: r.History, Strategy: r.Strategy, TopK: r.TopK, Diversity: r.Diversity, Filter: filter, Style: r.Style}
	return task{kind: askKind, request: r, record: record, run: run, events: func(ctx context.Context, run *replay.Recorder) iter.Seq2[answer.Event, error] {
		q.Recorder = run
		return s.Asker.Ask(ctx, q)
	}}, nil
}

// stream sends each event as it comes. An error that comes before the first
// event is an ordinary error reply.
func (s *server) stream(ctx context.Context, c echo.Context, l *liveRun, events iter.Seq2[answer.Event, error], cancel context.CancelCauseFunc) error {
	out := newEventStream(c.Response(), cancel)
	defer out.close()
	if c.QueryParam("html") == "1" {
		out.render(s.markdown)
	}

	_, err := s.work(l, events, out.pass)
	if failed := out.failure(); failed != nil {
		err = &Problem{Status: statusClientGone, Code: "reader_gone", Detail: "the reader takes no more of the answer", cause: failed}
		cancel(err)
		l.end(ctx, err)
		return err
	}
	err = s.ending(ctx, l, err)
	last := l.end(ctx, err)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("answering: %w", err)
	if out.begun() {
		// Also when the context has ended: a server that shuts down says so.
		return errors.Join(err, out.pass(last))
	}
	return err
}

// onTheWire tells which events go out one by one. How each step ended and which
// sentences nothing bears out is in the object of the last event, done.
func onTheWire(e answer.Event) bool {
	switch e.(type) {
	case answer.Stepped, cite.Unsupported, cite.Placed:
		return false
	}
	return true
}

// search finds passages for a question.
func (s *server) search(c echo.Context) error {
	var r searchRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	if err := checkQuestion(&r.Question, r.TopK, r.Diversity); err != nil {
		return err
	}
	filter, err := s.scope(c.Request().Context(), r.Filter, r.Collection)
	if err != nil {
		return err
	}
	var warnings []string
	found, err := s.Searcher.Search(c.Request().Context(), retrieve.Query{
		Text: r.Question, K: r.TopK, Diversity: r.Diversity, Filter: filter,
		Warn: func(err error) { warnings = append(warnings, err.Error()) },
	})
	if err != nil {
		return fmt.Errorf("searching: %w", err)
	}
	if found == nil {
		found = []retrieve.Passage{}
	}
	return reply(c, http.StatusOK, searched{found, s.indexing(), warnings})
}

// searched is the reply of POST /api/search.
type searched struct {
	// Passages are those found, best first.
	Passages []retrieve.Passage `json:"passages"`
	Indexing Indexing           `json:"indexing"`
	// Warnings say what went wrong without stopping the search.
	Warnings []string `json:"warnings,omitempty"`
}

// narrowed is the filter with the collection that was named beside it, which
// must not be another than its own.
func narrowed(f retrieve.Filter, collection string) (retrieve.Filter, error) {
	if collection != "" && f.Collection != "" && f.Collection != collection {
		p := invalid("two_collections", "the collection is %.200q, and that of the filter is %.200q: give one of them", collection, f.Collection)
		p.Field = "collection"
		return f, p
	}
	f.Collection = cmp.Or(f.Collection, collection)
	return f, nil
}

func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get(echo.HeaderAccept), "text/event-stream")
}

// checkQuestion trims the question and holds it and what comes with it to their limits.
func checkQuestion(question *string, topK int, diversity float64) error {
	*question = strings.TrimSpace(*question)
	switch {
	case *question == "":
		p := invalid("empty_question", `the question is empty: send {"question": "..."}`)
		p.Field = "question"
		return p
	case len(*question) > MaxQuestion:
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "question_too_long", Field: "question",
			Detail: fmt.Sprintf("the question has %d bytes and %d are the most: shorten it, or put long material into a document", len(*question), MaxQuestion)}
	case topK < 0 || topK > MaxTopK:
		p := invalid("bad_top_k", "top_k is %d: give 1 to %d, or leave it out", topK, MaxTopK)
		p.Field = "top_k"
		return p
	case diversity < 0 || diversity >= 1:
		p := invalid("bad_diversity", "diversity is %g: give 0 (none) to below 1, or leave it out", diversity)
		p.Field = "diversity"
		return p
	}
	return nil
}

// checkHistory looks at who says what in a conversation.
func checkHistory(history []answer.Turn) error {
	for i, t := range history {
		if t.Role != "user" && t.Role != "assistant" {
			p := invalid("bad_history", "history[%d].role is %.40q: use user or assistant", i, t.Role)
			p.Field = "history"
			return p
		}
	}
	return nil
}

// decode reads one JSON object from the body. Members that it does not know
// are let pass, except inside "filter": a filter that is not understood must
// not search everything.
func decode(c echo.Context, into any) error {
	body, err := sent(c, MaxBody)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			p := invalid("wrong_type", "%s has the wrong type: it is a JSON %s and should be %s", wrong.Field, wrong.Value, jsonType(wrong.Type.Kind()))
			p.Field = wrong.Field
			return p
		}
		if wrong != nil {
			return invalid("bad_json", `the request body is a JSON %s: send an object such as {"question": "..."}`, wrong.Value)
		}
		if date := new(retrieve.DateError); errors.As(err, &date) {
			return wrongDate(err, "filter")
		}
		return invalid("bad_json", `the request body is not a JSON object such as {"question": "..."}: %v`, err)
	}
	var sent struct {
		Filter map[string]json.RawMessage `json:"filter"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return fmt.Errorf("reading the filter again: %w", err)
	}
	known := filterMembers()
	for _, name := range slices.Sorted(maps.Keys(sent.Filter)) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			p := invalid("unknown_filter", "filter has no member %.40q: it may have %s", name, strings.Join(known, ", "))
			p.Field = fmt.Sprintf("filter.%.40s", name)
			return p
		}
	}
	return nil
}

// sent reads the body of a request, of at most so many bytes, within its time.
func sent(c echo.Context, most int) ([]byte, error) {
	rc := http.NewResponseController(c.Response())
	if err := rc.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("bounding the request: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, int64(most)))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
			Detail: fmt.Sprintf("the request body is over %d bytes: send less history or a shorter question", tooLarge.Limit)}
	case err != nil:
		p := invalid("unreadable_body", "the request body did not arrive whole: send it again")
		p.cause = err
		return nil, p
	}
	if err := rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("lifting the read deadline: %w", err)
	}
	return body, nil
}

// wrongDate is about a date that could not be read.
func wrongDate(err error, field string) *Problem {
	p := invalid("wrong_date", "%s: %v", field, err)
	p.Field = field
	return p
}

// filterMembers are the JSON names of the members of a filter.
func filterMembers() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[retrieve.Filter]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// scope is the filter with the collection that was named beside it. A
// collection without a document, in a library that has some, is refused: its
// name is taken for a mistake, unless documents are still being read in.
func (s *server) scope(ctx context.Context, f retrieve.Filter, collection string) (retrieve.Filter, error) {
	f, err := narrowed(f, collection)
	if err != nil {
		return f, err
	}
	if f.Collection == "" || !s.indexing().Ready {
		return f, nil
	}
	for _, in := range []retrieve.Filter{{Collection: f.Collection}, {}} {
		any, err := s.Library.Holds(ctx, in)
		if err != nil {
			return f, fmt.Errorf("looking for the collection: %w", err)
		}
		if any {
			if in.Collection != "" {
				return f, nil
			}
			return f, &Problem{Status: http.StatusNotFound, Code: "unknown_collection", Field: "collection",
				Detail: fmt.Sprintf("there is no document in the collection %.200q: check its name, or leave it out to search all", f.Collection)}
		}
	}
	return f, nil
}

// jsonType is the JSON name of what a Go value is decoded from.
func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// citing says how answers are cited: with links to the viewer, below the address that the client used.
func (s *server) citing(c echo.Context) cite.Options { return s.citingAt(s.base(c)) }

// citingAt is citing below an address; without links where there is none.
func (s *server) citingAt(base string) cite.Options {
	o := s.Citing
	if base == "" {
		return o
	}
	o.Link = func(p retrieve.Passage, start, end int) string { return Link(base, p.Document, start, end) }
	return o
}
