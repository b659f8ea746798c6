package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A group becomes one passage: a chunk, or neighbouring chunks of one section in
// the order of the document.
type group struct {
	members []*scored
	rank    *scored // the best member, which gives the group its score
}

// A reading reads the chunks of candidates from the state on demand: most are never needed.
type reading struct {
	ctx   context.Context
	state State
	hits  int // number of chunks that the searches found
	lost  int // number of candidates that are no longer stored
	// terms are the question's terms; lexical scores texts by them.
	terms   []string
	lexical *lexicalScorer
}

// readAhead is the number of chunks that are read together: scoreRows needs them all.
const readAhead = tablesRead

// read reads the chunk of a candidate unless it has been read, along with the chunks of the first
// unread candidates in others. It reports whether the candidate is stored.
func (r *reading) read(s *scored, others []*scored) (stored bool, err error) {
	if s.read {
		return s.ID != "", nil
	}
	next, hits := []*scored{s}, []Hit{s.hit}
	for _, o := range others {
		if len(next) < readAhead && !o.read && o != s {
			next, hits = append(next, o), append(hits, o.hit)
		}
	}
	chunks, err := r.state.Chunks(r.ctx, hits)
	if err != nil {
		return false, err
	}
	for _, n := range next {
		n.read = true
		if len(chunks) == 0 || chunks[0].Hit != n.hit {
			r.lost++
			continue
		}
		c := chunks[0]
		chunks = chunks[1:]
		n.Chunk, n.Root, n.Path, n.Title, n.Format, n.Digest, n.Meta = c.Chunk, c.Root, c.Path, c.Title, c.Format, c.Digest, c.Meta
	}
	return s.ID != "", nil
}

// tablesRead is the number of top candidates that scoreRows may score by a single row.
const tablesRead = 48

// isoDate matches a date such as 2025-07-21.
var isoDate = regexp.MustCompile(`\b(?:19|20)\d\d-(0[1-9]|1[0-2])-\d\d\b`)

// Months returns the names of the months of the ISO dates in a text, each preceded by a space.
func Months(text string) (names string) {
	for _, date := range isoDate.FindAllStringSubmatch(text, -1) {
		month, _ := strconv.Atoi(date[1])
		names += " " + time.Month(month).String()
	}
	return names
}

// scoreRows scores each top candidate that contains rows of a table by its best row and the title,
// if that score is higher: BM25 marks down a chunk of many rows for its length. It reports whether
// any score has changed.
func (r *reading) scoreRows(all []*scored) (changed bool, err error) {
	order := slices.Clone(all)
	sortByScore(order)
	for i, s := range order[:min(tablesRead, len(order))] {
		if stored, err := r.read(s, order[i:]); err != nil {
			return false, err
		} else if !stored {
			continue
		}
		for line := range strings.SplitSeq(s.Text, "\n") {
			if first, _, more := strings.Cut(line, " | "); !more || !strings.Contains(first, ": ") { // "Kind: Adult | A year: 155"
				continue
			}
			if row := r.lexical.scoreText(s.Title+"\n"+line+Months(line), r.terms); row.BM25 > s.Scores.BM25 {
				s.Scores.BM25, s.Scores.Lexical, changed = row.BM25, row.Lexical, true
				s.Scores.Coverage = max(s.Scores.Coverage, row.Coverage)
			}
		}
	}
	return changed, nil
}

// choose sorts the candidates by score and returns the first q.K groups, best first. Unless q.Apart
// is set, a candidate that repeats an earlier one is dropped, and one that adjoins an earlier one
// joins its group. Rows of one table, and tests of programs, are alike: they get at most half of
// the groups while there are other candidates.
func (r *reading) choose(all []*scored, q Query) (groups []group, err error) {
	order := slices.Clone(all)
	sortByScore(order)
	if err := r.raiseDeclared(order, q.Text); err != nil {
		return nil, err
	}
	var last []group
	defer func() {
		groups = append(groups, last[:max(0, min(len(last), q.K-len(groups)))]...)
		slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.rank.Score, a.rank.Score) })
	}()
	for i, s := range order {
		stored, err := r.read(s, order[i:])
		if err != nil {
			return nil, err
		}
		if !stored || !q.Apart && isRepeated(groups, s) {
			continue
		}
		var joined []group
		if !q.Apart {
			joined = joinGroup(groups, s)
		}
		switch {
		case joined != nil:
			groups = joined
		case len(groups) == q.K:
			return groups, nil
		case !q.Apart && isCrowded(groups, s, q.K) && !strings.Contains(strings.ToLower(q.Text), "test"):
			last = append(last, group{[]*scored{s}, s})
		default:
			groups = append(groups, group{[]*scored{s}, s})
		}
	}
	return groups, nil
}

// isCrowded reports whether half of k groups resemble s, as rows of the same table or as tests, or
// whether a quarter resemble s and also have its coverage of the question.
func isCrowded(groups []group, s *scored, k int) bool {
	row, test, alike, same := strings.HasPrefix(s.Anchor, "row="), IsTest(s.Passage), 0, 0
	for _, g := range groups {
		if row && g.rank.Document == s.Document && strings.HasPrefix(g.rank.Anchor, "row=") || test && IsTest(g.rank.Passage) {
			alike++
			if g.rank.Scores.Coverage == s.Scores.Coverage {
				same++
			}
		}
	}
	return 2*alike >= k || 4*same >= k
}

var testPath = regexp.MustCompile(`(?:^|/)(?:tests?|testdata)/|_test\.\w+$|(?:^|/)test_[^/]*$|\.(?:spec|test)\.\w+$`)

// IsTest reports whether a passage comes from the test code of a program.
func IsTest(p Passage) bool { return p.Format == "code" && testPath.MatchString(p.Path) }

// qualified matches an identifier after the name of its package or type, as in sync.Once.
var qualified = regexp.MustCompile(`\b([A-Za-z_]\w*)\.([A-Z]\w*)`)

// DeclaredIdentifier returns the identifier of the question that a passage declares, or "".
func DeclaredIdentifier(p Passage, question string) string {
	if p.Format != "code" || IsTest(p) {
		return ""
	}
	for _, name := range qualified.FindAllStringSubmatch(question, -1) {
		declares := regexp.MustCompile(`(?m)^[ \t]*(?:[a-z]+ )*(?:func|type|class|struct|interface|enum|def|fn|function|const|var|trait) ` +
			name[2] + `\b`)
		if strings.Contains("/"+p.Document, "/"+name[1]+"/") && declares.MatchString(p.Text) {
			return name[0]
		}
	}
	return ""
}

// raiseDeclared gives the highest score to candidates that declare an identifier of the question.
func (r *reading) raiseDeclared(order []*scored, question string) error {
	if !qualified.MatchString(question) {
		return nil
	}
	for i, s := range order {
		switch stored, err := r.read(s, order[i:]); {
		case err != nil:
			return err
		case stored && DeclaredIdentifier(s.Passage, question) != "":
			s.Score = order[0].Score
		}
	}
	sortByScore(order)
	return nil
}

// isRepeated reports whether s repeats a member of the groups.
func isRepeated(groups []group, s *scored) bool {
	return slices.ContainsFunc(groups, func(g group) bool {
		return slices.ContainsFunc(g.members, func(m *scored) bool { return sameText(s.Text, m.Text) })
	})
}

// maxJoined is the largest number of tokens in a passage of several chunks: two of the usual size
// and a short one.
const maxJoined = 800

// joinGroup adds s to the best group that it adjoins, and merges that group with another that s connects
// to it. It returns nil if s adjoins no group.
func joinGroup(groups []group, s *scored) []group {
	at := slices.IndexFunc(groups, func(g group) bool {
		return g.tokens()+s.Tokens <= maxJoined && (isAdjacent(g.last(), s) || isAdjacent(s, g.first()))
	})
	if at < 0 {
		return nil
	}
	g := &groups[at]
	g.add(s)
	for other := at + 1; other < len(groups); other++ {
		if o := groups[other]; g.tokens()+o.tokens() <= maxJoined && (isAdjacent(g.last(), o.first()) || isAdjacent(o.last(), g.first())) {
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

func (g *group) add(s *scored) {
	g.members = append(g.members, s)
	slices.SortFunc(g.members, func(a, b *scored) int { return a.Ordinal - b.Ordinal })
}

// isAdjacent reports whether b is the chunk that follows a, with the same heading, page and anchor, so
// that one place describes both. Each row of a table has its own anchor.
func isAdjacent(a, b *scored) bool {
	return a.Document == b.Document && a.Digest == b.Digest && a.Ordinal+1 == b.Ordinal &&
		a.Heading == b.Heading && a.Page == b.Page && a.Anchor == b.Anchor
}

// passage returns the passage of a group; text is the document's text from the start of the first
// member to the end of the last. Each score is the highest among the members, since one relevant
// member makes the passage relevant.
func (g *group) passage(text string) Passage {
	p := g.first().Passage
	if len(g.members) == 1 {
		return p
	}
	last := g.last()
	p.ID, p.End, p.Text, p.Tokens = fmt.Sprintf("%s-%d", p.ID, last.Ordinal), last.End, text, g.tokens()
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

// fits reports whether text consists of the members' texts separated only by white space.
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

// sameText reports whether two passages are equal except for white space and case. A single
// different word, number or sign makes them distinct: it may be the very fact that changed between
// two versions of a document. Titles and headings are ignored, since copies of one text may have
// different ones.
func sameText(a, b string) bool {
	for word := range strings.FieldsSeq(a) {
		b = strings.TrimLeftFunc(b, unicode.IsSpace)
		end := strings.IndexFunc(b, unicode.IsSpace)
		if end < 0 {
			end = len(b)
		}
		if !strings.EqualFold(word, b[:end]) {
			return false
		}
		b = b[end:]
	}
	return strings.TrimSpace(b) == ""
}
