package openaitest

import (
	"cmp"
	"net"
	"net/http"
	"strings"
	"time"
)

// A Fault is one way in which a reply fails.
type Fault string

// Faults of any endpoint.
const (
	RateLimit        Fault = "429"                      // no Retry-After
	RateLimitSeconds Fault = "429 retry-after seconds"  // 1
	RateLimitDate    Fault = "429 retry-after date"     // two seconds from now
	RateLimitLong    Fault = "429 retry-after 9999"     // longer than anyone waits
	Quota            Fault = "429 insufficient_quota"   // permanent
	ServerError      Fault = "500"                      //
	EchoHeaders      Fault = "500 echoes the request"   // with its key
	HugeError        Fault = "500 with a huge body"     //
	BadGateway       Fault = "502 html"                 //
	Unavailable      Fault = "503"                      //
	Overloaded       Fault = "529"                      //
	BadRequest       Fault = "400"                      //
	ContextLength    Fault = "400 context length"       //
	ContentFilter    Fault = "400 content filter"       //
	Unauthorized     Fault = "401"                      //
	NoModel          Fault = "404 model"                //
	NoStreamOptions  Fault = "400 stream_options"       // only when they are sent
	Redirect         Fault = "302 to another host"      //
	HeaderStall      Fault = "header stall"             // connected, but no byte is sent
	HangUp           Fault = "closed before a byte"     //
	NotHTTP          Fault = "not http"                 // echoes the key in place of a status line
	HugeHeader       Fault = "huge header"              //
	HTML             Fault = "200 html"                 // a login page
	ErrorString      Fault = "200 error string"         //
	Empty            Fault = "200 empty"                //
	HugeBody         Fault = "huge body"                // one JSON object
	ShortBody        Fault = "content-length too large" // the body ends early
	LongBody         Fault = "content-length too small" // the body is cut
	noRule           Fault = "500 no rule"
)

// Faults of a chat reply.
const (
	FirstTokenStall  Fault = "first-token stall"
	KeepAliveForever Fault = "keep-alives for ever"
	MiddleStall      Fault = "mid-stream stall"
	Reset            Fault = "reset mid-chunk"
	ResetFirst       Fault = "reset before the first token"
	NoFinish         Fault = "close without finish and [DONE]"
	NoUsage          Fault = "no usage" // harmless
	PlainJSON        Fault = "whole reply in place of a stream"
	HugeLine         Fault = "huge line"
	HugeText         Fault = "text without end"
)

// A status describes a fault that is one small reply.
type status struct {
	code    int
	message string // of the error; the whole body if it is empty or begins with < or {
	kind    string // of the error
	name    string // its code
	after   string // the header Retry-After
}

var statuses = map[Fault]status{
	RateLimit:        {429, "Rate limit reached", "requests", "rate_limit_exceeded", ""},
	RateLimitSeconds: {429, "Rate limit reached", "requests", "rate_limit_exceeded", "1"},
	RateLimitDate:    {429, "Rate limit reached", "requests", "rate_limit_exceeded", ""},
	RateLimitLong:    {429, "Rate limit reached", "requests", "rate_limit_exceeded", "9999"},
	Quota:            {429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota", ""},
	ServerError:      {500, "The server had an error", "server_error", "", ""},
	BadGateway:       {502, "<html><body><h1>502 Bad Gateway</h1></body></html>", "", "", ""},
	Unavailable:      {503, "The model is loading", "server_error", "", ""},
	Overloaded:       {529, "Overloaded", "overloaded_error", "", ""},
	BadRequest:       {400, "Unknown parameter", "invalid_request_error", "", ""},
	ContextLength:    {400, "This model's maximum context length is 4096 tokens", "invalid_request_error", "context_length_exceeded", ""},
	ContentFilter:    {400, "The prompt was filtered", "invalid_request_error", "content_filter", ""},
	Unauthorized:     {401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key", ""},
	NoModel:          {404, "The model does not exist", "invalid_request_error", "model_not_found", ""},
	EchoHeaders:      {500, "bad request: ", "", "", ""},
	NoStreamOptions:  {400, "Unrecognized request argument supplied: stream_options", "invalid_request_error", "", ""},
	HTML:             {200, "<!doctype html><title>Sign in</title><p>Please sign in", "", "", ""},
	ErrorString:      {200, `{"error":"model runner has stopped"}`, "", "", ""},
	Empty:            {200, "", "", "", ""},
	noRule:           {500, "openaitest: no rule fits the request", "server_error", "no_rule", ""},
}

// sendStatus sends a fault that is one small reply, and reports whether f is such a
// fault.
func (x *exchange) sendStatus(f Fault) bool {
	s, ok := statuses[f]
	if !ok || f == NoStreamOptions && !strings.Contains(string(x.Body), `"stream_options"`) {
		return false
	}
	switch f {
	case RateLimitDate:
		s.after = time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
	case EchoHeaders:
		s.message += "Authorization: " + x.r.Header.Get("Authorization") + " " + x.User
	}
	head, body := x.w.Header(), s.message
	if s.after != "" {
		head.Set("Retry-After", s.after)
	}
	head.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "<") {
		head.Set("Content-Type", "text/html")
	} else if body != "" && body[0] != '{' {
		body = encode(map[string]any{"error": map[string]any{"message": s.message, "type": s.kind, "param": nil, "code": s.name}})
	}
	x.w.WriteHeader(s.code)
	x.write(body)
	return true
}

// playFault plays a fault of any endpoint, and reports whether the reply has one.
// whole is the body of the correct reply.
func (x *exchange) playFault(whole string) bool {
	head := x.w.Header()
	switch f := x.reply.Fault; f {
	case HugeError:
		x.w.WriteHeader(http.StatusInternalServerError)
		x.writeHuge(`{"error":{"message":"`, "a", `"}}`)
	case Redirect:
		http.Redirect(x.w, x.r, "http://elsewhere.test/v1", http.StatusFound)
	case HeaderStall:
		x.stall()
	case HangUp:
		x.cutConnection("")
	case NotHTTP:
		x.cutConnection(x.r.Header.Get("Authorization") + "\r\n\r\n")
	case HugeHeader:
		head.Set("X-Huge", strings.Repeat("a", 1<<20))
		x.w.WriteHeader(http.StatusOK)
	case HugeBody:
		head.Set("Content-Type", "application/json")
		x.writeHuge(`{"object":"`, "a", `"}`)
	case ShortBody:
		head.Set("Content-Length", "1000000")
		x.write(whole)
	case LongBody:
		head.Set("Content-Length", "40")
		x.write(whole[:40])
	default:
		return x.sendStatus(f)
	}
	return true
}

// writeHuge sends head, then Handler.Huge bytes of the filling, then tail.
func (x *exchange) writeHuge(head, filling, tail string) {
	x.write(head)
	block := strings.Repeat(filling, 1<<16/len(filling))
	for left := cmp.Or(x.h.Huge, 300<<20); left > 0 && !x.Gone; left -= int64(len(block)) {
		x.write(block)
	}
	x.write(tail)
}

// cutConnection writes raw bytes on the connection and closes it, by a reset if possible.
func (x *exchange) cutConnection(raw string) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if raw != "" {
		_, _ = conn.Write([]byte(raw)) // the connection is thrown away either way
	} else if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is only less abrupt
	}
	conn.Close()
}
