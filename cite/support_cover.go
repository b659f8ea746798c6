package cite

import (
	"slices"
	"unicode/utf8"
)

const (
	// maxClaimWords is how many different words of a claim are looked up, so
	// that time stays linear: a longer one is no sentence, and what is behind
	// them counts as not covered.
	maxClaimWords = 256
	// maxEvidence is how many sentences of a passage are taken together as
	// evidence.
	maxEvidence = 3
	// likeness is how far a word counts for another with the same beginning.
	likeness = 0.8
)

// A cover says which words of a claim stand in which sentences of a passage.
type cover struct {
	claim     []word    // the different words that prove something, in order
	total     float64   // how many there are
	context   []float64 // how far the passage's headings cover each word
	sentences []covered
	keys      map[string]bool // of all words of the passage and its headings
	scratch   []float64       // the degrees of a run of sentences
}

// A covered is one sentence with the claim's words that it covers.
type covered struct {
	span
	words []word
	hits  []hit
}

// A hit is a word of the claim found in a sentence; degree is 1 for the word
// itself and less for one that is like it.
type hit struct {
	claim  int
	degree float64
}

// claimWords gives the different words of a claim that prove something; all
// of them when it has no others.
func claimWords(words []word) []word {
	seen := make(map[string]bool, len(words))
	var out []word
	for _, w := range words {
		if w.kind != light && !seen[w.key] {
			seen[w.key] = true
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		for _, w := range words {
			if !seen[w.key] {
				seen[w.key] = true
				out = append(out, w)
			}
		}
	}
	return out
}

// cover looks the words of a claim up in the sentences of a text. The words of
// context are taken to be said in every one of them.
func (s Support) cover(claim []word, text, context string, spans []span) *cover {
	total := float64(len(claim))
	claim = claim[:min(len(claim), maxClaimWords)]
	c := &cover{claim: claim, total: total, context: make([]float64, len(claim)), keys: make(map[string]bool)}
	index := make(map[string]int, len(claim))
	for i, w := range claim {
		index[w.key] = i
	}
	l := lexer{stem: s.Stem, begins: beginnings(claim)}
	for _, w := range l.read(context) {
		c.keys[w.key] = true
		if i, ok := index[w.key]; ok {
			c.context[i] = 1
		}
	}
	c.sentences = make([]covered, len(spans))
	for i, at := range spans {
		c.sentences[i] = covered{span: at, words: l.read(text[at.start:at.end])}
	}
	like := newLikes(claim)
	degree := make([]float64, len(claim))
	for i := range c.sentences {
		sentence := &c.sentences[i]
		var touched []int
		mark := func(claim int, d float64) {
			if degree[claim] == 0 {
				touched = append(touched, claim)
			}
			degree[claim] = max(degree[claim], d)
		}
		for _, w := range sentence.words {
			c.keys[w.key] = true
			if claim, ok := index[w.key]; ok {
				mark(claim, 1)
			}
			for _, claim := range like.of(w) {
				mark(claim, likeness)
			}
		}
		for _, claim := range touched {
			sentence.hits = append(sentence.hits, hit{claim, degree[claim]})
			degree[claim] = 0
		}
	}
	return c
}

// likes finds the words of a claim that begin as another word does: mostly
// they are forms of one that no stemmer brings together (historic, historian).
type likes struct {
	claim  []word
	begins map[string][]int // by their first bytes
	memo   map[string][]int
}

// sameBeginning is the least number of characters that such words share.
const sameBeginning = 5

func newLikes(claim []word) *likes {
	l := &likes{claim: claim, begins: make(map[string][]int), memo: make(map[string][]int)}
	for i, w := range claim {
		if w.kind != light && w.kind != number && len(w.plain) >= sameBeginning {
			b := w.plain[:sameBeginning]
			l.begins[b] = append(l.begins[b], i)
		}
	}
	return l
}

// of gives the claim's words that are like w but not the same.
func (l *likes) of(w word) []int {
	if w.kind == light || w.kind == number || len(w.plain) < sameBeginning {
		return nil
	}
	among := l.begins[w.plain[:sameBeginning]]
	if len(among) == 0 {
		return nil
	}
	found, ok := l.memo[w.plain]
	if !ok {
		for _, i := range among {
			if l.claim[i].key != w.key && alike(l.claim[i].plain, w.plain) {
				found = append(found, i)
			}
		}
		l.memo[w.plain] = found
	}
	return found
}

// alike says whether the beginning that two words share is most of both.
func alike(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return utf8.RuneCountInString(clip(a, n)) >= sameBeginning && 4*n >= 3*min(len(a), len(b)) && 5*n >= 3*max(len(a), len(b))
}

// add raises the degrees to those of a sentence and gives what that gained.
func (c *cover) add(degrees []float64, sentence int) float64 {
	gain := 0.0
	for _, h := range c.sentences[sentence].hits {
		if d := h.degree - degrees[h.claim]; d > 0 {
			gain += d
			degrees[h.claim] = h.degree
		}
	}
	return gain
}

// gain is what a sentence would add.
func (c *cover) gain(degrees []float64, sentence int) float64 {
	gain := 0.0
	for _, h := range c.sentences[sentence].hits {
		gain += max(0, h.degree-degrees[h.claim])
	}
	return gain
}

// evidence picks the sentences that together cover most of the claim, the
// best first, and gives how far each word is covered.
func (c *cover) evidence() (picked []int, degrees []float64) {
	degrees = slices.Clone(c.context)
	for range maxEvidence {
		best, most := -1, 1e-9
		for i := range c.sentences {
			if g := c.gain(degrees, i); g > most {
				best, most = i, g
			}
		}
		if best < 0 {
			break
		}
		c.add(degrees, best)
		picked = append(picked, best)
	}
	return picked, degrees
}

// share is the share of the claim covered by a run of sentences
// taken together with the headings.
func (c *cover) share(first, behind int) float64 {
	degrees := append(c.scratch[:0], c.context...)
	c.scratch = degrees
	sum := 0.0
	for _, d := range degrees {
		sum += d
	}
	for i := first; i < behind; i++ {
		sum += c.add(degrees, i)
	}
	if c.total == 0 {
		return 0
	}
	return sum / c.total
}

// quote gives the range of the sentence that covers most of the claim, or of
// a few in a row when each adds enough.
func (c *cover) quote() span {
	best, most := c.sentences[0].span, -1.0
	for i := range c.sentences {
		if len(c.sentences[i].hits) == 0 {
			continue
		}
		for n := 1; n <= maxQuote && i+n <= len(c.sentences); n++ {
			if v := c.share(i, i+n) - worthQuoting*float64(n-1); v > most+1e-9 {
				best, most = span{c.sentences[i].start, c.sentences[i+n-1].end}, v
			}
		}
	}
	return best
}
