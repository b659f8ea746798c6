package weaviate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"ibid/retrieve"
)

// requestTime limits one request to one node.
const requestTime = 30 * time.Second

// maxReply is how many bytes of a reply are read.
const maxReply = 256 << 20

// A client sends requests to the nodes of a cluster: to the node that answered
// last, and to the next one if that does not answer.
type client struct {
	at   Address
	http *http.Client
	turn atomic.Int64 // index of the node that is asked first
}

func newClient(at Address) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &client{at: at, http: &http.Client{Transport: transport}}
}

// A replyError is a reply of Weaviate that is no success.
type replyError struct {
	status int
	text   string
}

func (e *replyError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// errNoCollection reports that the collection does not exist.
var errNoCollection = errors.New("the collection does not exist")

// call sends a request with a JSON body, nil for none, and decodes the reply into
// out, unless that is nil. If no node does what it is asked, the error wraps
// [retrieve.ErrUnavailable], except for requests that Weaviate refuses (4xx).
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return c.try(ctx, func(ctx context.Context, node string) error { return c.send(ctx, node, method, path, data, out) })
}

// try calls f with one node after the other, until one carries it out.
func (c *client) try(ctx context.Context, f func(ctx context.Context, node string) error) error {
	var failed error
	first := c.turn.Load()
	for i := range int64(len(c.at.nodes)) {
		at := (first + i) % int64(len(c.at.nodes))
		limit, cancel := context.WithTimeout(ctx, requestTime)
		err := f(limit, c.at.nodes[at])
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		refused := (*replyError)(nil)
		if err == nil || errors.Is(err, errNoCollection) || errors.As(err, &refused) && refused.status/100 == 4 {
			c.turn.Store(at)
			return err
		}
		failed = fmt.Errorf("weaviate at %s: %w", c.at.nodes[at], err)
	}
	return fmt.Errorf("%w: %w", retrieve.ErrUnavailable, failed)
}

func (c *client) send(ctx context.Context, node, method, path string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.at.scheme+"://"+node+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.at.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.at.key)
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err != nil {
		return err
	}
	if reply.StatusCode/100 != 2 {
		return &replyError{reply.StatusCode, strings.TrimSpace(string(data[:min(len(data), 1000)]))}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// query sends a GraphQL query and decodes its data into out.
func (c *client) query(ctx context.Context, query string, out any) error {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return err
	}
	return c.try(ctx, func(ctx context.Context, node string) error {
		var reply struct {
			Data   json.RawMessage
			Errors []struct{ Message string }
		}
		if err := c.send(ctx, node, http.MethodPost, "/v1/graphql", body, &reply); err != nil {
			if strings.Contains(err.Error(), "no graphql provider present") { // there are no collections at all
				return errNoCollection
			}
			return err
		}
		if len(reply.Errors) > 0 {
			if strings.Contains(reply.Errors[0].Message, "Cannot query field") {
				return errNoCollection
			}
			return errors.New(reply.Errors[0].Message)
		}
		return json.Unmarshal(reply.Data, out)
	})
}

func isMissing(err error) bool {
	refused := (*replyError)(nil)
	return errors.As(err, &refused) && refused.status == http.StatusNotFound
}

// drop deletes a collection, if it exists, and waits until the nodes that can be
// reached have no watermark of it: each learns of a deletion a little later.
func (c *client) drop(ctx context.Context, collection string) error {
	err := c.call(ctx, http.MethodDelete, "/v1/schema/"+collection, nil, nil)
	if err != nil && !isMissing(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for _, node := range c.at.nodes {
		for c.send(ctx, node, http.MethodGet, objectPath(collection, markID), nil, nil) == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}
