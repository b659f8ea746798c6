package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ibid/retrieve"
)

// A node is a simulated Weaviate node with at most a watermark and a tally.
type node struct {
	mark  *mark // nil: the node has no collection
	tally tally
	hangs bool
	slow  int32 // number of requests for which it hangs
	lost  bool  // it has no quorum
	fails bool
	late  int // number of requests for which it does not know a new collection
	asked atomic.Int32
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.asked.Add(1) <= n.slow || n.hangs {
		<-r.Context().Done()
		return
	}
	properties := map[string]any{"packed": n.tally.pack()}
	switch {
	case n.fails || n.lost && strings.HasSuffix(r.URL.Path, "/ready"):
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/ready"):
	case n.late > 0 && r.URL.Path != "/v1/schema/"+collection:
		if n.late--; n.late%2 == 0 { // before the first collection exists
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintln(w, `{"error":[{"message":"no graphql provider present, this is most likely because no schema is present"}]}`)
			return
		}
		fmt.Fprintln(w, `{"errors":[{"message":"Cannot query field \"Ibid_1\""}]}`)
	case r.URL.Path == "/v1/schema/"+collection:
		fmt.Fprintln(w, `{"shardingConfig":{"actualCount":1},"replicationConfig":{"factor":1}}`)
	case r.URL.Path == "/v1/nodes/"+collection:
		fmt.Fprintln(w, `{"nodes":[{"shards":[{}]}]}`)
	case n.mark == nil && r.URL.Path == "/v1/graphql":
		fmt.Fprintln(w, `{"errors":[{"message":"Cannot query field \"Ibid_1\""}]}`)
	case n.mark == nil:
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintln(w, `{"error":[{"message":"class not found"}]}`)
	case r.URL.Path == "/v1/graphql":
		fmt.Fprintf(w, `{"data":{"Aggregate":{%q:[{"meta":{"count":%d}}]}}}`, strings.Split(r.Header.Get("X"), " ")[0], n.tally.chunks+ownObjects)
	default:
		text, _ := json.Marshal(n.mark)
		properties["mark"] = string(text)
		_ = json.NewEncoder(w).Encode(map[string]any{"properties": properties})
	}
}

// collection is the collection of the index that [index] returns.
var collection = Open(Address{}, Options{Library: "l", Space: "s"}).Collection()

// index returns an index in a cluster of the nodes, for a state with the given number of chunks.
func index(t *testing.T, chunks int, nodes ...*node) *Index {
	t.Helper()
	var hosts []string
	byHost := make(inProcess)
	for i, n := range nodes {
		hosts = append(hosts, fmt.Sprintf("node%d:8080", i))
		byHost[hosts[i]] = n
	}
	at, err := ParseAddress("weaviate://" + hosts[0] + "?nodes=" + strings.Join(append(hosts[1:], hosts[0]), ","))
	must(t, err)
	at.nodes = hosts
	x := Open(at, Options{Library: "l", Space: "s", Size: func(context.Context) (int64, int, error) { return 100, chunks, nil }})
	x.client.http.Transport = byHost
	return x
}

// An inProcess is a transport to the nodes of a cluster by their hosts, without a network,
// so that time in testing/synctest advances.
type inProcess map[string]*node

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p[r.URL.Host].ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// TestNodes queries clusters whose nodes hang, fail or lack the collection.
func TestNodes(t *testing.T) {
	there := func() *node { return &node{mark: &mark{Revision: 100, Target: 100}} }
	for _, tt := range []struct {
		name  string
		nodes []*node
		want  error
	}{
		{"hangs", []*node{{hangs: true}, there()}, nil},
		{"fails", []*node{{fails: true}, there()}, nil},
		{"no majority", []*node{{lost: true}, there()}, nil},
		{"no majority anywhere", []*node{{lost: true}, {lost: true}}, retrieve.ErrIndexUnavailable},
		{"all fail", []*node{{fails: true}, {fails: true}}, retrieve.ErrIndexUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := index(t, 779, tt.nodes...)
				began := time.Now()
				revision, _, err := x.Revision(t.Context())
				if !errors.Is(err, tt.want) || tt.want == nil && revision != 100 || time.Since(began) > 5*readPatience {
					t.Errorf("Revision = %d, %v, after %s", revision, err, time.Since(began))
				}
				asked := tt.nodes[0].asked.Load()
				if _, _, err := x.Revision(t.Context()); tt.want == nil && (err != nil || tt.nodes[0].asked.Load() != asked) {
					t.Errorf("Revision = %v; the first node was queried again", err)
				}
			})
		})
	}
}

// TestNodesWait queries two nodes that wait for a third, which hangs: they never answer
// requests from before they drop it, but they answer later ones.
func TestNodesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := index(t, 779, &node{mark: &mark{Revision: 100}, slow: 1}, &node{mark: &mark{Revision: 100}, slow: 1})
		began := time.Now()
		if revision, _, err := x.Revision(t.Context()); err != nil || revision != 100 || time.Since(began) > callTime/2 {
			t.Errorf("Revision = %d, %v, after %s", revision, err, time.Since(began))
		}
	})
}

// TestBuilding searches collections that lack a part of the library.
func TestBuilding(t *testing.T) {
	var building *retrieve.BuildingError
	for _, tt := range []struct {
		name   string
		chunks int // chunks of the library
		mark   *mark
		want   string
	}{
		{"an empty library", 0, nil, ""},
		{"not begun", 779, nil, "it has 0 of 779 chunks"},
		{"begun", 779, &mark{Revision: 99, Target: 100}, "it has 34 of 779 chunks"},
		{"an older copy of the state", 779, &mark{Revision: 100, Target: 200}, "no group"},
	} {
		x := index(t, tt.chunks, &node{mark: tt.mark, tally: tally{revision: 99, chunks: 34}})
		x.mark.Store(nil)
		_, err := x.Stats(t.Context(), nil)
		if tt.want == "no group" {
			if errors.As(err, &building) {
				t.Errorf("%s: err = %v, want none about the building", tt.name, err)
			}
			continue
		}
		if (err == nil) != (tt.want == "") || err != nil && (!errors.As(err, &building) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: err = %v, want %q", tt.name, err, tt.want)
		}
		if _, err := x.Dense(t.Context(), []float32{1}, 5, retrieve.Filter{}); tt.want != "" && !errors.As(err, &building) {
			t.Errorf("%s: Dense: %v", tt.name, err)
		}
	}
}

// TestNewCollection searches a collection, and stores in it, before its node knows it, and
// after the node lost it.
func TestNewCollection(t *testing.T) {
	for _, tt := range []struct {
		late int
		want error
	}{
		{4, nil},
		{1 << 30, retrieve.ErrIndexUnavailable},
	} {
		n := &node{mark: &mark{Revision: 100}}
		x := index(t, 779, n)
		_, _, err := x.Revision(t.Context())
		must(t, err)
		n.late = tt.late
		if _, err := x.count(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("unknown for %d requests: count = %v", tt.late, err)
		}
		n.late = tt.late
		written := false
		err = x.writeReplicated(t.Context(), func(context.Context) error { written = true; return nil })
		if !errors.Is(err, tt.want) || written != (tt.want == nil) {
			t.Errorf("unknown for %d requests: Apply = %v, written = %t", tt.late, err, written)
		}
	}
	n := &node{mark: &mark{Revision: 100}}
	x := index(t, 779, n)
	n.mark = nil
	if revision, _, err := x.Revision(t.Context()); revision != 0 || err != nil {
		t.Errorf("lost collection: Revision = %d, %v; want 0", revision, err)
	}
}
