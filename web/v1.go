package web

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"ibid/answer/openai"
)

// openAI serves the OpenAI API, below /v1. It replies with the events of POST /api/ask in
// another form. Errors have OpenAI's form, with the codes of [Problem] except for the codes
// in v1Codes.
type openAI struct {
	asking    *asking
	answering *answering
	records   *recordStore // responses that later requests can name
	library   *v1Library
	upstream  upstreamModel
	links     bool // whether numbers are Markdown links
}

// A v1Library serves the library as models, files and vector stores.
type v1Library struct {
	catalog  *catalog
	address  address
	upstream Upstream
	relays   bool // whether requests may be passed on to the upstream
}

// An upstreamModel passes requests on to the model itself, and lets it write JSON.
type upstreamModel struct{ Upstream }

// MaxV1Body is the largest request body below /v1, in bytes. Clients send the whole
// conversation each time.
const MaxV1Body = 1 << 20

// everything is the model that answers from all documents; "ibid/COLLECTION" answers from one
// collection.
const everything = "ibid"

// An Upstream is the model itself, without documents; [openai.Relay] is one.
type Upstream interface {
	// Model returns the model's name.
	Model() string
	// Chat passes on the body of a chat request.
	Chat(ctx context.Context, body []byte) (*openai.Relayed, error)
}

func isV1(r *http.Request) bool {
	return r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")
}

// v1Error is an error in the form of the OpenAI API.
type v1Error struct {
	Error v1Fault `json:"error"`
}

type v1Fault struct {
	Message string `json:"message"` // what went wrong and what to do next
	Type    string `json:"type"`    // "invalid_request_error", "rate_limit_error" or "server_error"
	// Param is the invalid parameter, or null.
	Param *string `json:"param"`
	// Code is the code of a problem, or one of the OpenAI API: model_not_found,
	// invalid_api_key, rate_limit_exceeded, context_length_exceeded.
	Code string `json:"code"`
}

// v1Codes maps codes of problems to the codes of the OpenAI API that clients know.
var v1Codes = map[string]string{
	"unknown_collection": "model_not_found", "wrong_type": "invalid_value",
	"no_key": "invalid_api_key", "bad_key": "invalid_api_key", "session_ended": "invalid_api_key",
	"too_many_questions": "rate_limit_exceeded", "too_fast": "rate_limit_exceeded", "too_many_tries": "rate_limit_exceeded",
	"model_" + string(openai.RateLimited): "rate_limit_exceeded",
	"question_too_long":                   "context_length_exceeded", "model_" + string(openai.ContextLength): "context_length_exceeded",
}

func v1ErrorOf(p *Problem) (status int, e v1Error) {
	status = p.Status
	code, param := cmp.Or(v1Codes[p.Code], p.Code), p.Field
	switch p.Field {
	case "question", "history":
		param = "messages"
	case "collection":
		param = "model"
	}
	switch code {
	case "context_length_exceeded":
		status = http.StatusBadRequest
	case "rate_limit_exceeded":
		status = http.StatusTooManyRequests
	}
	e.Error.Message, e.Error.Code = p.Detail, code
	if param != "" {
		e.Error.Param = &param
	}
	switch {
	case status >= 500:
		e.Error.Type = "server_error"
	case status == http.StatusTooManyRequests:
		e.Error.Type = "rate_limit_error"
	default:
		e.Error.Type = "invalid_request_error"
	}
	return status, e
}

func unsupported(param, format string, args ...any) *Problem {
	return invalidField(param, "unsupported_parameter", format, args...)
}

func badValue(param, format string, args ...any) *Problem {
	return invalidField(param, "invalid_value", format, args...)
}

// mayRelay reports whether the caller may ask the model itself under a name.
func (l *v1Library) mayRelay(c echo.Context, name string) bool {
	caller := holderFrom(c.Request().Context())
	return l.relays && name != "" && name == l.upstream.Model() && (caller == nil || caller.key.Relay)
}

func modelNotFound(name string) *Problem {
	return problem(http.StatusNotFound, "model_not_found",
		"there is no model %.200q here: GET /v1/models lists the models", name).withField("model")
}

// A v1Model is a model in the form of the OpenAI API.
type v1Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // 0: unknown
	OwnedBy string `json:"owned_by"`
}

// v1Models is the reply of GET /v1/models.
type v1Models struct {
	Object string    `json:"object"`
	Data   []v1Model `json:"data"`
}

func modelOf(id, owner string) v1Model { return v1Model{ID: id, Object: "model", OwnedBy: owner} }

func (l *v1Library) listModels(c echo.Context) error {
	list := []v1Model{modelOf(everything, "ibid")}
	all, err := l.catalog.collections(c.Request().Context())
	if err != nil {
		return err
	}
	for _, in := range all.Collections {
		if in.Documents > 0 {
			list = append(list, modelOf(everything+"/"+in.Name, "ibid"))
		}
	}
	if name := l.upstream.Model(); l.mayRelay(c, name) {
		list = append(list, modelOf(name, "upstream"))
	}
	return reply(c, http.StatusOK, v1Models{"list", list})
}

// showModel replies with one model. Its id may contain slashes, escaped or not.
func (l *v1Library) showModel(c echo.Context) error {
	id, _, err := parseLink(c.Request().URL, "/v1/models/")
	if err != nil || id == "" {
		return modelNotFound(c.Param("*"))
	}
	owner := "ibid"
	_, itself, err := l.collectionOf(c, id)
	if itself {
		owner = "upstream"
	}
	return sendValue(c, http.StatusOK, modelOf(id, owner), err)
}

// checkCollection fails unless the collection exists and the caller may see it.
func (l *v1Library) checkCollection(c echo.Context, collection string) error {
	ctx := c.Request().Context()
	reached, err := l.catalog.maySee(ctx, collection)
	if err == nil && reached {
		err = l.catalog.checkCollection(ctx, collection)
	}
	if err == nil && !reached || isProblem(err, "unknown_collection") {
		return modelNotFound(everything + "/" + collection)
	}
	return err
}

// chat answers from the documents, or passes the request on to the model.
func (o *openAI) chat(c echo.Context) error {
	r := chatRequest{N: 1}
	body, err := decode(c, &r)
	if err != nil {
		return err
	}
	collection, itself, err := o.library.collectionOf(c, r.Model)
	switch {
	case err != nil:
		return err
	case itself:
		return o.upstream.relay(c, body)
	}
	if err := r.check(); err != nil {
		return err
	}
	a := v1Ask{v1Request: r.v1Request, messages: r.Messages, format: r.ResponseFormat, formatParam: "response_format",
		limits: map[string]*integer{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens}}
	if a.clientListsSources = a.Stream && isOpenWebUI(r.Tools); a.clientListsSources {
		a.clientSources = ownSources(r.Messages)
	}
	return o.converse(c, &a, collection, &chatEncoder{includeUsage: r.StreamOptions.IncludeUsage})
}

// completionRequest is the body of POST /v1/completions. Other members are ignored.
type completionRequest struct {
	Model         string            `json:"model"`
	Prompt        stringList        `json:"prompt"`
	Stream        bool              `json:"stream"`
	StreamOptions chatStreamOptions `json:"stream_options"`
	N             integer           `json:"n"`       // default 1
	BestOf        integer           `json:"best_of"` // default 1
	Echo          bool              `json:"echo"`
	Suffix        string            `json:"suffix"`
	Logprobs      *integer          `json:"logprobs"`
	MaxTokens     *integer          `json:"max_tokens"`
}

// completions answers a prompt without a conversation.
func (o *openAI) completions(c echo.Context) error {
	r := completionRequest{N: 1, BestOf: 1}
	if _, err := decode(c, &r); err != nil {
		return renameField("prompt", err)
	}
	collection, itself, err := o.library.collectionOf(c, r.Model)
	switch {
	case err != nil:
		return err
	case itself:
		return onlyChat(r.Model)
	case r.N != 1, r.BestOf != 1:
		return unsupported("n", "a question has one answer: omit n and best_of")
	case r.Echo, r.Suffix != "":
		return unsupported("echo", "the prompt is a question: omit echo and suffix")
	case r.Logprobs != nil:
		return unsupported("logprobs", "the probabilities of tokens are unknown: omit logprobs")
	case len(r.Prompt) != 1 || strings.TrimSpace(r.Prompt[0]) == "":
		return badValue("prompt", "prompt has %d texts: it must be the question: a text, or a list with one text", len(r.Prompt))
	}
	a := v1Ask{v1Request: v1Request{Model: r.Model, Stream: r.Stream}, question: askRequest{Question: r.Prompt[0], Collection: collection}}
	if a.maxTokens, err = minTokens(map[string]*integer{"max_tokens": r.MaxTokens}); err != nil {
		return err
	}
	return renameField("prompt", o.answer(c, &a, &chatEncoder{plain: true, includeUsage: r.StreamOptions.IncludeUsage}))
}

func onlyChat(model string) error {
	return badValue("model", "%q is the model without documents, which needs POST /v1/chat/completions: use %q here", model, everything)
}

// renameField sets the request's member for the question in an error about it.
func renameField(name string, err error) error {
	if p := (*Problem)(nil); errors.As(err, &p) && (p.Field == "messages" || p.Field == "question" || p.Field == "history") {
		named := *p
		named.Field = name
		return &named
	}
	return err
}

// relay passes the unchanged request on to the model, and its reply back as it arrives.
func (m upstreamModel) relay(c echo.Context, body []byte) error {
	body, err := m.setModel(body)
	if err != nil {
		return err
	}
	from, err := m.Chat(c.Request().Context(), body)
	if err != nil {
		return relayProblem(err)
	}
	defer from.Body.Close()
	if !from.Events {
		whole, err := io.ReadAll(from.Body)
		if err != nil {
			return relayProblem(err)
		}
		c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, whole)
	}
	out := &eventStream{w: c.Response()} // no heartbeat, since the stream is the model's own
	for lines := bufio.NewReader(from.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			// The line may be incomplete, so the error begins on a new one.
			err = relayProblem(err)
			return errors.Join(err, out.write(append([]byte("\n"), v1ErrorEvent(problemOf(c, err))...)))
		}
		if gone := out.write(line); gone != nil {
			return readerGone(gone)
		}
		if err == io.EOF {
			return nil
		}
	}
}

func v1ErrorEvent(p *Problem) []byte {
	_, e := v1ErrorOf(p)
	return event{data: mustEncode(e)}.append(nil)
}

// relayProblem converts an error of a relayed request. If the model rejects the request, it
// is the client's fault.
func relayProblem(err error) error {
	var model *openai.Error
	if errors.As(err, &model) && (model.Kind == openai.Rejected || model.Kind == openai.Filtered) {
		p := problemFor(err)
		p.Status, p.cause = http.StatusBadRequest, err
		return p
	}
	return fmt.Errorf("passing a request on to the model: %w", err)
}

// setModel replaces every occurrence of the model in a body: the model's server might read a
// different one from the one that was checked.
func (m upstreamModel) setModel(body []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("reading a request again: %w", err)
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "model") })
	members["model"] = mustEncode(m.Model())
	return json.Marshal(members)
}
