package retrieve

import (
	"context"
	"errors"
	"fmt"

	"ibid/ingest"
)

// A Respacer is an [Engine] whose vectors can be replaced by those of another
// space while it goes on serving the old ones.
type Respacer interface {
	// Unembedded gives up to n chunks that have no vector of the space yet,
	// with Title set (Vector is not), and counts the chunks that have one and
	// all of them. Vectors prepared for any other new space are dropped.
	Unembedded(ctx context.Context, space string, n int) (chunks []Candidate, done, total int, err error)
	// AddVectors keeps vectors of the space for the chunks beside those in
	// use. A chunk that has changed since it was given is passed over.
	AddVectors(ctx context.Context, space string, chunks []Candidate, vectors [][]float32) error
	// SwitchSpace puts the prepared vectors in place of those in use, all at
	// once. It changes nothing and says false when a chunk has none yet.
	SwitchSpace(ctx context.Context, space string) (bool, error)
}

// Reembed embeds every stored chunk with the embedder and then changes the
// engine to its space in one step. Searches go on in the old space until then.
// Broken off, it goes on where it was when called again. Progress may be nil.
func Reembed(ctx context.Context, e Engine, m Embedder, progress func(done, total int)) error {
	r, ok := e.(Respacer)
	if !ok {
		return errors.New("reembed: this engine cannot change its embedding model: ingest the documents into a new one")
	}
	space, err := e.Space(ctx)
	if err != nil {
		return fmt.Errorf("reembed: %w", err)
	}
	if space == m.Space() || space == "" {
		return nil
	}
	for {
		chunks, done, total, err := r.Unembedded(ctx, m.Space(), embedBatch)
		if err != nil {
			return fmt.Errorf("reembed: %w", err)
		}
		if progress != nil {
			progress(done, total)
		}
		if len(chunks) == 0 {
			switched, err := r.SwitchSpace(ctx, m.Space())
			if err != nil {
				return fmt.Errorf("reembed: %w", err)
			}
			if switched {
				return nil
			}
			continue // another process added a document in between
		}
		texts := make([]string, len(chunks))
		for i, c := range chunks {
			texts[i] = ingest.EmbeddingText(c.Title, c.Chunk)
		}
		vectors, err := embed(ctx, m, texts)
		if err != nil {
			return fmt.Errorf("reembed: %w", err)
		}
		if err := r.AddVectors(ctx, m.Space(), chunks, vectors); err != nil {
			return fmt.Errorf("reembed: %w", err)
		}
	}
}
