package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// asking answers questions, searches and summarizes.
type asking struct {
	answering  *answering
	catalog    *catalog
	asker      Asker
	summarizer Summarizer // nil: this server does not summarize
}

// askRequest is the body of POST /api/ask. Run resumes an interrupted answer; all other
// members are then ignored. If Record is false, no record is kept. Without a History, the
// history is read from the records of the Conversation under the same key and User.
type askRequest struct {
	Question   string          `json:"question,omitempty"`
	History    []answer.Turn   `json:"history,omitzero"`
	Collection string          `json:"collection,omitempty"`
	Strategy   string          `json:"strategy,omitempty"`
	TopK       integer         `json:"top_k,omitempty"`
	Filter     retrieve.Filter `json:"filter,omitzero"`
	Style      string          `json:"style,omitempty"`
	Run        string          `json:"run,omitempty"`
	Record     *bool           `json:"record,omitempty"`
	// Name renames the conversation.
	Name string `json:"name,omitempty"`
	conversationRef
}

// askKind is the kind of a run that answers a question.
const askKind = "POST /api/ask"

// searchRequest is the body of POST /api/search, and the arguments of the MCP tool search.
type searchRequest struct {
	Question   string  `json:"question" jsonschema:"what to look for: a question or some words"`
	Collection string  `json:"collection,omitempty" jsonschema:"the collection of documents to search; leave it out for all"`
	TopK       integer `json:"top_k,omitempty" jsonschema:"how many passages to return, 1 to 100; 12 if left out"`

	Filter retrieve.Filter `json:"filter,omitzero" jsonschema:"which documents to search; leave it out for all"`
}

// answered is the whole reply: the answer, and how much of the library had been read.
type answered struct {
	cite.Answer
	Indexing Indexing `json:"indexing"`
	forms
}

// ask answers a question. The JSON reply is folded from the same events that a stream sends,
// so that the two cannot differ.
func (a *asking) ask(c echo.Context, r askRequest) error {
	t, err := a.askTask(c, r)
	return a.answering.respond(c, t, err)
}

func (a *asking) askTask(c echo.Context, r askRequest) (task, error) {
	record := r.Record == nil || *r.Record
	recorder, err := resume(c, a.answering, askKind, r.Run, &r)
	if err != nil {
		return task{}, err
	}
	err = cmp.Or(checkQuestion(&r.Question, int(r.TopK)), checkHistory(r.History), checkStrategy(r.Strategy, answer.Strategies()))
	if err != nil {
		return task{}, err
	}
	q := answer.Question{Text: r.Question, Strategy: r.Strategy, TopK: int(r.TopK), Style: r.Style}
	if q.History, q.CitedUnder, err = a.answering.records.previousTurns(c, &r); err != nil {
		return task{}, err
	}
	if q.Filter, err = a.catalog.collectionFilter(c.Request().Context(), r.Filter, r.Collection); err != nil {
		return task{}, err
	}
	events := func(ctx context.Context, recorder *replay.Recorder) iter.Seq2[answer.Event, error] {
		q.Recorder = recorder
		return a.asker.Ask(ctx, q)
	}
	return task{kind: askKind, request: r, record: record, recorder: recorder, events: events}, nil
}

// searchResult is the reply of POST /api/search.
type searchResult struct {
	// Passages are the passages found, best first.
	Passages []retrieve.Passage `json:"passages"`
	Indexing Indexing           `json:"indexing"`
	// Warnings say what went wrong without stopping the search.
	Warnings []string `json:"warnings,omitempty"`
}

func (a *asking) search(c echo.Context, r searchRequest) error {
	found, err := a.catalog.findPassages(c.Request().Context(), r)
	return sendValue(c, http.StatusOK, found, err)
}

func (l *catalog) findPassages(ctx context.Context, r searchRequest) (searchResult, error) {
	if err := checkQuestion(&r.Question, int(r.TopK)); err != nil {
		return searchResult{}, err
	}
	filter, err := l.collectionFilter(ctx, r.Filter, r.Collection)
	if err != nil {
		return searchResult{}, err
	}
	found := searchResult{Indexing: l.indexing()}
	found.Passages, err = l.Search(ctx, retrieve.Query{
		Text: r.Question, K: int(r.TopK), Filter: filter,
		Warn: func(err error) { found.Warnings = append(found.Warnings, err.Error()) },
	})
	if err != nil {
		return searchResult{}, fmt.Errorf("searching: %w", err)
	}
	if found.Passages == nil {
		found.Passages = []retrieve.Passage{}
	}
	return found, nil
}

func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get(echo.HeaderAccept), "text/event-stream")
}

// checkQuestion trims a question, and checks its length and the number of passages.
func checkQuestion(question *string, topK int) error {
	*question = strings.TrimSpace(*question)
	switch {
	case *question == "":
		return invalidField("question", "empty_question", `the question is empty: send {"question": "..."}`)
	case len(*question) > MaxQuestion:
		return problem(http.StatusRequestEntityTooLarge, "question_too_long",
			"the question has %d bytes, and the limit is %d: shorten it, or put long material into a document",
			len(*question), MaxQuestion).withField("question")
	case topK < 0 || topK > MaxTopK:
		return invalidField("top_k", "bad_top_k", "top_k is %d: give 1 to %d, or omit it", topK, MaxTopK)
	}
	return nil
}

// checkStrategy is separate because a run in the background is checked before it begins.
func checkStrategy(name string, known []string) error {
	if name != "" && !slices.Contains(known, name) {
		return invalidField("strategy", "bad_strategy", "there is no strategy %.40q: use one of %s", name, strings.Join(known, ", "))
	}
	return nil
}

func checkHistory(history []answer.Turn) error {
	for i, t := range history {
		if t.Role != "user" && t.Role != "assistant" {
			return invalidField("history", "bad_history", "history[%d].role is %.40q: use user or assistant", i, t.Role)
		}
	}
	return nil
}

// withBody returns a handler that decodes the JSON object in the body and calls handle with it.
func withBody[R any](handle func(echo.Context, R) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		var r R
		if _, err := decode(c, &r); err != nil {
			return err
		}
		return handle(c, r)
	}
}

// decode reads a JSON object from the body, and returns the body.
func decode(c echo.Context, into any) ([]byte, error) {
	most := MaxBody
	if isV1(c.Request()) {
		most = MaxV1Body
	}
	body, err := readBody(c, most)
	if err != nil {
		return nil, err
	}
	return body, unmarshal(body, into)
}

// unmarshal is [json.Unmarshal] with case-sensitive names of members. Unknown members are
// ignored, except in types that have an unknownMemberCode.
func unmarshal(data []byte, into any) error {
	data, err := dropMisspelled(data, reflect.TypeOf(into).Elem(), "")
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return jsonProblem(err)
	}
	return nil
}

// unknownMemberCode returns the error code for unknown members of a type, "" if they are
// ignored. If a misspelt filter were ignored, everything would be searched.
func unknownMemberCode(t reflect.Type) (code string) {
	switch t {
	case reflect.TypeFor[retrieve.Filter]():
		return "unknown_filter"
	case reflect.TypeFor[citeRequest](), reflect.TypeFor[citePiece](), reflect.TypeFor[labels]():
		return "unknown_member"
	}
	return ""
}

// dropMisspelled returns data without the members whose names match those of t only if case
// is ignored. In is the path of data in the request.
func dropMisspelled(data json.RawMessage, t reflect.Type, in string) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var items []json.RawMessage
	var members map[string]json.RawMessage
	changed := false
	pass := func(value *json.RawMessage, t reflect.Type, in string) error {
		exact, err := dropMisspelled(*value, t, in)
		changed = changed || !bytes.Equal(exact, *value)
		*value = exact
		return err
	}
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[retrieve.Date]():
		date := new(retrieve.DateError)
		if err := json.Unmarshal(data, new(retrieve.Date)); errors.As(err, &date) {
			return nil, wrongDate(err, strings.TrimSuffix(in, "."))
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
	case kind == reflect.Slice && json.Unmarshal(data, &items) == nil:
		for i := range items {
			if err := pass(&items[i], t.Elem(), in); err != nil {
				return nil, err
			}
		}
		if changed {
			return mustEncode(items), nil
		}
	case kind == reflect.Struct && json.Unmarshal(data, &members) == nil:
		known := membersOf(t)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			value := members[name]
			switch of := known[name]; {
			case of != nil:
				if err := pass(&value, of, in+name+"."); err != nil {
					return nil, err
				}
				members[name] = value
			case unknownMemberCode(t) != "":
				return nil, invalidField(fmt.Sprintf("%s%.40s", in, name), unknownMemberCode(t), "there is no member %.40q here: there are %s", name,
					strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			default: // json.Unmarshal ignores other unknown names
				delete(members, name)
				changed = changed || slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool { return strings.EqualFold(k, name) })
			}
		}
		if changed {
			return mustEncode(members), nil
		}
	}
	return data, nil
}

// membersOf returns the members of a struct in JSON, by name.
func membersOf(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = f.Type
		}
	}
	return known
}

// jsonProblem says what is wrong with a body.
func jsonProblem(err error) *Problem {
	var wrong *json.UnmarshalTypeError
	var problem *Problem
	switch {
	case errors.As(err, &problem):
		return problem
	case !errors.As(err, &wrong):
		return invalid("bad_json", "the request body is not a JSON object: %v", err)
	case wrong.Field == "":
		return invalid("bad_json", "the request body is a JSON %s instead of an object", wrong.Value)
	}
	// The path also has the names of embedded structs, which are capitalized.
	path := slices.DeleteFunc(strings.Split(wrong.Field, "."), func(name string) bool { return name != strings.ToLower(name) })
	field := strings.Join(path, ".")
	return invalidField(field, "wrong_type", "%s cannot be a JSON %s: /openapi.json describes it", field, wrong.Value)
}

// An integer is a number in a request. It may be written 3 or 3.0, as JSON Schema allows.
type integer int

// UnmarshalJSON parses a number.
func (n *integer) UnmarshalJSON(b []byte) error {
	err := json.Unmarshal(b, (*int)(n))
	var f float64
	if err == nil || json.Unmarshal(b, &f) != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<62 {
		return err
	}
	*n = integer(f)
	return nil
}

// readBody reads a request's body of up to most bytes. It counts the question for the user
// that the body names.
func readBody(c echo.Context, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, int64(most)))
	if err != nil {
		return nil, bodyProblem(err)
	}
	if !utf8.Valid(body) { // encoding/json would replace the invalid bytes
		return nil, invalid("bad_json", "the request body is not valid UTF-8: encode it as UTF-8")
	}
	var named conversationRef
	if s, ok := c.Get(slotKey).(*slot); ok && unmarshal(body, &named) == nil {
		return body, s.countUser(named.User)
	}
	return body, nil
}

func bodyProblem(err error) *Problem {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return problem(http.StatusRequestEntityTooLarge, "body_too_large",
			"the request body has more than %d bytes: send less history or a shorter question", tooLarge.Limit)
	}
	return invalid("unreadable_body", "the request body is incomplete: send it again").withCause(err)
}

func wrongDate(err error, field string) *Problem {
	return invalidField(field, "wrong_date", "%s: %v", field, err)
}

// A Summarizer summarizes texts; [answer.Answerer] is one.
type Summarizer interface {
	Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error]
}

// summarizeRequest is the body of POST /api/summarize: one stored document, or all documents
// that match a collection or filter. Run resumes an interrupted summary; all other members
// are then ignored.
type summarizeRequest struct {
	Document   string          `json:"document,omitempty"`
	Collection string          `json:"collection,omitempty"`
	Filter     retrieve.Filter `json:"filter,omitzero"`
	Strategy   string          `json:"strategy,omitempty"`
	MaxWords   integer         `json:"max_words,omitempty"`
	Run        string          `json:"run,omitempty"`
	Record     *bool           `json:"record,omitempty"`
}

// summaryKind is the kind of a run that summarizes.
const summaryKind = "POST /api/summarize"

// summarize summarizes stored documents. It replies as ask does.
func (a *asking) summarize(c echo.Context, r summarizeRequest) error {
	t, err := a.summaryTask(c, r)
	return a.answering.respond(c, t, err)
}

func (a *asking) summaryTask(c echo.Context, r summarizeRequest) (task, error) {
	record := r.Record == nil || *r.Record
	recorder, err := resume(c, a.answering, summaryKind, r.Run, &r)
	if err != nil {
		return task{}, err
	}
	if err := checkStrategy(r.Strategy, answer.SummaryStrategies()); err != nil {
		return task{}, err
	}
	passages, err := a.catalog.passagesOf(c.Request().Context(), r)
	if err != nil {
		return task{}, err
	}
	summary := answer.Summary{Passages: passages, Strategy: r.Strategy, Words: int(r.MaxWords)}
	events := func(ctx context.Context, recorder *replay.Recorder) iter.Seq2[answer.Event, error] {
		summary.Recorder = recorder
		return a.summarizer.Summarize(ctx, summary)
	}
	return task{kind: summaryKind, request: r, record: record, recorder: recorder, events: events}, nil
}

func (l *catalog) passagesOf(ctx context.Context, r summarizeRequest) ([]retrieve.Passage, error) {
	if r.Document == "" && r.Collection == "" && r.Filter.IsZero() {
		return nil, invalidField("document", "nothing_to_summarize",
			`say what to summarize: {"document": "ROOT/path"}, or a collection or filter`)
	}
	ids := []retrieve.DocumentInfo{{Document: ingest.Document{ID: r.Document}}}
	if r.Document == "" {
		filter, err := l.collectionFilter(ctx, r.Filter, r.Collection)
		if err == nil {
			ids, err = l.Documents(ctx, filter)
		}
		if err != nil {
			return nil, fmt.Errorf("listing the documents: %w", err)
		}
	}
	var passages []retrieve.Passage
	read := map[string]bool{}
	for _, d := range ids {
		if d.Digest != "" && read[d.Format+d.Digest] {
			continue // a copy
		}
		read[d.Format+d.Digest] = true
		doc, err := l.document(ctx, d.ID, "document")
		if errors.Is(err, retrieve.ErrNotFound) && r.Document == "" {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		copies, err := l.copies(ctx, doc)
		if err != nil {
			return nil, err
		}
		for _, p := range retrieve.Passages(doc, ingest.Split(doc)) {
			p.AlsoIn = copies
			passages = append(passages, p)
		}
	}
	if len(passages) == 0 {
		return nil, problem(http.StatusNotFound, "nothing_to_summarize", "no document of that collection or filter has text")
	}
	return passages, nil
}
