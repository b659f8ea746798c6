package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"ibid/answer"
)

// A request is one request to the server. Everything but a good reply is an
// [*Error].
type request struct {
	*upstream
	path    string // "/chat/completions" for one
	role    answer.Role
	accept  string   // "" means JSON
	secrets []string // the request's texts, which no error may repeat
}

// maxErrorBody bounds what is read of an error reply.
const maxErrorBody = 64 << 10

// send sends the body, or asks for the path where body is nil. The caller must
// close the body of the reply.
func (r *request) send(ctx context.Context, body []byte) (*http.Response, *Error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, r.o.BaseURL+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	if r.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Key)
	}
	if r.role != "" {
		req.Header.Set("Ibid-Role", string(r.role))
	}
	if r.o.Prepare != nil {
		r.o.Prepare(req)
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

// call sends in as JSON, unless it is nil, and reads a reply of at most so many
// bytes into what out points to.
func (r *request) call(ctx context.Context, in any, most int64, out any) *Error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return r.fail(Rejected, err, "")
		}
	}
	resp, failed := r.send(ctx, body)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	all = bytes.TrimSpace(all)
	switch {
	case err != nil:
		return r.brokeOff(ctx, err)
	case int64(len(all)) > most:
		return r.fail(BadReply, nil, "it is too long")
	case len(all) == 0:
		return r.fail(BadReply, nil, "it is empty")
	case all[0] == '<':
		return r.fail(BadReply, nil, "it is a web page")
	case !json.Valid(all):
		return r.fail(BadReply, nil, "it is not JSON")
	}
	if e := r.errorIn(all); e != nil {
		return e
	}
	if json.Unmarshal(all, out) != nil {
		return r.fail(BadReply, nil, "it does not have the form of the API")
	}
	return nil
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
