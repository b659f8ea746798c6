package index

import (
	"cmp"
	"context"
	"slices"

	"ibid/retrieve"
)

// Evidence implements [retrieve.Searcher]. The vectors are copies.
func (x *Index) Evidence(ctx context.Context, hits []retrieve.Hit, terms []string) (all []retrieve.Evidence, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		all = make([]retrieve.Evidence, 0, len(hits))
		at := make([][]scored[int], len(v.parts)) // the hits in each part; their scores are indexes into all
		for _, h := range hits {
			part, slot, ok := v.locate(h)
			if !ok {
				continue
			}
			s := v.parts[part].segment
			at[part] = append(at[part], scored[int]{slot: slot, score: len(all)})
			all = append(all, retrieve.Evidence{
				Hit: h, Vector: slices.Clone(s.vector(slot)), Counts: make([]int, len(terms)), Length: s.length(slot),
			})
		}
		for part, found := range at {
			if len(found) == 0 {
				continue
			}
			slices.SortFunc(found, func(a, b scored[int]) int { return cmp.Compare(a.slot, b.slot) })
			for i, term := range terms {
				l, ok := v.parts[part].lookup(term)
				if !ok {
					continue
				}
				c := cursor{list: l, skips: l.skips(), decoded: -1}
				for _, f := range found {
					all[f.score].Counts[i] = c.count(f.slot)
				}
			}
		}
		return nil
	})
	return all, err
}

// locate returns the place of a chunk; ok is false if the chunk was deleted or changed.
func (v *snapshot) locate(h retrieve.Hit) (part int, slot int32, ok bool) {
	for i := range v.parts {
		p := &v.parts[i]
		if document, ok := p.find(h.Document); ok && p.generation(document) == h.Generation && p.isLive(document) {
			first, end := p.chunksOf(document)
			return i, first + int32(h.Ordinal) - 1, h.Ordinal >= 1 && h.Ordinal <= int(end-first)
		}
	}
	return 0, 0, false
}

// Stats implements [retrieve.Searcher].
func (x *Index) Stats(ctx context.Context, terms []string) (stats retrieve.Stats, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		stats = retrieve.Stats{Chunks: v.chunks, MeanTerms: v.mean(), Frequency: make(map[string]int, len(terms))}
		lists := make([]list, len(v.parts))
		for _, term := range terms {
			stats.Frequency[term] = v.lookup(term, lists)
		}
		return nil
	})
	return stats, err
}
