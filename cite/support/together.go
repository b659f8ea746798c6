package support

import "maps"

// Together says how well several passages bear a sentence out between them.
type Together struct {
	// Support is the estimated chance, 0 to 1, that they bear it out; 0 if
	// fewer than two passages add to it.
	Support float64
	// Parts reports of each passage, in the order given, whether it adds to it.
	Parts []bool
}

const (
	// minJoined is the number of words of the claim that a passage must add to
	// those before it: any text has a single missing word.
	minJoined = 2
	// maxJoined is the number of passages that are looked at.
	maxJoined = 16
)

// Join judges a sentence by all the passages that it cites. It estimates the
// support as [Prover.Find] does, from sentences of all the passages; what
// contradicts the claim in one of those sentences contradicts it. Time and
// memory are linear in the texts.
func (p Prover) Join(sentence string, passages []Passage) Together {
	all := p.claim(sentence)
	words := claimWords(all)
	j := joined{parts: make([]bool, len(passages))}
	j.keys, j.names = make(map[string]bool), make(map[string]bool)
	denied := false
	for i, passage := range passages[:min(len(passages), maxJoined)] {
		c := p.cover(words, passage)
		_, _, negated := c.verbatim(all)
		denied = denied || negated
		j.claim, j.total = c.claim, c.total
		maps.Copy(j.names, c.names)
		for _, s := range c.sentences {
			j.sentences = append(j.sentences, s)
			j.owner = append(j.owner, i)
			j.words = append(j.words, c.keys)
		}
	}
	picked, found := j.pick()
	if j.joined < 2 {
		return Together{Parts: j.parts}
	}
	support := weights.chance(j.signals(found))
	for i := range picked {
		// Each in turn is the sentence that is looked at most closely.
		picked[0], picked[i] = picked[i], picked[0]
		denied = denied || j.contradicts(all, picked, found)
	}
	if denied {
		support = min(support, maxContradicted)
	}
	return Together{support, j.parts}
}

// A joined is the cover of a claim by several passages.
type joined struct {
	cover
	owner []int             // the passage of each sentence
	words []map[string]bool // the keys of that passage
	parts []bool

	joined int // the number of parts
}

// pick picks the sentences that together have most of the claim's words, the
// best first, marks the passages that these, or others as good, belong to, and
// reports which words were found.
func (j *joined) pick() (picked []int, found []bool) {
	found = make([]bool, len(j.claim))
	for range max(maxEvidence, len(j.parts)) {
		best, most := -1, 0
		for i := range j.sentences {
			if g := j.gain(found, i); g > most && j.joins(picked, i, g) {
				best, most = i, g
			}
		}
		if best < 0 {
			break
		}
		for i := range j.sentences {
			if !j.parts[j.owner[i]] && j.gain(found, i) == most && j.joins(picked, i, most) {
				j.parts[j.owner[i]] = true
				j.joined++
				maps.Copy(j.keys, j.words[i])
			}
		}
		j.add(found, best)
		picked = append(picked, best)
	}
	return picked, found
}

// joins reports whether a sentence that adds so many words may join those picked.
func (j *joined) joins(picked []int, sentence, gain int) bool {
	return len(picked) == 0 || gain >= minJoined || len(picked) < maxEvidence && j.parts[j.owner[sentence]]
}
