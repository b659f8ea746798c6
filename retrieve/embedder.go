package retrieve

import (
	"context"
)

// An Embedder turns texts into vectors.
type Embedder interface {
	// Embed gives one row for each text, in order; every row has the same
	// length, unit Euclidean length, and finite components. A text without
	// any known word still gets a row. An error means that no row counts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Space names the model and its dimensions, "ibid-static-1/192" for one.
	// Vectors may be compared only within one space.
	Space() string
}

// A Vocabulary is an [Embedder] that knows only some words. Fusion weighs its
// vectors by the share of the question's words that it knows.
type Vocabulary interface {
	// Known returns the share of the text's words that it knows, 0 to 1.
	Known(text string) float64
}
