package support

import (
	"strings"
	"unicode/utf8"
)

// maxClaimRead is the number of words of a claim that are compared with the
// evidence: what is longer is no sentence.
const maxClaimRead = 2 * maxClaimWords

// contradicts reports whether the evidence says something else than the claim:
// the passage lacks one of its numbers or has another name in its place, one of
// the two negates what the other states, or the best sentence has the opposite
// of a word of the claim.
func (c *cover) contradicts(all []word, picked []int, found []bool) bool {
	all = all[:min(len(all), maxClaimRead)]
	for i, w := range c.claim {
		if w.kind == number && (!found[i] && !c.keys[w.key] || c.otherSign(w, picked)) {
			return true
		}
	}
	var evidence [][]word
	for _, p := range picked {
		evidence = append(evidence, c.sentences[p].words)
	}
	best := evidence[0]
	if displaced(units(all, c.names), units(best, c.names)) {
		return true
	}
	mine, theirs, elsewhere := compareNegations(all, evidence)
	if len(mine) > 0 {
		return !elsewhere
	}
	return turned(all, best, theirs) || excluded(all, best, theirs)
}

// otherSign reports whether the evidence has a number with another currency or
// % only.
func (c *cover) otherSign(number word, picked []int) bool {
	other := false
	for _, p := range picked {
		for _, w := range c.sentences[p].words {
			if w.kind != number.kind || w.key != number.key {
				continue
			}
			if w.sign == 0 || number.sign == 0 || w.sign == number.sign {
				return false
			}
			other = true
		}
	}
	return other
}

// A negation is the index of the word of a sentence that a negator turns round,
// or of the negator if there is none near.
type negation int

// negations returns the negations of a sentence. A negator turns round the next
// word that says something in its own clause.
func negations(words []word) []negation {
	var out []negation
	for i, w := range words {
		if !isNegator(w.plain) {
			continue
		}
		const reach = 5
		target := i
		for j := i + 1; j < min(len(words), i+1+reach) && !words[j].parted; j++ {
			if v := words[j].plain; bounds[v] || !lightWords[v] && !filler[v] {
				target = j
				break
			}
		}
		out = append(out, negation(target))
	}
	return out
}

// compareNegations compares the negations of a claim with those of the
// evidence, of which the first sentence is the best. It returns the claim's
// that no sentence has, those of the best sentence that the claim lacks, and
// whether any sentence has one that the claim lacks.
func compareNegations(claim []word, evidence [][]word) (mine, theirs []negation, elsewhere bool) {
	own := negations(claim)
	said := make(map[string]bool, len(own))
	for _, n := range own {
		said[claim[n].key] = true
	}
	matched, bounded := make(map[string]bool), make(map[string]bool)
	for i, words := range evidence {
		for _, n := range negations(words) {
			if key := words[n].key; said[key] {
				matched[key] = true
				continue
			}
			elsewhere = true
			if i == 0 {
				theirs = append(theirs, n)
			}
		}
	}
	for _, words := range evidence {
		for _, w := range words {
			bounded[w.key] = bounded[w.key] || bounds[w.plain]
		}
	}
	for _, n := range own {
		if w := claim[n]; !matched[w.key] && (!bounds[w.plain] || bounded[w.key]) {
			mine = append(mine, n)
		}
	}
	return mine, theirs, elsewhere
}

// turned reports whether one of a sentence's negations turns a word of the
// claim round.
func turned(claim, words []word, theirs []negation) bool {
	said := make(map[string]bool, len(claim))
	for _, w := range claim {
		said[w.key] = said[w.key] || w.kind != light || bounds[w.plain]
	}
	for _, n := range theirs {
		if said[words[n].key] {
			return true
		}
	}
	return false
}

// excluded reports whether a sentence has the opposite of a word of the claim,
// not negated, and not the word itself, and the claim not the opposite.
func excluded(claim, words []word, negated []negation) bool {
	said, has := make(map[string]bool), make(map[string]bool)
	for _, w := range claim {
		said[w.plain] = true
	}
	for _, w := range words {
		has[w.plain] = true
	}
	for _, n := range negated {
		has[words[n].plain] = false
	}
	for _, w := range claim {
		for _, v := range opposites[w.plain] {
			if has[v] && !said[v] && !has[w.plain] {
				return true
			}
		}
	}
	return false
}

// isNegator reports whether a word turns a statement round. A pair of
// ideographs does if it begins with a character that negates what comes next.
func isNegator(w string) bool {
	if negators[w] {
		return true
	}
	r, size := utf8.DecodeRuneInString(w)
	return len(w) > size && strings.ContainsRune("不没沒未无", r) && !wideWords[w]
}

// wideWords begin as a negator does and negate nothing.
var wideWords = wordSet("不仅 不僅 不但 不只 不断 不斷 不少 不过 不過 不同 不久 不管 不论 不動 未来 未來 无论 无线")

var negators = wordSet(`not no non never none neither nor cannot without isn't aren't wasn't weren't don't doesn't didn't
	hasn't haven't hadn't won't wouldn't can't couldn't mustn't shouldn't
	nowhere nobody nothing hardly scarcely barely rarely seldom fail fails failed unable
	nicht kein keine keinen keinem keiner keines nie niemals niemand nirgends weder
	pas jamais aucun aucune rien nunca jamás ningún ninguno ninguna nadie tampoco nessun nessuno nessuna`)

// bounds are words that a negator turns round alone: "not only" denies nothing but
// an "only".
var bounds = wordSet("only just merely solely simply nur seulement")

// filler may be between a negator and what it negates.
var filler = wordSet("always yet usually generally necessarily really normally ever longer fully")

// opposites are words of which one cannot mean the other.
var opposites = pairs(`
	increase decrease, increased decreased, increases decreases, increasing decreasing, rise fall, rose fell, rises falls, rising falling,
	grow shrink, grew shrank, gain lose, gain loss, gained lost, profit loss, more fewer, more less, most least,
	better worse, best worst, good bad, higher lower, highest lowest, high low, larger smaller, largest smallest, large small, big small,
	longer shorter, longest shortest, long short, wide narrow, deep shallow, fast slow, faster slower, heavy light, full empty,
	earlier later, earliest latest, early late, before after, first last, oldest newest, older newer, older younger, oldest youngest,
	open closed, opens closes, opened closed, opening closing, begins ends, began ended, starts ends, beginning end, start end,
	started ended, started stopped, wins loses, won lost, victory defeat, allow forbid, allowed forbidden, allows forbids,
	allowed prohibited, permitted prohibited, permitted forbidden, legal illegal, accepted rejected, accept reject, accept refuse,
	accepted refused, approved rejected, included excluded, includes excludes, enabled disabled, enables disables,
	imports exports, buys sells, bought sold, buy sell, lend borrow, alive dead, born died, arrives departs, arrived departed,
	arrives leaves, arrived left, enter leave, entered left, joined left, hired fired, supported opposed, supports opposes,
	agreed disagreed, confirmed denied, succeeded failed, success failure, passed failed,
	north south, east west, northern southern, eastern western, left right, upper lower, above below, inside outside,
	front back, always never, all none, both neither, everyone nobody, maximum minimum,
	majority minority, major minor, positive negative, male female, men women, man woman, boys girls, boy girl, son daughter,
	brother sister, father mother, husband wife, day night, summer winter, spring autumn, morning evening, hot cold, warm cool,
	wet dry, young old, new old, rich poor, strong weak, safe dangerous, easy difficult, easy hard, true false, same different,
	guilty innocent, public private, mandatory optional, required optional, free paid, indoor outdoor, temporary permanent,
	manual automatic, internal external, welcome unwelcome, domestic foreign, urban rural, offen geschlossen, erlaubt verboten,
	mehr weniger, sommer winter`)

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
