package index

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// A counted is a change with the counted terms of its chunks.
type counted struct {
	*retrieve.Change
	vectors [][]float32
	terms   [][]retrieve.TermCount
	lengths []int32
}

// count counts the terms of the changes, on all processors.
func count(ctx context.Context, changes []retrieve.Change) ([]counted, error) {
	all := make([]counted, len(changes))
	type place struct{ change, chunk int }
	var places []place
	for i := range changes {
		c := &changes[i]
		n := len(c.Chunks)
		if c.Deleted {
			n = 0
		}
		all[i] = counted{c, make([][]float32, n), make([][]retrieve.TermCount, n), make([]int32, n)}
		for j := range n {
			if len(c.Chunks[j].Vector) > maxDims {
				return nil, fmt.Errorf("indexing %s: a vector has more than %d dimensions", c.Info.ID, maxDims)
			}
			v, err := retrieve.Unit(c.Chunks[j].Vector, len(c.Chunks[0].Vector))
			if err != nil {
				return nil, fmt.Errorf("indexing %s: its chunk %d: %w", c.Info.ID, j+1, err)
			}
			all[i].vectors[j] = v
			places = append(places, place{i, j})
		}
	}
	var wait sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(places))
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(places) && ctx.Err() == nil; i += workers {
				p := places[i]
				terms, length := retrieve.CountTerms(changes[p.change].Chunks[p.chunk].Text)
				all[p.change].terms[p.chunk], all[p.change].lengths[p.chunk] = terms, int32(length)
			}
		})
	}
	wait.Wait()
	return all, ctx.Err()
}

// build returns a segment in memory with documents of which each has a chunk, or
// nil if there are none.
func build(documents []counted) (*segment, error) {
	if len(documents) == 0 {
		return nil, nil
	}
	slices.SortFunc(documents, func(a, b counted) int { return int(min(1, max(-1, a.Document-b.Document))) })
	dims := len(documents[0].vectors[0])
	c := content{dims: dims, firsts: []uint32{0}}
	infos := make([][]byte, len(documents))
	var rows [secLengths][]byte
	found := make(map[string][]occurrence)
	for i, d := range documents {
		c.revision = max(c.revision, d.Revision)
		c.numbers, c.generations = append(c.numbers, d.Document), append(c.generations, d.Revision)
		infos[i] = packInfo(&d.Info)
		for j, v := range d.vectors {
			slot := int32(len(c.lengths))
			code := make([]byte, scan.Stride(dims))
			scale, residual := scan.Quantise(code, v)
			rows[secCodes] = append(rows[secCodes], code...)
			rows[secScales] = append(rows[secScales], bytesOf([]float32{scale})...)
			rows[secResiduals] = append(rows[secResiduals], bytesOf([]float32{residual})...)
			rows[secVectors] = append(rows[secVectors], bytesOf(v)...)
			c.lengths = append(c.lengths, d.lengths[j])
			for _, t := range d.terms[j] {
				found[t.Term] = append(found[t.Term], occurrence{slot, int32(t.Count)})
			}
		}
		c.firsts = append(c.firsts, uint32(len(c.lengths)))
	}
	widths := trailer{Dims: uint32(dims)}
	c.info = func(document int) []byte { return infos[document] }
	c.rows = func(section, document int) []byte {
		w := uint32(widths.width(section))
		return rows[section][w*c.firsts[document] : w*c.firsts[document+1]]
	}
	c.terms = func(yield func([]byte, []occurrence) bool) {
		for _, term := range slices.Sorted(maps.Keys(found)) {
			if !yield([]byte(term), found[term]) {
				return
			}
		}
	}
	return c.segment()
}

// segment writes the segment in memory.
func (c *content) segment() (*segment, error) {
	var b bytes.Buffer
	if err := c.write(context.Background(), &b); err != nil {
		return nil, err
	}
	return newSegment("", b.Bytes(), false)
}

// merged returns the content of the parts without what is deleted, or nil if
// nothing is left.
func merged(parts []part) *content {
	type origin struct {
		part, document int
		number         int64
	}
	var all []origin
	for i := range parts {
		p := &parts[i]
		for document := range int(p.Documents) {
			if first, _ := p.chunksOf(document); p.alive(first) {
				all = append(all, origin{i, document, item[int64](p.segment, secNumbers, document)})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b origin) int { return int(min(1, max(-1, a.number-b.number))) })
	c := &content{dims: int(parts[0].Dims), firsts: []uint32{0}}
	moved := make([][]int32, len(parts)) // by slot, the new one; -1 for what is deleted
	for i := range parts {
		c.revision = max(c.revision, parts[i].Revision)
		moved[i] = slices.Repeat([]int32{-1}, int(parts[i].Chunks))
	}
	for _, o := range all {
		s := parts[o.part].segment
		first, end := s.chunksOf(o.document)
		for slot := first; slot < end; slot++ {
			moved[o.part][slot] = int32(len(c.lengths))
			c.lengths = append(c.lengths, int32(s.length(slot)))
		}
		c.numbers, c.generations = append(c.numbers, o.number), append(c.generations, s.generation(o.document))
		c.firsts = append(c.firsts, uint32(len(c.lengths)))
	}
	c.info = func(document int) []byte { return parts[all[document].part].info(all[document].document) }
	c.rows = func(section, document int) []byte {
		s := parts[all[document].part].segment
		first, end := s.chunksOf(all[document].document)
		return s.rows(section, first, int(end-first))
	}
	c.terms = mergedTerms(parts, moved)
	return c
}

// mergedTerms returns the terms of the parts, with the slots that they have moved
// to.
func mergedTerms(parts []part, moved [][]int32) iter.Seq2[[]byte, []occurrence] {
	return func(yield func([]byte, []occurrence) bool) {
		open := make([]*dictionary, len(parts))
		for i := range parts {
			if d := (&dictionary{segment: parts[i].segment}); d.next() {
				open[i] = d
			}
		}
		var found []occurrence
		var term []byte
		for {
			least := -1
			for i, d := range open {
				if d != nil && (least < 0 || bytes.Compare(d.term, open[least].term) < 0) {
					least = i
				}
			}
			if least < 0 {
				return
			}
			term, found = append(term[:0], open[least].term...), found[:0]
			for i, d := range open {
				if d == nil || !bytes.Equal(d.term, term) {
					continue
				}
				d.list.each(func(slot, count int32) {
					if slot = moved[i][slot]; slot >= 0 {
						found = append(found, occurrence{slot, count})
					}
				})
				if !d.next() {
					open[i] = nil
				}
			}
			ascending := func(a, b occurrence) int { return int(a.slot - b.slot) }
			if !slices.IsSortedFunc(found, ascending) {
				slices.SortFunc(found, ascending)
			}
			if len(found) > 0 && !yield(term, found) {
				return
			}
		}
	}
}
