package state

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ibid/retrieve"
)

// BenchmarkRead makes the reads of a search: of the revision, which a search
// compares first, and of the chunks of twelve hits.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		b.Run(name, func(b *testing.B) {
			address := filepath.Join(b.TempDir(), "data")
			if name == "PostgreSQL" {
				address = newSchema(b)
			}
			s, err := Open(b.Context(), address, Options{})
			must(b, err)
			ctx := ready(b, s, "a")
			var hits []retrieve.Hit
			for i := range 12 {
				put(b, s, "a", fmt.Sprint(i), strings.Repeat("boat ", 100))
			}
			for c, err := range s.Changes(ctx, testSpace, 0) {
				must(b, err)
				hits = append(hits, retrieve.Hit{Document: c.Document, Generation: c.Revision, Ordinal: 1})
			}
			b.Run("Revision", func(b *testing.B) {
				for b.Loop() {
					_, _, err := s.Revision(ctx)
					must(b, err)
				}
			})
			b.Run("Chunks", func(b *testing.B) {
				for b.Loop() {
					_, err := s.Chunks(ctx, hits)
					must(b, err)
				}
			})
			must(b, s.Close())
		})
	}
}
