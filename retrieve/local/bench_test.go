package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// benchSizes are in chunks; -short leaves the second out.
var benchSizes = []int{10000, 100000}

func skipLarge(b *testing.B, chunks int) {
	b.Helper()
	if testing.Short() && chunks > benchSizes[0] {
		b.Skip("-short")
	}
}

// rememberShelf makes a memory of the shelf's vectors, ten to a document.
func rememberShelf(b *testing.B, s *enginetest.Shelf) *memory {
	b.Helper()
	m := remembering(b)
	for rows := range slices.Chunk(s.Texts, 10) {
		remember(b, m, int64(len(m.documents)+1), s.Embed(b, rows))
	}
	return m
}

// BenchmarkDense searches the vectors of real text in memory. Every round reads
// as many bytes as all vectors have, once, by one processor, and searches; every
// tenth asks chromem too. So the ratios, of medians, are of one time and one machine.
func BenchmarkDense(b *testing.B) {
	for _, chunks := range benchSizes {
		b.Run(fmt.Sprint(chunks), func(b *testing.B) {
			skipLarge(b, chunks)
			s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
			before := heap()
			m := rememberShelf(b, s)
			perChunk := (heap() - before) / float64(chunks)
			questions := s.Embed(b, s.Questions)
			all := bytes.Repeat([]byte{1}, 4*m.arena.dims*chunks)
			var floor, ours, chromems []time.Duration
			computed, n := 0, 0
			for b.Loop() {
				q := questions[n%len(questions)]
				floor = append(floor, timed(func() {
					if bytes.IndexByte(all, 0) >= 0 {
						b.Fatal("a byte has changed")
					}
				}))
				ours = append(ours, timed(func() {
					t, c, err := m.nearest(b.Context(), q, 10, nil)
					if err != nil || len(t.ids()) != 10 {
						b.Fatal(err)
					}
					computed += c
				}))
				if n%10 == 0 {
					chromems = append(chromems, timed(func() {
						if _, err := m.vectors.QueryEmbedding(b.Context(), q, 10, nil, nil); err != nil {
							b.Fatal(err)
						}
					}))
				}
				n++
			}
			b.ReportMetric(float64(at(ours, .5)), "ns/op")
			b.ReportMetric(float64(at(ours, .5))/float64(at(floor, .5)), "x-floor")
			b.ReportMetric(float64(at(chromems, .5))/float64(at(ours, .5)), "x-faster-than-chromem")
			b.ReportMetric(float64(computed)/float64(n), "cosines/op")
			b.ReportMetric(perChunk, "B/chunk")
		})
	}
}

// BenchmarkRecall compares the ten nearest with those of computing every
// cosine, for each of the 2,000 questions.
func BenchmarkRecall(b *testing.B) {
	for _, chunks := range benchSizes {
		b.Run(fmt.Sprint(chunks), func(b *testing.B) {
			skipLarge(b, chunks)
			s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
			m := rememberShelf(b, s)
			found := 0
			for b.Loop() {
				found = 0
				for _, q := range s.Embed(b, s.Questions) {
					t, _, err := m.nearest(b.Context(), q, 10, nil)
					if err != nil {
						b.Fatal(err)
					}
					want := everyCosine(m, q, 10)
					for _, id := range t.ids() {
						if slices.Contains(want, id) {
							found++
						}
					}
				}
			}
			recall := float64(found) / float64(10*len(s.Questions))
			if b.ReportMetric(recall, "recall@10"); recall < 1 {
				b.Errorf("recall %v", recall)
			}
		})
	}
}

// BenchmarkFilter searches with filters that let through less and less; decide
// is what the first search with a filter takes besides.
func BenchmarkFilter(b *testing.B) {
	for _, chunks := range benchSizes {
		skipLarge(b, chunks)
		s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
		m := remembering(b)
		for i, text := range s.Texts {
			// A chunk a document: the most that there is to decide.
			remember(b, m, int64(i+1), s.Embed(b, []string{text}))
		}
		questions := s.Embed(b, s.Questions)
		for _, f := range []struct {
			name string
			retrieve.Filter
		}{
			{"none", retrieve.Filter{}},
			{"root", retrieve.Filter{Root: "a"}},
			{"one in seven", retrieve.Filter{PathPrefix: "p3/"}},
			{"one in a thousand", retrieve.Filter{PathPrefix: "p3/12"}},
			{"one", retrieve.Filter{Document: "77"}},
		} {
			b.Run(fmt.Sprintf("%d/%s", chunks, f.name), func(b *testing.B) {
				var took []time.Duration
				n := 0
				decide := timed(func() { m.selected(f.Filter) })
				for b.Loop() {
					took = append(took, timed(func() {
						if _, _, err := m.nearest(b.Context(), questions[n%len(questions)], 10, m.selected(f.Filter)); err != nil {
							b.Fatal(err)
						}
					}))
					n++
				}
				b.ReportMetric(float64(at(took, .5)), "ns/op")
				b.ReportMetric(float64(decide), "decide-ns")
			})
		}
	}
}

// BenchmarkLibrary measures a whole library of real text: what storing it
// durably with its vectors took, opening it, and answering real questions, from
// the question to the passages. Where IBID_LIBRARY names a folder, the library
// stays there and is found again.
func BenchmarkLibrary(b *testing.B) {
	enginetest.BenchLibraries(b, os.Getenv("IBID_CHUNKS"), os.Getenv("IBID_DATASETS"), func(b *testing.B, s *enginetest.Shelf) {
		chunks := float64(len(s.Texts))
		dir := b.TempDir()
		if kept := os.Getenv("IBID_LIBRARY"); kept != "" {
			dir = filepath.Join(kept, strconv.Itoa(len(s.Texts)))
		}
		e, err := Open(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.BenchStore(b, e, func() map[string]float64 {
			file, err := os.Stat(filepath.Join(dir, FileName))
			if err != nil {
				b.Fatal(err)
			}
			return map[string]float64{"disk-B/chunk": float64(file.Size()) / chunks}
		})
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run("Open", func(b *testing.B) {
			before, perChunk := heap(), 0.
			for b.Loop() {
				e, err := Open(b.Context(), dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				perChunk = (heap() - before) / chunks
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(perChunk, "B/chunk")
		})
		if e, err = Open(b.Context(), dir, Options{}); err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				b.Error(err)
			}
		}()
		s.BenchEngine(b, e)
	})
}

// heap is what is alive on the heap, in bytes.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// at is the duration below which the share of them lies.
func at(took []time.Duration, share float64) time.Duration {
	return slices.Sorted(slices.Values(took))[int(share*float64(len(took)))]
}
