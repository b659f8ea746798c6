package retrieve

import (
	"context"
	"fmt"
)

// reembedBatch is how many chunks are made durable together: an interrupted
// re-embedding loses at most that many.
const reembedBatch = 256

// Reembed embeds every stored chunk with the embedder and then changes the state
// to its space in one step. Searches use the old space until then. Called again
// after an interruption, it resumes. Progress may be nil.
func Reembed(ctx context.Context, s State, m Embedder, progress func(done, total int)) error {
	if err := reembed(ctx, s, m, progress); err != nil {
		return fmt.Errorf("embed the library with %s: %w", m.Space(), err)
	}
	return nil
}

func reembed(ctx context.Context, s State, m Embedder, progress func(done, total int)) error {
	space, err := s.Space(ctx)
	if err != nil || space == "" || space == m.Space() {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for {
		chunks, err := s.Unembedded(ctx, m.Space(), reembedBatch)
		if err != nil {
			return err
		}
		done, total, err := s.Embedded(ctx, m.Space())
		if err != nil {
			return err
		}
		progress(done, total)
		if len(chunks) == 0 {
			if switched, err := s.SwitchSpace(ctx, m.Space()); err != nil || switched {
				return err
			}
			continue // a document was added meanwhile
		}
		texts, digests := make([]string, len(chunks)), make([]Digest, len(chunks))
		for i, c := range chunks {
			texts[i], digests[i] = c.Text, c.Digest
		}
		vectors, err := embed(ctx, m, texts)
		if err != nil {
			return err
		}
		if err := s.AddVectors(ctx, m.Space(), digests, vectors); err != nil {
			return err
		}
	}
}
