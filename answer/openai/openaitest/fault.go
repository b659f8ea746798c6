package openaitest

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// A Fault is one way in which a reply goes wrong.
type Fault string

// Faults of any endpoint: the reply is not what was asked for.
const (
	RateLimit        Fault = "429"                      // no Retry-After
	RateLimitSeconds Fault = "429 retry-after seconds"  // 1
	RateLimitDate    Fault = "429 retry-after date"     // two seconds from now
	RateLimitLong    Fault = "429 retry-after 9999"     // longer than anyone waits
	Quota            Fault = "429 insufficient_quota"   // never comes right
	ServerError      Fault = "500"                      //
	EchoHeaders      Fault = "500 echoes the request"   // with its key
	HugeError        Fault = "500 with a huge body"     //
	BadGateway       Fault = "502 html"                 //
	Unavailable      Fault = "503"                      //
	GatewayTimeout   Fault = "504"                      //
	Overloaded       Fault = "529"                      //
	BadRequest       Fault = "400"                      //
	ContextLength    Fault = "400 context length"       //
	ContentFilter    Fault = "400 content filter"       //
	Unauthorized     Fault = "401"                      //
	Forbidden        Fault = "403"                      //
	NoModel          Fault = "404 model"                //
	NoStreamOptions  Fault = "400 stream_options"       // only when they are sent
	Redirect         Fault = "302 to another host"      // to Reply.Location
	HeaderStall      Fault = "header stall"             // connected, and no word
	HangUp           Fault = "closed before a word"     //
	NotHTTP          Fault = "not http"                 // echoes the key in place of a status line
	HugeHeader       Fault = "huge header"              //
	HTML             Fault = "200 html"                 // a login page
	ErrorObject      Fault = "200 error object"         //
	ErrorString      Fault = "200 error string"         //
	Empty            Fault = "200 empty"                //
	HugeBody         Fault = "huge body"                // one JSON object
	ShortBody        Fault = "content-length too large" // the body ends early
	LongBody         Fault = "content-length too small" // the body is cut
	SlowBody         Fault = "one byte a second"        //
	noRule           Fault = "500 no rule"
)

// Faults of a chat reply.
const (
	FirstTokenStall   Fault = "first-token stall"
	KeepAliveForever  Fault = "keep-alives for ever"
	MiddleStall       Fault = "mid-stream stall"
	Reset             Fault = "reset mid-chunk"
	ResetFirst        Fault = "reset before the first token"
	NoFinish          Fault = "close without finish and [DONE]"
	DoneWithoutFinish Fault = "[DONE] without finish"
	FinishWithoutDone Fault = "finish without [DONE]" // harmless
	CutJSON           Fault = "cut mid-json"
	CutRune           Fault = "cut mid-utf8"
	Malformed         Fault = "malformed json"
	LineCR            Fault = "lines ended by CR"      // harmless
	LineCRLF          Fault = "lines ended by CRLF"    // harmless
	NoSpace           Fault = "data: without space"    // harmless
	NoBlankLine       Fault = "no blank lines"         // harmless
	ByteByByte        Fault = "every byte by itself"   // harmless
	KeepAlives        Fault = "10000 keep-alives"      // harmless
	RoleOnly          Fault = "role-only chunk"        // harmless
	UsageFirst        Fault = "usage-only chunk first" // harmless
	DoneTwice         Fault = "[DONE] twice"           // harmless
	NoUsage           Fault = "no usage"               // harmless
	PlainJSON         Fault = "whole reply in place of a stream"
	HugeLine          Fault = "huge line"
	HugeText          Fault = "text without end"
	ErrorEvent        Fault = "event: error"
	ErrorEventBare    Fault = "event: error, bare json"
	ErrorMiddle       Fault = "error object mid-stream"
	ErrorSpaced       Fault = "error object mid-stream, spaced"
	EmptyChoices      Fault = "empty choices"
	FinishNull        Fault = "finish_reason null"
	FinishUnknown     Fault = "finish_reason unknown"
)

// Faults of an embeddings reply.
const (
	EmbedShort      Fault = "one vector missing"
	EmbedLong       Fault = "one vector too many"
	EmbedPermuted   Fault = "vectors in another order" // harmless: the index is right
	EmbedSameIndex  Fault = "one index twice"
	EmbedMixed      Fault = "mixed dimensions"
	EmbedDimensions Fault = "other dimensions"
	EmbedZero       Fault = "zero vector"
	EmbedNaN        Fault = "NaN"
	EmbedOverflow   Fault = "1e39"
	EmbedNull       Fault = "null vector"
	EmbedBase64     Fault = "base64 vectors"
	EmbedNothing    Fault = "empty object"
)

// Faults of a rerank reply.
const (
	RankShort     Fault = "one score missing"
	RankLong      Fault = "one score too many"
	RankPermuted  Fault = "scores in another order" // harmless: the index is right
	RankSameIndex Fault = "one score's index twice"
	RankNoIndex   Fault = "no index"
	RankNull      Fault = "null score"
	RankText      Fault = "score in words"
	RankOverflow  Fault = "1e999"
	RankNothing   Fault = "no results"
)

// statuses are the faults that are one small reply.
func statusOf(f Fault) (status int, header, body string, ok bool) {
	object := func(kind, code, message string) string {
		return `{"error":{"message":"` + message + `","type":"` + kind + `","param":null,"code":"` + code + `"}}`
	}
	switch f {
	case RateLimit, RateLimitSeconds, RateLimitDate, RateLimitLong:
		switch f {
		case RateLimitSeconds:
			header = "1"
		case RateLimitDate:
			header = time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
		case RateLimitLong:
			header = "9999"
		}
		return 429, header, object("requests", "rate_limit_exceeded", "Rate limit reached"), true
	case Quota:
		return 429, "", object("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), true
	case ServerError:
		return 500, "", object("server_error", "", "The server had an error"), true
	case BadGateway:
		return 502, "", "<html><body><h1>502 Bad Gateway</h1></body></html>", true
	case Unavailable:
		return 503, "", object("server_error", "", "The model is loading"), true
	case GatewayTimeout:
		return 504, "", "upstream request timeout", true
	case Overloaded:
		return 529, "", object("overloaded_error", "", "Overloaded"), true
	case BadRequest:
		return 400, "", object("invalid_request_error", "", "Unknown parameter"), true
	case ContextLength:
		return 400, "", object("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 4096 tokens"), true
	case ContentFilter:
		return 400, "", object("invalid_request_error", "content_filter", "The prompt was filtered"), true
	case Unauthorized:
		return 401, "", object("invalid_request_error", "invalid_api_key", "Incorrect API key provided"), true
	case Forbidden:
		return 403, "", object("invalid_request_error", "forbidden", "No access to the model"), true
	case NoModel:
		return 404, "", object("invalid_request_error", "model_not_found", "The model does not exist"), true
	case noRule:
		return 500, "", object("server_error", "no_rule", "openaitest: no rule fits the request"), true
	}
	return 0, "", "", false
}

// status sends the fault that is one small reply.
func (x *exchange) status(f Fault) bool {
	status, after, body, ok := statusOf(f)
	if !ok {
		return false
	}
	if after != "" {
		x.w.Header().Set("Retry-After", after)
	}
	x.w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "<") {
		x.w.Header().Set("Content-Type", "text/html")
	}
	x.w.WriteHeader(status)
	x.write(body)
	return true
}

// fail does what a fault of any endpoint does; false if it is none. whole is
// the body of the right reply.
func (x *exchange) fail(whole string) bool {
	head := x.w.Header()
	switch f := x.reply.Fault; f {
	case EchoHeaders:
		x.w.WriteHeader(http.StatusInternalServerError)
		x.write(`{"error":{"message":"bad request: Authorization: ` + x.r.Header.Get("Authorization") + ` ` + strings.ReplaceAll(x.req.User, `"`, `'`) + `"}}`)
	case HugeError:
		x.w.WriteHeader(http.StatusInternalServerError)
		x.huge(`{"error":{"message":"`, "a", `"}}`)
	case NoStreamOptions:
		if !strings.Contains(string(x.req.Body), `"stream_options"`) {
			return false
		}
		x.w.WriteHeader(http.StatusBadRequest)
		x.write(`{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error","param":null,"code":null}}`)
	case Redirect:
		http.Redirect(x.w, x.r, x.reply.Location, http.StatusFound)
	case HeaderStall:
		x.stall()
	case HangUp:
		x.cut("")
	case NotHTTP:
		x.cut(x.r.Header.Get("Authorization") + "\r\n\r\n")
	case HugeHeader:
		x.hugeHeader()
	case HTML:
		head.Set("Content-Type", "text/html")
		x.write("<!doctype html><title>Sign in</title><p>Please sign in")
	case ErrorObject:
		head.Set("Content-Type", "application/json")
		x.write(`{"error":{"message":"The server had an error","type":"server_error","code":null}}`)
	case ErrorString:
		head.Set("Content-Type", "application/json")
		x.write(`{"error":"model runner has stopped"}`)
	case Empty:
		x.w.WriteHeader(http.StatusOK)
	case HugeBody:
		head.Set("Content-Type", "application/json")
		x.huge(`{"object":"`, "a", `"}`)
	case ShortBody:
		head.Set("Content-Length", "1000000")
		x.write(whole)
	case LongBody:
		head.Set("Content-Length", "40")
		x.write(whole[:40])
	case SlowBody:
		for _, b := range []byte(whole) {
			x.write(string([]byte{b}))
			if !x.wait(time.Second) {
				return true
			}
		}
	default:
		return x.status(f)
	}
	return true
}

// huge sends head, then Handler.Huge bytes made of the filling, then tail.
func (x *exchange) huge(head, filling, tail string) {
	x.write(head)
	block := strings.Repeat(filling, 1<<16/len(filling))
	for left := x.hugeSize(); left > 0 && !x.gone; left -= int64(len(block)) {
		x.write(block)
	}
	x.write(tail)
}

func (x *exchange) hugeSize() int64 {
	if x.h.Huge > 0 {
		return x.h.Huge
	}
	return 300 << 20
}

func (x *exchange) hugeHeader() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	block := []byte(strings.Repeat("a", 1<<16))
	_, err = conn.Write([]byte("HTTP/1.1 200 OK\r\nX-Huge: "))
	for left := x.hugeSize(); left > 0 && err == nil; left -= int64(len(block)) {
		_, err = conn.Write(block)
	}
	x.gone = true
}

// cut writes raw bytes on the connection and closes it, by a reset where the
// connection can do that.
func (x *exchange) cut(raw string) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if raw != "" {
		_, _ = conn.Write([]byte(raw)) // the connection is thrown away either way
		conn.Close()
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is only less abrupt
	}
	conn.Close()
}
