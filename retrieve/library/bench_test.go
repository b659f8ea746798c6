package library_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	"ibid/retrieve/weaviate"
)

// BenchmarkLibrary measures a whole library over SQLite, over PostgreSQL, and over PostgreSQL with
// a search index in Weaviate: storing with embedding, opening up to the first search, searches
// alone (including after Weaviate has written new data to its files), and searches while documents
// are stored. The libraries take turns, since the speed of a machine varies from minute to minute;
// top5 is how many of the best five passages are the same. IBID_CHUNKS sets the sizes, 10000 by
// default.
func BenchmarkLibrary(b *testing.B) {
	sizes := strings.Fields(os.Getenv("IBID_CHUNKS"))
	if len(sizes) == 0 {
		sizes = []string{"10000"}
	}
	for _, size := range sizes {
		n, err := strconv.Atoi(size)
		must(b, err)
		shelf := fillShelf(b, n)
		b.Run(size, func(b *testing.B) { measure(b, shelf, n) })
	}
}

func measure(b *testing.B, shelf *shelf, n int) {
	places := []library.Place{{Data: b.TempDir()}}
	if os.Getenv(statetest.Env) != "" {
		places = append(places, library.Place{Data: b.TempDir(), URL: statetest.Schema(b)})
	} else {
		b.Logf("without PostgreSQL, since %s names no server: .ci/postgres starts one", statetest.Env)
	}
	if os.Getenv(statetest.Env) != "" && os.Getenv(clusterEnv) != "" {
		places = append(places, library.Place{Data: b.TempDir(), URL: statetest.Schema(b), Cluster: cluster(b)})
	}
	open := func(b *testing.B, place library.Place) *library.Library {
		lib, err := library.Open(b.Context(), place, shelf.Embedder, library.Options{})
		must(b, err)
		return lib
	}
	closed := func(b *testing.B, lib *library.Library) {
		must(b, lib.Close())
	}
	search := func(b *testing.B, lib *library.Library, i int) {
		_, err := lib.Search(b.Context(), retrieve.Query{Text: shelf.Questions[i%len(shelf.Questions)]})
		must(b, err)
	}
	var libs []*library.Library
	for kind, place := range places {
		b.Run("Store/"+kinds[kind], func(b *testing.B) {
			for b.Loop() {
				lib, before := open(b, place), clusterTime()
				began := time.Now()
				fill(b, lib, shelf, 2+2*kind, n)
				b.ReportMetric(float64(n)/time.Since(began).Seconds(), "chunks/s")
				b.ReportMetric((clusterTime()-before)/float64(n), "clusterms/chunk")
				closed(b, lib)
			}
		})
		b.Run("Open/"+kinds[kind], func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				lib := open(b, place)
				search(b, lib, i)
				b.StopTimer()
				closed(b, lib)
				b.StartTimer()
			}
		})
		lib := open(b, place)
		defer closed(b, lib)
		search(b, lib, 0)
		libs = append(libs, lib)
	}
	searches := func(b *testing.B) {
		before := clusterTime()
		searches := percentiles(b, len(libs), func(kind, i int) { search(b, libs[kind], i) })
		b.ReportMetric((clusterTime()-before)/float64(searches), "clusterms/search")
	}
	b.Run("Search", searches)
	if len(libs) == len(kinds) {
		time.Sleep(settling)
		b.Run("Settled", searches)
	}
	b.Run("Same", func(b *testing.B) {
		same := make([]int, len(libs))
		const questions = 200
		for b.Loop() {
			for i := range questions {
				var want []string
				for kind, lib := range libs {
					found, err := lib.Search(b.Context(), retrieve.Query{Text: shelf.Questions[i], K: 5})
					must(b, err)
					for _, p := range found {
						if kind == 0 {
							want = append(want, p.ID)
						}
						if slices.Contains(want, p.ID) {
							same[kind]++
						}
					}
				}
			}
		}
		for kind := range libs {
			b.ReportMetric(float64(same[kind])/float64(same[0]), "top5-"+kinds[kind])
		}
	})
	b.Run("SearchWhileStoring", func(b *testing.B) {
		var stop atomic.Bool
		var writers errgroup.Group
		for _, lib := range libs {
			writers.Go(func() error {
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
		}
		percentiles(b, len(libs), func(kind, i int) { search(b, libs[kind], i) })
		stop.Store(true)
		must(b, writers.Wait())
	})
}

// kinds are the stores, in the order of the measures.
var kinds = []string{"SQLite", "PostgreSQL", "Weaviate"}

// settling is the time after which everything that was stored is in Weaviate's files: it writes
// after a minute.
const settling = 100 * time.Second

// clusterEnv names the variable with the address of a Weaviate cluster: .ci/weaviate
// starts one.
const clusterEnv = "IBID_TEST_WEAVIATE"

func cluster(t testing.TB) *weaviate.Address {
	at, err := weaviate.ParseAddress(os.Getenv(clusterEnv))
	must(t, err)
	return &at
}

// clusterTime returns the processor time in ms of the nodes that .ci/weaviate started, or 0 if the
// system does not tell.
func clusterTime() (ms float64) {
	nodes, _ := filepath.Glob(filepath.Join(os.Getenv("IBID_TEST_WEAVIATE_DIR"), "node*", "pid"))
	for _, node := range nodes {
		pid, _ := os.ReadFile(node)
		stat, _ := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if fields := strings.Fields(string(stat)); len(fields) > 14 {
			for _, ticks := range fields[13:15] { // user and system, in hundredths of a second
				n, _ := strconv.ParseFloat(ticks, 64)
				ms += 10 * n
			}
		}
	}
	return ms
}

// percentiles times 200 calls for each of n kinds in each round, in turn, and returns the number of
// calls of each kind.
func percentiles(b *testing.B, n int, f func(kind, i int)) (calls int) {
	times := make([][]float64, n)
	for round := 0; b.Loop(); round++ {
		for i := range 200 {
			for turn := range n {
				kind := (turn + i) % n
				start := time.Now()
				f(kind, 200*round+i)
				times[kind] = append(times[kind], time.Since(start).Seconds()*1000)
			}
		}
	}
	for _, percent := range []int{50, 99} {
		for kind, of := range times {
			slices.Sort(of)
			b.ReportMetric(of[len(of)*percent/100], fmt.Sprintf("p%dms-%s", percent, kinds[kind]))
		}
	}
	b.ReportMetric(0, "ns/op")
	return len(times[0])
}

// fill stores the documents of n chunks in batches.
func fill(b *testing.B, lib *library.Library, shelf *shelf, writers, n int) {
	_, err := lib.AddRoot(b.Context(), "/srv/a", "")
	must(b, err)
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(writers)
	for i := range n / 10 {
		doc, chunks := shelf.Document(i)
		g.Go(func() error { return lib.Replace(ctx, doc, chunks) })
	}
	must(b, g.Wait())
	must(b, lib.Follow(b.Context()))
}
