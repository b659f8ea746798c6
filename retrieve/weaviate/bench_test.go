package weaviate

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// BenchmarkLibrary measures libraries of real text on one node: storing them by
// one writer, what they take there, answering real questions from the question to
// the passages, and both searches for the candidates alone. Of both it says which
// part of the ten best it finds. IBID_CHUNKS names other sizes: "500000 1000000".
func BenchmarkLibrary(b *testing.B) {
	sizes := strings.Fields(os.Getenv("IBID_CHUNKS"))
	if len(sizes) == 0 {
		sizes = []string{"10000", "100000"}
	}
	for _, size := range sizes {
		chunks, err := strconv.Atoi(size)
		if err != nil || chunks < 10 {
			b.Fatalf("IBID_CHUNKS has %q: give numbers of chunks from 10 on", size)
		}
		b.Run(size, func(b *testing.B) {
			if testing.Short() && chunks > 10000 {
				b.Skip("-short")
			}
			benchmarkLibrary(b, chunks/10*10)
		})
	}
}

func benchmarkLibrary(b *testing.B, chunks int) {
	c := weaviatetest.Start(b, 1)
	s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
	e, err := Open(b.Context(), c.URL(nil), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.SetSpace(b.Context(), s.Embedder.Space()); err != nil {
		b.Fatal(err)
	}
	empty := resident(b, c.Nodes[0].Pid())
	start := time.Now()
	s.Store(b, e)
	stored := time.Since(start)
	b.Run("Stored", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(chunks)/stored.Seconds(), "chunks/s")
		b.ReportMetric(resident(b, c.Nodes[0].Pid())/1e6, "RSS-MB")
		b.ReportMetric(empty/1e6, "empty-RSS-MB")
		b.ReportMetric(taken(b, c.Nodes[0].Dir())/float64(chunks), "disk-B/chunk")
	})
	x, err := retrieve.NewIndex(b.Context(), e, s.Embedder, retrieve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	questions := s.Embed(b, s.Questions)
	ask := func(name string, search func(ctx context.Context, n int) error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				if err := search(b.Context(), n%len(questions)); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	ask("LexicalJustStored", func(ctx context.Context, n int) error {
		_, err := e.Lexical(ctx, retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, retrieve.Filter{})
		return err
	})
	now, err := e.wire.state(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	<-time.After(time.Until(now.last.Add(unflushed)))
	ask("Search", func(ctx context.Context, n int) error {
		_, err := x.Search(ctx, retrieve.Query{Text: s.Questions[n]})
		return err
	})
	for name, f := range map[string]retrieve.Filter{"": {}, "Filtered": {PathPrefix: "folder7/"}} { // one document in 50
		ask("Dense"+name, func(ctx context.Context, n int) error {
			_, err := e.Dense(ctx, questions[n], retrieve.DefaultCandidates, f)
			return err
		})
		ask("Lexical"+name, func(ctx context.Context, n int) error {
			_, err := e.Lexical(ctx, retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, f)
			return err
		})
	}
	ask("Stats", func(ctx context.Context, n int) error {
		_, err := e.Stats(ctx, retrieve.Terms(s.Questions[n]))
		return err
	})
	var ids []string
	var vectors [][]float32
	for n := range chunks / 10 {
		doc, of := s.Document(n)
		texts := make([]string, len(of))
		for i, c := range of {
			ids, texts[i] = append(ids, c.ID), ingest.EmbeddingText(doc.Title, c)
		}
		vectors = append(vectors, s.Embed(b, texts)...)
	}
	b.Run("Recall", func(b *testing.B) {
		found, wanted := 0, 0
		for n := 0; b.Loop(); n++ {
			q := questions[n%len(questions)]
			got, err := e.Dense(b.Context(), q, retrieve.DefaultCandidates, retrieve.Filter{})
			if err != nil {
				b.Fatal(err)
			}
			for _, id := range nearest(ids, vectors, q, 10) {
				if slices.Contains(got[:10], id) {
					found++
				}
			}
			wanted += 10
		}
		b.ReportMetric(float64(found)/float64(wanted), "recall@10")
		b.ReportMetric(0, "ns/op")
	})
}

// nearest compares a question with every vector.
func nearest(ids []string, vectors [][]float32, q []float32, k int) (best []string) {
	all := make([]hit, len(ids))
	for i, v := range vectors {
		all[i].id = ids[i]
		for j, x := range v {
			all[i].score += float64(x) * float64(q[j])
		}
	}
	slices.SortFunc(all, byScore)
	for _, h := range all[:k] {
		best = append(best, h.id)
	}
	return best
}

// resident is how much memory a process has.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skipf("what the server takes can be read on Linux alone: %v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages * os.Getpagesize())
}

// taken is how many bytes the files of a folder have.
func taken(b *testing.B, dir string) (bytes float64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it is the server's, which may just have removed it
		}
		if info, err := d.Info(); err == nil {
			bytes += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
