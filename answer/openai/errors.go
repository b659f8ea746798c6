package openai

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
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
	Unauthorized  Kind = "auth"           // the key is missing, wrong, or lacks a permission
	NotFound      Kind = "not_found"      // no such model or address
	ContextLength Kind = "context_length" // the prompt is longer than the window
	Filtered      Kind = "content_filter" // the server refuses to answer this prompt
	Rejected      Kind = "rejected"       // the server does not accept the request
	ServerFailed  Kind = "server"         // the server says that it failed
	Cut           Kind = "cut"            // the reply broke off
	BadReply      Kind = "bad_reply"      // the reply is not what the API promises
)

// An Error is a failed call to a model server. Its text is for people: it names
// the server and the next step, and contains neither the key nor the prompt.
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

	transient  bool // the same request may succeed later, and repeating it is safe
	retryDelay time.Duration
	adapted    bool   // the next request leaves out what the server refused
	param      string // the refused parameter, if the server names it
	limit      *limit // the client's time limit that passed
	cause      error
}

func (e *Error) Error() string {
	at, words := e.Model+" at "+e.Server, words[e.Kind]
	if e.Kind == Down {
		at = e.Server
	}
	if e.RetryAfter > 0 && e.Kind == RateLimited {
		words.next = "wait " + e.RetryAfter.Round(time.Second).String()
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

// words say what has happened, to which model, and what to do next; [Error.Remedy],
// [Error.Fallback] and [Error.Unusable] return the last three.
var words = map[Kind]struct {
	what, next, remedy, fallback string
	unusable                     bool
}{
	Down: {"cannot reach the model server at %s", "check that it is running and that the address is right",
		tell, "model_unreachable", true},
	TimedOut:     {"no answer in time from %s", "allow more time, or use a faster model", "ask again in a moment", "model_timeout", false},
	Canceled:     {"the call to %s was stopped", "", "", "", false},
	RateLimited:  {"too many requests to %s", "wait, or raise the limit of the account", "ask again in a minute", "", false},
	OutOfQuota:   {"the account has no quota left for %s", "check its plan and billing", tell, "model_rejected", true},
	Unauthorized: {"the key was rejected for %s", "check the API key", tell, "model_rejected", true},
	NotFound: {"there is no %s", "check the model's name, and that the address has the path of the API (often /v1)",
		tell, "model_rejected", true},
	ContextLength: {"the prompt is longer than the context window of %s",
		"set --context-tokens to the server's actual window, lower --top-k, or give the server a larger window",
		tell + ": its model reads too little", "model_window", false},
	Filtered: {"the content filter of %s rejected the prompt", "reword the question, or use another model", "ask in other words", "", false},
	Rejected: {"the request was rejected by %s", "check that the server speaks the OpenAI API and knows this model",
		tell, "model_rejected", false},
	ServerFailed: {"%s failed", "check the log of the model's server", "ask again in a moment", "model_failed", false},
	Cut: {"the reply of %s ended early", "check the log of the model's server", "ask again in a moment",
		"model_failed", false},
	BadReply: {"the reply of %s does not conform to the OpenAI API", "check the address (it often ends in /v1)", tell, "model_failed", false},
}

// tell is the remedy for errors that only the operator can correct.
const tell = "tell whoever runs this server"

// Remedy returns what the user can do, or "" if nothing can be done. It
// does not quote the server.
func (e *Error) Remedy() string {
	if e.RetryAfter > 0 && e.Kind == RateLimited {
		return "ask again in " + e.RetryAfter.Round(time.Second).String()
	}
	return words[e.Kind].remedy
}

// RetryIn returns how long to wait before the same call may succeed. It is negative if
// that is longer than a call may take, and 0 if waiting does not help. Package answer
// waits that long before it repeats a call.
func (e *Error) RetryIn() time.Duration { return e.retryDelay }

// Unusable reports whether no call to this server can succeed until somebody
// acts: it is unreachable, refuses the key, lacks the model, or requires payment.
// Package answer makes no further call after such an error.
func (e *Error) Unusable() bool { return words[e.Kind].unusable }

// Fallback returns a code for why the model gives no answer, if an answer without a
// model is better than none: package answer then quotes sentences. It is "" if the
// client should try again later or reword the question.
func (e *Error) Fallback() string { return words[e.Kind].fallback }

// Limit returns the client's time limit that passed and the flag that changes it, or
// "" if none passed.
func (e *Error) Limit() string {
	if e.limit == nil {
		return ""
	}
	return e.limit.Error()
}

// Unwrap returns the cause if it contains nothing of the reply: [context.Canceled], [context.DeadlineExceeded],
// [answer.ErrContextLength], [io.ErrUnexpectedEOF], or an error of the network.
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

func (u *upstream) newError(kind Kind, cause error, detail string) *Error {
	return &Error{Kind: kind, Server: u.address, Model: u.o.Model, Detail: detail, cause: cause}
}

func (u *upstream) badReply(format string, args ...any) *Error {
	return u.newError(BadReply, nil, fmt.Sprintf(format, args...))
}

// contextError says why the context ended.
func (u *upstream) contextError(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	var l *limit
	switch {
	case errors.As(cause, &l):
		e := u.newError(TimedOut, context.DeadlineExceeded, l.Error())
		e.limit = l
		return e
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return u.newError(TimedOut, context.DeadlineExceeded, "")
	}
	return u.newError(Canceled, context.Canceled, "")
}

// cutError is the error of a reply that broke off.
func (u *upstream) cutError() *Error {
	e := u.newError(Cut, io.ErrUnexpectedEOF, "")
	e.transient = true
	return e
}

// bodyError converts an error of reading a body.
func (u *upstream) bodyError(ctx context.Context, err error) *Error {
	var own *Error
	switch {
	case ctx.Err() != nil:
		return u.contextError(ctx)
	case errors.As(err, &own):
		return own
	}
	return u.cutError()
}

// transportError converts an error of the transport. It omits the text of errors that may
// quote the server.
func (u *upstream) transportError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return u.contextError(ctx)
	}
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var cert *tls.CertificateVerificationError
	var alert tls.AlertError
	var timeout net.Error
	for _, down := range []struct {
		is        bool
		detail    string
		transient bool
	}{
		{errors.As(err, &dns) && dns.IsNotFound, "there is no host with this name", false},
		{dns != nil, "its name cannot be resolved", true},
		{errors.As(err, &cert), "its certificate is not valid", false},
		{errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record), "it does not speak https", false},
		{errors.As(err, &alert), "the TLS handshake failed", false},
		{errors.Is(err, syscall.ECONNREFUSED), "connection refused", true},
		{errors.As(err, &op) && op.Op == "dial", "the connection failed", true},
		{errors.As(err, &timeout) && timeout.Timeout(), "the connection timed out", true},
	} {
		if down.is {
			if cert != nil {
				down.detail += ": " + oneLine(cert.Err.Error())
			}
			e := u.newError(Down, nil, down.detail)
			e.transient = down.transient
			return e
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return u.cutError()
	}
	return u.newError(BadReply, nil, "")
}

// statusError converts a reply with a status other than 200. It never quotes the
// secrets.
func (u *upstream) statusError(status int, header http.Header, body []byte, secrets ...string) *Error {
	e := u.refusalError(status, readServerMessage(body), secrets)
	e.Status = status
	if e.Kind == RateLimited || e.Kind == ServerFailed {
		e.RetryAfter = retryAfter(header, time.Now())
		e.transient = slices.Contains([]int{429, 500, 502, 503, 504, 529}, status)
	}
	return e
}

// objectError converts an error object in a reply with status 200.
func (u *upstream) objectError(said serverMessage, secrets ...string) *Error {
	status, err := strconv.Atoi(said.code)
	if err != nil || status < 400 || status >= 600 {
		status = 500
	}
	e := u.refusalError(status, said, secrets)
	e.transient = e.Kind == ServerFailed || e.Kind == RateLimited
	return e
}

func (u *upstream) refusalError(status int, said serverMessage, secrets []string) *Error {
	e := u.newError(said.kind(status), nil, u.quoteMessage(said.message, secrets...))
	e.param = said.param
	if e.Kind == ContextLength {
		e.cause = answer.ErrContextLength
	}
	return e
}

// A serverMessage is the error object of a reply, in any of its known forms.
type serverMessage struct{ message, kindOf, code, param string }

// readServerMessage reads {"error":{"message":…}}, {"error":"…"}, {"detail":"…"} and
// {"message":"…"}.
func readServerMessage(body []byte) serverMessage {
	var outer, inner map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return serverMessage{}
	}
	if json.Unmarshal(outer["error"], &inner) == nil && inner != nil {
		return serverMessage{rawText(inner["message"]), rawText(inner["type"]), rawText(inner["code"]), rawText(inner["param"])}
	}
	if said := cmp.Or(rawText(outer["error"]), rawText(outer["detail"]), rawText(outer["message"])); said != "" {
		return serverMessage{said, rawText(outer["type"]), rawText(outer["code"]), ""}
	}
	return serverMessage{}
}

// rawText returns a JSON string or number as text, and "" for anything else.
func rawText(raw json.RawMessage) string {
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

// The kinds of errors by code or type, by status, and the words that servers use for
// a prompt that is too long, since they have no common code for it.
var (
	kindOfCode = map[string]Kind{
		"context_length_exceeded": ContextLength, "exceed_context_size_error": ContextLength, "string_above_max_length": ContextLength,
		"content_filter": Filtered, "content_policy_violation": Filtered, "responsibleaipolicyviolation": Filtered,
		"insufficient_quota": OutOfQuota, "credit_balance_exhausted": OutOfQuota, "billing_hard_limit_reached": OutOfQuota,
		"billing_not_active": OutOfQuota, "quota_exceeded": OutOfQuota,
	}
	kindOfStatus = map[int]Kind{
		401: Unauthorized, 402: OutOfQuota, 403: Unauthorized, 404: NotFound, 413: ContextLength, 429: RateLimited,
	}
	tooLong = regexp.MustCompile(`(?i)context (?:length|window|size)|maximum context|prompt is too long|exceeds the context`)
)

// kind decides by the code, then by the words, then by the status.
func (c serverMessage) kind(status int) Kind {
	kind := cmp.Or(kindOfCode[strings.ToLower(c.code)], kindOfCode[strings.ToLower(c.kindOf)])
	if kind == "" && (status == 400 || status == 422 || status == 500) && tooLong.MatchString(c.message) {
		kind = ContextLength
	}
	if kind = cmp.Or(kind, kindOfStatus[status]); kind == "" && status >= 500 {
		kind = ServerFailed
	}
	return cmp.Or(kind, Rejected)
}

// retryAfter reads the header Retry-After, in seconds or as a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// quoteMessage returns the message of a server as one line, or "" if it repeats a part
// of the key or of the request.
func (u *upstream) quoteMessage(said string, sent ...string) string {
	said = oneLine(said)
	if containsPart(said, u.o.Key, 8) || containsPart(said, u.password, 8) {
		return ""
	}
	for _, s := range sent {
		if containsPart(said, s, 24) {
			return ""
		}
	}
	return said
}

// containsPart reports whether text holds window consecutive bytes of the secret, or
// all of a shorter one.
func containsPart(text, secret string, window int) bool {
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
