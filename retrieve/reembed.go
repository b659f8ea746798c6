package retrieve

import "context"

// reembedBatch is how many chunks are made durable together: an interrupted
// re-embedding loses at most that many.
const reembedBatch = 256

// Reembed embeds every stored chunk with the embedder and then changes the state
// to its space in one step. Searches use the old space until then. Called again
// after an interruption, it resumes. Progress may be nil.
func Reembed(ctx context.Context, s State, m Embedder, progress func(done, total int)) error {
	space, err := s.Space(ctx)
	if err != nil || space == "" || space == m.Space() {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for {
		done, total, err := s.Embedded(ctx, m.Space())
		if err != nil {
			return err
		}
		progress(done, total)
		for chunks, err := range s.Unembedded(ctx, m.Space(), reembedBatch) {
			if err != nil {
				return err
			}
			if err := embedChunks(ctx, s, m, chunks); err != nil {
				return err
			}
			done = min(done+len(chunks), total)
			progress(done, total)
		}
		switched, err := s.SwitchSpace(ctx, m.Space())
		if err != nil {
			return err
		}
		if switched {
			progress(total, total)
			return nil
		}
		// A document was added meanwhile.
	}
}

func embedChunks(ctx context.Context, s State, m Embedder, chunks []ChunkText) error {
	texts, digests := make([]string, len(chunks)), make([]Digest, len(chunks))
	for i, c := range chunks {
		texts[i], digests[i] = c.Text, c.Digest
	}
	vectors, err := embed(ctx, m, texts)
	if err != nil {
		return err
	}
	return s.AddVectors(ctx, m.Space(), digests, vectors)
}
