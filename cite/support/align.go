package support

import (
	"slices"
	"strings"

	"ibid/cite/marker"
)

const (
	// maxAligned is the number of words of a claim and of a sentence that are aligned.
	maxAligned = 256
	// minAligned is the share of words with a counterpart, in the claim and in the part of
	// a sentence, that makes one nearly a copy of the other.
	minAligned = 0.8
)

// A unit is a word, or the words of one name.
type unit struct {
	words []word
	name  bool
}

// units joins the words of each name. A word is a name if it is one anywhere in the claim or
// the passage, since a capital at the beginning of a sentence proves nothing.
func units(words []word, names map[string]bool) (out []unit) {
	if capitalizesNouns(words) {
		names = nil
	}
	for i, w := range words[:min(len(words), maxAligned)] {
		isName := w.capital && w.kind != light && names[w.key]
		if n := len(out); isName && n > 0 && out[n-1].name && w.Start == words[i-1].End+1 {
			out[n-1].words = words[i-len(out[n-1].words) : i+1]
			continue
		}
		out = append(out, unit{words[i : i+1], isName})
	}
	return out
}

// capitalizesNouns reports whether a sentence is German, where a capital does not mark a name.
func capitalizesNouns(words []word) bool {
	first := ""
	for _, w := range words {
		if !germanWords[w.plain] || w.capital || w.plain == first {
			continue
		}
		if first != "" {
			return true
		}
		first = w.plain
	}
	return false
}

var germanWords = marker.WordSet(`der die das dem den des ein eine einen einem einer und oder ist sind war waren wird werden wurde
	kann darf nicht kein keine auch nur im am zum zur mit für von auf aus bei nach vor bis`)

// sameWords reports whether two units have the same words. A name also matches a name that has
// all its words.
func (u unit) sameWords(v unit) bool {
	if !u.name || !v.name {
		return len(u.words) == len(v.words) && u.words[0].key == v.words[0].key
	}
	if len(u.words) > len(v.words) {
		u, v = v, u
	}
	for _, w := range u.words {
		if !slices.ContainsFunc(v.words, func(x word) bool { return x.key == w.key }) {
			return false
		}
	}
	return true
}

// isRival reports whether replacing one unit by the other changes the meaning of a sentence:
// they are different names, opposites, or steps of a scale.
func (u unit) isRival(v unit) bool {
	a, b := u.words[0].plain, v.words[0].plain
	x, y := scales[a], scales[b]
	return u.name && v.name || slices.Contains(opposites[a], b) || x.scale == y.scale && x.step != y.step
}

// scales order words of quantity, frequency and obligation. Words not on a scale have step 0 of
// scale 0.
var scales = func() map[string]struct{ scale, step int } {
	m := make(map[string]struct{ scale, step int })
	for i, scale := range []string{
		"all every each, most, many, some several, few",
		"always, usually often frequently, sometimes occasionally, rarely seldom never",
		"must shall, should, may can could might",
		"much, little", "with, without", "over, under", "up, down",
		"% percent, $ dollar dollars, € euro euros, £ pounds, ¥ yen",
	} {
		for j, words := range strings.Split(scale, ", ") {
			for w := range strings.FieldsSeq(words) {
				m[w] = struct{ scale, step int }{i + 1, j}
			}
		}
	}
	return m
}()

// A pair is the indexes of a unit of a claim and its counterpart in a sentence.
type pair struct {
	i, j  int
	rival bool
}

// The scores of a pair: of the same words, of the same light words, of rivals.
const (
	same   = 4
	lights = 2
	rival  = 3
)

func score(a, b unit) int {
	switch {
	case a.sameWords(b) && a.words[0].kind == light:
		return lights
	case a.sameWords(b):
		return same
	case a.isRival(b):
		return rival
	}
	return 0
}

// align pairs the units of a claim and a sentence, in the order of both, with the
// highest score (Needleman and Wunsch).
func align(claim, sentence []unit) (pairs []pair) {
	n, m := len(claim), len(sentence)
	best := make([]int, (n+1)*(m+1)) // scores of the units from i and j on
	at := func(i, j int) int { return i*(m+1) + j }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			v := max(best[at(i+1, j)], best[at(i, j+1)])
			if s := score(claim[i], sentence[j]); s > 0 {
				v = max(v, s+best[at(i+1, j+1)])
			}
			best[at(i, j)] = v
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch s := score(claim[i], sentence[j]); {
		case s > 0 && best[at(i, j)] == s+best[at(i+1, j+1)]:
			pairs = append(pairs, pair{i, j, s == rival})
			i, j = i+1, j+1
		case best[at(i, j)] == best[at(i+1, j)]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// isDisplaced reports whether a claim is nearly a copy of a sentence, or of a part of it, with
// some words replaced by rivals.
func isDisplaced(claim, sentence []unit) bool {
	pairs := align(claim, sentence)
	if len(pairs) == 0 {
		return false
	}
	part := pairs[len(pairs)-1].j - pairs[0].j + 1
	if float64(len(pairs)) < minAligned*float64(max(len(claim), part)) {
		return false
	}
	return slices.ContainsFunc(pairs, func(p pair) bool { return p.rival })
}
