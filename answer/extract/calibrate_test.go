package extract

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/embed/encoder"
)

var must = datatest.Must

// This file checks that the weights of score.go hold on public question sets, in the folder
// that IBID_DATASETS names. On the index of a set, its own answerable questions are on
// topic, and the questions of all other sets are off topic. The third kind is the questions
// that look answerable but are not (squad2, clapnq).

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
	must(t, err)
	if l.reading, err = Read(ctx, text, l.passages, stats, s.embedder, s.encoder); err != nil {
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

// askAll asks every set some of its own questions and some of the questions of other sets.
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

// TestCalibrationHolds checks that the weights in use separate questions on topic from
// those off topic, on sets of three kinds: encyclopedia, product documentation, abstracts.
func TestCalibrationHolds(t *testing.T) {
	if model, err := embed.New(); err != nil || model.Space() != calibratedSpace {
		t.Fatalf("the weights of score.go were fitted on another embedding model; fit them again (%v)", err)
	}
	var sets []*set
	names, each, least, lowest := []string{"squad2-a", "clapnq-a", "anthropic-docs", "cranfield"}, 40, .985, .96
	if !datatest.Campaign() {
		names, each, least, lowest = names[:2], 16, .95, .95 // figures from few questions are imprecise
	}
	for _, name := range names {
		sets = append(sets, openSet(t, name, 250, nil))
	}
	all := askAll(t, sets, each)
	gate, check := make(map[*set]*[3][]float64), make(map[*set]*[3][]float64)
	for _, s := range append(sets, nil) { // nil is the key for all sets
		gate[s], check[s] = new([3][]float64), new([3][]float64)
	}
	for _, a := range all {
		best := 0.0
		for i := range a.topic {
			best = max(best, logistic(topicModel[:], a.topic[i][:]))
		}
		chance := a.reading.confidence(ranking(a.all))
		for _, s := range []*set{a.set, nil} {
			gate[s][a.kind] = append(gate[s][a.kind], best)
			check[s][a.kind] = append(check[s][a.kind], chance)
		}
	}
	for name, chances := range map[string]map[*set]*[3][]float64{"gate": gate, "confidence": check} {
		mean := 0.0
		for s, c := range chances {
			got, where := eval.AUROC(c[answers], c[offTopic]), "all sets together"
			if s != nil {
				mean += got / float64(len(sets))
				where = s.name
			}
			if got < lowest {
				t.Errorf("%s: AUROC of %s against off-topic questions = %.4f, want %.3f", where, name, got, lowest)
			}
		}
		if t.Logf("%s: mean AUROC of the sets against off-topic questions %.4f", name, mean); mean < least {
			t.Errorf("mean AUROC of %s against off-topic questions = %.4f, want %.3f", name, mean, least)
		}
	}
	if got, want := eval.AUROC(check[nil][answers], check[nil][unanswerable]), .6; got < want {
		t.Errorf("AUROC of the confidence against unanswerable questions = %.4f, want %.2f", got, want)
	}
	for kind, name := range []string{"answerable", "off-topic", "unanswerable"} {
		t.Logf("answered of the %s questions: %.3f", name, accepted(check[nil][kind], DefaultConfidence))
	}
	if got := accepted(check[nil][answers], DefaultConfidence); got < .95 {
		t.Errorf("%.3f of the answerable questions are answered, want .95", got)
	}
}

// TestScripts: most questions with an answer are answered, and few about articles that
// are not in the library: every second article of a set is removed, and its questions are
// asked all the same. With IBID_ENCODER, sentences get second scores. It prints how well
// the chances part the two, and without an encoder how well those of a fit without the
// language do.
func TestScripts(t *testing.T) {
	datatest.CampaignOnly(t, "indexing one of the sets needs seconds")
	most := map[string]float64{"en": .4, "ru": .35, "zh": .3, "hi": .4, "ar": .4, "de": .4, "es": .5, "th": .6} // answered off topic
	m := openEncoder(t)
	signals, is, inUse := map[string][][]float64{}, map[string][]int{}, map[string][2][]float64{}
	for language := range most {
		if m != nil && !m.Knows(language) {
			continue
		}
		s := openSet(t, "xquad-a/"+language, 0, nil)
		s.encoder = m
		own, absent := s.halve(t)
		random, used := rand.New(rand.NewPCG(7, 8)), [2][]float64{}
		for kind, list := range [][]question{answers: own, offTopic: absent} {
			for _, q := range pick(random, list, 80) {
				l := s.look(t.Context(), t, q.Text)
				if best := ranking(l.all); len(best) > 0 {
					signals[language] = append(signals[language], []float64{best[0].about.lexical, best[0].signals[sigWindow]})
					is[language], used[kind] = append(is[language], kind), append(used[kind], l.reading.confidence(best))
				}
			}
		}
		inUse[language] = used
	}
	for language, used := range inUse {
		lost, off := 1-accepted(used[answers], DefaultConfidence), accepted(used[offTopic], DefaultConfidence)
		t.Logf("%s, off topic in the same style: AUROC %.3f; lost %.3f, off topic answered %.2f", language,
			eval.AUROC(used[answers], used[offTopic]), lost, off)
		if m == nil {
			spaced, kinds := maps.Clone(signals), maps.Clone(is)
			delete(spaced, "th") // its own model
			delete(spaced, "en")
			weights := fitLogistic(spaced, kinds, language)
			var left [2][]float64
			for n, f := range signals[language] {
				left[is[language][n]] = append(left[is[language][n]], logistic(weights, f))
			}
			t.Logf("%s: AUROC of a fit without the language %.3f", language, eval.AUROC(left[answers], left[offTopic]))
		}
		if lost > .1 || off > most[language] {
			t.Errorf("%s: lost %.3f, off topic answered %.2f; want at most .1 and %.2f", language, lost, off, most[language])
		}
	}
}

// openEncoder opens the encoder that IBID_ENCODER names, or returns nil.
func openEncoder(t *testing.T) retrieve.Encoder {
	t.Helper()
	path := os.Getenv("IBID_ENCODER")
	if path == "" {
		return nil
	}
	m, err := encoder.Open(path)
	must(t, err)
	return m
}

// halve removes every second article of a set of XQuAD, and returns the questions about the
// articles that are left and those about the removed ones.
func (s *set) halve(t *testing.T) (own, absent []question) {
	t.Helper()
	article := func(q question) string {
		for id := range q.gold {
			name, _, _ := strings.Cut(id, "#")
			return name
		}
		return ""
	}
	var articles []string
	for _, q := range s.questions {
		articles = append(articles, article(q))
	}
	slices.Sort(articles)
	articles = slices.Compact(articles)
	for _, q := range s.questions {
		if at, _ := slices.BinarySearch(articles, article(q)); at%2 == 0 {
			own = append(own, q)
			continue
		}
		absent = append(absent, q)
		for id := range q.gold {
			must(t, s.index.Delete(t.Context(), id))
		}
	}
	return own, absent
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
