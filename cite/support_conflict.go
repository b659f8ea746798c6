package cite

import "strings"

// sameWords is the share of a claim's words from which on evidence is taken
// to speak in the claim's own words, so that a negator makes the difference.
const sameWords = 0.8

// maxClaimRead is how many words of a claim are held against the evidence, so
// that the pairs compared grow with the evidence alone: what is longer is no
// sentence.
const maxClaimRead = 2 * maxClaimWords

// contradicts says whether the evidence says something else than the claim: the
// passage lacks one of its numbers or has another name in its place, it turns
// the statement round or the claim does, it has a word that excludes one of the
// claim's, makes an exception where the claim makes none, or has its date in
// another relation.
func (c *cover) contradicts(all []word, picked []int, degrees []float64) bool {
	all = all[:min(len(all), maxClaimRead)]
	for i, w := range c.claim {
		if w.kind == number && (degrees[i] < 1 && !c.keys[w.key] || c.otherSign(w, picked)) {
			return true
		}
	}
	best := c.sentences[picked[0]].words
	if c.renamed(all, best) {
		return true
	}
	claim := make(map[string]bool, len(all))
	for _, w := range all {
		claim[w.plain] = true
	}
	evidence := make(map[string]bool)
	for _, p := range picked {
		for _, w := range c.sentences[p].words {
			evidence[w.plain] = true
		}
	}
	sentences := [][]word{best}
	for _, p := range picked[1:] {
		sentences = append(sentences, c.sentences[p].words)
	}
	n := compareNegations(all, sentences)
	if len(n.mine) > 0 {
		return !n.elsewhere && !cancelled(all, n.mine) && c.coveredRest(all, degrees) >= sameWords && !anyDenies(evidence, claim)
	}
	return c.turned(all, best, n.theirs) || excluded(all, best, claim, evidence, n.theirs) || otherRank(all, best, claim, evidence) ||
		excepted(all, best, n.elsewhere || len(negations(best)) > 0 || anyDenies(evidence, claim)) ||
		len(n.theirs) == 0 && c.misdated(all, picked)
}

// coveredRest is the share of the claim's words that stand in the evidence,
// its negators left out: they are what the evidence lacks.
func (c *cover) coveredRest(all []word, degrees []float64) float64 {
	emphasis := make(map[string]bool)
	for i, w := range all {
		emphasis[w.key] = i > 0 && all[i-1].plain == "no" && emphases[w.plain]
	}
	covered, total := 0.0, c.total
	for i, w := range c.claim {
		if isNegator(w) || emphasis[w.key] || holdsWideNegator(w) {
			total--
			continue
		}
		covered += degrees[i]
	}
	return covered / max(total, 1)
}

// renamed says whether a sentence has, between the same words, another name
// in place of one that stands nowhere in the passage.
func (c *cover) renamed(all, best []word) bool {
	// around holds the neighbours of each name of the sentence: both, the two
	// before it, the two behind it; two light words stand everywhere.
	type place struct {
		at            int
		first, second string
	}
	around := make(map[place]bool)
	claim := make(map[string]bool, len(all))
	for _, w := range all {
		claim[w.key] = true
	}
	places := func(words []word, i int) (found []place) {
		for _, at := range [...][2]int{{i - 1, i + 1}, {i - 2, i - 1}, {i + 1, i + 2}} {
			if at[0] >= 0 && at[1] < len(words) && (words[at[0]].kind != light || words[at[1]].kind != light) {
				found = append(found, place{at[0] - i, words[at[0]].key, words[at[1]].key})
			}
		}
		return found
	}
	for i, w := range best {
		if w.kind == name && !claim[w.key] {
			for _, p := range places(best, i) {
				around[p] = true
			}
		}
	}
	for i, w := range all {
		if w.kind == name && !c.keys[w.key] {
			for _, p := range places(all, i) {
				if around[p] {
					return true
				}
			}
		}
	}
	return false
}

// differ says whether two properties of a number are known and not the same.
func differ[T comparable](a, b T) bool {
	var unknown T
	return a != unknown && b != unknown && a != b
}

// otherSign says whether the evidence has a number with another sign or unit
// only.
func (c *cover) otherSign(number word, picked []int) bool {
	other := false
	for _, p := range picked {
		for _, w := range c.sentences[p].words {
			if w.kind == number.kind && w.key == number.key {
				if !differ(w.sign, number.sign) && !differ(w.unit, number.unit) {
					return false
				}
				other = true
			}
		}
	}
	return other
}

// anyDenies says whether one of the words, negators aside, denies something
// and is not the claim's own.
func anyDenies(words, claim map[string]bool) bool {
	for w := range words {
		if claim[w] || negators[w] {
			continue
		}
		for _, d := range deniers {
			if strings.HasPrefix(w, d) {
				return true
			}
		}
	}
	return false
}

// excluded says whether the best sentence has the opposite of a word of the
// claim, which the claim does not have, where the evidence lacks the word; or
// has it beside the same words as the claim has that word. An opposite that the
// sentence negates, and the claim does not, is none.
func excluded(all, best []word, claim, evidence map[string]bool, negated []negation) bool {
	inBest := make(map[string]bool, len(best))
	for _, w := range best {
		inBest[w.plain] = true
	}
	for _, n := range negated {
		if n.target >= 0 {
			inBest[best[n.target].plain] = false
		}
	}
	for i, w := range all {
		if inBest[w.plain] {
			continue
		}
		for _, v := range opposites[w.plain] {
			if inBest[v] && !claim[v] && (!evidence[w.plain] || besides(all, i, best, v)) {
				return true
			}
		}
	}
	return deniedByPrefix(all, best, claim, evidence)
}

// besides says whether some place of a word in a sentence has the neighbours
// that the claim has around its word i, light words left out.
func besides(all []word, i int, sentence []word, opposite string) bool {
	before, behind := neighbours(all, i)
	if before == "" && behind == "" {
		return false
	}
	for j, w := range sentence {
		if w.plain != opposite {
			continue
		}
		first, second := neighbours(sentence, j)
		if (before == "" || before == first) && (behind == "" || behind == second) {
			return true
		}
	}
	return false
}

// neighbours gives the keys of the nearest words on both sides of a word that
// are not light; "" where there is none within reach.
func neighbours(words []word, i int) (before, behind string) {
	const reach = 5
	for j := i - 1; j >= max(0, i-reach) && before == ""; j-- {
		if words[j].kind != light {
			before = words[j].key
		}
	}
	for j := i + 1; j < min(len(words), i+1+reach) && behind == ""; j++ {
		if words[j].kind != light {
			behind = words[j].key
		}
	}
	return before, behind
}

// deniers are the beginnings of words that deny without a negator, so that
// "failed to land" bears out "did not land".
var deniers = strings.Fields(`fail lack unable refus prevent deni deny prohibit banned forb reject except exclud avoid
	absen missing stop ceas declin withh cancel postpon clos rul instead rather until unless few little hardly rarely
	seldom unavailable unlikely unknown unclear impossible verbot untersag außer ausgenomm ohne`)

// opposites are words of which one cannot stand for the other.
var opposites = pairs(`
	increase decrease, increased decreased, increases decreases, rise fall, rose fell, rises falls, grow shrink, grew shrank,
	gain lose, gained lost, more fewer, more less, most least, higher lower, highest lowest, high low, larger smaller,
	largest smallest, large small, big small, longer shorter, longest shortest, long short, earlier later, earliest latest,
	early late, before after, first last, open closed, opens closes, opened closed, begins ends, began ended, starts ends,
	started ended, started stopped, starts stops, wins loses, won lost, victory defeat, allow forbid, allowed forbidden,
	allowed prohibited, allowed banned, permitted prohibited, permitted forbidden, legal illegal, accepted rejected,
	accepted refused, approved rejected, included excluded, includes excludes, enabled disabled, enables disables,
	imports exports, buys sells, bought sold, alive dead, arrives departs, arrived departed, arrives leaves, arrived left,
	north south, east west, northern southern, eastern western, left right, upper lower, above below, inside outside,
	up down, front back, always never, all none, everyone nobody, maximum minimum, positive negative, male female, men women,
	man woman, boy girl, boys girls, husband wife, son daughter, brother sister, father mother, uncle aunt, king queen,
	day night, summer winter, morning evening, morning afternoon, hot cold, warm cool, wet dry, young old, rich poor,
	strong weak, safe dangerous, easy difficult, true false, success failure, succeeded failed, guilty innocent,
	public private, mandatory optional, required optional, free paid, indoor outdoor, manual automatic, internal external,
	odd even, on off, half twice, half double, offen geschlossen, geoffnet geschlossen, offnet schließt, erlaubt verboten,
	mehr weniger, hoher niedriger, fruher spater, sommer winter, tag nacht, morgens abends, stieg fiel, steigt fallt, links rechts`)

// pairs reads a list of pairs, both ways round.
func pairs(text string) map[string][]string {
	m := make(map[string][]string)
	for p := range strings.SplitSeq(text, ",") {
		w := strings.Fields(p)
		m[w[0]] = append(m[w[0]], w[1])
		m[w[1]] = append(m[w[1]], w[0])
	}
	return m
}
