package weaviate

import (
	"context"
	"fmt"
	"strings"

	"github.com/weaviate/weaviate/entities/models"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"ibid/ingest"
	"ibid/retrieve"
)

// Inspect gives the version of the server, its nodes and how they are, and how
// the classes are shared out among them.
func (e *Engine) Inspect(ctx context.Context) ([]retrieve.Trait, error) {
	var meta *models.Meta
	var nodes *models.NodesStatusResponse
	var documents *models.Class
	err := e.wire.try(ctx, func(ctx context.Context) (err error) {
		if meta, err = e.wire.rest[0].Misc().MetaGetter().Do(ctx); err != nil {
			return err
		}
		if nodes, err = e.wire.rest[0].Cluster().NodesStatusGetter().Do(ctx); err != nil {
			return err
		}
		documents, err = e.wire.rest[0].Schema().ClassGetter().WithClassName(e.wire.at.documents()).Do(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("inspect the store: %w", err)
	}
	healthy := 0
	var others []string
	for _, n := range nodes.Nodes {
		if n.Status != nil && *n.Status == models.NodeStatusStatusHEALTHY {
			healthy++
		} else if n.Status != nil {
			others = append(others, n.Name+" is "+*n.Status)
		}
	}
	of := retrieve.Trait{Name: "nodes", Value: fmt.Sprintf("%d of %d are well", healthy, len(nodes.Nodes))}
	if len(others) > 0 {
		of.Value += ": " + strings.Join(others, ", ")
		of.Next = "start them again: until then what only they hold is not found, and writes may fail"
	}
	if e.wire.factor > 1 && of.Next == "" {
		// One that has been away for long is not among the nodes any more.
		whole, err := e.wire.complete(ctx)
		if err != nil {
			return nil, fmt.Errorf("inspect the store: %w", plain(err))
		}
		if !whole {
			of.Value += ", and not every replica of the library is on them"
			of.Next = "start the others again: until then questions are answered, and nothing is stored"
		}
	}
	replicas := int64(1)
	if r := documents.ReplicationConfig; r != nil && r.Factor > 1 {
		replicas = r.Factor
	}
	shards := any(1)
	if sharding, ok := documents.ShardingConfig.(map[string]any); ok && sharding["desiredCount"] != nil {
		shards = sharding["desiredCount"]
	}
	return []retrieve.Trait{
		{Name: "server", Value: fmt.Sprintf("%s, version %s", e.wire.host(), meta.Version)},
		of,
		{Name: "schema", Value: fmt.Sprintf("classes %s…, %v shards, %d replicas of each", e.wire.at.prefix, shards, replicas)},
	}, nil
}

// Count counts the documents that pass the filter, and their chunks.
func (e *Engine) Count(ctx context.Context, f retrieve.Filter) (documents, chunks int, err error) {
	if f.IsZero() {
		sum := &pb.AggregateRequest_Aggregation{Property: "chunks", Aggregation: &pb.AggregateRequest_Aggregation_Int{Int: &pb.AggregateRequest_Aggregation_Integer{Sum: true}}}
		reply, err := e.aggregate(ctx, &pb.AggregateRequest{Collection: e.wire.at.documents(), ObjectsCount: true, Aggregations: []*pb.AggregateRequest_Aggregation{sum}})
		if all := reply.GetSingleResult(); err == nil && all != nil {
			for _, a := range all.GetAggregations().GetAggregations() {
				chunks = int(a.GetInt().GetSum())
			}
			return int(all.GetObjectsCount()), chunks, nil
		}
		// With a node away Weaviate does not add up, but it does list.
	}
	err = e.list(ctx, f, maxResults, func(d *document) { documents, chunks = documents+1, chunks+d.Chunks })
	if err != nil {
		return 0, 0, fmt.Errorf("count the documents: %w", err)
	}
	return documents, chunks, nil
}

// KeepRoot makes a root as another store has it, if it is not there.
func (e *Engine) KeepRoot(ctx context.Context, root ingest.Root) error {
	err := e.exclusive(ctx, task{Name: rootsTask}, func(ctx context.Context, _ *hold) (bool, error) {
		roots, err := e.roots(ctx)
		if err != nil {
			return false, err
		}
		if there, err := retrieve.CheckRoot(root, roots); err != nil || there {
			return false, err
		}
		if err := isText(root.Name, root.Path, root.Collection); err != nil {
			return false, err
		}
		return true, e.wire.putItem(ctx, item{kind: rootKind, name: root.Name, data: root})
	})
	if err != nil {
		return fmt.Errorf("keep the root %q: %w", root.Name, err)
	}
	return nil
}
