package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

// BenchmarkReplace stores documents of ten chunks of real text, one after the
// other and four at a time, with embedding and without.
func BenchmarkReplace(b *testing.B) {
	shelf := statetest.FillShelf(b, os.Getenv("IBID_DATASETS"), 10_000)
	documents := len(shelf.Texts) / 10
	doc := make([]*ingest.Document, documents)
	chunks := make([][]ingest.Chunk, documents)
	vectors := make([][][]float32, documents)
	embed := func(i int) [][]float32 {
		texts := make([]string, len(chunks[i]))
		for n, c := range chunks[i] {
			texts[n] = ingest.EmbeddingText(doc[i].Title, c)
		}
		return shelf.Embed(b, texts)
	}
	for i := range documents {
		doc[i], chunks[i] = shelf.Document(i)
		vectors[i] = embed(i)
	}
	space := shelf.Embedder.Space()
	for _, of := range []struct {
		name    string
		address func(b *testing.B) string
	}{
		{"SQLite", func(b *testing.B) string { return filepath.Join(b.TempDir(), "data") }},
		{"PostgreSQL", func(b *testing.B) string { return newSchema(b) }},
	} {
		for _, way := range []struct {
			name      string
			writers   int
			embedding bool
		}{{"1", 1, false}, {"4", 4, false}, {"1embedding", 1, true}, {"4embedding", 4, true}} {
			b.Run(of.name+"/"+way.name, func(b *testing.B) {
				s, err := Open(b.Context(), of.address(b), Options{})
				must(b, err)
				_, err = s.AddRoot(b.Context(), "/srv/"+doc[0].Root, "")
				must(b, err)
				n := 0
				for b.Loop() {
					g, ctx := errgroup.WithContext(b.Context())
					g.SetLimit(way.writers)
					for i := range documents {
						g.Go(func() error {
							v := vectors[i]
							if way.embedding {
								v = embed(i)
							}
							return s.Replace(ctx, space, doc[i], chunks[i], v)
						})
					}
					must(b, g.Wait())
					n += 10 * documents
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "chunks/s")
				b.ReportMetric(0, "ns/op")
				must(b, s.Close())
			})
		}
	}
}

// BenchmarkRead reads what a search reads: the revision, which a search compares
// first, and the chunks of twelve hits.
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
					_, err := s.Revision(ctx)
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
