package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/philippgille/chromem-go"

	"ibid/ingest"
	"ibid/retrieve"
)

const benchDims = 256

// library stores so many chunks of 120 words, ten to a document, whose words
// are as unevenly frequent as those of a language.
func storeLibrary(b testing.TB, dir string, chunks int) {
	b.Helper()
	ctx := b.Context()
	e, err := Open(ctx, dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := e.SetSpace(ctx, "bench/256"); err != nil {
		b.Fatal(err)
	}
	if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.1, 4, 40000)
	for n := 0; n < chunks; n += 10 {
		doc := &ingest.Document{Root: "a", Path: fmt.Sprint(n), ID: fmt.Sprint("a/", n), Title: fmt.Sprint("Document ", n), Format: "text"}
		var list []ingest.Chunk
		var vectors [][]float32
		for i := range 10 {
			var words []string
			for range 120 {
				words = append(words, fmt.Sprintf("w%dx", zipf.Uint64()))
			}
			text := strings.Join(words, " ")
			list = append(list, ingest.Chunk{ID: chunkID(doc.ID, i+1), Document: doc.ID, Ordinal: i + 1,
				Start: len(doc.Text), End: len(doc.Text) + len(text), Text: text})
			doc.Text += text
			vectors = append(vectors, randomVector(r))
		}
		if err := e.Replace(ctx, doc, list, vectors); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
}

func randomVector(r *rand.Rand) []float32 {
	v := make([]float32, benchDims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func BenchmarkLibrary(b *testing.B) {
	for _, chunks := range []int{1000, 10000} {
		dir := b.TempDir()
		storeLibrary(b, dir, chunks)
		b.Run(fmt.Sprintf("Open/%d", chunks), func(b *testing.B) {
			for b.Loop() {
				e, err := Open(b.Context(), dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e, err := Open(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		bytesPerChunk := float64(after.HeapAlloc-before.HeapAlloc) / float64(chunks)
		r := rand.New(rand.NewPCG(5, 6))
		zipf := rand.NewZipf(r, 1.1, 4, 40000)
		var ids []string
		b.Run(fmt.Sprintf("Dense/%d", chunks), func(b *testing.B) {
			for b.Loop() {
				if ids, err = e.Dense(b.Context(), randomVector(r), 50, retrieve.Filter{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Lexical/%d", chunks), func(b *testing.B) {
			for b.Loop() {
				terms := make([]string, 8)
				for i := range terms {
					terms[i] = fmt.Sprintf("w%dx", zipf.Uint64())
				}
				if _, err := e.Lexical(b.Context(), terms, 50, retrieve.Filter{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Candidates/%d", chunks), func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Candidates(b.Context(), ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(bytesPerChunk, "B/chunk")
		})
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDenseAgainstChromem compares the scan with chromem's own search over the
// vectors it holds.
func TestDenseAgainstChromem(t *testing.T) {
	dir := t.TempDir()
	storeLibrary(t, dir, 500)
	e := openTest(t, dir)
	r := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		q := randomVector(r)
		got, err := e.Dense(t.Context(), q, 10, retrieve.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		var oracle []chromem.Result
		if oracle, err = e.memory.vectors.QueryEmbedding(t.Context(), q, 10, nil, nil); err != nil {
			t.Fatal(err)
		}
		for i, want := range oracle {
			if got[i] == want.ID {
				continue
			}
			// Sums in another order may swap what is all but equal.
			s, _ := e.memory.find(got[i])
			unit, err := normalise(q, benchDims)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(dot(e.memory.arena.vector(s), unit)-float64(want.Similarity)) > 1e-6 {
				t.Errorf("place %d is %s, chromem has %s", i, got[i], want.ID)
			}
		}
	}
}
