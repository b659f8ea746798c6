package support

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/cite/marker"
)

// maxClaimRead is the number of words of a claim that are compared with the evidence. A longer
// text is not a sentence.
const maxClaimRead = 2 * maxClaimWords

// contradicts reports whether the evidence contradicts the claim: the passage lacks one of its
// numbers, a sentence that is nearly a copy of it has another name or an opposite word, or only
// one of the two negates a statement.
func (c *cover) contradicts(all []word, picked []int, found []bool) bool {
	all = all[:min(len(all), maxClaimRead)]
	for i, w := range c.claim {
		if w.kind == number && !found[i] && !c.keys[w.key] {
			return true
		}
	}
	for _, p := range picked {
		if isDisplaced(units(all, c.names), units(c.sentences[p].words, c.names)) {
			return true
		}
	}
	mine, matched, elsewhere := negatedKeys(all), make(map[string]bool), false
	bounded := make(map[string]bool)
	for _, p := range picked {
		words := c.sentences[p].words
		for _, w := range words {
			bounded[w.plain] = bounds[w.plain]
		}
		for key := range negatedKeys(words) {
			matched[key] = true
			elsewhere = elsewhere || !mine[key]
		}
	}
	if slices.ContainsFunc(all, func(w word) bool { return mine[w.key] && !matched[w.key] && bounds[w.plain] == bounded[w.plain] }) {
		return !elsewhere
	}
	return isContradicted(all, c.sentences[picked[0]].words)
}

// negatedKeys returns the keys of the negated words of a sentence. A negator negates the next
// word that is not light, or itself if none is near.
func negatedKeys(words []word) map[string]bool {
	keys := make(map[string]bool)
	for i, w := range words {
		if !isNegator(w.plain) {
			continue
		}
		const reach = 5
		target := i
		for j := i + 1; j < min(len(words), i+1+reach); j++ {
			if v := words[j].plain; bounds[v] || !lightWords[v] && !filler[v] {
				target = j
				break
			}
		}
		keys[words[target].key] = true
	}
	return keys
}

// isContradicted reports whether a sentence negates a word that the claim states.
func isContradicted(claim, sentence []word) bool {
	theirs, mine := negatedKeys(sentence), negatedKeys(claim)
	return slices.ContainsFunc(claim, func(w word) bool {
		return theirs[w.key] && !mine[w.key] && (w.kind != light || bounds[w.plain])
	})
}

// isNegator reports whether a word negates a statement. A pair of ideographs does if its first
// character negates the next.
func isNegator(w string) bool {
	if negators[w] {
		return true
	}
	r, size := utf8.DecodeRuneInString(w)
	return len(w) > size && strings.ContainsRune("不没沒未无", r)
}

var negators = marker.WordSet(`not no non never none neither nor cannot without isn't aren't wasn't weren't don't doesn't didn't
	hasn't haven't hadn't won't wouldn't can't couldn't mustn't shouldn't
	nowhere nobody nothing hardly scarcely barely rarely seldom fail fails failed unable
	nicht kein keine keinen keinem keiner keines nie niemals niemand nirgends weder
	pas jamais aucun aucune rien nunca jamás ningún ninguno ninguna nadie tampoco nessun nessuno nessuna`)

// bounds are words that a negator negates alone: "not only" denies only the "only". filler may
// be between a negator and the word that it negates.
var (
	bounds = marker.WordSet("only just merely solely simply nur seulement")
	filler = marker.WordSet("always yet usually generally necessarily really normally ever longer fully")
)

// opposites are words that exclude each other.
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

// pairs reads a list of pairs into a map with both directions.
func pairs(text string) map[string][]string {
	m := make(map[string][]string)
	for p := range strings.SplitSeq(text, ",") {
		w := strings.Fields(p)
		m[w[0]] = append(m[w[0]], w[1])
		m[w[1]] = append(m[w[1]], w[0])
	}
	return m
}
