package retrieve

import (
	"context"
	"fmt"

	"ibid/ingest"
)

// A Respacer is the part of an [Engine] that replaces its vectors by those of
// another space, while it serves the old ones.
type Respacer interface {
	// Unembedded returns up to n chunks that have no vector of the new space
	// yet, with their titles and without vectors. Vectors prepared for any
	// other new space are dropped.
	Unembedded(ctx context.Context, space string, n int) ([]Candidate, error)
	// Prepared counts the chunks that have a vector of the new space, and all.
	Prepared(ctx context.Context, space string) (done, total int, err error)
	// AddVectors stores vectors of the new space for the chunks, in addition to
	// those in use. A chunk that has changed since Unembedded returned it is
	// skipped.
	AddVectors(ctx context.Context, space string, chunks []Candidate, vectors [][]float32) error
	// SwitchSpace replaces the vectors in use with the prepared ones, all at
	// once. It changes nothing and returns false when a chunk has none yet.
	SwitchSpace(ctx context.Context, space string) (bool, error)
}

// reembedBatch is how many chunks are made durable together: an interrupted
// re-embedding loses at most that many.
const reembedBatch = 256

// Reembed embeds every stored chunk with the embedder and then changes the
// engine to its space in one step. Searches use the old space until then.
// Called again after an interruption, it resumes. Progress may be nil.
func Reembed(ctx context.Context, e Engine, m Embedder, progress func(done, total int)) error {
	if err := reembed(ctx, e, m, progress); err != nil {
		return fmt.Errorf("embed the library with %s: %w", m.Space(), err)
	}
	return nil
}

func reembed(ctx context.Context, e Engine, m Embedder, progress func(done, total int)) error {
	space, err := e.Space(ctx)
	if err != nil || space == "" || space == m.Space() {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for {
		chunks, err := e.Unembedded(ctx, m.Space(), reembedBatch)
		if err != nil {
			return err
		}
		done, total, err := e.Prepared(ctx, m.Space())
		if err != nil {
			return err
		}
		progress(done, total)
		if len(chunks) == 0 {
			if switched, err := e.SwitchSpace(ctx, m.Space()); err != nil || switched {
				return err
			}
			continue // a document was added meanwhile
		}
		texts := make([]string, len(chunks))
		for i, c := range chunks {
			texts[i] = ingest.EmbeddingText(c.Title, c.Chunk)
		}
		vectors, err := embed(ctx, m, texts)
		if err != nil {
			return err
		}
		if err := e.AddVectors(ctx, m.Space(), chunks, vectors); err != nil {
			return err
		}
	}
}
