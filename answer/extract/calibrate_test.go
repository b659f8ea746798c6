package extract

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// This file fits the numbers of score.go on public question sets, and checks
// that those in use still hold there. To fit them again:
//
//	IBID_CALIBRATE=1 go test ./answer/extract -run TestCalibrate -v -timeout 30m
//
// prints the arrays to paste into score.go. The sets are found by
// IBID_DATASETS. On each set's index, its own answerable questions are on
// topic, and the questions of all other sets are off topic; those written to
// look answerable and be not (squad2, clapnq) are the third kind. The sample
// library's questions are never fitted on.

// A look is a question with its passages and their signals.
type look struct {
	passages []retrieve.Passage
	reading  *Reading
	topic    [][topicSignals]float64
	all      [][]sentence
}

func (s *set) look(ctx context.Context, t *testing.T, text string) *look {
	t.Helper()
	l := &look{}
	var err error
	if l.passages, err = s.index.Search(ctx, retrieve.Query{Text: text}); err != nil {
		t.Fatal(err)
	}
	stats, err := s.index.Stats(ctx, retrieve.Terms(text))
	if err != nil {
		t.Fatal(err)
	}
	if l.reading, err = Read(ctx, text, l.passages, stats, s.embedder); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.passages {
		l.topic = append(l.topic, l.reading.topic(p.ID))
	}
	if l.all, err = l.reading.sentences(ctx, l.passages); err != nil {
		t.Fatal(err)
	}
	return l
}

// holds reports whether a sentence of a passage holds the answer to a question.
func (q *question) holds(p retrieve.Passage, s sentence) bool {
	text := " " + strings.Join(retrieve.Terms(s.text), " ") + " "
	for _, a := range q.Answers {
		terms := retrieve.Terms(a)
		if len(terms) == 0 {
			continue
		}
		if len(terms) <= 12 {
			if strings.Contains(text, " "+strings.Join(terms, " ")+" ") {
				return true
			}
			continue
		}
		// A long answer: the sentence's words are in it.
		in := map[string]bool{}
		for _, t := range terms {
			in[t] = true
		}
		hits := 0
		for t := range s.terms {
			if in[t] {
				hits++
			}
		}
		if len(s.terms) >= 4 && float64(hits) >= .7*float64(len(s.terms)) {
			return true
		}
	}
	return false
}

// contest makes a contest of the sentences of one question: those that hold
// the answer win, and where no answer is known, those of the right documents.
func (a *asked) contest() (contest, bool) {
	c := contest{set: a.set}
	any := false
	for pass := 0; pass < 2 && !any; pass++ {
		c.x, c.wins = nil, nil
		for i, p := range a.passages {
			gold := a.q.gold[p.Document]
			for k := range a.all[i] {
				s := a.all[i][k]
				holds := a.q.holds(p, s)
				if holds && !gold { // right by another document, or by chance
					continue
				}
				win := gold && (holds || pass == 1)
				any = any || win
				c.x = append(c.x, slices.Clone(s.signals[:]))
				c.wins = append(c.wins, win)
			}
		}
	}
	return c, any
}

// The kinds of a question asked of a set.
const (
	answers = iota
	offTopic
	unanswerable
)

type asked struct {
	set  *set
	kind int
	q    question
	*look
}

// askAll asks every set some of its own questions and some of the others'.
func askAll(t *testing.T, sets []*set, each int) []asked {
	r := rand.New(rand.NewPCG(1, 2))
	var out []asked
	for _, s := range sets {
		var own, not, off []question
		for _, q := range s.questions {
			if q.answerable() {
				own = append(own, q)
			} else if q.Answerable != nil && !*q.Answerable {
				not = append(not, q)
			}
		}
		for _, other := range sets {
			if other != s {
				off = append(off, pick(r, other.questions, each/2)...)
			}
		}
		for kind, list := range [][]question{own, off, not} {
			for _, q := range pick(r, list, each) {
				out = append(out, asked{s, kind, q, s.look(t.Context(), t, q.Text)})
			}
		}
	}
	return out
}

func TestCalibrate(t *testing.T) {
	if os.Getenv("IBID_CALIBRATE") == "" {
		t.Skip("fits the numbers of score.go; IBID_CALIBRATE=1 runs it")
	}
	var sets []*set
	for _, s := range []struct {
		name string
		most int
	}{{"squad2-a", 0}, {"clapnq-a", 500}, {"anthropic-docs", 0}, {"cranfield", 600}, {"msmarco-dl-5k", 1000}, {"scifact-train", 600}} {
		sets = append(sets, openSet(t, s.name, s.most))
	}
	all := askAll(t, sets, 200)

	var rows []sample
	for _, a := range all {
		switch a.kind {
		case answers:
			for i, p := range a.passages {
				if a.q.gold[p.Document] {
					rows = append(rows, sample{a.topic[i][:], true, 1})
				}
			}
		case offTopic:
			for i := range min(4, len(a.passages)) {
				rows = append(rows, sample{a.topic[i][:], false, .5})
			}
		}
	}
	topic := fit(rows)
	t.Log(literal("topicModel", topic))

	var contests []contest
	for _, a := range all {
		if a.kind == answers {
			if c, ok := a.contest(); ok {
				contests = append(contests, c)
			}
		}
	}
	sentences := choose(contests)
	t.Log(literal("sentenceModel", sentences))
	first, three, n := 0, 0, 0
	goldDoc := 0
	for _, a := range all {
		for i := range a.all {
			for k := range a.all[i] {
				a.all[i][k].score = inner(sentences, a.all[i][k].signals[:])
			}
		}
		if a.kind != answers || len(a.q.Answers) == 0 {
			continue
		}
		var flat []sentence
		for _, list := range a.all {
			flat = append(flat, list...)
		}
		slices.SortStableFunc(flat, func(a, b sentence) int { return cmp.Compare(b.score, a.score) })
		n++
		if len(flat) > 0 && a.q.gold[a.passages[flat[0].passage].Document] {
			goldDoc++
		}
		for i, s := range flat[:min(3, len(flat))] {
			if a.q.holds(a.passages[s.passage], s) {
				three++
				if i == 0 {
					first++
				}
				break
			}
		}
	}
	t.Logf("of %d questions, the best sentence holds the answer %.3f, one of the best three %.3f; the best one stands in a right document %.3f", n, float64(first)/float64(n), float64(three)/float64(n), float64(goldDoc)/float64(n))

	rows = nil
	for _, a := range all {
		f := a.reading.answerableSignals(a.passages, a.all)
		rows = append(rows, sample{slices.Clone(f[:]), a.kind == answers, []float64{1, 1, .3}[a.kind]})
	}
	answerable := fit(rows)
	t.Log(literal("answerableModel", answerable))

	report(t, sets, all, topic, answerable)
}

// The numbers in use part questions on topic from those off it, on sets of
// three kinds: encyclopedia, product documentation, abstracts.
func TestCalibrationHolds(t *testing.T) {
	if model, err := embed.New(); err != nil || model.Space() != calibratedSpace {
		t.Fatalf("the numbers of score.go were fitted on another embedding model: fit them anew (%v)", err)
	}
	var sets []*set
	names, each, least := []string{"squad2-a", "clapnq-a", "anthropic-docs", "cranfield"}, 40, .985
	if !datatest.Campaign() {
		names, each, least = names[:2], 16, .95 // few questions make rough figures
	}
	for _, name := range names {
		sets = append(sets, openSet(t, name, 250))
	}
	all := askAll(t, sets, each)
	report(t, sets, all, topicModel[:], answerableModel[:])
	gate, check := make(map[*set]*[3][]float64), make(map[*set]*[3][]float64)
	for _, s := range append(sets, nil) { // nil is for all of them
		gate[s], check[s] = new([3][]float64), new([3][]float64)
	}
	for _, a := range all {
		best := 0.0
		for i := range a.topic {
			best = max(best, logistic(topicModel[:], a.topic[i][:]))
		}
		chance := a.reading.answerable(a.passages, a.all)
		for _, s := range []*set{a.set, nil} {
			gate[s][a.kind] = append(gate[s][a.kind], best)
			check[s][a.kind] = append(check[s][a.kind], chance)
		}
	}
	for name, chances := range map[string]map[*set]*[3][]float64{"gate": gate, "answerability check": check} {
		mean := 0.0
		for s, c := range chances {
			got, where := eval.AUROC(c[answers], c[offTopic]), "all sets together"
			if s != nil {
				mean += got / float64(len(sets))
				where = s.name
			}
			if got < least {
				t.Errorf("%s: the %s's AUROC against off-topic questions is %.4f, want %.3f", where, name, got, least)
			}
		}
		if t.Logf("%s: mean AUROC of the sets against off-topic questions %.4f", name, mean); mean < least {
			t.Errorf("the %s's mean AUROC of the sets against off-topic questions is %.4f, want %.3f", name, mean, least)
		}
	}
	if got, want := eval.AUROC(check[nil][answers], check[nil][unanswerable]), .6; got < want {
		t.Errorf("the answerability check's AUROC against unanswerable questions is %.4f, want %.2f", got, want)
	}
	if got := accepted(check[nil][answers], answerableAt); got < .9 {
		t.Errorf("of the answerable questions %.3f pass the check, want .9", got)
	}
}

// report prints how well the gate and the answerability check part the kinds.
func report(t *testing.T, sets []*set, all []asked, topic, answerable []float64) {
	t.Helper()
	for _, s := range append([]*set{nil}, sets...) {
		var gate, check [3][]float64
		for _, a := range all {
			if s != nil && a.set != s {
				continue
			}
			best := 0.0
			for i := range a.topic {
				best = max(best, logistic(topic, a.topic[i][:]))
			}
			f := a.reading.answerableSignals(a.passages, a.all)
			gate[a.kind] = append(gate[a.kind], best)
			check[a.kind] = append(check[a.kind], logistic(answerable, f[:]))
		}
		name := "all"
		if s != nil {
			name = s.name
		}
		line := fmt.Sprintf("%-15s gate: off-topic AUROC %.4f", name, eval.AUROC(gate[answers], gate[offTopic]))
		line += fmt.Sprintf(", kept at .5: %.3f of answerable, %.3f of off-topic; at .3 %.3f, %.3f", accepted(gate[answers], .5), accepted(gate[offTopic], .5), accepted(gate[answers], .3), accepted(gate[offTopic], .3))
		line += fmt.Sprintf(" | check: off-topic %.4f", eval.AUROC(check[answers], check[offTopic]))
		if len(check[unanswerable]) > 0 {
			line += fmt.Sprintf(", unanswerable %.4f (gate %.4f)", eval.AUROC(check[answers], check[unanswerable]), eval.AUROC(gate[answers], gate[unanswerable]))
		}
		for _, share := range []float64{.02, .05, .1} {
			at := below(check[answers], share)
			line += fmt.Sprintf("; %.0f%%@%.2f off %.3f", 100-100*share, at, accepted(check[offTopic], at))
			if len(check[unanswerable]) > 0 {
				line += fmt.Sprintf(" un %.3f", accepted(check[unanswerable], at))
			}
		}
		t.Log(line)
	}
}
