package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/local/scan"
)

// remembering makes a memory of documents with the vectors given, without a
// database.
func remembering(t testing.TB, vectors ...[][]float32) *memory {
	t.Helper()
	m, err := newMemory()
	if err != nil {
		t.Fatal(err)
	}
	for key, rows := range vectors {
		remember(t, m, int64(key+1), rows)
	}
	return m
}

func remember(t testing.TB, m *memory, key int64, vectors [][]float32) {
	t.Helper()
	l := &loaded{document: document{key: key, info: retrieve.DocumentInfo{Document: ingest.Document{ID: strconv.FormatInt(key, 10), Root: "a", Path: fmt.Sprint("p", key%7, "/", key)}}}}
	for _, v := range vectors {
		unit, err := retrieve.Unit(v, len(v))
		if err != nil {
			t.Fatal(err)
		}
		l.chunks = append(l.chunks, loadedChunk{vector: unit})
	}
	if err := m.add(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// everyCosine is what [memory.nearest] must give.
func everyCosine(m *memory, unit []float32, k int) []string { return everySelected(m, unit, k, nil) }

func everySelected(m *memory, unit []float32, k int, only selection) []string {
	t := top{k: k, memory: m}
	for i := range m.slots {
		s := int32(i)
		if m.slots[s].document != nil && (only == nil || only.has(s)) {
			t.push(hit{s, dot(m.arena.vector(s), unit)})
		}
	}
	return t.ids()
}

// TestNearestIsExact compares the search with computing every cosine: after
// changes, with filters, and with vectors that are hard to tell apart.
func TestNearestIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, next := range map[string]func(dims int) []float32{
		"normal": func(dims int) []float32 { return normal(r, dims) },
		"alike": func(dims int) []float32 {
			v := make([]float32, dims)
			for i := range v {
				v[i] = 1 + float32(r.NormFloat64())*1e-4
			}
			return v
		},
		"few": func(dims int) []float32 { // many are equal
			v := make([]float32, dims)
			v[r.IntN(dims)], v[r.IntN(dims)] = 1, float32(r.IntN(3))+.5
			return v
		},
		"opposite": func(dims int) []float32 {
			v := normal(rand.New(rand.NewPCG(uint64(r.IntN(3)), 1)), dims)
			if r.IntN(2) == 0 {
				for i := range v {
					v[i] = -v[i]
				}
			}
			return v
		},
		"spread": func(dims int) []float32 {
			v := normal(r, dims)
			for i := range v {
				v[i] *= float32(math.Exp(-10 * r.Float64()))
			}
			return v
		},
	} {
		for _, dims := range []int{1, 4, 63, 192, 300} {
			t.Run(fmt.Sprintf("%s/%d", name, dims), func(t *testing.T) {
				m := remembering(t)
				for key := int64(1); key <= 300; key++ {
					var rows [][]float32
					for range r.IntN(15) {
						rows = append(rows, next(dims))
					}
					remember(t, m, key, rows)
					m.selected(retrieve.Filter{PathPrefix: fmt.Sprint("p", key%3)})
					if old := 1 + r.Int64N(key); r.IntN(3) == 0 {
						if err := m.remove(t.Context(), old); err != nil {
							t.Fatal(err)
						}
					}
				}
				for range 40 {
					unit, err := retrieve.Unit(next(dims), dims)
					if err != nil {
						t.Fatal(err)
					}
					k := 1 + r.IntN([]int{3, 20, 100, 4000}[r.IntN(4)])
					var only selection
					if r.IntN(2) == 0 {
						f := retrieve.Filter{PathPrefix: fmt.Sprint("p", r.IntN(8))}
						only = m.selected(f)
						for i := range m.slots {
							d := m.slots[i].document
							if want := d != nil && f.Matches(&d.info, d.labels); only.has(int32(i)) != want {
								t.Fatalf("slot %d is selected by %+v: %v", i, f, !want)
							}
						}
					}
					found, _, err := m.nearest(t.Context(), unit, k, only)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := found.ids(), everySelected(m, unit, k, only); !slices.Equal(got, want) {
						t.Fatalf("the %d nearest are %q, want %q", k, got, want)
					}
				}
			})
		}
	}
}

func normal(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// TestNearestComputesFew: the bounds are of use only if they leave little to do.
func TestNearestComputesFew(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	rows := make([][]float32, 20000)
	for i := range rows {
		rows[i] = normal(r, 256)
	}
	m := remembering(t, rows)
	unit, err := retrieve.Unit(normal(r, 256), 256)
	if err != nil {
		t.Fatal(err)
	}
	_, computed, err := m.nearest(t.Context(), unit, 10, nil)
	if err != nil || computed > 400 {
		t.Errorf("%d cosines were computed for 10 of %d, %v", computed, len(rows), err)
	}
}

func TestSelection(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 200 {
		slots := 1 + r.IntN(3000)
		s, want := make(selection, wordsFor(slots)), make([]bool, slots)
		if len(s)*64 < slots || len(s)%blockWords != 0 {
			t.Fatalf("%d words for %d slots", len(s), slots)
		}
		for range r.IntN(10) {
			first := r.IntN(slots)
			count := r.IntN(slots - first + 1)
			on := r.IntN(3) > 0
			s.set(int32(first), count, on)
			for i := range count {
				want[first+i] = on
			}
		}
		for i, w := range want {
			if s.has(int32(i)) != w {
				t.Fatalf("slot %d of %d is %v", i, slots, !w)
			}
		}
	}
}

// TestScanFindsNothingDead: a slot without a chunk has no bound at all.
func TestScanFindsNothingDead(t *testing.T) {
	m := remembering(t, [][]float32{{1, 0}}, [][]float32{{0, 1}})
	if err := m.remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	found, _, err := m.near(t.Context(), scan.NewQuery([]float32{1, 0}), 5, nil)
	if err != nil || len(found) != 1 || found[0].slot != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestDenseAgainstChromem compares with chromem's own search over the vectors
// it holds.
func TestDenseAgainstChromem(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	m := remembering(t)
	for key := range int64(300) {
		remember(t, m, key, [][]float32{normal(r, 256), normal(r, 256)})
		if key%5 == 0 {
			if err := m.remove(t.Context(), key/2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		q, err := retrieve.Unit(normal(r, 256), 256)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := m.nearest(t.Context(), q, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		oracle, err := m.vectors.QueryEmbedding(t.Context(), q, 10, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range found.ids() {
			// Sums in float32 may swap what is all but equal.
			if want := oracle[i]; id != want.ID && math.Abs(found.hits[i].score-float64(want.Similarity)) > 1e-6 {
				t.Errorf("place %d is %s, chromem has %s", i, id, want.ID)
			}
		}
	}
}
