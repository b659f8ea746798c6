package cite

import "strings"

// misdated says whether the evidence has a date of the claim, everywhere it
// has it, in another relation: before it and not on it. What is not said to
// stand in any relation is no conflict.
func (c *cover) misdated(claim []word, picked []int) bool {
	said := make(map[string]relation)
	for i, w := range claim {
		if r := related(claim, i); r != 0 {
			said[w.key] |= r
		}
	}
	conflicts := false
	for _, p := range picked {
		words := c.sentences[p].words
		for i, w := range words {
			mine := said[w.key]
			if mine == 0 || w.kind == light {
				continue
			}
			if !excludes(mine, related(words, i)) {
				return false
			}
			conflicts = true
		}
	}
	return conflicts
}

// A relation is a set of ways in which a statement can stand to a date.
type relation uint8

const (
	relBefore relation = 1 << iota
	relBy
	relUntil
	relAt
	relFrom
	relAfter
	relWithin
)

// relations are the prepositions of time.
var relations = map[string]relation{
	"before": relBefore, "by": relBy, "until": relUntil, "till": relUntil, "at": relAt, "on": relAt, "in": relAt, "during": relAt,
	"from": relFrom, "since": relFrom, "after": relAfter, "within": relWithin,
}

// excludes says whether two statements of which one stands to a date by a, the
// other by b, cannot mean the same.
func excludes(a, b relation) bool {
	conflict := func(a, b relation) bool {
		switch a {
		case relBefore:
			return b&^(relAt|relFrom|relAfter) == 0
		case relAfter:
			return b&^(relBefore|relBy|relUntil|relAt) == 0
		case relBy, relUntil, relWithin:
			return b&^(relFrom|relAfter) == 0
		}
		return false
	}
	return a != 0 && b != 0 && (conflict(a, b) || conflict(b, a))
}

// related gives the relation in which a sentence stands to the date, the day
// of the week or the hour that its word i is or belongs to; 0 if that is none.
func related(words []word, i int) relation {
	w := words[i]
	date := isMonth(w) || weekdays[w.plain]
	if w.kind != number && !date {
		return 0
	}
	const reach = 4
	for j := i - 1; j >= max(0, i-reach); j-- {
		v := words[j]
		switch r := relations[v.plain]; {
		case r != 0:
			// "In 12 boats" is no time; "at 12" is one.
			if !date && v.plain != "at" && r == relAt && !isYear(w) && !(i+1 < len(words) && isMonth(words[i+1])) && !(i+2 < len(words) && words[i+1].plain == "of" && isMonth(words[i+2])) {
				return 0
			}
			return r
		case isMonth(v):
			date = true
		case v.plain == "the", v.plain == "of", v.kind == number && (date || isYear(w)):
		default:
			return 0
		}
	}
	return 0
}

func isMonth(w word) bool { return w.kind == name && strings.HasSuffix(w.key, ".") }

func isYear(w word) bool {
	return w.kind == number && len(w.key) == 4 && (w.key[0] == '1' || w.key[0] == '2') && w.end-w.start == 4
}

var weekdays = wordSet(`monday tuesday wednesday thursday friday saturday sunday
	mondays tuesdays wednesdays thursdays fridays saturdays sundays`)

// excepted says whether one of claim and evidence makes an exception of what
// the other says it of.
func excepted(claim, best []word, denied bool) bool {
	mine, theirs := exceptions(claim), exceptions(best)
	if len(mine) > 0 && len(theirs) > 0 {
		return false
	}
	return holdsAll(claim, theirs) || !denied && holdsAll(best, mine)
}

// holdsAll says whether the words hold all of some keys, of which there are any.
func holdsAll(words []word, keys []string) bool {
	has := make(map[string]bool, len(words))
	for _, w := range words {
		has[w.key] = true
	}
	for _, k := range keys {
		if !has[k] {
			return false
		}
	}
	return len(keys) > 0
}

// exceptions gives the keys of the first words, at most two, that a sentence
// makes an exception of: "except on Mondays", "everywhere but in the garden".
func exceptions(words []word) []string {
	for i, w := range words {
		behind := i + 1
		switch {
		case w.plain == "except", w.plain == "excepting", w.plain == "excluding":
		case i+1 < len(words) && (w.plain == "other" && words[i+1].plain == "than" || w.plain == "apart" && words[i+1].plain == "from"):
			behind++
		case w.plain == "but" && i > 0 && w.start == words[i-1].end+1 && // no comma between
			(totals[words[i-1].plain] || i > 1 && totals[words[i-2].plain]):
		default:
			continue
		}
		const reach, most = 5, 2
		var keys []string
		for _, v := range words[min(len(words), behind):min(len(words), behind+reach)] {
			if v.kind != light && len(keys) < most {
				keys = append(keys, v.key)
			}
		}
		return keys
	}
	return nil
}

// totals are the words behind which "but" makes an exception.
var totals = wordSet(`all every each any everywhere anywhere everyone everybody everything anyone anybody anything
	no none nobody nothing nowhere always`)

// deniedByPrefix says whether the best sentence has a word of the claim with a
// prefix that denies it, or without that of the claim: welcome, unwelcome.
func deniedByPrefix(all, best []word, claim, evidence map[string]bool) bool {
	// One of two such words is the other behind two letters, or begins as it
	// does: their next letters are the same.
	const letters = 4
	beginning := func(w string) string { return w[:min(len(w), letters)] }
	bare, prefixed := make(map[string][]word), make(map[string][]word)
	seen := make(map[string]bool, len(all))
	for _, w := range all {
		if w.kind == light || evidence[w.plain] || seen[w.plain] {
			continue
		}
		seen[w.plain] = true
		bare[beginning(w.plain)] = append(bare[beginning(w.plain)], w)
		if rest := unprefixed(w.plain); rest != "" {
			prefixed[beginning(rest)] = append(prefixed[beginning(rest)], w)
		}
	}
	clear(seen)
	for _, v := range best {
		if claim[v.plain] || seen[v.plain] {
			continue
		}
		seen[v.plain] = true
		for _, w := range prefixed[beginning(v.plain)] {
			if denial(w, v) {
				return true
			}
		}
		if rest := unprefixed(v.plain); rest != "" {
			for _, w := range bare[beginning(rest)] {
				if denial(v, w) {
					return true
				}
			}
		}
	}
	return false
}

// unprefixed gives a word without the two letters that may deny it, "" when it
// does not begin so.
func unprefixed(w string) string {
	if len(w) < 3 {
		return ""
	}
	switch w[:2] {
	case "un", "in", "im", "il", "ir":
		return w[2:]
	}
	return ""
}

// denial says whether a word is another, or a form of it, with such a prefix.
func denial(prefixed, w word) bool {
	for _, prefix := range [...]string{"un", "in", "im", "il", "ir"} {
		rest, ok := strings.CutPrefix(prefixed.plain, prefix)
		if !ok || len(rest) < 4 || rest != w.plain && !alike(rest, w.plain) {
			continue
		}
		if prefix == "un" {
			return prefixed.plain != "unless"
		}
		// What begins so may be another word (increase): it is an adjective.
		for _, ending := range [...]string{"able", "ible", "al", "ar", "ent", "ant", "ate", "ete", "ive", "ct", "id", "ure", "ous"} {
			if strings.HasSuffix(prefixed.plain, ending) {
				return true
			}
		}
	}
	return false
}
