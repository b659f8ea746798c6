package weaviate

import (
	"bytes"
	"cmp"
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

const (
	// callTime is the limit of one request. Nodes wait for a node that hangs until Weaviate
	// notices it, which takes less time.
	callTime = 30 * time.Second
	// If a node has not replied to a read after readPatience, the next node is asked too. When all
	// have been asked, another request is sent every again times readPatience, because Weaviate
	// never answers requests that waited for a hanging node, even after it notices that the node
	// hangs.
	readPatience = time.Second
	again        = 5
)

// maxReply is the largest number of bytes of a reply that are read.
const maxReply = 256 << 20

// A client sends requests to the nodes of a cluster, starting with the node that answered the last
// request. A node that hangs is therefore asked last.
type client struct {
	at   Address
	http *http.Client
	turn atomic.Int64 // index of the node that is asked first

	closed atomic.Bool
}

func newClient(at Address) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &client{at: at, http: &http.Client{Transport: transport, Timeout: callTime}}
}

// A replyError is an unsuccessful reply of Weaviate.
type replyError struct {
	status int
	text   string
}

func (e *replyError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// errNoCollection reports that the collection does not exist.
var errNoCollection = errors.New("the collection does not exist")

// call sends a request with a JSON body, if not nil, and decodes the reply into out, if not nil. If
// every node fails, the error wraps [retrieve.ErrIndexUnavailable]. A refusal by Weaviate (4xx) is
// returned unchanged.
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	var data []byte
	var err error
	if body != nil {
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	patience := callTime
	if method == http.MethodGet {
		patience = readPatience
	}
	reply, err := c.try(ctx, patience, func(ctx context.Context, node string) ([]byte, error) {
		return c.sendRequest(ctx, node, method, path, data)
	})
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(reply, out)
}

// An attempt is the outcome of one request to a node.
type attempt struct {
	node  int64
	reply []byte
	err   error
}

// try calls f with one node after another until a call succeeds. It tries the next node after a
// failure, or if there is no reply within the patience.
func (c *client) try(ctx context.Context, patience time.Duration, f func(context.Context, string) ([]byte, error)) ([]byte, error) {
	if c.closed.Load() {
		return nil, errors.New("the search index is closed")
	}
	first, nodes := c.turn.Load(), int64(len(c.at.nodes))
	attempts, stop := context.WithTimeout(ctx, callTime+time.Duration(nodes-1)*patience)
	defer stop()
	replies := make(chan attempt)
	var failed error
	for started, open, start := int64(0), 0, true; start || open > 0; {
		if start {
			node := (first + started) % nodes
			go func() {
				reply, err := f(attempts, c.at.nodes[node])
				select {
				case replies <- attempt{node, reply, c.nodeError(attempts, c.at.nodes[node], err)}:
				case <-attempts.Done():
				}
			}()
			started, open = started+1, open+1
		}
		wait := patience
		if started >= nodes {
			wait *= again
		}
		start = true
		select {
		case <-time.After(wait):
		case a := <-replies:
			open--
			start = started < nodes
			refused := (*replyError)(nil)
			if a.err == nil || errors.Is(a.err, errNoCollection) || errors.As(a.err, &refused) && refused.status/100 == 4 {
				c.turn.Store(a.node)
				return a.reply, a.err
			}
			failed = fmt.Errorf("weaviate at %s: %w", c.at.nodes[a.node], a.err)
		case <-attempts.Done():
			start, open = false, 0
			failed = cmp.Or(failed, attempts.Err())
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %w", retrieve.ErrIndexUnavailable, failed)
}

// nodeError replaces the error of a node that reports something missing but is not ready: after a
// restart without a majority of the cluster, a node may not know what exists.
func (c *client) nodeError(ctx context.Context, node string, err error) error {
	if errors.Is(err, errNoCollection) || noObject(err) {
		if _, unready := c.sendRequest(ctx, node, http.MethodGet, "/v1/.well-known/ready", nil); unready != nil {
			return fmt.Errorf("it is not ready: %s", unready)
		}
	}
	return err
}

func (c *client) sendRequest(ctx context.Context, node, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.at.scheme+"://"+node+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.at.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.at.key)
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err == nil && reply.StatusCode/100 != 2 {
		err = &replyError{reply.StatusCode, strings.TrimSpace(string(data[:min(len(data), 1000)]))}
	}
	return data, err
}

// query sends a GraphQL query and decodes its data into out.
func (c *client) query(ctx context.Context, query string, out any) error {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return err
	}
	data, err := c.try(ctx, readPatience, func(ctx context.Context, node string) ([]byte, error) {
		var reply struct {
			Data   json.RawMessage
			Errors []struct{ Message string }
		}
		data, err := c.sendRequest(ctx, node, http.MethodPost, "/v1/graphql", body)
		if err == nil {
			err = json.Unmarshal(data, &reply)
		} else if strings.Contains(err.Error(), "no graphql provider present") { // there are no collections
			err = errNoCollection
		}
		if err == nil && len(reply.Errors) > 0 {
			if err = errors.New(reply.Errors[0].Message); strings.Contains(err.Error(), "Cannot query field") {
				err = errNoCollection
			}
		}
		return reply.Data, err
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// drop deletes a collection, if it exists, and waits until no reachable node returns its watermark,
// since a deletion reaches other nodes a little later.
func (c *client) drop(ctx context.Context, collection string) error {
	err := c.call(ctx, http.MethodDelete, "/v1/schema/"+collection, nil, nil)
	if err != nil && !noObject(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for _, node := range c.at.nodes {
		for {
			if _, err := c.sendRequest(ctx, node, http.MethodGet, objectPath(collection, markID), nil); err != nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}
