package enginetest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/retrieve"
)

// smallLibrary is the largest number of chunks that -short permits.
const smallLibrary = 10000

// BenchLibraries runs a benchmark for a shelf of 10,000 chunks and one of 100,000,
// or for the numbers of chunks in chunks, such as "500000 1000000". With -short it
// runs the small one only. The data sets are those of [FillShelf].
func BenchLibraries(b *testing.B, chunks, datasets string, run func(b *testing.B, s *Shelf)) {
	b.Helper()
	sizes := strings.Fields(chunks)
	if len(sizes) == 0 {
		sizes = []string{strconv.Itoa(smallLibrary), "100000"}
	}
	for _, size := range sizes {
		chunks, err := strconv.Atoi(size)
		if err != nil || chunks < 10 {
			b.Fatalf("IBID_CHUNKS has %q: give numbers of chunks from 10 on", size)
		}
		b.Run(size, func(b *testing.B) {
			if testing.Short() && chunks > smallLibrary {
				b.Skip("-short")
			}
			run(b, FillShelf(b, datasets, chunks/10*10))
		})
	}
}

// BenchStore stores what an engine lacks of the shelf as [Shelf.Store] does, and
// reports chunks per second and the figures of taken, by unit.
func (s *Shelf) BenchStore(b *testing.B, e retrieve.Engine, taken func() map[string]float64) {
	b.Helper()
	if err := e.SetSpace(b.Context(), s.Embedder.Space()); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	fresh := s.Store(b, e)
	stored := time.Since(start)
	b.Run("Stored", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
		if fresh > 0 {
			b.ReportMetric(float64(fresh)/stored.Seconds(), "chunks/s")
		}
		for unit, figure := range taken() {
			b.ReportMetric(figure, unit)
		}
	})
}

// BenchAsk calls ask with one question after the other, and reports the median and
// the 99th percentile of the time.
func (s *Shelf) BenchAsk(b *testing.B, name string, ask func(ctx context.Context, n int) error) {
	b.Run(name, func(b *testing.B) {
		var took []time.Duration
		for n := 0; b.Loop(); n++ {
			start := time.Now()
			if err := ask(b.Context(), n%len(s.Questions)); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	})
}

// BenchEngine measures an engine that has the shelf: Search, Dense and Lexical over
// all documents and over one in fifty, Stats, and replacing documents.
func (s *Shelf) BenchEngine(b *testing.B, e retrieve.Engine) {
	x, err := retrieve.NewIndex(b.Context(), e, s.Embedder, retrieve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	questions := s.Embed(b, s.Questions)
	s.BenchAsk(b, "Search", func(ctx context.Context, n int) error {
		_, err := x.Search(ctx, retrieve.Query{Text: s.Questions[n]})
		return err
	})
	for _, of := range []struct {
		name string
		retrieve.Filter
	}{{"", retrieve.Filter{}}, {"Filtered", retrieve.Filter{PathPrefix: "folder7/"}}} {
		s.BenchAsk(b, "Dense"+of.name, func(ctx context.Context, n int) error {
			_, err := e.Dense(ctx, questions[n], retrieve.DefaultCandidates, of.Filter)
			return err
		})
		s.BenchAsk(b, "Lexical"+of.name, func(ctx context.Context, n int) error {
			_, err := e.Lexical(ctx, retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, of.Filter)
			return err
		})
	}
	s.BenchAsk(b, "Stats", func(ctx context.Context, n int) error {
		_, err := e.Stats(ctx, retrieve.Terms(s.Questions[n]))
		return err
	})
	b.Run("Replace", func(b *testing.B) {
		n := 0
		for b.Loop() {
			doc, chunks := s.Document(n % (len(s.Texts) / 10))
			doc.Title += strconv.Itoa(n) // so that they are embedded again
			if err := x.Replace(b.Context(), doc, chunks); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64(10*n)/b.Elapsed().Seconds(), "chunks/s")
	})
}

// BenchRecall reports the share that Dense finds of the ten nearest chunks, which
// exact returns for a question's vector.
func (s *Shelf) BenchRecall(b *testing.B, e retrieve.Engine, exact func(b *testing.B, q []float32) []string) {
	questions := s.Embed(b, s.Questions)
	b.Run("Recall", func(b *testing.B) {
		found, wanted := 0, 0
		for n := 0; b.Loop(); n++ {
			q := questions[n%len(questions)]
			got, err := e.Dense(b.Context(), q, retrieve.DefaultCandidates, retrieve.Filter{})
			if err != nil {
				b.Fatal(err)
			}
			for _, id := range exact(b, q) {
				if wanted++; slices.Contains(got[:10], id) {
					found++
				}
			}
		}
		b.ReportMetric(float64(found)/float64(wanted), "recall@10")
		b.ReportMetric(0, "ns/op")
		if found == 0 {
			b.Fatalf("none of %d", wanted)
		}
	})
}
