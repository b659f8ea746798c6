package cite

import (
	"strings"
	"unicode/utf8"
)

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
	if negates(all) {
		return c.coveredRest(all, degrees) >= sameWords && !anyDenies(evidence, claim)
	}
	return c.turned(best, claim) || excluded(all, best, claim, evidence) ||
		excepted(all, best, anyDenies(evidence, claim)) || !negates(best) && c.misdated(all, picked)
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

// otherSign says whether the evidence has a number with another sign only.
func (c *cover) otherSign(number word, picked []int) bool {
	other := false
	for _, p := range picked {
		for _, w := range c.sentences[p].words {
			if w.kind == number.kind && w.key == number.key {
				if w.sign == 0 || number.sign == 0 || w.sign == number.sign {
					return false
				}
				other = true
			}
		}
	}
	return other
}

// negates says whether a statement has a negator; "not only" is none.
func negates(words []word) bool {
	for i, w := range words {
		if isNegator(w) && !(w.plain == "not" && i+1 < len(words) && words[i+1].plain == "only") {
			return true
		}
	}
	return false
}

// anyDenies says whether one of the words denies something and is not the
// claim's own.
func anyDenies(words, claim map[string]bool) bool {
	for w := range words {
		if negators[w] || wideNegator(w) {
			return true
		}
		if claim[w] {
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

// turned says whether a sentence has a negator between words of the claim,
// close to both, that the claim does not have.
func (c *cover) turned(words []word, claim map[string]bool) bool {
	keys := make(map[string]bool, len(c.claim))
	for _, w := range c.claim {
		keys[w.key] = true
	}
	const close = 3
	for i, w := range words {
		if !isNegator(w) || claim[w.plain] {
			continue
		}
		before, behind := false, i+1 == len(words) && lastNegators[w.plain]
		for _, v := range words[max(0, i-close):i] {
			before = before || keys[v.key]
		}
		for _, v := range words[i+1 : min(len(words), i+1+close)] {
			behind = behind || keys[v.key]
		}
		if before && behind {
			return true
		}
	}
	return false
}

// excluded says whether the best sentence has the opposite of a word of the
// claim, which the claim does not have, where the evidence lacks the word; or
// has it beside the same words as the claim has that word.
func excluded(all, best []word, claim, evidence map[string]bool) bool {
	inBest := make(map[string]bool, len(best))
	for _, w := range best {
		inBest[w.plain] = true
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

// isNegator says whether a word turns a statement round.
func isNegator(w word) bool { return negators[w.plain] || wideNegator(w.plain) }

// wideNegator says whether a pair of ideographs begins with a character that
// negates what comes next, or is an ending that negates what came before.
func wideNegator(pair string) bool {
	r, size := utf8.DecodeRuneInString(pair)
	return len(pair) > size && strings.ContainsRune("不没沒未无", r) && !wideWords[pair] || r >= 0x3041 && lastNegators[pair]
}

// holdsWideNegator says whether a pair of ideographs ends with such a character.
func holdsWideNegator(w word) bool {
	r, size := utf8.DecodeLastRuneInString(w.plain)
	return len(w.plain) > size && strings.ContainsRune("不没沒未无", r)
}

// wideWords begin as a negator does and negate nothing.
var wideWords = wordSet("不仅 不僅 不但 不只 不断 不斷 不少 不过 不過 不同 不久 不管 不论 不動 未来 未來 无论 无线")

// lastNegators may stand at the end of a statement that they turn round.
var lastNegators = wordSet("nicht せん ない なか なく")

// negators turn a statement round.
var negators = wordSet(`not no non never none neither nor cannot without isn't aren't wasn't weren't don't doesn't didn't
	hasn't haven't hadn't won't wouldn't can't couldn't mustn't shouldn't
	nowhere nobody nothing hardly scarcely barely rarely seldom
	nicht kein keine keinen keinem keiner keines nie niemals niemand nirgends nirgendwo weder
	pas jamais aucun aucune rien nunca jamas ningun ninguno ninguna nadie tampoco nessun nessuno nessuna`)

// emphases stand behind "no" and say nothing of their own: by no means.
var emphases = wordSet("means way circumstances account time")

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
	odd even, on off`)

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
