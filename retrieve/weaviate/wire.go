package weaviate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	client "github.com/weaviate/weaviate-go-client/v5/weaviate"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/fault"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"ibid/retrieve"
)

// ErrAway is wrapped by errors that say that a node of the cluster, or all of
// it, does not answer. What was to be done can be repeated when it is back. It is
// a [retrieve.ErrAway].
var ErrAway error = nodeAway{}

type nodeAway struct{}

func (nodeAway) Error() string        { return "a node is away" }
func (nodeAway) Is(target error) bool { return target == retrieve.ErrAway }

const (
	// rpcTime is how long one request may take.
	rpcTime = 30 * time.Second
	// maxMessage is the largest reply that is taken, the server's own default.
	maxMessage = 104858000
)

// A wire is the way to the cluster: the official client over HTTP for the
// schema and for what must be read from every replica, and the server's gRPC
// protocol for the data. The client's own gRPC connection is not used, since it
// does not check certificates and takes no reply over 4 MB.
type wire struct {
	at   address
	conn *grpc.ClientConn
	rpc  pb.WeaviateClient
	rest []*client.Client // one for each host
	wait time.Duration
	// The shards and replicas of the documents, as the schema says.
	shards, factor int
	nodes          nodes
}

func dial(at address, wait time.Duration) (*wire, error) {
	w := &wire{at: at, wait: wait}
	headers := map[string]string{}
	if at.key != "" {
		headers["Authorization"] = "Bearer " + at.key
	}
	for _, host := range at.hosts {
		k := &kept{RoundTripper: http.DefaultTransport}
		c, err := client.NewClient(client.Config{Host: host, Scheme: at.scheme, Headers: headers, ConnectionClient: &http.Client{Timeout: rpcTime, Transport: k}})
		if err != nil {
			return nil, err
		}
		k.client = c
		w.rest = append(w.rest, c)
	}
	transport := insecure.NewCredentials()
	if at.scheme == "https" {
		transport = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	// The nodes are tried in turn, and the next one when one is lost.
	hosts := manual.NewBuilderWithScheme("ibid")
	var state resolver.State
	for _, node := range at.grpc {
		host, _, err := net.SplitHostPort(node)
		if err != nil {
			return nil, err
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: node, ServerName: host})
	}
	hosts.InitialState(state)
	var err error
	w.conn, err = grpc.NewClient("ibid:///weaviate",
		grpc.WithResolvers(hosts), grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 2 * time.Second, Backoff: reconnect()}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if at.key != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", headers["Authorization"])
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
	)
	if err != nil {
		return nil, err
	}
	w.rpc = pb.NewWeaviateClient(w.conn)
	return w, nil
}

// A kept is the transport of a client, which it keeps from ever being collected:
// the client's connection has a finalizer that waits for nobody, for ever, and with
// it all other finalizers of the program. One in a cycle is not run.
type kept struct {
	http.RoundTripper
	client *client.Client
}

func (w *wire) close() error { return w.conn.Close() }

// host names the cluster to people.
func (w *wire) host() string { return "weaviate at " + w.at.hosts[0] }

// try calls f until it succeeds, again after a while where what went wrong may
// pass, and not beyond the time to wait. Everything that is sent has ids made by
// Ibid, so that doing it twice leaves what doing it once does.
func (w *wire) try(ctx context.Context, f func(context.Context) error) error {
	start := time.Now()
	var last error // that came of the cluster
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		limit, cancel := context.WithTimeout(ctx, rpcTime)
		err := f(limit)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return stopped(ctx, last)
		}
		last = err
		if !transient(err) || w.conn.GetState() == connectivity.Shutdown {
			return fmt.Errorf("%s: %w", w.host(), plain(err))
		}
		if time.Since(start) > w.wait {
			return w.away(ctx, err)
		}
		select {
		case <-ctx.Done():
			return stopped(ctx, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// stopped is that nobody waits any longer, with what there was to wait for: a
// caller with less patience is to be told as much.
func stopped(ctx context.Context, err error) error {
	if absent := (*awayError)(nil); errors.As(err, &absent) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return ctx.Err()
}

// ask asks the hosts over HTTP in turn, until one answers.
func (w *wire) ask(f func(*client.Client) error) (err error) {
	for _, c := range w.rest {
		of := (*fault.WeaviateClientError)(nil)
		if err = f(c); !errors.As(err, &of) || of.DerivedFromError == nil {
			return err
		}
	}
	return err
}

// away says which nodes are away, as far as the others know.
func (w *wire) away(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	who := "it does not answer"
	if absent := (*awayError)(nil); errors.As(err, &absent) {
		return fmt.Errorf("%s: %w: %w: see to it, and do this again when it is back", w.host(), ErrAway, err)
	} else if healthy, lost, asked := w.healthy(ctx); asked == nil && len(lost) > 0 {
		who = (&awayError{lost}).Error()
	} else if asked == nil {
		who = fmt.Sprintf("this could not be done for %s, with %d nodes that answer", w.wait, len(healthy))
	}
	return fmt.Errorf("%s: %w: %s: see to it, and do this again when it is back: %w", w.host(), ErrAway, who, plain(err))
}

// plain is an error of the transports without their wrappings.
func plain(err error) error {
	var of *fault.WeaviateClientError
	if errors.As(err, &of) {
		if of.DerivedFromError != nil {
			return of.DerivedFromError
		}
		return fmt.Errorf("status %d: %s", of.StatusCode, strings.TrimSpace(of.Msg))
	}
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Message())
	}
	return err
}

// passing are words of what the server says when a replica does not answer or
// it has too much to do. It has no codes for these.
var passing = []string{
	"consistency level", "replica", "connection refused", "connection reset", "broken pipe", "unexpected eof", "no route to host",
	"i/o timeout", "deadline exceeded", "context canceled", "no such host", "not ready", "leader", "memory pressure", "not enough memory",
	"too many requests", "unavailable", "shutting down", "shutdown", "connect: ", "error reading server preface", "is loading", "overloaded", "connection is closing", "rpc error: code = canceled",
	"status code: 5", "non-existing index", // of a class that is just being made
}

// transient says whether an error may pass by itself.
func transient(err error) bool {
	if absent := (*awayError)(nil); errors.As(err, &absent) {
		return true
	}
	var of *fault.WeaviateClientError
	if errors.As(err, &of) {
		if of.DerivedFromError != nil {
			return true // no reply at all
		}
		return of.StatusCode == 429 || of.StatusCode >= 500 && passes(of.Msg)
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded, codes.Canceled:
		return true // not by this side, whose context is looked at first
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return false
	}
	return passes(err.Error())
}

func passes(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(passing, func(words string) bool { return strings.Contains(text, words) })
}
