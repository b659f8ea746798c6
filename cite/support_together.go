package cite

import (
	"maps"

	"ibid/retrieve"
)

// Together says how well several passages bear a sentence out between them,
// where none may do so alone.
type Together struct {
	// Support is the estimated chance, 0 to 1, that they bear it out; 0 when
	// there are no two passages that add to it.
	Support float64
	// Parts says of each passage, in the order given, whether it adds to it.
	Parts []bool
}

// A Joiner judges a sentence of an answer by all the passages that it cites.
// The sentence comes without references.
type Joiner func(sentence string, passages []retrieve.Passage) Together

const (
	// A passage joins others only when it adds this many words of the claim,
	// or one beside as many that are covered already: with less, any
	// text that has the missing word would do.
	joinedWords = 2
	// mostJoined is how many passages are looked at.
	mostJoined = 16
)

// Join is a [Joiner]. It estimates the support as [Support.Find] does, from
// sentences of all the passages; what contradicts the claim in one of those
// sentences contradicts it. Time and memory are linear in the texts.
func (s Support) Join(sentence string, passages []retrieve.Passage) Together {
	t := Together{Parts: make([]bool, len(passages))}
	passages = passages[:min(len(passages), mostJoined)]
	all := (&lexer{stem: s.Stem}).read(statement(sentence))
	j := joined{parts: t.Parts}
	j.claim = claimWords(all)
	j.total = float64(len(j.claim))
	denial := false
	for i, p := range passages {
		spans := s.spans(p.Text)
		if len(spans) == 0 {
			continue
		}
		_, found := quoted(sentence, p.Text, spans)
		denial = denial || found == denied
		j.append(s.cover(j.claim, p.Text, p.Title+"\n"+p.Heading, spans), i)
	}
	picked, degrees := j.pick()
	if j.joining() < 2 {
		return t
	}
	t.Support = supportModel.chance(j.signals(degrees))
	for i := range picked {
		// Each in turn is the sentence that is looked at most closely.
		picked[0], picked[i] = picked[i], picked[0]
		denial = denial || j.contradicts(all, picked, degrees)
	}
	if denial {
		t.Support = min(t.Support, mostContradicted)
	}
	return t
}

// A joined is the cover of a claim by several passages.
type joined struct {
	cover
	owner []int             // of each sentence, the passage
	words []map[string]bool // of each sentence, the keys of its passage
	parts []bool
}

// append adds the sentences of a passage; the words of its headings are taken
// to be said in each.
func (j *joined) append(c *cover, passage int) {
	j.cover.claim = c.claim
	var headings []hit
	for i, d := range c.context {
		if d > 0 {
			headings = append(headings, hit{i, d})
		}
	}
	for _, x := range c.sentences {
		if len(x.hits) == 0 {
			continue
		}
		x.hits = append(x.hits, headings...)
		j.sentences = append(j.sentences, x)
		j.owner = append(j.owner, passage)
		j.words = append(j.words, c.keys)
	}
}

// pick picks the sentences that together cover most of the claim, the best
// first, marks the passages that they, or others as good, stand in, and gives
// how far each word is covered.
func (j *joined) pick() (picked []int, degrees []float64) {
	degrees = make([]float64, len(j.claim))
	j.keys = make(map[string]bool)
	for range max(maxEvidence, len(j.parts)) {
		best, most := -1, 1e-9
		for i := range j.sentences {
			if g := j.gain(degrees, i); g > most && j.joins(picked, degrees, i, g) {
				best, most = i, g
			}
		}
		if best < 0 {
			break
		}
		for i := range j.sentences {
			g := j.gain(degrees, i)
			if !j.parts[j.owner[i]] && g >= most-1e-9 && j.joins(picked, degrees, i, g) {
				j.parts[j.owner[i]] = true
				maps.Copy(j.keys, j.words[i])
			}
		}
		j.add(degrees, best)
		picked = append(picked, best)
	}
	return picked, degrees
}

// joins says whether a sentence that gains so much may stand beside those
// picked.
func (j *joined) joins(picked []int, degrees []float64, sentence int, gain float64) bool {
	switch {
	case len(picked) == 0 || gain >= joinedWords:
		return true
	case len(picked) >= maxEvidence:
		return false
	case j.parts[j.owner[sentence]]:
		return true
	}
	shared := 0.0
	for _, h := range j.sentences[sentence].hits {
		if degrees[h.claim] > 0 {
			shared++
		}
	}
	return gain >= 1 && shared >= joinedWords
}

// joining counts the passages that add something.
func (j *joined) joining() int {
	n := 0
	for _, part := range j.parts {
		if part {
			n++
		}
	}
	return n
}
