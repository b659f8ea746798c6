package scan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEstimate compares the kernels with the definition: the sum of the rounded
// components where the other vector is positive.
func TestEstimate(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, dims := range []int{1, 3, 64, 255, 256, 257, 384, 768, 1024, 1536} {
		stride := SignStride(dims)
		for name, fill := range map[string]func() (plane, row byte){
			"random":  func() (byte, byte) { return byte(r.Uint32()), byte(r.Uint32()) },
			"all":     func() (byte, byte) { return 255, 255 },
			"highest": func() (byte, byte) { return 0, 255 },
		} {
			for _, n := range []int{0, 1, 3, 4, 5, 8, 63, 130} {
				p := NewProbe(unit(dims, r.NormFloat64))
				rows, want := make([]byte, n*stride), make([]int32, n)
				for i := range rows {
					_, rows[i] = fill()
				}
				if name != "random" {
					for i := range p.planes {
						p.planes[i], _ = fill()
					}
				}
				for i := range want {
					for bit := range 8 * stride {
						for plane := range planesOf {
							at := bit / 8 / signLane * planesOf * signLane
							both := p.planes[at+plane*signLane+bit/8%signLane] & rows[i*stride+bit/8] >> (bit % 8) & 1
							want[i] += int32(both) * []int32{1, 2, 4, -8}[plane]
						}
					}
				}
				for i, k := range choices(estimateKernels) {
					got := make([]int32, n+1)
					got[n] = 12345
					run(k, p, p.plain, stride, got[:n], rows)
					if !slices.Equal(got[:n], want) || got[n] != 12345 {
						t.Fatalf("%d dimensions, %s, kernel %d, %d rows: %v, want %v", dims, name, i, n, got, want)
					}
				}
			}
		}
	}
}

// TestNear checks that estimates order vectors about as their products do, also
// those that have few components.
func TestNear(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, dims := range []int{64, 100, 256, 384, 1536} {
		for name, next := range map[string]func() float64{
			"normal": r.NormFloat64,
			"sparse": func() float64 { return math.Pow(r.NormFloat64(), 9) },
			"even":   func() float64 { return 1 + .1*r.NormFloat64() },
		} {
			query := unit(dims, next)
			p, row, wrong := NewProbe(query), make([]byte, Stride(dims)), 0
			for range 200 {
				// The cosine of the one is .8, of the other .4.
				var got [2][1]int32
				for i, share := range []float64{.8, .4} {
					v := unit(dims, r.NormFloat64)
					var along float64
					for j := range v {
						along += float64(v[j]) * float64(query[j])
					}
					for j := range v {
						v[j] = float32((float64(v[j])-along*float64(query[j]))/math.Sqrt(1-along*along)*math.Sqrt(1-share*share) + share*float64(query[j]))
					}
					Quantise(row, v)
					p.Estimate(got[i][:], Signs(nil, row, dims))
				}
				if got[0][0] <= got[1][0] {
					wrong++
				}
			}
			if wrong > 2 {
				t.Errorf("%s, %d dimensions: %d of 200 in the wrong order", name, dims, wrong)
			}
		}
	}
}
