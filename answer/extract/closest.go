package extract

import (
	"context"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Closest is a paragraph, list or row of a passage that is near the question.
type Closest struct {
	Passage int           // index of the kept passage
	Span    ingest.Span   // in the passage's text
	Marks   []ingest.Span // in the part: words of the question in its nearest sentence
}

// Limits of the parts shown without an answer.
const (
	maxClosest      = 3
	maxClosestBytes = 900 // of a part, unless its best sentence is longer
)

// Closest returns the parts of the kept passages that are nearest to the question, best first:
// at most maxClosest, and at most one from each passage.
func (d *Reading) Closest(ctx context.Context, kept []retrieve.Passage) ([]Closest, error) {
	all, err := d.sentences(ctx, kept)
	if err != nil {
		return nil, err
	}
	for _, in := range all {
		for k := range in {
			in[k].other = false
			in[k].bare = in[k].bare && !in[k].licensed && !in[k].headed
		}
	}
	var closest []Closest
	said, seen := map[string]bool{}, map[int]bool{}
	for _, s := range ranking(all) {
		if len(closest) == maxClosest {
			break
		}
		text := kept[s.passage].Text
		part := expander{d.query, all[s.passage]}.partAround(text, s)
		words := squeeze(text[part.Start:part.End])
		if !seen[s.passage] && !said[words] {
			seen[s.passage], said[words] = true, true
			closest = append(closest, Closest{s.passage, part, d.query.bestWords(s, s.span.Start-part.Start)})
		}
	}
	return closest, nil
}

// alike is the least similarity to a word of the question at which a word is marked.
const alike = .6

// bestWords returns the spans of the question's words and similar ones in a sentence that begins
// at offset at, or the span of the sentence if it has no such words.
func (q *query) bestWords(s *sentence, at int) (marks []ingest.Span) {
	end := 0
	for _, span := range wordForm.FindAllStringIndex(s.text, -1) {
		word := s.text[span[0]:span[1]]
		if !slices.ContainsFunc(retrieve.Terms(word), func(t string) bool {
			return slices.ContainsFunc(q.nearness[t], func(near float64) bool { return near >= alike })
		}) {
			continue
		}
		gap := s.text[end:span[0]]
		if last := len(marks) - 1; last >= 0 && len(retrieve.Terms(gap)) == 0 && !strings.ContainsAny(gap, "\n|.;:") {
			marks[last].End = at + span[1]
		} else {
			marks = append(marks, ingest.Span{Start: at + span[0], End: at + span[1]})
		}
		end = span[1]
	}
	if len(marks) == 0 {
		return []ingest.Span{{Start: at, End: at + len(s.text)}}
	}
	return marks
}

// partAround returns the paragraph or list of a sentence, or as many neighbours in it as fit
// maxClosestBytes.
func (e expander) partAround(text string, s *sentence) ingest.Span {
	in, p := e.in, e.widen(e.pieceAround(s))
	start, end := p.start, p.end
	paragraph := func(a, b int) bool { // no blank line between two sentences
		return !strings.Contains(strings.ReplaceAll(text[in[a].span.End:in[b].span.Start], " ", ""), "\n\n")
	}
	for !isRow(s.text) {
		switch {
		case start > 0 && !in[start-1].title && paragraph(start-1, start) && size(in, start-1, end) <= maxClosestBytes:
			start--
		case end < len(in) && paragraph(end-1, end) && size(in, start, end+1) <= maxClosestBytes:
			end++
		default:
			return ingest.Span{Start: in[start].span.Start, End: in[end-1].span.End}
		}
	}
	return s.span
}
