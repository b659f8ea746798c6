package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"ibid/answer/openai"
	"ibid/retrieve"
)

// The routes below /v1 are those of the OpenAI API, for clients that speak it:
//
//	POST /v1/chat/completions   an answer from the documents, or the model itself
//	GET  /v1/models             "ibid", "ibid/COLLECTION" of each, the model's name
//	GET  /v1/models/ID          one of them
//	POST /v1/embeddings         vectors of the embedding model of the index
//
// What goes out is the stream of POST /api/ask in another form. Errors have
// OpenAI's form, with the codes of [Problem] but for those in v1Codes.

// MaxV1Body is the largest request body below /v1, in bytes: clients send the
// whole conversation each time.
const MaxV1Body = 1 << 20

// maxRelayedLine is how much of a line of the model's stream is held back until
// it has ended, in bytes.
const maxRelayedLine = 1 << 20

// everything is the model that answers from all documents; those of one
// collection have its name behind a slash.
const everything = "ibid"

// An Upstream is the model itself, without documents; [openai.Relay] is one.
type Upstream interface {
	// Model is its name.
	Model() string
	// Chat passes on the body of a chat request as it is.
	Chat(ctx context.Context, body []byte) (*openai.Relayed, error)
}

// routeV1 enters the routes of the OpenAI API.
func (s *server) routeV1(e *echo.Echo, get func(string, echo.HandlerFunc)) {
	e.POST("/v1/chat/completions", s.chat, s.bounded)
	get("/v1/models", s.models)
	get("/v1/models/*", s.model)
	if s.Embedder != nil {
		e.POST("/v1/embeddings", s.embeddings, s.bounded)
	}
	e.POST("/v1/responses", s.responses)
}

// responses says what to use in place of the API that is not offered.
func (s *server) responses(echo.Context) error {
	return &Problem{Status: http.StatusNotFound, Code: "no_responses",
		Detail: "there is no Responses API here: use POST /v1/chat/completions (with the AI SDK, its provider @ai-sdk/openai-compatible)"}
}

// isV1 says whether a request is to be answered in the form of the OpenAI API.
func isV1(r *http.Request) bool {
	return r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")
}

// v1Error is an error as the OpenAI API has it.
type v1Error struct {
	Error v1Fault `json:"error"`
}

type v1Fault struct {
	Message string `json:"message"` // what went wrong and what to do next
	Type    string `json:"type"`    // "invalid_request_error", "rate_limit_error" or "server_error"
	// Param is the parameter that is wrong; null where none is.
	Param *string `json:"param"`
	// Code is that of a problem, or one of the OpenAI API: model_not_found,
	// invalid_api_key, rate_limit_exceeded, context_length_exceeded.
	Code string `json:"code"`
}

// v1Codes are the codes for which the OpenAI API has words of its own, which
// its clients branch on.
func v1Codes(code string) string {
	switch code {
	case "unknown_collection":
		return "model_not_found"
	case "no_key", "bad_key", "session_ended":
		return "invalid_api_key"
	case "too_many_questions", "too_fast", "too_many_tries", "model_" + string(openai.RateLimited):
		return "rate_limit_exceeded"
	case "question_too_long", "model_" + string(openai.ContextLength):
		return "context_length_exceeded"
	}
	return code
}

// inV1 is a problem in the form of the OpenAI API.
func inV1(p *Problem) (status int, e v1Error) {
	status = p.Status
	code, param := v1Codes(p.Code), p.Field
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

// replyV1 replies with a problem in the form of the OpenAI API.
func replyV1(c echo.Context, p *Problem, err error) error {
	status, e := inV1(p)
	if model := (*openai.Error)(nil); errors.As(err, &model) && model.RetryAfter > 0 && status == http.StatusTooManyRequests {
		comeBack(c, model.RetryAfter)
	}
	return reply(c, status, e)
}

// unsupported is about a part of the OpenAI API that cannot be had here.
func unsupported(param, format string, args ...any) *Problem {
	p := invalid("unsupported_parameter", format, args...)
	p.Field = param
	return p
}

// badValue is about a parameter that cannot be understood.
func badValue(param, format string, args ...any) *Problem {
	p := invalid("invalid_value", format, args...)
	p.Field = param
	return p
}

// noModel is about a model that is not there, or not for the caller.
func noModel(name string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "model_not_found", Field: "model",
		Detail: fmt.Sprintf("there is no model %.200q here: GET /v1/models lists those that are", name)}
}

// decodeV1 reads a request of the OpenAI API, and gives its body too. Members
// that it does not know are let pass.
func decodeV1(c echo.Context, into any) ([]byte, error) {
	body, err := sent(c, MaxV1Body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			if wrong.Field == "" {
				return nil, invalid("bad_json", "the request body is a JSON %s and should be an object", wrong.Value)
			}
			return nil, badValue(wrong.Field, "%s has the wrong type: it is a JSON %s and should be %s", wrong.Field, wrong.Value, jsonType(wrong.Type.Kind()))
		}
		if p := (*Problem)(nil); errors.As(err, &p) {
			return nil, p
		}
		return nil, invalid("bad_json", "the request body is not a JSON object that the OpenAI API knows here: %v", err)
	}
	return body, nil
}

// A v1Model is a model as the OpenAI API lists it.
type v1Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // not known: 0
	OwnedBy string `json:"owned_by"`
}

// v1Models is the reply of GET /v1/models.
type v1Models struct {
	Object string    `json:"object"`
	Data   []v1Model `json:"data"`
}

func modelOf(id, owner string) v1Model { return v1Model{ID: id, Object: "model", OwnedBy: owner} }

// models lists the models that chat: those that the key may see.
func (s *server) models(c echo.Context) error {
	list := []v1Model{modelOf(everything, "ibid")}
	all, err := s.listCollections(c.Request().Context())
	if err != nil {
		return err
	}
	for _, in := range all.Collections {
		if in.Documents > 0 {
			list = append(list, modelOf(everything+"/"+in.Name, "ibid"))
		}
	}
	if s.Upstream != nil {
		list = append(list, modelOf(s.Upstream.Model(), "upstream"))
	}
	return reply(c, http.StatusOK, v1Models{"list", list})
}

// model gives one model. Its id may hold slashes, escaped or not.
func (s *server) model(c echo.Context) error {
	id, _, err := linked(c.Request().URL, "/v1/models/")
	if err != nil {
		return noModel(c.Param("*"))
	}
	switch {
	case id == everything:
	case s.Upstream != nil && id == s.Upstream.Model():
		return reply(c, http.StatusOK, modelOf(id, "upstream"))
	case s.Embedder != nil && id == s.Embedder.Space():
	default:
		collection, ok := strings.CutPrefix(id, everything+"/")
		if !ok || collection == "" {
			return noModel(id)
		}
		if err := s.reachable(c, collection); err != nil {
			return err
		}
	}
	return reply(c, http.StatusOK, modelOf(id, "ibid"))
}

// reachable fails unless a collection is there and in reach.
func (s *server) reachable(c echo.Context, collection string) error {
	reached, err := s.reaches(c.Request().Context(), collection)
	if err == nil && reached {
		_, err = s.scope(c.Request().Context(), retrieve.Filter{}, collection)
	}
	if p := (*Problem)(nil); err == nil && !reached || errors.As(err, &p) && p.Code == "unknown_collection" {
		return noModel(everything + "/" + collection)
	}
	return err
}

// chat answers from the documents, or passes the request on to the model.
func (s *server) chat(c echo.Context) error {
	var r chatRequest
	body, err := decodeV1(c, &r)
	if err != nil {
		return err
	}
	if r.Model == "" {
		return badValue("model", "no model is named: %q answers from all documents, and GET /v1/models lists the others", everything)
	}
	collection, below := strings.CutPrefix(r.Model, everything+"/")
	switch {
	case r.Model == everything:
		collection = ""
	case below && collection != "":
		if err := s.reachable(c, collection); err != nil {
			return err
		}
	case s.Upstream != nil && r.Model == s.Upstream.Model():
		return s.relay(c, body)
	default:
		return noModel(r.Model)
	}
	q, err := r.question()
	if err != nil {
		return err
	}
	q.Collection = collection
	t, err := s.askTask(c, q)
	if err != nil {
		return err
	}
	return s.complete(c, &r, t)
}

// relay passes a request on to the model as it came, and the reply back as it
// comes.
func (s *server) relay(c echo.Context, body []byte) error {
	if err := oneModel(body); err != nil {
		return err
	}
	from, err := s.Upstream.Chat(c.Request().Context(), body)
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
		return send(c, http.StatusOK, echo.MIMEApplicationJSON, whole)
	}
	out := &eventStream{w: c.Response()} // without a heartbeat: what goes out is the model's
	var held []byte                      // a line that has not ended: behind half of one nothing could be told
	b := make([]byte, 32<<10)
	for {
		n, err := from.Body.Read(b)
		held = append(held, b[:n]...)
		whole := bytes.LastIndexByte(held, '\n') + 1
		if err == io.EOF || len(held) > maxRelayedLine {
			whole = len(held)
		}
		if whole > 0 {
			if gone := out.write(held[:whole]); gone != nil {
				return readerGone(gone)
			}
			held = append(held[:0], held[whole:]...)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			err = relayProblem(err)
			return errors.Join(err, out.write(append([]byte("\n"), v1Failure(problemOf(c, err))...)))
		}
	}
}

// relayProblem is problemFor where the request was the client's own: what is
// wrong with it is told as that.
func relayProblem(err error) error {
	var model *openai.Error
	if errors.As(err, &model) && (model.Kind == openai.Rejected || model.Kind == openai.Filtered) {
		p := problemFor(err)
		p.Status, p.cause = http.StatusBadRequest, err
		return p
	}
	return fmt.Errorf("passing a request on to the model: %w", err)
}

// oneModel refuses a body that names its model in more ways than one: another
// reader of JSON could take another for it.
func oneModel(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	named := 0
	// The body has been read before: it is an object.
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("reading a request again: %w", err)
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err := errors.Join(err, d.Decode(&value)); err != nil {
			return fmt.Errorf("reading a request again: %w", err)
		}
		if name, _ := name.(string); strings.EqualFold(name, "model") {
			if named++; named > 1 || name != "model" {
				return badValue("model", `the model must be named once, as "model"`)
			}
		}
	}
	return nil
}
