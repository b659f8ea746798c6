package answer

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/retrieve"
)

// RoleRerank is the role of the calls of map-rerank, and the name of their prompt.
const RoleRerank Role = "rerank"

// A Rated is a candidate answer and the model's score for it.
type Rated struct {
	Answer string
	Score  int
	// Unscored says that no score could be read. Score is 0 then.
	Unscored bool
}

// scoreLine matches an answer and its score. The first score line counts.
var scoreLine = regexp.MustCompile(`(?s)(.*?)\nScore: ([0-9]*)`)

// maxScoreDigits prevents an overflow of int.
const maxScoreDigits = 9

// Rate reads a reply that ends in a line "Score: N". The answer is the verbatim
// text before that line, or the whole reply if it has no such line.
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

// Rank returns the indices of the rated answers, highest score first. Answers with
// equal scores keep their order.
func Rank(rated []Rated) []int {
	order := make([]int, len(rated))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rated[b].Score, rated[a].Score) })
	return order
}

// readScore splits the part's reply into text and score. A score at the end of a cut
// reply may lack a digit and does not count.
func (p *Part) readScore() {
	p.rated = Rate(p.Text)
	if !p.whole && Rate(p.Text+"0").Score != p.rated.Score {
		p.rated.Score, p.rated.Unscored = 0, true
	}
	p.Text = p.rated.Answer
}

// mapRerank is the strategy map-rerank: it answers from each passage alone, and
// emits the answer that the model scored highest.
func mapRerank(ctx context.Context, w *writing, kept []retrieve.Passage) error {
	room, err := w.writer.Room(string(RoleRerank))
	if err != nil {
		return err
	}
	passages := w.labelPassages(ctx, kept, min(len(kept), w.firstCalls()), noCalls)
	m := &mapping{writing: w, role: RoleRerank, passages: passages,
		reply: w.writer.Reply(), readMore: (*Part).readScore, used: map[string]bool{}}
	for i, p := range m.passages {
		e := prompt.NewEvidence(i+1, p)
		cost, err := w.writer.Cost(e)
		if err != nil {
			return err
		}
		fence := cost - w.writer.Count(e.Text())
		m.batches = append(m.batches, prompt.Batch{w.writer.Shorten(e, room-fence)})
	}
	parts, err := m.makeParts(ctx)
	if err != nil || w.stopped {
		return err
	}
	rated := make([]Rated, len(parts))
	for i, p := range parts {
		if rated[i] = p.rated; p.rated.Unscored {
			w.warn("the model gave no score to its answer from “%s”, so it counts as 0", prompt.Clip(m.passages[p.Labels[0]-1].Title, 80))
		}
	}
	best := parts[Rank(rated)[0]]
	if len(best.cited) == 0 {
		// An answer from one passage is based on that passage.
		best.Text = extract.Labelled(strings.TrimRight(best.Text, " \t\n"), best.Labels[0], "")
	}
	w.usage.Used = 1
	w.addText(best.Text)
	broken := ""
	if !best.whole {
		broken = reachedLength
	}
	return w.endAnswer(broken, m.failed, func() string {
		m.warnMissing()
		return ""
	})
}
