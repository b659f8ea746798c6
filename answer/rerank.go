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

// mapRerank answers from each kept passage alone, and gives the answer that
// the model scored highest.
func (r *run) mapRerank(ctx context.Context, kept []retrieve.Passage) error {
	var duplicates []retrieve.Passage
	if !r.KeepDuplicates {
		kept, duplicates = withoutDuplicates(kept)
	}
	planned := len(kept)
	if calls := or(r.AnswerCalls, defaultAnswerCalls); calls >= 0 {
		planned = min(planned, calls)
	}
	room, err := r.room(RoleRerank)
	if err != nil {
		return err
	}
	if !r.emit(Kept{Passages: kept[:planned]}) {
		return nil
	}
	r.leftOut("near_duplicate", duplicates)
	r.leftOut("budget", kept[planned:])
	m := &mapping{run: r, kept: kept}
	for i := range kept[:planned] {
		e := evidence(i+1, kept[i])
		cost, err := r.cost(e)
		if err != nil {
			return err
		}
		m.batches = append(m.batches, batch{r.fit(e, room-(cost-r.count(e.text)))})
	}
	prompts, err := m.ask(RoleRerank)
	if err != nil {
		return err
	}
	for i := range prompts {
		prompts[i].MaxTokens = r.reply()
	}
	var rated []Rated
	var parts []Part
	for i, reply := range r.each(ctx, prompts) {
		p, rate := Part{}, Rated{}
		reason := ""
		if r.spent(reply.call); reply.err == nil {
			rate = Rate(string(reply.text))
		}
		p.Text = rate.Answer
		if reply.err == nil {
			reason, _ = said{answer: true}.hears(rate.Answer)
			if reason == "" {
				reason, _ = said{answer: true}.hears(string(reply.text))
			}
		}
		if err := cmp.Or(canceled(ctx), m.took(reply, m.batches[i], RoleRerank, &p, reason)); err != nil || r.stopped {
			return err
		}
		if p.Text == "" {
			continue
		}
		if rate.Unscored {
			r.emit(Warning{Message: fmt.Sprintf("the model gave no score to its answer from [%d] %s, so it counts as 0", i+1, clip(kept[i].Title, 80))})
		}
		rated, parts = append(rated, rate), append(parts, p)
	}
	if len(parts) == 0 {
		return m.nothing()
	}
	best := parts[Rank(rated)[0]]
	if len(best.cited) == 0 {
		// An answer from one passage rests on that passage.
		best.Text = labelled(strings.TrimRight(best.Text, " \t\n"), best.Labels[0], "")
	}
	r.usage.Used = 1
	r.emit(Text{Text: best.Text})
	r.finish()
	return nil
}
