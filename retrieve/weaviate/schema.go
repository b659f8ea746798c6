package weaviate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	client "github.com/weaviate/weaviate-go-client/v5/weaviate"
	"github.com/weaviate/weaviate-go-client/v5/weaviate/fault"
	"github.com/weaviate/weaviate/entities/models"

	"ibid/retrieve"
)

// A property as the schema has it. What is filtered by stands in an index of its
// own; only terms are searched.
type property struct {
	name, kind string
	filtered   bool
	ranged     bool
	searched   bool
}

// What the classes hold. "data" is JSON that only Ibid reads.
var (
	documentProperties = []property{
		{name: "labels", kind: "text[]", filtered: true},
		{name: "path", kind: "text", filtered: true},
		{name: "from", kind: "int", filtered: true, ranged: true},
		{name: "to", kind: "int", filtered: true, ranged: true},
		{name: "chunks", kind: "int", filtered: true},
		{name: "terms", kind: "int", filtered: true},
		{name: "data", kind: "text"},
	}
	partProperties = []property{
		{name: "document", kind: "uuid", filtered: true},
		{name: "generation", kind: "uuid", filtered: true},
		{name: "data", kind: "text"},
	}
	chunkProperties = []property{
		{name: "document", kind: "uuid", filtered: true},
		{name: "generation", kind: "uuid", filtered: true},
		{name: "ordinal", kind: "int"},
		{name: "labels", kind: "text[]", filtered: true},
		{name: "path", kind: "text", filtered: true},
		{name: "from", kind: "int", filtered: true, ranged: true},
		{name: "to", kind: "int", filtered: true, ranged: true},
		{name: "terms", kind: "text", filtered: true, searched: true},
		{name: "length", kind: "int"},
		{name: "slice", kind: "int", filtered: true},
		{name: "stored", kind: "boolean", filtered: true},
		{name: "data", kind: "text"},
	}
	itemProperties = []property{
		{name: "kind", kind: "text", filtered: true},
		{name: "group", kind: "text", filtered: true},
		{name: "at", kind: "int", filtered: true, ranged: true}, // orders a group
		{name: "of", kind: "text[]", filtered: true},            // documents, and roots
		{name: "data", kind: "text"},
	}
)

func (a address) documents() string { return a.prefix + "Document" }
func (a address) parts() string     { return a.prefix + "Part" }
func (a address) items() string     { return a.prefix + "Item" }

// chunks is the class of the chunks of a space: vectors of one class have one
// length, and those of two spaces are never compared.
func (a address) chunks(space string) string {
	sum := sha256.Sum256([]byte(space))
	return a.prefix + "Chunk" + hex.EncodeToString(sum[:8])
}

// The graph of the vectors. A search looks at eight times as many of its nodes
// as it is to give, 100 to 500 (ef, chosen by Weaviate), and gives more than it
// was asked for; the other two are four times the least that are of use, and
// Weaviate's own.
const (
	hnswConnections  = 32
	hnswConstruction = 128
)

// class is the schema of one class.
func (w *wire) class(name, holds string, properties []property, shards int, vectors bool) *models.Class {
	off, on := false, true
	is := func(yes bool) *bool {
		if yes {
			return &on
		}
		return &off
	}
	c := &models.Class{
		Class: name, Description: holds, Vectorizer: "none", VectorIndexType: "hnsw",
		VectorIndexConfig:   map[string]any{"skip": !vectors, "distance": "cosine"},
		InvertedIndexConfig: &models.InvertedIndexConfig{Stopwords: &models.StopwordConfig{Preset: "none"}, Bm25: &models.BM25Config{K1: retrieve.BM25K1, B: retrieve.BM25B}},
		ReplicationConfig:   &models.ReplicationConfig{Factor: int64(max(1, w.at.replicas)), AsyncEnabled: w.at.replicas > 1, DeletionStrategy: models.ReplicationConfigDeletionStrategyTimeBasedResolution},
		ShardingConfig:      map[string]any{"desiredCount": max(1, shards)},
	}
	if vectors {
		c.VectorIndexConfig = map[string]any{"skip": false, "distance": "cosine", "maxConnections": hnswConnections, "efConstruction": hnswConstruction}
	}
	for _, p := range properties {
		made := &models.Property{Name: p.name, DataType: []string{p.kind}, IndexFilterable: is(p.filtered)}
		switch p.kind {
		case "text", "text[]":
			made.IndexSearchable, made.Tokenization = is(p.searched), models.PropertyTokenizationField
			if p.searched {
				made.Tokenization = models.PropertyTokenizationWhitespace
			}
		case "int":
			made.IndexRangeFilters = is(p.ranged)
		}
		c.Properties = append(c.Properties, made)
	}
	return c
}

// found makes the classes that every library has, where they are not there, and
// checks them where they are. That of the documents is made last: where it is,
// all must be.
func (w *wire) found(ctx context.Context) error {
	documents := w.class(w.at.documents(), "Ibid's documents", documentProperties, w.at.shards, false)
	have, err := w.look(ctx, documents.Class)
	if err != nil {
		return err
	}
	if have != nil {
		if err := w.check(have, documents); err != nil {
			return err
		}
	}
	for _, c := range []*models.Class{
		w.class(w.at.items(), "what Ibid keeps beside its documents", itemProperties, 1, false),
		w.class(w.at.parts(), "the texts of Ibid's documents, in parts", partProperties, w.at.shards, false),
		documents,
	} {
		if err := w.ensure(ctx, c, have != nil); err != nil {
			return err
		}
	}
	return nil
}

// foundChunks does the same for the chunks of a space. One that is in use must
// have them.
func (w *wire) foundChunks(ctx context.Context, space string, used bool) error {
	return w.ensure(ctx, w.class(w.at.chunks(space), "the chunks of Ibid's documents, embedded with "+space, chunkProperties, w.at.shards, true), used)
}

// errMissing says that a class is not there without which the others are of no
// use: where a copy of the cluster was broken off, it was left out.
var errMissing = errors.New("is missing, and others of the library are there: restore it with them, or choose another prefix in the URL of the store")

// look gives a class, nil where there is none.
func (w *wire) look(ctx context.Context, class string) (have *models.Class, err error) {
	err = w.try(ctx, func(ctx context.Context) (err error) {
		err = w.ask(func(c *client.Client) (err error) {
			have, err = c.Schema().ClassGetter().WithClassName(class).Do(ctx)
			return err
		})
		if of := (*fault.WeaviateClientError)(nil); errors.As(err, &of) && of.StatusCode == 404 {
			have, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for the class %s: %w", class, err)
	}
	return have, nil
}

// ensure checks a class, or makes it where it is not there and need not be.
func (w *wire) ensure(ctx context.Context, want *models.Class, expected bool) error {
	have, err := w.look(ctx, want.Class)
	if err != nil {
		return err
	}
	if have == nil && expected {
		return fmt.Errorf("%s: the class %s %w", w.host(), want.Class, errMissing)
	}
	if have == nil {
		made := w.try(ctx, func(ctx context.Context) error {
			return w.ask(func(c *client.Client) error { return c.Schema().ClassCreator().WithClass(want).Do(ctx) })
		})
		// Another server may have been first, and a request that got no reply may
		// have made it.
		if have, err = w.look(ctx, want.Class); err != nil || have == nil {
			return fmt.Errorf("make the class %s: %w", want.Class, errors.Join(made, err))
		}
	}
	return w.check(have, want)
}

// check refuses a class that is not what is wanted.
func (w *wire) check(have, want *models.Class) error {
	if faults := w.differs(have, want); len(faults) > 0 {
		return fmt.Errorf("%s: the class %s is not one that this version of Ibid works with: %s: choose another prefix in the URL of the store, or change what it asks for", w.host(), want.Class, strings.Join(faults, "; "))
	}
	if want.Class == w.at.documents() {
		n, _ := setting(have.ShardingConfig, "desiredCount").(float64)
		w.shards, w.factor = int(n), int(have.ReplicationConfig.Factor)
	}
	return nil
}

func setting(of any, name string) any {
	m, _ := of.(map[string]any)
	return m[name]
}

// differs says how a class differs from the one that is wanted.
func (w *wire) differs(have, want *models.Class) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if have.Vectorizer != want.Vectorizer {
		fault("its vectorizer is %q, and not %q", have.Vectorizer, want.Vectorizer)
	}
	for _, name := range []string{"distance", "skip"} {
		if h, x := setting(have.VectorIndexConfig, name), setting(want.VectorIndexConfig, name); h != x {
			fault("the setting %s of its vectors is %v, and not %v", name, h, x)
		}
	}
	if have.ReplicationConfig != nil && w.at.replicas > 0 && have.ReplicationConfig.Factor != int64(w.at.replicas) {
		fault("it has %d replicas, and the URL says replicas=%d", have.ReplicationConfig.Factor, w.at.replicas)
	}
	if n, _ := setting(have.ShardingConfig, "desiredCount").(float64); w.at.shards > 0 && want.Class != w.at.items() && int(n) != w.at.shards {
		fault("it has %d shards, and the URL says shards=%d", int(n), w.at.shards)
	}
	yes := func(b *bool) bool { return b != nil && *b }
	for _, p := range want.Properties {
		at := slices.IndexFunc(have.Properties, func(h *models.Property) bool { return h.Name == p.Name })
		if at < 0 {
			fault("it has no property %s", p.Name)
			continue
		}
		h := have.Properties[at]
		if !slices.Equal(h.DataType, p.DataType) || h.Tokenization != p.Tokenization ||
			yes(h.IndexFilterable) != yes(p.IndexFilterable) || yes(h.IndexSearchable) != yes(p.IndexSearchable) || yes(h.IndexRangeFilters) != yes(p.IndexRangeFilters) {
			fault("its property %s is of another type, or indexed in another way", p.Name)
		}
	}
	return faults
}

// drop removes a class with all that it holds, if there is one.
func (w *wire) drop(ctx context.Context, class string) error {
	err := w.try(ctx, func(ctx context.Context) error {
		return w.ask(func(c *client.Client) error { return c.Schema().ClassDeleter().WithClassName(class).Do(ctx) })
	})
	if err != nil {
		return fmt.Errorf("remove the class %s: %w", class, err)
	}
	return nil
}
