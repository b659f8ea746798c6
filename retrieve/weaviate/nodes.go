package weaviate

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weaviate/weaviate/entities/models"
)

// Where a node has been away for so long that the others have noticed, Weaviate
// asks for the acknowledgement of "all" replicas of those alone that are there.
// What was written then is not on that node when it comes back, and may be
// looked for on it. So a write counts only where every node was there before it
// and after it: Weaviate needs longer to lose and to find a node than that takes.

// A nodes is what is known of the cluster's nodes.
type nodes struct {
	mu    sync.Mutex
	names []string  // those that hold a replica of anything
	whole time.Time // when all of them were there last
}

// recently is how long ago all nodes may have been seen for a write to begin.
const recently = time.Second

// present gives an error where a node of a replicated library is away, or was
// not seen for longer than within.
func (w *wire) present(ctx context.Context, within time.Duration) error {
	if w.factor < 2 {
		return nil
	}
	n := &w.nodes
	n.mu.Lock()
	defer n.mu.Unlock()
	if within > 0 && time.Since(n.whole) < within {
		return nil
	}
	asked := time.Now()
	healthy, lost, err := w.healthy(ctx)
	if err != nil {
		return err
	}
	for _, name := range n.names {
		if len(healthy) > 0 && !slices.Contains(healthy, name) && !slices.Contains(lost, name) {
			lost = append(lost, name)
		}
	}
	// Nodes come and go: those that count hold what there is to hold.
	if len(n.names) == 0 || len(lost) > 0 {
		if whole, err := w.complete(ctx); err != nil || !whole {
			return &awayError{lost}
		}
		n.names = healthy
	}
	n.whole = asked
	return nil
}

// An awayError says which nodes are away.
type awayError struct{ nodes []string }

func (e *awayError) Error() string {
	if len(e.nodes) == 0 {
		return "not every replica of the library is there"
	}
	return "its node " + strings.Join(e.nodes, " and ") + " does not answer"
}

// lostNode is how Weaviate names a node that it cannot ask how it is.
var lostNode = regexp.MustCompile(`node: ([^\s:]+): `)

// healthy asks how the nodes are: the first host that answers. Just after one is
// lost nothing but its name is said.
func (w *wire) healthy(ctx context.Context) (healthy, lost []string, err error) {
	for _, c := range w.rest {
		var state *models.NodesStatusResponse
		if state, err = c.Cluster().NodesStatusGetter().Do(ctx); err != nil {
			if m := lostNode.FindStringSubmatch(err.Error()); m != nil {
				return nil, m[1:], nil
			}
			continue
		}
		for _, n := range state.Nodes {
			if n.Status != nil && *n.Status == models.NodeStatusStatusHEALTHY {
				healthy = append(healthy, n.Name)
			} else {
				lost = append(lost, n.Name)
			}
		}
		return healthy, lost, nil
	}
	return nil, nil, err
}

// complete says whether every shard of the documents has all its replicas on
// nodes that are there.
func (w *wire) complete(ctx context.Context) (bool, error) {
	var err error
	for _, c := range w.rest {
		var state *models.NodesStatusResponse
		state, err = c.Cluster().NodesStatusGetter().WithClass(w.at.documents()).WithOutput("verbose").Do(ctx)
		if err != nil {
			continue
		}
		replicas := 0
		for _, n := range state.Nodes {
			if n.Status == nil || *n.Status != models.NodeStatusStatusHEALTHY {
				return false, nil
			}
			replicas += len(n.Shards)
		}
		return replicas >= w.shards*w.factor, nil
	}
	return false, err
}

// awaitNodes waits until all nodes are there, for as long as anything is tried.
func (w *wire) awaitNodes(ctx context.Context) error {
	return w.try(ctx, func(ctx context.Context) error { return w.present(ctx, recently) })
}

// acknowledged says whether what was just written is on every replica.
func (w *wire) acknowledged(ctx context.Context) error {
	err := w.present(context.WithoutCancel(ctx), 0)
	if err != nil {
		err = fmt.Errorf("%s: %w: %w: what was to be stored may not be on every replica: see to it, and do this again when it is back", w.host(), ErrAway, plain(err))
	}
	return err
}
