package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"ibid/answer"
)

// A request carries one request of the library to the server, and turns
// everything that is not a good reply into an [*Error].
type request struct {
	*upstream
	role    answer.Role
	secrets []string // what was sent, which no error may repeat
	// body makes the reply's body safe for the library.
	body func(ctx context.Context, r *request, body io.ReadCloser) (io.ReadCloser, error)
}

// maxErrorBody bounds what is read of a reply that says what went wrong.
const maxErrorBody = 64 << 10

// Do implements the library's HTTPDoer.
func (r *request) Do(req *http.Request) (*http.Response, error) {
	if r.role != "" {
		req.Header.Set("Ibid-Role", string(r.role))
	}
	if err := exactZero(req); err != nil {
		return nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, r.failed(req.Context(), err)
	}
	return r.reply(resp)
}

// reply turns every reply but a good one into an [*Error].
func (r *request) reply(resp *http.Response) (*http.Response, error) {
	ctx := resp.Request.Context()
	if resp.StatusCode == http.StatusOK {
		var err error
		resp.Body, err = r.body(ctx, r, resp.Body)
		return resp, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		e := r.fail(BadReply, nil, "it leads to another address, which is not followed")
		e.Status = resp.StatusCode
		return nil, e
	}
	// What cannot be read of it is no loss: the status says the most.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if ctx.Err() != nil {
		return nil, r.interrupted(ctx)
	}
	return nil, r.statusError(resp.StatusCode, resp.Header, body, r.secrets...)
}

// exactZero puts a temperature of exactly 0 into the request. The library
// leaves out a zero, so it is given the smallest other number; but servers
// that divide by the temperature make infinities of that, where they know 0
// as "take the likeliest".
func exactZero(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	// An unescaped quote cannot stand inside a JSON string: only the field fits.
	body = bytes.Replace(body, []byte(`"temperature":1e-45`), []byte(`"temperature":0`), 1)
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}
