package library_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
	"ibid/retrieve/library"
	"ibid/retrieve/state/statetest"
)

// BenchmarkLibrary measures a whole library over SQLite and over PostgreSQL: storing
// with embedding, opening it up to the first search, searches alone, and searches
// while documents are stored. IBID_CHUNKS has its sizes, 10000 without it. A library
// in the folder IBID_LIBRARY is kept and used again.
func BenchmarkLibrary(b *testing.B) {
	sizes := strings.Fields(os.Getenv("IBID_CHUNKS"))
	if len(sizes) == 0 {
		sizes = []string{"10000"}
	}
	for _, size := range sizes {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		shelf := fillShelf(b, os.Getenv("IBID_DATASETS"), n)
		for _, kind := range []string{"SQLite", "PostgreSQL"} {
			b.Run(size+"/"+kind, func(b *testing.B) { measure(b, shelf, kind, n) })
		}
	}
}

func measure(b *testing.B, shelf *shelf, kind string, n int) {
	place := library.Place{Data: b.TempDir()}
	if dir := os.Getenv("IBID_LIBRARY"); dir != "" && kind == "SQLite" {
		place.Data = filepath.Join(dir, strconv.Itoa(n))
	}
	if kind == "PostgreSQL" {
		place.URL = newSchema(b)
	}
	open := func(b *testing.B) *library.Library {
		lib, err := library.Open(b.Context(), place, shelf.Embedder, library.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return lib
	}
	closed := func(b *testing.B, lib *library.Library) {
		if err := lib.Close(); err != nil {
			b.Fatal(err)
		}
	}
	search := func(b *testing.B, lib *library.Library, i int) {
		if _, err := lib.Search(b.Context(), retrieve.Query{Text: shelf.Questions[i%len(shelf.Questions)]}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("Store", func(b *testing.B) {
		for b.Loop() {
			lib := open(b)
			fresh := fill(b, lib, shelf, kind, n)
			if fresh > 0 { // in the first round
				b.ReportMetric(float64(fresh)/b.Elapsed().Seconds(), "chunks/s")
			}
			closed(b, lib)
		}
	})
	b.Run("Open", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			lib := open(b)
			search(b, lib, i)
			b.StopTimer()
			closed(b, lib)
			b.StartTimer()
		}
	})
	before := heap()
	lib := open(b)
	defer closed(b, lib)
	search(b, lib, 0)
	b.Run("Search", func(b *testing.B) {
		percentiles(b, func(i int) { search(b, lib, i) })
		b.ReportMetric(float64(heap()-before)/float64(n), "heapB/chunk")
	})
	b.Run("SearchWhileStoring", func(b *testing.B) {
		var stop atomic.Bool
		var writer errgroup.Group
		writer.Go(func() error {
			for i := 0; !stop.Load(); i++ { // five documents a second
				doc, chunks := shelf.Document(i % (n / 10))
				doc.Digest += "changed"
				if err := lib.Replace(b.Context(), doc, chunks); err != nil {
					return err
				}
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		})
		percentiles(b, func(i int) { search(b, lib, i) })
		stop.Store(true)
		if err := writer.Wait(); err != nil {
			b.Fatal(err)
		}
	})
}

// newSchema returns the address of a schema of the benchmark's own, or skips it.
func newSchema(b *testing.B) string {
	server := os.Getenv(statetest.Env)
	if server == "" {
		b.Skipf("%s names no server: .ci/postgres starts one", statetest.Env)
	}
	return statetest.Schema(b, server)
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// percentiles times 200 calls in each round.
func percentiles(b *testing.B, f func(i int)) {
	var times []float64
	for b.Loop() {
		for i := range 200 {
			start := time.Now()
			f(i)
			times = append(times, time.Since(start).Seconds()*1000)
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50ms")
	b.ReportMetric(times[len(times)*99/100], "p99ms")
	b.ReportMetric(0, "ns/op")
}

// fill stores the documents that the library lacks, and returns their chunks.
func fill(b *testing.B, lib *library.Library, shelf *shelf, kind string, n int) (fresh int) {
	if _, err := lib.AddRoot(b.Context(), "/srv/a", ""); err != nil {
		b.Fatal(err)
	}
	there, err := lib.Documents(b.Context(), retrieve.Filter{})
	if err != nil {
		b.Fatal(err)
	}
	known := make(map[string]bool, len(there))
	for _, d := range there {
		known[d.ID] = true
	}
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(map[string]int{"SQLite": 2, "PostgreSQL": 4}[kind])
	for i := range n / 10 {
		doc, chunks := shelf.Document(i)
		if known[doc.ID] {
			continue
		}
		fresh += len(chunks)
		g.Go(func() error { return lib.Replace(ctx, doc, chunks) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	if err := lib.Follow(b.Context()); err != nil {
		b.Fatal(err)
	}
	return fresh
}
