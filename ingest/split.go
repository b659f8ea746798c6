package ingest

import (
	"context"
	"ibid/ingest/format"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// Sizes of a chunk in tokens: it ends at the next good place after the target, and before the
// maximum.
const (
	targetTokens = 250
	maxTokens    = 400
)

// Split cuts a document into chunks along headings and pages, then paragraphs, then lines (list
// items, rows, code), then sentences. It cuts between words only if a sentence alone exceeds the
// budget. It packs small neighbours on a page together, preferably under one heading. Chunks are in
// order and have no surrounding white space. All other text is in a chunk.
func Split(doc *Document) []Chunk { return split(context.Background(), doc, targetTokens, maxTokens) }

// split is Split with the given sizes in tokens. When ctx is done, it returns only some chunks.
func split(ctx context.Context, doc *Document, target, most int) []Chunk {
	s := splitter{doc: doc, target: target, max: most}
	var parts []part
	for _, p := range s.parts(ctx) {
		if ctx.Err() != nil {
			break
		}
		parts = append(parts, s.cutPart(p)...)
	}
	lines := format.LineCounter{Document: doc}
	var chunks []Chunk
	for i, p := range s.joinSmall(s.join(parts)) {
		text := doc.Text[p.Start:p.End]
		chunks = append(chunks, Chunk{
			ID: doc.ID + "#" + strconv.Itoa(i+1), Document: doc.ID, Ordinal: i + 1, Start: p.Start, End: p.End,
			Heading: strings.Join(p.path, HeadingSeparator), Anchor: p.anchor, Page: doc.PageAt(p.Start), Line: lines.At(p.Start),
			Text: text, Tokens: CountTokens(text),
		})
	}
	return chunks
}

type splitter struct {
	doc         *Document
	target, max int
}

// A unit is a piece that is never split between chunks.
type unit struct {
	Span
	tokens int
	before strength // of the break before it
}

type strength uint8

const (
	betweenWords strength = iota
	betweenSentences
	betweenLines
	betweenParagraphs
)

// cutPart cuts a part into parts that fit into a chunk.
func (s *splitter) cutPart(p part) (out []part) {
	if p.tokens = s.count(p.Span); p.tokens <= s.target {
		return []part{p}
	}
	units := s.units(p)
	for len(units) > 0 {
		n := s.nextChunkUnits(units)
		for {
			p.Span = Span{units[0].Start, units[n-1].End}
			// The token counts of units need not add up to the count of the whole.
			if p.tokens = CountTokens(s.doc.Text[p.Start:p.End]); p.tokens <= s.max || n == 1 {
				break
			}
			n--
		}
		out = append(out, p)
		units = units[n:]
	}
	return out
}

// nextChunkUnits returns the number of units in the next chunk, which ends at the strongest break
// near the target.
func (s *splitter) nextChunkUnits(units []unit) int {
	total := 0
	for _, a := range units {
		if total += a.tokens; total > 2*s.max {
			break
		}
	}
	if total <= s.target+s.target/4 && total <= s.max {
		return len(units)
	}
	best, bestRank := 1, -1
	sum := 0
	for i, a := range units {
		if i > 0 {
			// A break here leaves sum tokens in the chunk. If it is at a paragraph, the chunk may
			// exceed the target or end early. At a sentence, the chunk stays close to the target.
			rank := -1
			switch {
			case sum > s.target && a.before < betweenLines:
			case sum*2 >= s.target || a.before == betweenParagraphs && sum*4 >= s.target:
				rank = int(a.before)*1000 - max(s.target-sum, sum-s.target)
			default:
				rank = -100000 + int(a.before)*1000 + sum
			}
			if total-sum < least {
				rank -= 1000 // too little is left
			}
			if bestRank == -1 || rank != -1 && rank > bestRank {
				best, bestRank = i, rank
			}
		}
		if sum += a.tokens; sum > s.max {
			break
		}
	}
	return best
}

// units cuts a part into sentences, and sentences over the budget into words.
func (s *splitter) units(p part) []unit {
	text := s.doc.Text[p.Start:p.End]
	var spans []unit
	previous := 0
	for sp := range Sentences(text) {
		a := unit{Span: sp}
		switch gap := text[previous:sp.Start]; {
		case strings.Count(gap, "\n") > 1:
			a.before = betweenParagraphs
		case strings.Contains(gap, "\n"):
			a.before = betweenLines
		default:
			a.before = betweenSentences
		}
		previous = sp.End
		if len(text[sp.Start:sp.End]) > s.max && CountTokens(text[sp.Start:sp.End]) > s.max {
			for i, w := range pieces(text[sp.Start:sp.End], s.max) {
				piece := unit{Span: Span{sp.Start + w.Start, sp.Start + w.End}}
				if i == 0 {
					piece.before = a.before
				}
				spans = append(spans, piece)
			}
			continue
		}
		spans = append(spans, a)
	}
	for i := range spans {
		end := len(text)
		if i+1 < len(spans) {
			end = spans[i+1].Start
		}
		spans[i].tokens = CountTokens(text[spans[i].Start:end])
		spans[i].Start += p.Start
		spans[i].End += p.Start
	}
	return spans
}

// pieces cuts a text between words into ranges of at most limit bytes, and so of at most limit
// tokens. It prefers to cut after a nearby space or comma, and cuts a word longer than limit
// between characters.
func pieces(text string, limit int) []Span {
	var out []Span
	cur := Span{}
	pos, pause := 0, 0 // pause is the end of the last space or comma
	flush := func() {
		if t := trim(text, cur); t.Start < t.End {
			out = append(out, t)
		}
	}
	for tokens := words.FromString(text); tokens.Next(); {
		word := tokens.Value()
		end := pos + len(word)
		if end-cur.Start > limit && pause > cur.Start+limit/4 {
			cur.End = pause
			flush()
			cur = Span{pause, pos}
		}
		if end-cur.Start > limit && pos > cur.Start {
			flush()
			cur = Span{pos, pos}
		}
		for end-cur.Start > limit {
			cut := cur.Start + limit
			for cut > cur.Start+1 && !utf8.RuneStart(text[cut]) {
				cut--
			}
			cur.End = cut
			flush()
			cur = Span{cut, cut}
		}
		cur.End = end
		pos = end
		if strings.TrimSpace(word) == "" || strings.Contains("，、；：,;", word) {
			pause = end
		}
	}
	flush()
	return out
}

// trim removes white space from both ends of a range.
func trim(text string, s Span) Span {
	t := text[s.Start:s.End]
	s.Start += len(t) - len(strings.TrimLeftFunc(t, unicode.IsSpace))
	return Span{s.Start, s.Start + len(strings.TrimSpace(t))}
}
