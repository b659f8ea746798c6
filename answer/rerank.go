package answer

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/retrieve"
)

// A Rated is a candidate answer and the score that the model gave it.
type Rated struct {
	Answer string
	Score  int
	// Unscored says that no score could be read: it counts as 0.
	Unscored bool
}

// scoreLine parts an answer from its score: the first score line counts.
var scoreLine = regexp.MustCompile(`(?s)(.*?)\nScore: ([0-9]*)`)

// maxScoreDigits keeps scores far from the end of an int.
const maxScoreDigits = 9

// Rate reads a reply that ends in a line "Score: N". The answer is what stands
// before that line, verbatim, or the whole reply when there is none.
func Rate(reply string) Rated {
	m := scoreLine.FindStringSubmatch(reply)
	if m == nil {
		return Rated{Answer: reply, Unscored: true}
	}
	if m[2] == "" || len(m[2]) > maxScoreDigits {
		return Rated{Answer: m[1], Unscored: true}
	}
	score, err := strconv.Atoi(m[2])
	return Rated{Answer: m[1], Score: score, Unscored: err != nil}
}

// Rank gives the indices of the rated answers by falling score. Equal scores
// keep their order.
func Rank(rated []Rated) []int {
	order := make([]int, len(rated))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rated[b].Score, rated[a].Score) })
	return order
}

// rate reads the score of a reply. One that stands at the end of a reply which
// was cut may lack a digit: it is none.
func (p *Part) rate(reply replied) {
	text := string(reply.text)
	p.rated = Rate(text)
	if !p.whole && Rate(text+"0").Score != p.rated.Score {
		p.rated.Score, p.rated.Unscored = 0, true
	}
	p.Text = p.rated.Answer
}

// mapRerank answers from each kept passage alone, and gives the answer that
// the model scored highest.
func (r *run) mapRerank(ctx context.Context, kept []retrieve.Passage) error {
	kept, copies := r.withoutCopies(kept)
	planned := min(len(kept), r.left())
	room, err := r.room(RoleRerank)
	if err != nil {
		return err
	}
	m := &mapping{run: r}
	if m.kept, m.copies = r.label(kept, copies, planned); r.stopped {
		return nil
	}
	for i := range kept[:planned] {
		e := evidence(i+1, kept[i])
		cost, err := r.cost(e)
		if err != nil {
			return err
		}
		m.batches = append(m.batches, batch{r.shortened(e, room-(cost-r.count(e.text)))})
	}
	parts, err := m.mapped(ctx, RoleRerank, 0)
	if err != nil || r.stopped {
		return err
	}
	if len(parts) == 0 {
		return m.nothing()
	}
	rated := make([]Rated, len(parts))
	for i, p := range parts {
		if rated[i] = p.rated; p.rated.Unscored {
			r.emit(Warning{Message: fmt.Sprintf("the model gave no score to its answer from “%s”, so it counts as 0", clip(m.kept[p.Labels[0]-1].Title, 80))})
		}
	}
	best := parts[Rank(rated)[0]]
	if len(best.cited) == 0 {
		// An answer from one passage rests on that passage.
		best.Text = labelled(strings.TrimRight(best.Text, " \t\n"), best.Labels[0], "")
	}
	r.usage.Used = 1
	r.emit(Text{Text: best.Text})
	m.tellMissing()
	if !best.whole {
		r.emit(Incomplete{Reason: reachedLength})
	}
	r.finish()
	return nil
}
