package local

import (
	"context"

	"ibid/retrieve"
)

// Dense gives the ids of the k chunks nearest to the vector by cosine, by a
// scan of all that the filter lets through.
func (e *Engine) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.memory
	if m.live() == 0 || k <= 0 {
		return nil, nil
	}
	unit, err := normalise(vector, m.dims)
	if err != nil {
		return nil, err
	}
	t := top{k: min(k, m.live()), id: m.id}
	through := m.passes(f)
	for block, rows := range m.arena {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := block * blockRows
		for i := range min(blockRows, len(m.slots)-first) {
			s := int32(first + i)
			if !through(s) {
				continue
			}
			row := rows[i*m.dims : (i+1)*m.dims]
			t.push(hit{s, float64(dot(row, unit))})
		}
	}
	return t.ids(), nil
}

// dot has eight sums so that the processor need not wait for each addition.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return (s0 + s4) + (s1 + s5) + (s2 + s6) + (s3 + s7)
}
