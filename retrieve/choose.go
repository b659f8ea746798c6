package retrieve

import (
	"slices"
	"strings"
)

// A group becomes one passage: a chunk, or neighbouring chunks of one section in
// the order of the document.
type group struct {
	members []*scored
	rank    *scored // the best member, whose score the group has
}

// choose sorts the candidates by score, ties by id, and returns the first k
// groups, best first. A candidate that repeats an earlier one is dropped, and one
// that adjoins an earlier one joins its group.
//
// With a diversity above 0 the next candidate is the one with the highest
// (1-diversity) * score - diversity * likeness, where likeness is the highest
// cosine to a chosen one (maximal marginal relevance: Carbonell and Goldstein,
// 1998).
func choose(all []scored, k int, diversity float64) []group {
	slices.SortFunc(all, byScore)
	order := make([]*scored, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	var groups []group
	likeness := make(map[*scored]float64)
	for len(order) > 0 {
		next := 0
		if diversity > 0 {
			next = marginal(order, likeness, diversity)
		}
		s := order[next]
		order = slices.Delete(order, next, next+1)
		if slices.ContainsFunc(groups, func(g group) bool {
			return slices.ContainsFunc(g.members, func(m *scored) bool { return repeats(s, m) })
		}) {
			continue
		}
		if joined := join(groups, s); joined != nil {
			groups = joined
		} else if len(groups) == k {
			break
		} else {
			groups = append(groups, group{[]*scored{s}, s})
		}
		if diversity > 0 {
			for _, o := range order {
				likeness[o] = max(likeness[o], dot(o.vector, s.vector))
			}
		}
	}
	return groups
}

// apart sorts the candidates by score, ties by id, and returns a group for each
// of the first k.
func apart(all []scored, k int, _ float64) []group {
	slices.SortFunc(all, byScore)
	groups := make([]group, min(k, len(all)))
	for i := range groups {
		groups[i] = group{[]*scored{&all[i]}, &all[i]}
	}
	return groups
}

// marginal returns the index of the candidate to choose next.
func marginal(order []*scored, likeness map[*scored]float64, diversity float64) (best int) {
	worth := func(s *scored) float64 { return (1-diversity)*s.Score - diversity*likeness[s] }
	for i, s := range order {
		if worth(s) > worth(order[best]) {
			best = i
		}
	}
	return best
}

// maxJoined is the most tokens of a passage of several chunks: two of the usual
// size and a short one.
const maxJoined = 800

// join adds s to the best group that it adjoins, and merges that group with one
// that s connects it to; nil if s adjoins none.
func join(groups []group, s *scored) []group {
	at := slices.IndexFunc(groups, func(g group) bool { return g.canAdd(s) })
	if at < 0 {
		return nil
	}
	g := &groups[at]
	g.add(s)
	for other := at + 1; other < len(groups); other++ {
		if o := groups[other]; g.tokens()+o.tokens() <= maxJoined && (adjoin(g.last(), o.first()) || adjoin(o.last(), g.first())) {
			for _, m := range o.members {
				g.add(m)
			}
			return slices.Delete(groups, other, other+1)
		}
	}
	return groups
}

func (g *group) first() *scored { return g.members[0] }
func (g *group) last() *scored  { return g.members[len(g.members)-1] }

func (g *group) tokens() (n int) {
	for _, m := range g.members {
		n += m.Tokens
	}
	return n
}

func (g *group) canAdd(s *scored) bool {
	return g.tokens()+s.Tokens <= maxJoined && (adjoin(g.last(), s) || adjoin(s, g.first()))
}

func (g *group) add(s *scored) {
	g.members = append(g.members, s)
	slices.SortFunc(g.members, func(a, b *scored) int { return a.Ordinal - b.Ordinal })
}

// adjoin reports whether b is the next chunk after a, with the same heading, page
// and anchor, so that the place of a passage holds for both. Each row of a table
// has its own anchor.
func adjoin(a, b *scored) bool {
	return a.Document == b.Document && a.Digest == b.Digest && a.Ordinal+1 == b.Ordinal &&
		a.Heading == b.Heading && a.Page == b.Page && a.Anchor == b.Anchor
}

// passage returns the passage of a group; text is the document's text from the
// first member's start to the last one's end. Each score is the highest of the
// members, since one relevant member makes the passage relevant.
func (g *group) passage(text string) Passage {
	p := g.first().Passage
	if len(g.members) == 1 {
		return p
	}
	last := g.last()
	p.ID, p.End, p.Text, p.Tokens = joinedID(p.Chunk, last.Chunk), last.End, text, g.tokens()
	p.Score = g.rank.Score
	for _, m := range g.members[1:] {
		p.Scores.Dense = max(p.Scores.Dense, m.Scores.Dense)
		p.Scores.BM25 = max(p.Scores.BM25, m.Scores.BM25)
		p.Scores.Lexical = max(p.Scores.Lexical, m.Scores.Lexical)
		p.Scores.Coverage = max(p.Scores.Coverage, m.Scores.Coverage)
	}
	p.Scores.Rerank = g.rank.Scores.Rerank
	return p
}

// fits reports whether text consists of the members' texts with nothing but white
// space between them.
func (g *group) fits(text string) bool {
	start, at := g.first().Start, 0
	for _, m := range g.members {
		from, to := m.Start-start, m.End-start
		if to > len(text) || text[from:to] != m.Text || from > at && strings.TrimSpace(text[at:from]) != "" {
			return false
		}
		at = max(at, to)
	}
	return at == len(text)
}

// repeats reports whether two passages are equal except for white space and case.
// A single different word, number or sign makes them distinct: it may be the very
// fact that changed between two versions of a document. Titles and headings do
// not count: copies of one text may have several.
func repeats(a, b *scored) bool {
	if long := max(len(a.Text), len(b.Text)); 10*min(len(a.Text), len(b.Text)) < 9*long {
		return false
	}
	return slices.Equal(a.plain(), b.plain())
}

// plain returns the words of the chunk in lower case.
func (s *scored) plain() []string {
	if s.words == nil {
		s.words = strings.Fields(strings.ToLower(s.Text))
	}
	return s.words
}
