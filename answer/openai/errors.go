package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"ibid/answer"
)

// A Kind is the kind of an error.
type Kind string

// The kinds.
const (
	Down          Kind = "down"           // no connection to the server
	TimedOut      Kind = "timeout"        // a time limit passed, ours or the caller's
	Canceled      Kind = "canceled"       // the caller's context ended
	RateLimited   Kind = "rate_limit"     // too many requests
	OutOfQuota    Kind = "quota"          // nothing left to spend
	Unauthorized  Kind = "auth"           // the key is missing, wrong, or not enough
	NotFound      Kind = "not_found"      // no such model or address
	ContextLength Kind = "context_length" // the prompt is longer than the window
	Filtered      Kind = "content_filter" // the server will not answer this
	Rejected      Kind = "rejected"       // the server does not accept the request
	ServerFailed  Kind = "server"         // the server says that it failed
	Cut           Kind = "cut"            // the reply broke off
	BadReply      Kind = "bad_reply"      // the reply is not what the API promises
)

// An Error is a failed call to a model server. Its text is for people: it names
// the server and the next step, and holds neither the key nor the prompt.
type Error struct {
	Kind   Kind
	Server string // its address, without user and password
	Model  string
	Status int // the HTTP status; 0 when there was none
	// Detail is the message of the server, or of the system about the connection:
	// one line of at most 300 characters; may be empty.
	Detail string
	// RetryAfter is how long the server asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// Requests is how many requests were made, including this one; 0 for a call
	// that was refused before the first.
	Requests int

	transient bool // the same request may succeed later, and repeating it is safe
	again     time.Duration
	adapted   bool   // the next request leaves out what the server refused
	param     string // the refused parameter, if the server names it
	limit     *limit // the client's time limit that passed
	cause     error
}

func (e *Error) Error() string {
	at, words := e.Model+" at "+e.Server, words[e.Kind]
	if e.Kind == Down {
		at = e.Server
	}
	if e.RetryAfter > 0 && e.Kind == RateLimited {
		words.next = "try again in " + e.RetryAfter.Round(time.Second).String()
	}
	text := fmt.Sprintf(words.what, at)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	mark := ": "
	if e.Detail != "" {
		text += ": " + e.Detail
		mark = "; "
	}
	if words.next != "" {
		text += mark + words.next
	}
	return text
}

// words say what has happened, to which model, and what to do next.
var words = map[Kind]struct{ what, next string }{
	Down:         {"cannot reach the model server at %s", "is it running, and is the address right?"},
	TimedOut:     {"no answer in time from %s", "try again, or allow more time"},
	Canceled:     {"the call to %s was stopped", ""},
	RateLimited:  {"too many requests to %s", "try again later"},
	OutOfQuota:   {"the account has no quota left for %s", "check its plan and billing"},
	Unauthorized: {"the key was not accepted for %s", "check the API key"},
	NotFound:     {"there is no %s", "check the model's name, and that the address ends as the server wants it (often in /v1)"},
	ContextLength: {"the prompt is longer than the context window of %s",
		"set the context tokens to the window that the server really has, or give the server a larger one"},
	Filtered:     {"the content filter of %s refused", "word the question otherwise, or use another model"},
	Rejected:     {"the request was not accepted by %s", "check that the server speaks the OpenAI API and knows this model"},
	ServerFailed: {"%s failed", "try again, and look into the server's log"},
	Cut:          {"the reply of %s broke off before its end", "try again, and look into the server's log"},
	BadReply:     {"the reply of %s is not one of the OpenAI API", "check the address (it often ends in /v1)"},
}

// RetryIn is how long to wait before the same call may succeed; less than 0 for
// longer than a call may take, 0 where waiting does not help. Package answer
// waits as long before it repeats a call.
func (e *Error) RetryIn() time.Duration { return e.again }

// Unusable reports whether no call to this server can succeed until somebody
// acts: it is unreachable, refuses the key, lacks the model, or wants to be paid.
// Package answer makes no further call after such an error.
func (e *Error) Unusable() bool {
	switch e.Kind {
	case Down, Unauthorized, OutOfQuota, NotFound:
		return true
	}
	return false
}

// Fallback names, for programs, why this model gives no answer for now, where an
// answer without a model is better than none; empty where the client should try
// again later or ask otherwise. Package answer quotes sentences then.
func (e *Error) Fallback() string {
	switch e.Kind {
	case Down:
		return "model_unreachable"
	case TimedOut:
		return "model_timeout"
	case Unauthorized, OutOfQuota, NotFound, Rejected, ContextLength:
		return "model_rejected"
	case ServerFailed, Cut, BadReply:
		return "model_failed"
	}
	return ""
}

// Limit says which time limit of the client passed, and how to change it; empty
// when none did.
func (e *Error) Limit() string {
	if e.limit == nil {
		return ""
	}
	return e.limit.Error()
}

// Unwrap returns the cause if it holds nothing of the reply: [context.Canceled], [context.DeadlineExceeded], [answer.ErrContextLength],
// [io.ErrUnexpectedEOF], or an error of the network.
func (e *Error) Unwrap() error { return e.cause }

// A limit is a time limit that passed.
type limit struct {
	what  string
	after time.Duration
	flag  string // the setting
}

const flagFirstToken = "--first-token-timeout"

func (l *limit) Error() string {
	return fmt.Sprintf("%s took longer than %g s (%s)", l.what, l.after.Seconds(), l.flag)
}

func (u *upstream) fail(kind Kind, cause error, detail string) *Error {
	return &Error{Kind: kind, Server: u.shown, Model: u.o.Model, Detail: detail, cause: cause}
}

// interrupted says why the context ended.
func (u *upstream) interrupted(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	var l *limit
	switch {
	case errors.As(cause, &l):
		e := u.fail(TimedOut, context.DeadlineExceeded, l.Error())
		e.limit = l
		return e
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return u.fail(TimedOut, context.DeadlineExceeded, "")
	}
	return u.fail(Canceled, context.Canceled, "")
}

// brokeOff converts an error of reading a body.
func (u *upstream) brokeOff(ctx context.Context, err error) *Error {
	var own *Error
	switch {
	case ctx.Err() != nil:
		return u.interrupted(ctx)
	case errors.As(err, &own):
		return own
	}
	e := u.fail(Cut, io.ErrUnexpectedEOF, "")
	e.transient = true
	return e
}

// failed converts an error of the library or of the transport. It omits the text
// of errors that may quote the server.
func (u *upstream) failed(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return u.interrupted(ctx)
	}
	down := func(cause error, detail string, transient bool) *Error {
		e := u.fail(Down, cause, detail)
		e.transient = transient
		return e
	}
	var own *Error
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var cert *tls.CertificateVerificationError
	var alert tls.AlertError
	var timeout net.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &dns) && dns.IsNotFound:
		return down(dns, "no host of that name", false)
	case errors.As(err, &dns):
		return down(dns, "its name cannot be looked up", true)
	case errors.As(err, &cert):
		return down(nil, "its certificate is not valid: "+oneLine(cert.Err.Error()), false)
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return down(nil, "it does not speak https", false)
	case errors.As(err, &alert):
		return down(alert, "no secure connection", false)
	case errors.Is(err, syscall.ECONNREFUSED):
		return down(syscall.ECONNREFUSED, "connection refused", true)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return u.brokeOff(ctx, err)
	case errors.As(err, &op) && op.Op == "dial":
		return down(op, "the connection failed", true)
	case errors.As(err, &timeout) && timeout.Timeout():
		return down(nil, "the connection was not made in time", true)
	}
	return u.fail(BadReply, nil, "")
}

// statusError converts a reply with a status other than 200. It never quotes the
// secrets.
func (u *upstream) statusError(status int, header http.Header, body []byte, secrets ...string) *Error {
	said := readComplaint(body)
	e := u.fail(said.kind(status), nil, u.quote(said.message, secrets...))
	e.Status, e.param = status, said.param
	switch e.Kind {
	case ContextLength:
		e.cause = answer.ErrContextLength
	case RateLimited, ServerFailed:
		e.RetryAfter = retryAfter(header, time.Now())
		switch status {
		case 429, 500, 502, 503, 504, 529:
			e.transient = true
		}
	}
	return e
}

// objectError converts an error object in a reply with status 200.
func (u *upstream) objectError(said complaint, secrets ...string) *Error {
	status := 500
	if code, err := strconv.Atoi(said.code); err == nil && code >= 400 && code < 600 {
		status = code
	}
	e := u.fail(said.kind(status), nil, u.quote(said.message, secrets...))
	if e.Kind == ContextLength {
		e.cause = answer.ErrContextLength
	}
	e.transient = e.Kind == ServerFailed || e.Kind == RateLimited
	return e
}

// A complaint is the error object of a reply, in any of its known forms.
type complaint struct{ message, kindOf, code, param string }

// readComplaint reads {"error":{"message":…}}, {"error":"…"}, {"detail":"…"} and
// {"message":"…"}.
func readComplaint(body []byte) complaint {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return complaint{}
	}
	var inner struct {
		Message json.RawMessage `json:"message"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
		Param   json.RawMessage `json:"param"`
	}
	if len(outer.Error) > 0 && json.Unmarshal(outer.Error, &inner) == nil {
		return complaint{text(inner.Message), text(inner.Type), text(inner.Code), text(inner.Param)}
	}
	for _, raw := range []json.RawMessage{outer.Error, outer.Detail, outer.Message} {
		if s := text(raw); s != "" {
			return complaint{s, text(outer.Type), text(outer.Code), ""}
		}
	}
	return complaint{}
}

// text returns a JSON string or number as text, and nothing for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// kind decides by the code, then by the words that servers use for a prompt that
// is too long (they have no common code for it), then by the status.
func (c complaint) kind(status int) Kind {
	for _, word := range []string{strings.ToLower(c.code), strings.ToLower(c.kindOf)} {
		switch word {
		case "context_length_exceeded", "exceed_context_size_error", "string_above_max_length":
			return ContextLength
		case "content_filter", "content_policy_violation", "responsibleaipolicyviolation":
			return Filtered
		case "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded":
			return OutOfQuota
		}
	}
	if status == 400 || status == 413 || status == 422 || status == 500 {
		message := strings.ToLower(c.message)
		for _, words := range []string{
			"context length", "context window", "context size", "maximum context", "prompt is too long", "exceeds the context",
		} {
			if strings.Contains(message, words) {
				return ContextLength
			}
		}
	}
	switch {
	case status == 401 || status == 403:
		return Unauthorized
	case status == 402:
		return OutOfQuota
	case status == 404:
		return NotFound
	case status == 413:
		return ContextLength
	case status == 429:
		return RateLimited
	case status >= 500:
		return ServerFailed
	}
	return Rejected
}

// retryAfter reads the header in its three forms: seconds, a date, and the
// milliseconds that OpenAI and Azure add.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// quote returns the message of a server as one line, or nothing where it repeats
// a part of the key or of the request.
func (u *upstream) quote(said string, sent ...string) string {
	said = oneLine(said)
	if repeats(said, u.o.Key, 8) || repeats(said, u.password, 8) {
		return ""
	}
	for _, s := range sent {
		if repeats(said, s, 24) {
			return ""
		}
	}
	return said
}

// repeats reports whether text holds window consecutive bytes of the secret, or
// all of a shorter one.
func repeats(text, secret string, window int) bool {
	if len(secret) <= window {
		return secret != "" && strings.Contains(text, secret)
	}
	for i := 0; i+window <= len(text); i++ {
		if strings.Contains(secret, text[i:i+window]) {
			return true
		}
	}
	return false
}

// oneLine makes text of a server safe for a line of an error.
func oneLine(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return strings.TrimRight(s, ".")
}
