package extract

import (
	"context"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Closest is a part of a passage that is near the question, word for word: a
// paragraph, a list, a row of a table.
type Closest struct {
	Passage int           // index of the kept passage
	Span    ingest.Span   // in the passage's text
	Marks   []ingest.Span // in the part: its sentences that are nearest
}

// How much of the passages is shown without an answer.
const (
	maxClosest      = 3
	maxClosestBytes = 900 // of one part, if its best sentence is not longer
)

// Closest finds the parts of the kept passages that are nearest to the question,
// the best first, at most one of a passage and three in all.
func (d *Reading) Closest(ctx context.Context, kept []retrieve.Passage) ([]Closest, error) {
	all, err := d.sentences(ctx, kept)
	if err != nil {
		return nil, err
	}
	for _, in := range all {
		for k := range in {
			in[k].other = false
		}
	}
	var closest []Closest
	said, seen := map[string]bool{}, map[int]bool{}
	for _, s := range ranking(all) {
		if seen[s.passage] {
			continue
		}
		seen[s.passage] = true
		text := kept[s.passage].Text
		part := partAround(text, all[s.passage], s)
		if words := squeeze(text[part.Start:part.End]); len(closest) < maxClosest && !said[words] {
			said[words] = true
			mark := ingest.Span{Start: s.span.Start - part.Start, End: s.span.End - part.Start}
			closest = append(closest, Closest{s.passage, part, []ingest.Span{mark}})
		}
	}
	return closest, nil
}

// partAround returns the paragraph or list that a sentence is in, or as many of
// its neighbours there as fit maxClosestBytes.
func partAround(text string, in []sentence, s *sentence) ingest.Span {
	p := around(in, s)
	start, end := p.start, p.end
	paragraph := func(a, b int) bool { // reports whether no blank line is between two sentences
		return !strings.Contains(strings.ReplaceAll(text[in[a].span.End:in[b].span.Start], " ", ""), "\n\n")
	}
	for !isRow(s.text) {
		switch {
		case start > 0 && paragraph(start-1, start) && size(in, start-1, end) <= maxClosestBytes:
			start--
		case end < len(in) && paragraph(end-1, end) && size(in, start, end+1) <= maxClosestBytes:
			end++
		default:
			return ingest.Span{Start: in[start].span.Start, End: in[end-1].span.End}
		}
	}
	return s.span
}
