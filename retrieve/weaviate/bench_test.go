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

// BenchmarkLibrary measures libraries of real text on one node: storing them,
// what they take there, answering real questions from the question to
// the passages, and both searches for the candidates alone. Of Dense it says which
// part of the ten nearest it finds.
func BenchmarkLibrary(b *testing.B) {
	enginetest.BenchLibraries(b, os.Getenv("IBID_CHUNKS"), os.Getenv("IBID_DATASETS"), func(b *testing.B, s *enginetest.Shelf) {
		c := weaviatetest.Start(b, 1)
		e, err := Open(b.Context(), c.URL(nil), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = e.Close() })
		node := c.Nodes[0]
		empty := resident(b, node.Pid())
		s.BenchStore(b, e, func() map[string]float64 {
			return map[string]float64{
				"empty-RSS-MB": empty / 1e6,
				"RSS-MB":       resident(b, node.Pid()) / 1e6,
				"disk-B/chunk": taken(b, node.Dir()) / float64(len(s.Texts)),
			}
		})
		s.BenchAsk(b, "LexicalJustStored", func(ctx context.Context, n int) error {
			_, err := e.Lexical(ctx, retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, retrieve.Filter{})
			return err
		})
		now, err := e.wire.state(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		<-time.After(time.Until(now.last.Add(unflushed)))
		s.BenchEngine(b, e)
		var ids []string
		var vectors [][]float32
		for n := range len(s.Texts) / 10 {
			doc, of := s.Document(n)
			texts := make([]string, len(of))
			for i, c := range of {
				ids, texts[i] = append(ids, c.ID), ingest.EmbeddingText(doc.Title, c)
			}
			vectors = append(vectors, s.Embed(b, texts)...)
		}
		s.BenchRecall(b, e, func(_ *testing.B, q []float32) []string { return nearest(ids, vectors, q, 10) })
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
