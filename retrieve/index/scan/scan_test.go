package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// choices returns no kernel, and each kernel that this processor supports.
func choices[V any](all []kernel[V]) [][]kernel[V] {
	out := [][]kernel[V]{nil}
	for i := range all {
		out = append(out, all[i:])
	}
	return out
}

// product is the definition, one component after another.
func product(words []int16, row []byte) int32 {
	var sum int64
	for i, w := range words {
		sum += int64(w) * (int64(row[i]) - centre)
	}
	return int32(sum)
}

func rawQuery(words []int16) *Query {
	q := &Query{words: words, planes: split(words)}
	for _, w := range words {
		q.offset += centre * int32(w)
	}
	return q
}

func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fills := map[string]func() (word int16, b byte){
		"random":        func() (int16, byte) { return int16(r.IntN(2*maxWord+1) - maxWord), byte(r.Uint32()) },
		"highest":       func() (int16, byte) { return maxWord, 255 },
		"lowest":        func() (int16, byte) { return -maxWord, 255 },
		"lowest row":    func() (int16, byte) { return maxWord, 0 },
		"both lowest":   func() (int16, byte) { return -maxWord, 0 },
		"ends":          func() (int16, byte) { return int16(maxWord * (2*r.IntN(2) - 1)), byte(255 * r.IntN(2)) },
		"middle":        func() (int16, byte) { return int16(64 * (r.IntN(5) - 2)), byte(127 + r.IntN(3)) },
		"largest plane": func() (int16, byte) { return 128*127 + 63, 255 },
		"least plane":   func() (int16, byte) { return -128 * 127, 255 },
	}
	for name, fill := range fills {
		for _, stride := range []int{0, 64, 128, 192, 256, 448} {
			for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 130} {
				words := make([]int16, stride)
				// The rows end where the memory ends: a kernel must not read beyond them.
				rows := make([]byte, n*stride)
				for i := range words {
					words[i], _ = fill()
				}
				for i := range rows {
					_, rows[i] = fill()
				}
				want := make([]int32, n)
				for i := range want {
					want[i] = product(words, rows[i*stride:])
				}
				for i, k := range choices(dotKernels) {
					got := make([]int32, n+1)
					got[n] = 12345
					rawQuery(words).dots(k, got[:n], rows)
					if !slices.Equal(got[:n], want) || got[n] != 12345 {
						t.Fatalf("%s, kernel %d, %d rows of %d: %v, want %v", name, i, n, stride, got, want)
					}
				}
			}
		}
	}
}

func TestSplit(t *testing.T) {
	words := make([]int16, lane)
	for w := -maxWord; w <= maxWord; w++ {
		words[0] = int16(w)
		planes := split(words)
		if 128*int(planes[0])+int(planes[lane]) != w {
			t.Fatalf("%d splits into %d and %d", w, planes[0], planes[lane])
		}
	}
}

// TestBounds checks that no true product is outside the bounds, and that the
// bounds are narrow enough to be useful.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dims := range []int{1, 2, 3, 50, 64, 65, 192, 256, 384, 1536, 4096} {
		for name, next := range map[string]func() float64{
			"normal":  r.NormFloat64,
			"equal":   func() float64 { return 1 },
			"signs":   func() float64 { return float64(2*r.IntN(2) - 1) },
			"sparse":  func() float64 { return math.Pow(r.NormFloat64(), 9) },
			"tiny":    func() float64 { return r.NormFloat64() * math.Exp(-40*r.Float64()) },
			"one-hot": func() float64 { return math.Floor(r.Float64() * (1 + 1/float64(dims))) },
		} {
			t.Run(fmt.Sprintf("%s/%d", name, dims), func(t *testing.T) {
				for range 20 {
					v, u := unit(dims, next), unit(dims, next)
					row := make([]byte, Stride(dims))
					scale, residual := Quantise(row, v)
					q := NewQuery(u)
					perUnit, spread, slack := q.Bounds()
					var n [1]int32
					for _, k := range choices(dotKernels) {
						q.dots(k, n[:], row)
						var want float64
						for i := range v {
							want += float64(v[i]) * float64(u[i])
						}
						// As the search computes it.
						got := float64(float32(n[0]) * scale * float32(perUnit))
						bound := float64(residual)*spread + slack
						if math.Abs(got-want) > bound {
							t.Fatalf("product %v is %v from %v, more than the bound %v", got, math.Abs(got-want), want, bound)
						}
						if name == "normal" && dims >= 50 && bound > .03 {
							t.Errorf("bound = %v, want at most .03", bound)
						}
					}
				}
			})
		}
	}
}

func unit(dims int, next func() float64) []float32 {
	v := make([]float64, dims)
	var square float64
	for i := range v {
		v[i] = next()
		square += v[i] * v[i]
	}
	if square == 0 {
		v[0], square = 1, 1
	}
	out := make([]float32, dims)
	for i := range v {
		out[i] = float32(v[i] / math.Sqrt(square))
	}
	return out
}

// TestEstimate compares the kernels with the definition: the sum of the rounded components at which
// the other vector is positive.
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
					runKernels(k, p, p.estimateRow, stride, got[:n], rows)
					if !slices.Equal(got[:n], want) || got[n] != 12345 {
						t.Fatalf("%d dimensions, %s, kernel %d, %d rows: %v, want %v", dims, name, i, n, got, want)
					}
				}
			}
		}
	}
}

// TestNear checks that estimates order vectors approximately as their products do, even vectors
// with few components.
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
				t.Errorf("%s, %d dimensions: %d of 200 pairs in the wrong order", name, dims, wrong)
			}
		}
	}
}
