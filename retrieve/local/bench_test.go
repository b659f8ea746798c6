package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// benchSizes are in chunks; -short leaves the second out.
var benchSizes = []int{10000, 100000}

// librarySizes are benchSizes, or those that IBID_CHUNKS names: "500000 1000000".
func librarySizes(b *testing.B) []int {
	b.Helper()
	named := strings.Fields(os.Getenv("IBID_CHUNKS"))
	if len(named) == 0 {
		return benchSizes
	}
	var sizes []int
	for _, n := range named {
		chunks, err := strconv.Atoi(n)
		if err != nil || chunks < 10 {
			b.Fatalf("IBID_CHUNKS has %q: give numbers of chunks from 10 on", n)
		}
		sizes = append(sizes, chunks/10*10)
	}
	return sizes
}

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
// the question to the passages.
func BenchmarkLibrary(b *testing.B) {
	for _, chunks := range librarySizes(b) {
		b.Run(fmt.Sprint(chunks), func(b *testing.B) { benchmarkLibrary(b, chunks) })
	}
}

func benchmarkLibrary(b *testing.B, chunks int) {
	skipLarge(b, chunks)
	s := enginetest.FillShelf(b, os.Getenv("IBID_DATASETS"), chunks)
	dir := libraryFolder(b, chunks)
	fresh := 0
	stored := timed(func() { fresh = storeShelf(b, s, dir) })
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			e, err := Open(b.Context(), dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		if fresh > 0 {
			b.ReportMetric(float64(fresh)/stored.Seconds(), "stored-chunks/s")
		}
		file, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(file.Size())/float64(chunks), "disk-B/chunk")
	})
	before := heap()
	e, err := Open(b.Context(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	perChunk := (heap() - before) / float64(chunks)
	defer func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	}()
	x, err := retrieve.NewIndex(b.Context(), e, s.Embedder, retrieve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Search", func(b *testing.B) {
		n := 0
		var took []time.Duration
		for b.Loop() {
			took = append(took, timed(func() {
				if _, err := x.Search(b.Context(), retrieve.Query{Text: s.Questions[n%len(s.Questions)]}); err != nil {
					b.Fatal(err)
				}
			}))
			n++
		}
		b.ReportMetric(float64(at(took, .5)), "p50-ns")
		b.ReportMetric(float64(at(took, .99)), "p99-ns")
		b.ReportMetric(perChunk, "B/chunk")
	})
	b.Run("Replace", func(b *testing.B) {
		n := 0
		for b.Loop() {
			doc, chunks := s.Document(n % (len(s.Texts) / 10))
			doc.Title += strconv.Itoa(n) // so that the vectors are made anew
			if err := x.Replace(b.Context(), doc, chunks); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64(10*n)/b.Elapsed().Seconds(), "chunks/s")
	})
	questions := s.Embed(b, s.Questions)
	for name, search := range map[string]func(n int) ([]string, error){
		"Dense": func(n int) ([]string, error) {
			return e.Dense(b.Context(), questions[n], retrieve.DefaultCandidates, retrieve.Filter{})
		},
		"Lexical": func(n int) ([]string, error) {
			return e.Lexical(b.Context(), retrieve.Terms(s.Questions[n]), retrieve.DefaultCandidates, retrieve.Filter{})
		},
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				if _, err := search(n % len(questions)); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// libraryFolder is where the library of so many chunks is made: in the folder
// that IBID_LIBRARY names, where it stays and is found again, or one for the test.
func libraryFolder(b *testing.B, chunks int) string {
	b.Helper()
	kept := os.Getenv("IBID_LIBRARY")
	if kept == "" {
		return b.TempDir()
	}
	return filepath.Join(kept, strconv.Itoa(chunks))
}

// storeShelf puts what is not there yet of the shelf into a data directory, and
// says how many chunks that were.
func storeShelf(b *testing.B, s *enginetest.Shelf, dir string) (fresh int) {
	b.Helper()
	e, err := Open(b.Context(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	fresh = s.Store(b, e)
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	return fresh
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
