package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/prompt"
	"ibid/cite/rewrite"
	"ibid/retrieve"
)

// A Problem is an error as clients see it: problem details of RFC 9457, with a
// code that a machine can branch on. It is the body of every reply with an
// error status, and the data of an error event.
type Problem struct {
	// Type is "about:blank", as the RFC has it where Title is that of the status.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Code names the kind of problem; codes do not change.
	Code string `json:"code"`
	// Detail says what went wrong and what to do next.
	Detail string `json:"detail"`
	// Field names the member of the request body that is wrong.
	Field string `json:"field,omitempty"`
	// Request is the id under which the server's log tells more.
	Request string `json:"request,omitempty"`

	cause error
}

func (p *Problem) Error() string {
	if p.cause != nil {
		return p.Detail + ": " + p.cause.Error()
	}
	return p.Detail
}

func (p *Problem) Unwrap() error { return p.cause }

// statusClientGone is what proxies log for a client that went away; it is never sent.
const statusClientGone = 499

// invalid is a request that cannot be understood.
func invalid(code, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// problemFor is the one table from errors to what clients are told. An error
// that it does not know is told as internal, its words only to the log.
func problemFor(err error) *Problem {
	var p *Problem
	var he *echo.HTTPError
	var space *retrieve.SpaceError
	var question *answer.QuestionError
	var model *openai.Error
	var lacks *prompt.SlotError
	switch {
	case errors.As(err, &p):
		c := *p
		p = &c
	case errors.Is(err, context.Canceled):
		p = &Problem{Status: statusClientGone, Code: "canceled", Detail: "the answer was stopped before its end, by the reader or because the server shuts down: ask again"}
	case errors.As(err, &question):
		p = &Problem{Status: http.StatusBadRequest, Detail: question.Error()}
		switch question.Code {
		case "empty":
			p.Code, p.Field = "empty_question", "question"
		case "too_long":
			p.Status, p.Code, p.Field = http.StatusRequestEntityTooLarge, "question_too_long", "question"
		default:
			p.Code, p.Field = "bad_"+question.Code, question.Code
		}
	case errors.Is(err, retrieve.ErrEmptyQuestion):
		p = &Problem{Status: http.StatusBadRequest, Code: "empty_question", Field: "question", Detail: retrieve.ErrEmptyQuestion.Error()}
	case errors.As(err, &model):
		// Its text is made for people and holds neither key nor prompt. What it
		// says of the server's reply is the server's.
		said := *model
		said.Detail = rewrite.Neutral(said.Detail)
		p = &Problem{Status: http.StatusBadGateway, Code: "model_" + string(model.Kind), Detail: said.Error()}
		if model.Kind == openai.TimedOut {
			p.Status = http.StatusGatewayTimeout
		}
	case errors.As(err, &lacks):
		p = &Problem{Status: http.StatusInternalServerError, Code: "missing_slot", Detail: lacks.Error()}
	case errors.Is(err, retrieve.ErrAway):
		p = &Problem{Status: http.StatusServiceUnavailable, Code: "store_away",
			Detail: "the store that holds the documents does not answer: ask again later; the server's log says more, under the id of this request"}
	case errors.Is(err, context.DeadlineExceeded):
		p = &Problem{Status: http.StatusGatewayTimeout, Code: "timeout", Detail: "the answer took too long: ask again, or ask for less"}
	case errors.Is(err, retrieve.ErrNotFound):
		p = &Problem{Status: http.StatusNotFound, Code: "not_found", Detail: err.Error()}
	case errors.As(err, &space):
		p = &Problem{Status: http.StatusServiceUnavailable, Code: "embedding_changed", Detail: space.Error()}
	case errors.As(err, &he):
		p = &Problem{Status: he.Code}
		switch he.Code {
		case http.StatusNotFound:
			p.Code, p.Detail = "not_found", "there is nothing at this address"
		case http.StatusMethodNotAllowed:
			p.Code, p.Detail = "method_not_allowed", "this address does not take that method: see the Allow header"
		default:
			p.Code, p.Detail = "http_error", http.StatusText(he.Code)
		}
	default:
		p = &Problem{Status: http.StatusInternalServerError, Code: "internal",
			Detail: "something went wrong in the server: its log says what, under the id of this request"}
	}
	p.Type = "about:blank"
	p.Title = http.StatusText(p.Status)
	if p.Status == statusClientGone {
		p.Title = "Client Closed Request"
	}
	return p
}

// problemOf is problemFor as the client is told it.
func problemOf(c echo.Context, err error) *Problem {
	p := problemFor(err)
	if ended := endedBy(c.Request().Context(), err); ended != nil {
		p = ended
	}
	return told(p, c.Response().Header().Get(echo.HeaderXRequestID))
}

// endedBy says why the context of what was canceled has ended, where that is a
// problem of its own; else nil.
func endedBy(ctx context.Context, err error) *Problem {
	var ended *Problem
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &ended) {
		return problemFor(ended)
	}
	return nil
}

// told is a problem as the client is told it: with the id of its request, under
// which the log tells more of a failure of the server.
func told(p *Problem, request string) *Problem {
	if p.Status == statusClientGone {
		// Whoever still reads this did not go: the server stopped the answer.
		p.Status, p.Title = http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)
	}
	if p.Status >= 500 {
		p.Request = request
	}
	return p
}

// handleError answers a request that failed, unless its reply has begun.
func (s *server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p := problemOf(c, err)
	if p.Status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="ibid"`)
	}
	var werr error
	switch page := c.Request().Method != http.MethodHead && wantsPage(c.Request()); {
	case isV1(c.Request()):
		werr = replyV1(c, p, err)
	case page && p.Status == http.StatusUnauthorized:
		werr = s.keyFirst(c, p)
	case page:
		werr = s.page(c, p.Status, "problem", problemPage{frame: s.frame(p.Title), Problem: p})
	default:
		werr = replyAs(c, p.Status, "application/problem+json", p)
	}
	if werr != nil && !c.Response().Committed {
		c.Response().WriteHeader(http.StatusInternalServerError)
	}
}

// wantsPage says whether a person with a browser is waiting, not a program.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && !isV1(r) && strings.Contains(r.Header.Get(echo.HeaderAccept), "text/html")
}

// reply sends v as JSON.
func reply(c echo.Context, status int, v any) error {
	return replyAs(c, status, echo.MIMEApplicationJSON, v)
}

func replyAs(c echo.Context, status int, contentType string, v any) error {
	// Encoded before the status is sent, so that a failure can still be told.
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("encoding the reply: %w", err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return send(c, status, contentType, b.Bytes())
}

// send writes a whole reply, within replyTimeout.
func send(c echo.Context, status int, contentType string, body []byte) error {
	if err := setWriteDeadline(c.Response(), time.Now().Add(replyTimeout)); err != nil {
		return fmt.Errorf("bounding the reply: %w", err)
	}
	return c.Blob(status, contentType, body)
}
