package index

import (
	"context"

	"ibid/retrieve/index/scan"
)

// A sieve uses the signs of vectors, which have an eighth of the size of their codes, to select the
// chunks that are likely to be the nearest to a vector. Only the selected chunks are compared
// exactly.
type sieve struct {
	above int // the number of chunks above which the sieve is used
	keep  int // number of chunks to keep, or more if their estimates are equal
}

// retrieve/SCALE.md says how many of the ten nearest chunks these values find.
var defaultSieve = sieve{above: 2_000_000, keep: 100_000}

// perHit is the smallest number of chunks to keep for each wanted hit.
const perHit = 64

// sieveRows is the number of rows whose products are estimated together.
const sieveRows = 1024

// narrow reduces the chosen chunks of the parts to the chunks with the greatest estimates.
func (s sieve) narrow(ctx context.Context, parts []part, chosen []chosen, unit []float32, k int) error {
	type estimated struct{ part, slot, estimate int32 }
	var (
		found     []estimated
		probe     = scan.NewProbe(unit)
		counts    = make([]int, probe.Most-probe.Least+1) // numbers of found chunks, by estimate
		floor     = probe.Least                           // chunks with lower estimates are not kept
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
			if only.slots != nil && !only.slots.containsAny(first, end) {
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
