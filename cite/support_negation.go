package cite

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A negation is a negator of a sentence and the word that it turns round, by
// their places; the target is -1 where there is none near.
type negation struct{ at, target int }

// negations gives the negations of a sentence. "Not only" is none, and "no
// more than" is an amount. A negator turns the next word round that says
// something and stands in its own clause; one that may end a statement, for
// want of that, the last such word before it.
func negations(words []word) []negation {
	var out []negation
	for i, w := range words {
		if !isNegator(w) || boundsAmount(words[i:]) {
			continue
		}
		const reach = 5
		n := negation{i, -1}
		for j := i + 1; j < min(len(words), i+1+reach) && !words[j].parted; j++ {
			if v := words[j]; v.kind != light && !filler[v.plain] && !(w.plain == "no" && emphases[v.plain]) {
				n.target = j
				break
			}
		}
		if n.target < 0 && lastNegators[w.plain] {
			for j := i - 1; j >= max(0, i-reach) && !words[j+1].parted; j-- {
				if words[j].kind != light {
					n.target = j
					break
				}
			}
		}
		out = append(out, n)
	}
	return out
}

// negates says whether a sentence has a negation.
func negates(words []word) bool { return len(negations(words)) > 0 }

// boundsAmount says whether words that begin with a negator negate nothing:
// "not only", "no more than", "no. 5".
func boundsAmount(words []word) bool {
	if len(words) < 2 || words[0].plain != "not" && words[0].plain != "no" {
		return false
	}
	switch next := words[1]; next.plain {
	case "only":
		return words[0].plain == "not"
	case "more", "less", "fewer", "later", "earlier", "longer", "sooner", "higher", "lower":
		return len(words) > 3 && words[2].plain == "than" && words[3].kind == number
	default:
		return words[0].plain == "no" && next.kind == number && next.parted
	}
}

// A comparison says which negations of a claim and of its evidence have no
// counterpart on the other side: none that turns the same word round.
type comparison struct {
	mine      []negation // of the claim
	theirs    []negation // of the best sentence
	elsewhere bool       // whether any sentence of the evidence has one
}

// compareNegations compares a claim with sentences of which the first is the
// best.
func compareNegations(claim []word, sentences [][]word) comparison {
	var c comparison
	mine := negations(claim)
	said := make(map[string]bool, len(mine))
	for _, n := range mine {
		said[n.key(claim)] = true
	}
	matched := make(map[string]bool)
	for i, words := range sentences {
		for _, n := range negations(words) {
			key := n.key(words)
			if said[key] {
				matched[key] = true
				continue
			}
			c.elsewhere = true
			if i == 0 {
				c.theirs = append(c.theirs, n)
			}
		}
	}
	for _, n := range mine {
		if !matched[n.key(claim)] {
			c.mine = append(c.mine, n)
		}
	}
	return c
}

// key is what negations are compared by.
func (n negation) key(words []word) string {
	if n.target < 0 {
		return words[n.at].key
	}
	return words[n.target].key
}

// cancelled says whether a negation is undone by another: "may not leave
// without a licence" says what "needs a licence to leave" does.
func cancelled(words []word, negations []negation) bool {
	return len(negations)%2 == 0 && slices.ContainsFunc(negations, func(n negation) bool {
		return words[n.at].plain == "without"
	})
}

// turned says whether a sentence negates what the claim states, by negations
// that the claim does not have: a word of the claim, of which the clause has said
// no other thing before, or anything between words of the claim that are close
// to the negator.
func (c *cover) turned(all, words []word, theirs []negation) bool {
	keys := make(map[string]bool, len(c.claim))
	for _, w := range c.claim {
		keys[w.key] = true
	}
	claim := make(map[string]bool, len(all))
	for _, w := range all {
		claim[w.key] = true
	}
	var turning []negation
	for _, n := range theirs {
		if n.between(words, keys) || n.target >= 0 && keys[words[n.target].key] && n.begun(words, claim) {
			turning = append(turning, n)
		}
	}
	return len(turning) > 0 && !cancelled(words, turning)
}

// near is how many words on each side of a negator are close to it.
const near = 3

// between says whether a negator stands between words with such keys, close to
// both.
func (n negation) between(words []word, keys map[string]bool) bool {
	has := func(w word) bool { return keys[w.key] }
	last := n.at+1 == len(words) && lastNegators[words[n.at].plain]
	return slices.ContainsFunc(words[max(0, n.at-near):n.at], has) &&
		(last || slices.ContainsFunc(words[n.at+1:min(len(words), n.at+1+near)], has))
}

// begun says whether what stands close before a negator in its clause is the
// claim's own: one of its words, or nothing but words that stand in any text.
func (n negation) begun(words []word, claim map[string]bool) bool {
	foreign := false
	for i := n.at; i > max(0, n.at-near) && !words[i].parted; i-- {
		w := words[i-1]
		if claim[w.key] && w.plain != "the" && w.plain != "a" {
			return true
		}
		foreign = foreign || w.kind != light
	}
	return !foreign
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
