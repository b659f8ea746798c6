package index

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// TestSieve searches for the nearest of 30,000 chunks in clusters with a sieve that keeps one chunk
// in fifty: in files, in memory, and with filters and deleted documents.
func TestSieve(t *testing.T) {
	const dims, documents, each, asked, k = 100, 3000, 10, 40, 10
	r := rand.New(rand.NewPCG(1, 2))
	random := func(near []float32) []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.NormFloat64())
			if near != nil {
				v[i] = near[i] + .8*v[i]
			}
		}
		return v
	}
	var centres [100][]float32
	for i := range centres {
		centres[i] = random(nil)
	}
	var changes []retrieve.Change
	for n := range int64(documents) {
		c := retrieve.Change{Revision: n + 1, Document: n + 1, Info: retrieve.DocumentInfo{
			Collection: fmt.Sprint("collection", n%2), Document: ingest.Document{ID: fmt.Sprint("a/", n), Root: "a"}}}
		for range each {
			c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: "boat", Vector: random(centres[r.IntN(len(centres))])})
		}
		changes = append(changes, c)
	}
	for n := range int64(documents / 10) {
		changes = append(changes, retrieve.Change{Revision: documents + n + 1, Document: 10*n + 1, Deleted: true})
	}
	for name, c := range map[string]struct {
		flush  int
		filter retrieve.Filter
		narrow bool // the filter selects too few chunks for a sieve
	}{
		"files":      {flush: 4000},
		"memory":     {flush: 1 << 20},
		"collection": {flush: 4000, filter: retrieve.Filter{Collection: "collection1"}},
		"document":   {flush: 4000, filter: retrieve.Filter{Document: "a/77"}, narrow: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, t.TempDir(), c.flush)
			must(t, x.Apply(t.Context(), changes[:documents/2]))
			must(t, x.Apply(t.Context(), changes[documents/2:]))
			x.waitUntilIdle()
			v := x.current.Load()
			found := 0
			for range asked {
				vector := random(centres[r.IntN(len(centres))])
				x.sieve.above = defaultSieve.above
				want, err := x.Dense(t.Context(), vector, k, c.filter)
				must(t, err)
				x.sieve = sieve{above: 2000, keep: 700}
				got, err := x.Dense(t.Context(), vector, k, c.filter)
				must(t, err)
				if len(got) != len(want) {
					t.Fatalf("%d hits, want %d", len(got), len(want))
				}
				for _, h := range want {
					if slices.Contains(got, h) {
						found++
					}
				}
			}
			if found < asked*k*99/100 {
				t.Errorf("%d of %d found", found, asked*k)
			}
			unit, err := retrieve.Unit(random(nil), dims)
			must(t, err)
			chosen, _ := v.choose(c.filter)
			must(t, x.sieve.narrow(t.Context(), v.parts, chosen, unit, k))
			kept := 0
			for i := range chosen {
				for word := range chosen[i].words() {
					kept += bits.OnesCount64(chosen[i].word(word))
				}
			}
			if !c.narrow && (kept < 700 || kept > 900) {
				t.Errorf("the sieve keeps %d chunks, want 700 to 900", kept)
			}
		})
	}
	x := Open(t.TempDir(), Options{Exact: true})
	if x.sieve.above != math.MaxInt {
		t.Errorf("the sieve is used for more than %d chunks", x.sieve.above)
	}
	must(t, x.Close())
}
