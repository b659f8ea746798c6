package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"ibid/answer"
)

// A request sends one request, of the library or our own, to the server.
// Everything but a good reply is an [*Error].
type request struct {
	*upstream
	role    answer.Role
	secrets []string // the request's texts, which no error may repeat
	most    int64    // bytes in a reply that is one object; 0 for a stream
}

// maxErrorBody bounds what is read of an error reply.
const maxErrorBody = 64 << 10

// Do implements the library's HTTPDoer. It makes the body of the reply safe for
// the library.
func (r *request) Do(req *http.Request) (*http.Response, error) {
	if err := exactZero(req); err != nil {
		return nil, err
	}
	resp, failed := r.send(req)
	if failed != nil {
		return nil, failed
	}
	if r.most == 0 {
		resp.Body = newEvents(req.Context(), r, resp.Body)
		return resp, nil
	}
	defer resp.Body.Close()
	object, failed := r.object(req.Context(), resp.Body)
	if failed != nil {
		return nil, failed
	}
	resp.Body = io.NopCloser(bytes.NewReader(object))
	return resp, nil
}

// post sends a request that the library does not have.
func (r *request) post(ctx context.Context, path, accept string, body []byte) (*http.Response, *Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	if r.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Key)
	}
	return r.send(req)
}

// send returns a reply with status 200, whose body the caller must close.
func (r *request) send(req *http.Request) (*http.Response, *Error) {
	ctx := req.Context()
	if r.role != "" {
		req.Header.Set("Ibid-Role", string(r.role))
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		e := r.fail(BadReply, nil, "it redirects to another address, which is not followed")
		e.Status = resp.StatusCode
		return nil, e
	}
	// A failure to read it does not matter: the status says the most.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if ctx.Err() != nil {
		return nil, r.interrupted(ctx)
	}
	return nil, r.statusError(resp.StatusCode, resp.Header, said, r.secrets...)
}

// exactZero sets the temperature in a request to exactly 0. The library omits a
// zero, so it gets the smallest other number; but servers that divide by the
// temperature turn that into infinities, while 0 means "the likeliest token".
func exactZero(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	// An unescaped quote cannot occur inside a JSON string: only the field matches.
	body = bytes.Replace(body, []byte(`"temperature":1e-45`), []byte(`"temperature":0`), 1)
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, err = req.GetBody()
	return err
}

// object reads a reply that is one JSON object without an error in it.
func (r *request) object(ctx context.Context, body io.Reader) ([]byte, *Error) {
	all, err := io.ReadAll(io.LimitReader(body, r.most+1))
	all = bytes.TrimSpace(all)
	switch {
	case err != nil:
		return nil, r.brokeOff(ctx, err)
	case int64(len(all)) > r.most:
		return nil, r.fail(BadReply, nil, "it is too long")
	case len(all) == 0:
		return nil, r.fail(BadReply, nil, "it is empty")
	case all[0] == '<':
		return nil, r.fail(BadReply, nil, "it is a web page")
	case !json.Valid(all):
		return nil, r.fail(BadReply, nil, "it is not JSON")
	}
	return all, r.errorIn(all)
}

// errorIn returns the error that a JSON value with the status 200 holds, if any.
func (r *request) errorIn(value []byte) *Error {
	var object struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(value, &object) != nil || len(object.Error) == 0 || string(object.Error) == "null" {
		return nil
	}
	return r.objectError(readComplaint(value), r.secrets...)
}
