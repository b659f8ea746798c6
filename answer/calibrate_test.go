package answer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/local"
)

// This file fits the numbers of score.go on public question sets, and checks
// that those in use still hold there. To fit them anew:
//
//	IBID_CALIBRATE=1 go test ./answer -run TestCalibrate -v -timeout 30m
//
// prints the arrays to paste into score.go. The sets are found by
// IBID_DATASETS. On each set's index, its own answerable questions are on
// topic, and the questions of all other sets are off topic; those written to
// look answerable and be not (squad2, clapnq) are the third kind. The sample
// library's questions are never fitted on.

// A set is one public question set, indexed.
type set struct {
	name      string
	index     *retrieve.Index
	embedder  retrieve.Embedder
	questions []question
	texts     []string
}

type question struct {
	ID          string          `json:"_id"`
	Text        string          `json:"text"`
	Answerable  *bool           `json:"answerable"`
	Answers     []string        `json:"answers"`
	SourceDoc   string          `json:"source_doc"`
	Support     [][]int         `json:"support_sentences"`
	PositiveDoc [][]string      `json:"positive_groups"`
	gold        map[string]bool // ids of the documents that answer it
}

func (q *question) answerable() bool {
	return (q.Answerable == nil || *q.Answerable) && len(q.gold) > 0
}

func datasets(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("IBID_DATASETS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the evaluation sets are not here (IBID_DATASETS names their folder): %v", err)
	}
	return dir
}

func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// openSet indexes a set: a document for each record, cut as ingest cuts it.
func openSet(t *testing.T, dir, name string, most int) *set {
	t.Helper()
	ctx := t.Context()
	model, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := local.Open(ctx, t.TempDir(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	index, err := retrieve.NewIndex(ctx, engine, model, retrieve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := index.AddRoot(ctx, "/set", "")
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		ID    string `json:"_id"`
		Title string
		Text  string
	}
	s := &set{name: name, index: index, embedder: model}
	s.questions = readLines[question](t, filepath.Join(dir, name, "queries.jsonl"))
	gold := map[string]map[string]bool{}
	qrels, err := os.ReadFile(filepath.Join(dir, name, "qrels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(qrels)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[2] != "0" && f[0] != "query-id" {
			if gold[f[0]] == nil {
				gold[f[0]] = map[string]bool{}
			}
			gold[f[0]]["set/"+f[1]] = true
		}
	}
	for i := range s.questions {
		s.questions[i].gold = gold[s.questions[i].ID]
	}
	records := readLines[record](t, filepath.Join(dir, name, "corpus.jsonl"))
	if most > 0 && len(records) > most {
		// A library is smaller than these sets: keep what the questions need first.
		needed := map[string]bool{}
		for _, q := range s.questions {
			for id := range q.gold {
				needed[id] = true
			}
			needed["set/"+q.SourceDoc] = true
		}
		slices.SortStableFunc(records, func(a, b record) int {
			rank := func(r record) int {
				if needed["set/"+r.ID] {
					return 0
				}
				return 1
			}
			return cmp.Compare(rank(a), rank(b))
		})
		for _, r := range records[most:] {
			for i := range s.questions {
				delete(s.questions[i].gold, "set/"+r.ID)
			}
		}
		records = records[:most]
	}
	for _, r := range records {
		if strings.TrimSpace(r.Text) == "" {
			continue
		}
		s.texts = append(s.texts, r.Text)
		doc := &ingest.Document{ID: "set/" + r.ID, Root: root.Name, Path: r.ID, Title: r.Title, Format: "text", Digest: strings.Repeat("0", 64), Text: r.Text}
		if err := index.Replace(ctx, doc, ingest.Split(doc, ingest.SplitOptions{})); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A look is what the answerer sees of one question.
type look struct {
	passages []retrieve.Passage
	run      *run
	topic    [][topicSignals]float64
	all      [][]sentence
}

func (s *set) look(ctx context.Context, t *testing.T, text string) *look {
	t.Helper()
	r := &run{Answerer: &Answerer{Retriever: s.index, Embedder: s.embedder}, asked: text}
	l := &look{run: r}
	var err error
	if l.passages, err = s.index.Search(ctx, retrieve.Query{Text: text}); err != nil {
		t.Fatal(err)
	}
	if r.reading, err = r.read(ctx, l.passages); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.passages {
		l.topic = append(l.topic, r.reading.topic(p))
	}
	if l.all, err = r.sentences(ctx, l.passages); err != nil {
		t.Fatal(err)
	}
	return l
}

// holds tells whether a sentence of a passage holds the answer to a question.
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

// A sample is one row of a regression.
type sample struct {
	x      []float64
	y      bool
	weight float64
}

// fit is logistic regression by Newton's method with a small ridge.
func fit(samples []sample) []float64 {
	d := len(samples[0].x) + 1
	w := make([]float64, d)
	for range 30 {
		h := make([][]float64, d)
		for i := range h {
			h[i] = make([]float64, d+1)
			h[i][i] = 1e-2
			if i > 0 {
				h[i][d] = -1e-2 * w[i]
			}
		}
		for _, s := range samples {
			p := logistic(w, s.x)
			y := 0.0
			if s.y {
				y = 1
			}
			at := func(i int) float64 {
				if i == 0 {
					return 1
				}
				return s.x[i-1]
			}
			g, c := s.weight*(y-p), s.weight*max(p*(1-p), 1e-9)
			for i := range d {
				h[i][d] += g * at(i)
				for j := range d {
					h[i][j] += c * at(i) * at(j)
				}
			}
		}
		step := solve(h)
		size := 0.0
		for i := range w {
			w[i] += step[i]
			size += math.Abs(step[i])
		}
		if size < 1e-8 {
			break
		}
	}
	return w
}

// solve is Gaussian elimination with pivots; the last column is the right side.
func solve(m [][]float64) []float64 {
	n := len(m)
	for c := range n {
		p := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[p][c]) {
				p = r
			}
		}
		m[c], m[p] = m[p], m[c]
		for r := range n {
			if r == c {
				continue
			}
			f := m[r][c] / m[c][c]
			for k := c; k <= n; k++ {
				m[r][k] -= f * m[c][k]
			}
		}
	}
	out := make([]float64, n)
	for i := range n {
		out[i] = m[i][n] / m[i][i]
	}
	return out
}

// A contest is a question's sentences, some of which hold the answer.
type contest struct {
	set  *set
	x    [][]float64
	wins []bool
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
				c.x = append(c.x, slices.Clone(s.fits[:]))
				c.wins = append(c.wins, win)
			}
		}
	}
	return c, any
}

func inner(w, x []float64) float64 {
	z := 0.0
	for i := range x {
		z += w[i] * x[i]
	}
	return z
}

// choose fits weights so that the sum of the softmax of the winners is as
// large as can be, each set weighing the same (a conditional logit, by
// gradient ascent with Adam's step sizes and a small ridge).
func choose(contests []contest) []float64 {
	d := len(contests[0].x[0])
	weight := map[*set]float64{}
	for _, c := range contests {
		weight[c.set]++
	}
	for s, n := range weight {
		weight[s] = 1 / (n * float64(len(weight)))
	}
	w, m, v := make([]float64, d), make([]float64, d), make([]float64, d)
	for step := 1; step <= 250; step++ {
		g := make([]float64, d)
		for i := range g {
			g[i] = -2e-3 * w[i]
		}
		for _, c := range contests {
			z := make([]float64, len(c.x))
			top := math.Inf(-1)
			for i, x := range c.x {
				z[i] = inner(w, x)
				top = max(top, z[i])
			}
			var total, winners float64
			for i := range z {
				z[i] = math.Exp(z[i] - top)
				total += z[i]
				if c.wins[i] {
					winners += z[i]
				}
			}
			for i, x := range c.x {
				pull := -z[i] / total
				if c.wins[i] {
					pull += z[i] / max(winners, 1e-12)
				}
				pull *= weight[c.set]
				for k := range g {
					g[k] += pull * x[k]
				}
			}
		}
		for k := range w {
			m[k] = .9*m[k] + .1*g[k]
			v[k] = .999*v[k] + .001*g[k]*g[k]
			w[k] += .1 * (m[k] / (1 - math.Pow(.9, float64(step)))) / (math.Sqrt(v[k]/(1-math.Pow(.999, float64(step)))) + 1e-8)
		}
	}
	return w
}

// won is the share of contests whose first sentence holds the answer.
func won(contests []contest, w []float64) float64 {
	n := 0
	for _, c := range contests {
		best := 0
		for i := range c.x {
			if inner(w, c.x[i]) > inner(w, c.x[best]) {
				best = i
			}
		}
		if c.wins[best] {
			n++
		}
	}
	return float64(n) / float64(len(contests))
}

// auroc is the chance that a random good value is above a random bad one.
func auroc(good, bad []float64) float64 {
	type v struct {
		x    float64
		good bool
	}
	var all []v
	for _, x := range good {
		all = append(all, v{x, true})
	}
	for _, x := range bad {
		all = append(all, v{x, false})
	}
	slices.SortFunc(all, func(a, b v) int { return cmp.Compare(a.x, b.x) })
	sum := 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].x == all[i].x {
			j++
		}
		rank := float64(i+j+1) / 2
		for ; i < j; i++ {
			if all[i].good {
				sum += rank
			}
		}
	}
	n, m := float64(len(good)), float64(len(bad))
	return (sum - n*(n+1)/2) / (n * m)
}

// below is the value under which the given share of all lies.
func below(values []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(share*float64(len(s)-1))]
}

func accepted(values []float64, at float64) float64 {
	n := 0
	for _, v := range values {
		if v >= at {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func pick[T any](r *rand.Rand, from []T, n int) []T {
	from = slices.Clone(from)
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(n, len(from))]
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

// A thesaurus finds words of like meaning: with it half of the questions are
// worded as people do who have not read the documents, with other words.
type thesaurus struct {
	words   []string
	vectors [][]float32
	model   *embed.Model
}

// Words whose cosine lies between these are taken for each other's like.
const (
	likeLeast = .45
	likeMost  = .8
)

func newThesaurus(t *testing.T, sets []*set) *thesaurus {
	t.Helper()
	counts := map[string]int{}
	for _, s := range sets {
		for _, text := range s.texts {
			for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
				if len(word) >= 4 {
					counts[word]++
				}
			}
		}
	}
	th := &thesaurus{}
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		if counts[word] >= 4 {
			th.words = append(th.words, word)
		}
	}
	var err error
	if th.model, err = embed.New(); err != nil {
		t.Fatal(err)
	}
	if th.vectors, err = th.model.Embed(t.Context(), th.words); err != nil {
		t.Fatal(err)
	}
	return th
}

// reword puts words of like meaning in the place of about half of the
// question's content words.
func (th *thesaurus) reword(t *testing.T, r *rand.Rand, text string) string {
	t.Helper()
	content := termSet(text)
	fields := strings.Fields(text)
	for i, field := range fields {
		word := strings.Trim(field, "?.,;:!'\"()")
		stems := retrieve.Terms(word)
		if r.Float64() < .5 || len(stems) != 1 || !content[stems[0]] || strings.ToLower(word) != word {
			continue
		}
		v, err := th.model.Embed(t.Context(), []string{word})
		if err != nil {
			t.Fatal(err)
		}
		var like []string
		for k, w := range th.vectors {
			if cos := dot(v[0], w); cos > likeLeast && cos < likeMost && retrieve.Terms(th.words[k])[0] != stems[0] {
				like = append(like, th.words[k])
			}
		}
		if len(like) > 0 {
			fields[i] = strings.Replace(field, word, like[r.IntN(len(like))], 1)
		}
	}
	return strings.Join(fields, " ")
}

// askAll asks every set some of its own questions and some of the others';
// with a thesaurus, half of them reworded.
func askAll(t *testing.T, sets []*set, each int, th *thesaurus) []asked {
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
			for i, q := range pick(r, list, each) {
				if th != nil && i%2 == 1 {
					q.Text = th.reword(t, r, q.Text)
				}
				out = append(out, asked{s, kind, q, s.look(t.Context(), t, q.Text)})
			}
		}
	}
	return out
}

func literal(name string, w []float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = {", name)
	for i, x := range w {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.3f", x)
	}
	return b.String() + "}"
}

func TestCalibrate(t *testing.T) {
	if os.Getenv("IBID_CALIBRATE") == "" {
		t.Skip("fits the numbers of score.go; IBID_CALIBRATE=1 runs it")
	}
	dir := datasets(t)
	var sets []*set
	for _, s := range []struct {
		name string
		most int
	}{{"squad2-a", 0}, {"clapnq-a", 500}, {"anthropic-docs", 0}, {"cranfield", 600}, {"msmarco-dl-5k", 1000}, {"scifact-train", 600}} {
		sets = append(sets, openSet(t, dir, s.name, s.most))
	}
	all := askAll(t, sets, 200, newThesaurus(t, sets))

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
	for _, s := range sets {
		var own, others []contest
		for _, c := range contests {
			if c.set == s {
				own = append(own, c)
			} else {
				others = append(others, c)
			}
		}
		if os.Getenv("IBID_CALIBRATE") == "each" {
			w := choose(others)
			t.Logf("%-15s the best sentence wins %.3f, fitted on all sets but this", s.name, won(own, w))
		}
	}
	sentences := choose(contests)
	t.Log(literal("sentenceModel", sentences))
	first, three, n := 0, 0, 0
	goldDoc := 0
	for _, a := range all {
		for i := range a.all {
			for k := range a.all[i] {
				a.all[i][k].score = inner(sentences, a.all[i][k].fits[:])
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
		f := a.run.answerableSignals(a.passages, a.all)
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
	dir := datasets(t)
	var sets []*set
	for _, name := range []string{"squad2-a", "anthropic-docs", "cranfield"} {
		sets = append(sets, openSet(t, dir, name, 250))
	}
	all := askAll(t, sets, 40, nil)
	report(t, sets, all, topicModel[:], answerableModel[:])
	var gate, check [3][]float64
	for _, a := range all {
		best := 0.0
		for i := range a.topic {
			best = max(best, logistic(topicModel[:], a.topic[i][:]))
		}
		gate[a.kind] = append(gate[a.kind], best)
		check[a.kind] = append(check[a.kind], a.run.answerable(a.passages, a.all))
	}
	if got := auroc(gate[answers], gate[offTopic]); got < .975 {
		t.Errorf("the gate's AUROC against off-topic questions is %.4f, want .975", got)
	}
	if got := auroc(check[answers], check[offTopic]); got < .98 {
		t.Errorf("the answerability check's AUROC against off-topic questions is %.4f, want .98", got)
	}
	if got := accepted(check[answers], answerableAt); got < .95 {
		t.Errorf("of the answerable questions %.3f pass the check, want .95", got)
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
			f := a.run.answerableSignals(a.passages, a.all)
			gate[a.kind] = append(gate[a.kind], best)
			check[a.kind] = append(check[a.kind], logistic(answerable, f[:]))
		}
		name := "all"
		if s != nil {
			name = s.name
		}
		line := fmt.Sprintf("%-15s gate: off-topic AUROC %.4f", name, auroc(gate[answers], gate[offTopic]))
		line += fmt.Sprintf(", kept at .5: %.3f of answerable, %.3f of off-topic; at .3 %.3f, %.3f", accepted(gate[answers], .5), accepted(gate[offTopic], .5), accepted(gate[answers], .3), accepted(gate[offTopic], .3))
		line += fmt.Sprintf(" | check: off-topic %.4f", auroc(check[answers], check[offTopic]))
		if len(check[unanswerable]) > 0 {
			line += fmt.Sprintf(", unanswerable %.4f (gate %.4f)", auroc(check[answers], check[unanswerable]), auroc(gate[answers], gate[unanswerable]))
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
