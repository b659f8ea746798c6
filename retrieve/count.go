package retrieve

import "context"

// A Counter is an [Engine] that counts what Documents would list without
// listing it.
type Counter interface {
	Count(ctx context.Context, f Filter) (documents, chunks int, err error)
}

// Count counts the documents that pass the filter, and their chunks.
func Count(ctx context.Context, e Engine, f Filter) (documents, chunks int, err error) {
	if c, ok := e.(Counter); ok {
		return c.Count(ctx, f)
	}
	all, err := e.Documents(ctx, f)
	for _, d := range all {
		chunks += d.Chunks
	}
	return len(all), chunks, err
}
