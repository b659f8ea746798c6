package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"ibid/answer"
)

// A request sends one request of the library to the server, and converts
// everything but a good reply into an [*Error].
type request struct {
	*upstream
	role    answer.Role
	secrets []string // the request's texts, which no error may repeat
	// body makes the reply's body safe for the library.
	body func(ctx context.Context, r *request, body io.ReadCloser) (io.ReadCloser, error)
}

// maxErrorBody bounds what is read of an error reply.
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

// reply converts every reply but a good one into an [*Error].
func (r *request) reply(resp *http.Response) (*http.Response, error) {
	ctx := resp.Request.Context()
	if resp.StatusCode == http.StatusOK {
		var err error
		resp.Body, err = r.body(ctx, r, resp.Body)
		return resp, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		e := r.fail(BadReply, nil, "it redirects to another address, which is not followed")
		e.Status = resp.StatusCode
		return nil, e
	}
	// A failure to read it does not matter: the status says the most.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if ctx.Err() != nil {
		return nil, r.interrupted(ctx)
	}
	return nil, r.statusError(resp.StatusCode, resp.Header, body, r.secrets...)
}

// exactZero sets the temperature in the request to exactly 0. The library omits a
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
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return nil
}
