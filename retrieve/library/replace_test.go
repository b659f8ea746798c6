package library_test

import (
	"os"
	"testing"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve/state"
)

// BenchmarkReplace stores documents of ten chunks of real text, one after the
// other and four at a time, with embedding and without.
func BenchmarkReplace(b *testing.B) {
	shelf := fillShelf(b, os.Getenv("IBID_DATASETS"), 10_000)
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
	must := func(b *testing.B, err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		for _, way := range []struct {
			name      string
			writers   int
			embedding bool
		}{{"1", 1, false}, {"4", 4, false}, {"1embedding", 1, true}, {"4embedding", 4, true}} {
			b.Run(kind+"/"+way.name, func(b *testing.B) {
				address := b.TempDir()
				if kind == "PostgreSQL" {
					address = newSchema(b)
				}
				s, err := state.Open(b.Context(), address, state.Options{})
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
