package index

import (
	"context"

	"ibid/retrieve/index/scan"
)

// A sieve finds chunks that are likely to be the nearest to a vector by the signs
// of their vectors, which are an eighth of their codes. The chunks that it keeps
// are compared exactly.
type sieve struct {
	above int // it is used for more chunks than this
	keep  int // how many chunks it keeps, or more if they are equal
}

// The file retrieve/SCALE.md says how many of the ten nearest are found with these.
var defaultSieve = sieve{above: 2_000_000, keep: 100_000}

// perHit is how many chunks are kept at least for each that is wanted.
const perHit = 64

// sieveRows is the number of rows of which products are estimated at a time.
const sieveRows = 1024

// narrow reduces what is chosen in the parts to the chunks of the greatest estimates.
func (s sieve) narrow(ctx context.Context, parts []part, chosen []chosen, unit []float32, k int) error {
	type estimated struct{ part, slot, estimate int32 }
	var (
		found     []estimated
		probe     = scan.NewProbe(unit)
		counts    = make([]int, probe.Most-probe.Least+1) // of the found, by estimate
		floor     = probe.Least                           // below it nothing is kept
		keep      = max(s.keep, perHit*k)
		kept      int
		estimates [sieveRows]int32
	)
	for i := range chosen {
		segment, only := parts[i].segment, chosen[i]
		if only.count == 0 {
			continue
		}
		for first := int32(0); first < int32(only.chunks); first += sieveRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			end := min(first+sieveRows, int32(only.chunks))
			if only.slots != nil && !only.slots.some(first, end) {
				continue
			}
			rows := estimates[:end-first]
			probe.Estimate(rows, segment.signs(first, len(rows)))
			for j, estimate := range rows {
				if slot := first + int32(j); estimate >= floor && only.has(slot) {
					found = append(found, estimated{int32(i), slot, estimate})
					counts[estimate-probe.Least]++
					kept++
				}
			}
			for n := counts[floor-probe.Least]; kept-n >= keep; n = counts[floor-probe.Least] {
				kept -= n
				floor++
			}
		}
		chosen[i].filtered, chosen[i].deleted = &filtered{slots: newSelection(only.chunks)}, nil
	}
	for _, f := range found {
		if f.estimate >= floor {
			chosen[f.part].slots.set(f.slot, f.slot+1)
			chosen[f.part].count++
		}
	}
	return nil
}
