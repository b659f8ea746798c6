package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// A request sends one request to the server. Everything but a good reply is an
// [*Error].
type request struct {
	*upstream
	role    string
	secrets []string // the request's texts, which no error may repeat
}

// maxErrorBody bounds what is read of an error reply.
const maxErrorBody = 64 << 10

const eventStream = "text/event-stream"

// sendRequest posts body, or makes a GET request if it is nil, and returns a reply with
// status 200, whose body the caller must close.
func (r *request) sendRequest(ctx context.Context, path, accept string, body []byte) (*http.Response, *Error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, r.o.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, r.transportError(ctx, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	// Not sent: it allows net/http to repeat the request if the server has closed a
	// connection that was kept open, as llama.cpp does after some replies.
	req.Header["Idempotency-Key"] = nil
	if r.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Key)
	}
	if r.role != "" {
		req.Header.Set("Ibid-Role", r.role)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, r.transportError(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		e := r.badReply("it redirects to another address, which is not followed")
		e.Status = resp.StatusCode
		return nil, e
	}
	// An error of this read does not matter: the status is enough.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if ctx.Err() != nil {
		return nil, r.contextError(ctx)
	}
	return nil, r.statusError(resp.StatusCode, resp.Header, said, r.secrets...)
}

// requestObject sends body as JSON, unless it is nil, and decodes the reply, a JSON object of at
// most the given number of bytes, into reply. what names the request in the error of a time limit.
func (r *request) requestObject(ctx context.Context, path, what string, body any, most int64, reply any) *Error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.FirstToken, &limit{what, r.o.FirstToken, flagFirstToken})
	defer cancel()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return r.newError(Rejected, err, "")
		}
	}
	resp, failed := r.sendRequest(ctx, path, "application/json", sent)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	object, failed := r.readObject(ctx, resp.Body, most)
	if failed == nil && json.Unmarshal(object, reply) != nil {
		failed = r.badReply("it does not conform to the API")
	}
	return failed
}

// readObject reads a reply that is one JSON object without an error in it.
func (r *request) readObject(ctx context.Context, body io.Reader, most int64) ([]byte, *Error) {
	all, err := io.ReadAll(io.LimitReader(body, most+1))
	all = bytes.TrimSpace(all)
	switch {
	case err != nil:
		return nil, r.bodyError(ctx, err)
	case int64(len(all)) > most:
		return nil, r.badReply("it is too long")
	case len(all) > 0 && all[0] == '<':
		return nil, r.badReply("it is a web page")
	}
	var object json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(all))
	switch err := decoder.Decode(&object); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, r.cutError()
	case err != nil, decoder.More():
		return nil, r.badReply("it is neither a stream of events nor one JSON object")
	}
	return object, r.findError(object)
}

// findError returns the error in a JSON value that came with status 200, if any.
func (r *request) findError(value []byte) *Error {
	if !bytes.Contains(value, []byte(`"error"`)) {
		return nil
	}
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(value, &object) != nil ||
		len(object.Error) == 0 || string(object.Error) == "null" {
		return nil
	}
	return r.objectError(readServerMessage(value), r.secrets...)
}
