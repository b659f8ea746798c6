package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/retrieve"
)

// A Problem is an error as clients receive it: problem details of RFC 9457, with a code for
// programs. It is the body of every reply with an error status, and the data of an error
// event.
type Problem struct {
	// Type is "about:blank", so Title is the text of the status.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Code identifies the kind of problem; codes never change.
	Code string `json:"code"`
	// Detail says what went wrong and what to do next.
	Detail string `json:"detail"`
	// Field names the invalid member of the request body.
	Field string `json:"field,omitempty"`
	// Request is the id of the request in the server's log.
	Request string `json:"request,omitempty"`

	cause      error
	retryAfter time.Duration // for the Retry-After header; 0 for none
}

func (p *Problem) Error() string {
	if p.cause != nil {
		return p.Detail + ": " + p.cause.Error()
	}
	return p.Detail
}

func (p *Problem) Unwrap() error { return p.cause }

// statusClientGone is the status that proxies log for a client that closed the connection; it is never sent.
const statusClientGone = 499

func problem(status int, code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// withField sets the name of the invalid member of the request body.
func (p *Problem) withField(field string) *Problem {
	p.Field = field
	return p
}

func (p *Problem) withCause(err error) *Problem {
	p.cause = err
	return p
}

func (p *Problem) withRetryAfter(wait time.Duration) *Problem {
	p.retryAfter = wait
	return p
}

// isProblem reports whether an error is a problem with the given code.
func isProblem(err error, code string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Code == code
}

func invalid(code, format string, args ...any) *Problem {
	return problem(http.StatusBadRequest, code, format, args...)
}

func invalidField(field, code, format string, args ...any) *Problem {
	return invalid(code, format, args...).withField(field)
}

// problemFor converts an error for clients. The text of an unknown error is only logged.
func problemFor(err error) *Problem {
	p := &Problem{}
	set := func(status int, code, detail string) { p.Status, p.Code, p.Detail = status, code, detail }
	var problem *Problem
	var question *answer.QuestionError
	var model *openai.Error
	var space *retrieve.SpaceError
	var building *retrieve.BuildingError
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &problem):
		*p = *problem
	case errors.Is(err, context.Canceled):
		set(statusClientGone, "canceled",
			"the answer was stopped before it was complete, by the client or because the server is shutting down: ask again")
	case errors.As(err, &question):
		p = questionProblem(question)
	case errors.Is(err, retrieve.ErrEmptyQuestion):
		p = invalidField("question", "empty_question", "%v", retrieve.ErrEmptyQuestion)
	case errors.As(err, &model):
		p = modelProblem(model)
	case fileProblem(err) != nil:
		p = fileProblem(err)
	case errors.Is(err, retrieve.ErrUnavailable):
		set(http.StatusServiceUnavailable, "store_unavailable", "the store that holds the documents is unreachable: ask again later; "+
			"the server's log has the reason, under the id of this request")
	case errors.Is(err, retrieve.ErrIndexUnavailable):
		set(http.StatusServiceUnavailable, "store_unavailable", "the search index is unreachable: ask again later; documents are stored "+
			"meanwhile, and the server's log has the reason, under the id of this request")
	case errors.As(err, &building):
		set(http.StatusServiceUnavailable, "index_building", building.Error()+": ask again later")
		p.retryAfter = 5 * time.Second
	case errors.Is(err, syscall.ENOSPC):
		set(http.StatusInsufficientStorage, "no_space", "the disk of the server is full, and nothing was stored: send it again when its "+
			"operator has freed space")
	case errors.Is(err, context.DeadlineExceeded):
		set(http.StatusGatewayTimeout, "timeout", "the answer took too long: ask again, or ask for less")
	case errors.Is(err, retrieve.ErrNotFound):
		set(http.StatusNotFound, "not_found", err.Error())
	case errors.As(err, &space):
		set(http.StatusServiceUnavailable, "embedding_changed", space.Error())
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		set(routing.Code, "not_found", "there is nothing at this address")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		set(routing.Code, "method_not_allowed", "this address does not allow that method: see the Allow header")
	case errors.As(err, &routing):
		set(routing.Code, "http_error", http.StatusText(routing.Code))
	default:
		set(http.StatusInternalServerError, "internal", "something went wrong in the server: its log says what, under the id of this request")
	}
	p.Type = "about:blank"
	p.Title = http.StatusText(p.Status)
	if p.Status == statusClientGone {
		p.Title = "Client Closed Request"
	}
	return p
}

func questionProblem(err *answer.QuestionError) *Problem {
	p := problem(http.StatusBadRequest, "bad_"+err.Code, "%v", err).withField(err.Code)
	switch err.Code {
	case "empty":
		p.Code, p.Field = "empty_question", "question"
	case "too_long":
		p.Status, p.Code, p.Field = http.StatusRequestEntityTooLarge, "question_too_long", "question"
	}
	return p
}

// modelProblem converts an error of the model, whose text contains neither the key nor the prompt.
func modelProblem(err *openai.Error) *Problem {
	p := problem(http.StatusBadGateway, "model_"+string(err.Kind), "%v", err).withRetryAfter(err.RetryAfter)
	if err.Kind == openai.TimedOut {
		p.Status = http.StatusGatewayTimeout
	}
	return p
}

// problemOf converts the error of a request for its client.
func problemOf(c echo.Context, err error) *Problem {
	p := problemFor(err)
	if ended := causeOf(c.Request().Context(), err); ended != nil {
		p = ended
	}
	return p.forClient(c.Response().Header().Get(echo.HeaderXRequestID))
}

// causeOf returns the cause of a canceled context if it is a Problem, else nil.
func causeOf(ctx context.Context, err error) *Problem {
	var cause *Problem
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &cause) {
		return problemFor(cause)
	}
	return nil
}

// forClient adds the id of the request if the server failed, since its log has details.
func (p *Problem) forClient(request string) *Problem {
	if p.Status == statusClientGone {
		// A client that receives this is still connected: the server stopped the answer.
		p.Status, p.Title = http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)
	}
	if p.Status >= 500 {
		p.Request = request
	}
	return p
}

// errorReplies replies to requests that failed.
type errorReplies struct {
	pages *pages
	key   *keyForm
}

// handle replies to a request that failed, unless its reply has begun.
func (r errorReplies) handle(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p := problemOf(c, err)
	if p.retryAfter > 0 {
		setRetryAfter(c, p.retryAfter)
	}
	if p.Status == http.StatusUnauthorized {
		challenge := `Bearer realm="ibid"`
		if c.Path() == "/mcp" {
			challenge += fmt.Sprintf(`, resource_metadata="%s%s"`, r.pages.address.base(c), resourceMetadata)
		}
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	}
	var failed error
	req := c.Request()
	page := req.Method != http.MethodHead && !strings.HasPrefix(req.URL.Path, "/api/") &&
		strings.Contains(req.Header.Get(echo.HeaderAccept), "text/html")
	switch {
	case isV1(req):
		if routing := (*echo.HTTPError)(nil); errors.As(err, &routing) {
			p.Detail += "; /openapi.json lists the addresses: there are no embeddings, images or moderations, and documents are " +
				"added with POST /api/documents and deleted with DELETE /api/documents/ID"
		}
		status, e := v1ErrorOf(p)
		failed = reply(c, status, e)
	case page && p.Status == http.StatusUnauthorized:
		failed = r.key.requireKey(c, p)
	case page:
		failed = r.pages.send(c, p.Status, "problem", problemPage{frame: r.pages.frame(p.Title), Problem: p})
	default:
		failed = replyAs(c, p.Status, "application/problem+json", p)
	}
	if failed != nil && !c.Response().Committed {
		c.Response().WriteHeader(http.StatusInternalServerError)
	}
}

// mustEncode encodes a value that can always be encoded as JSON.
func mustEncode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// decodeStored decodes a value that a server encoded: an event, or a part of a record.
func decodeStored[T any](data []byte) (v T, err error) {
	if err = json.Unmarshal(data, &v); err != nil {
		err = fmt.Errorf("reading a record: %w", err)
	}
	return v, err
}

func reply(c echo.Context, status int, v any) error {
	return replyAs(c, status, echo.MIMEApplicationJSON, v)
}

// sendValue replies with v unless err is set.
func sendValue(c echo.Context, status int, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(c, status, v)
}

// sendNoContent replies without a body unless err is set.
func sendNoContent(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func replyAs(c echo.Context, status int, contentType string, v any) error {
	// Encode before the status is sent, so that a failure can still change it.
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("encoding the reply: %w", err)
	}
	if p, ok := c.Get(pointsKey).(*codePoints); ok && status < 300 {
		data, err := p.add(b.Bytes())
		if err != nil {
			return err
		}
		b = *bytes.NewBuffer(append(data, '\n'))
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(status, contentType, b.Bytes())
}
