package eval_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
)

// A place is a longer sentence of a text, with the sentence after it and the passage
// around it.
type place struct{ Sentence, Next, Passage string }

// placesIn returns the longer sentences of a text.
func placesIn(prover support.Prover, text string) (places []place) {
	spans := prover.Sentences(text)
	for i, s := range spans {
		p := place{Sentence: text[s.Start:s.End]}
		if len(strings.Fields(p.Sentence)) < 9 || !strings.HasSuffix(p.Sentence, ".") ||
			strings.ContainsAny(p.Sentence[:1], "-*#|`>0123456789") || strings.Contains(p.Sentence, "  ") {
			continue
		}
		p.Passage = text[spans[max(0, i-5)].Start:spans[min(len(spans)-1, i+5)].End]
		if i+1 < len(spans) {
			p.Next = text[spans[i+1].Start:spans[i+1].End]
		}
		places = append(places, p)
	}
	return places
}

// An edit changes a sentence as a paraphrase would, or so that its passage no longer
// supports it. Change returns "" if it doesn't apply to a sentence.
type edit struct {
	Name   string
	Weak   bool // the expected verdict
	Change func(p place) string
}

// edits are the common edits.
var edits = []edit{
	{"verbatim", false, func(p place) string { return p.Sentence }},
	{"reworded", false, leaveOut},
	{"other_name", true, func(p place) string {
		return renamed(p.Sentence, p.Passage, " Zanzibar")
	}},
	{"passage_name", true, func(p place) string {
		return renamed(p.Sentence, p.Passage, namesIn(p.Passage, p.Passage)...)
	}},
	{"swapped_names", true, swapNames},
	{"opposite", true, exchange},
	{"other_number", true, renumber},
	{"negated", true, negate},
	{"affirmed", true, affirm},
}

// measureEdits returns the share of edited sentences that get the expected verdict.
func measureEdits(places []place, edits []edit) (figures []eval.Figure) {
	for _, e := range edits {
		f := eval.Figure{Name: e.Name}
		right := 0
		for _, p := range places {
			said := e.Change(p)
			if said == "" {
				continue
			}
			f.Questions++
			if q := prover.Find(said, support.Passage{Text: p.Passage}); (q.Verdict == support.Weak) == e.Weak {
				right++
			}
		}
		f.Value = float64(right) / float64(max(f.Questions, 1))
		figures = append(figures, f)
	}
	return figures
}

var (
	negator = regexp.MustCompile(`(?i)\b(not?|never|none|nor|neither|nothing|nobody|nowhere|cannot|without|hardly|rarely|` +
		`kein\w*|nicht)\b|n['’]t\b`)
	someName = regexp.MustCompile(`[\pL\pN,;)]( \p{Lu}[\pL\pN-]+(?: \p{Lu}[\pL\pN-]+)*)`)
)

func leaveOut(p place) string {
	var kept []string
	for i, w := range strings.Fields(p.Sentence) {
		if i%5 != 3 || negator.MatchString(w) {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// namesIn returns the names in a sentence that follow other words, each with the space
// before it. A word that its passage also has in lower case is not a name.
func namesIn(sentence, passage string) (names []string) {
	for _, m := range someName.FindAllStringSubmatch(sentence, -1) {
		common := func(w string) bool {
			return strings.Contains(passage, " "+strings.ToLower(w)+" ") || len(w) < 3
		}
		if !slices.ContainsFunc(strings.Fields(m[1]), common) {
			names = append(names, m[1])
		}
	}
	return names
}

func renamed(sentence, passage string, names ...string) string {
	for _, own := range namesIn(sentence, passage) {
		for _, name := range names {
			if !strings.Contains(sentence, name) && !strings.Contains(name, own) {
				return strings.Replace(sentence, own, name, 1)
			}
		}
	}
	return ""
}

var longerWord = regexp.MustCompile(`\b\p{Ll}{4,}`)

// swapNames swaps two names with a longer word between them, since items of a list and
// parts of one name can be in either order.
func swapNames(p place) string {
	names := namesIn(p.Sentence, p.Passage)
	for i, a := range names {
		_, after, _ := strings.Cut(p.Sentence, a)
		for _, b := range names[i+1:] {
			between, _, ok := strings.Cut(after, b)
			if ok && longerWord.MatchString(between) && !strings.Contains(a, b) && !strings.Contains(b, a) {
				return strings.NewReplacer(a, b, b, a).Replace(p.Sentence)
			}
		}
	}
	return ""
}

// exchange replaces the first word that has a counterpart in this list.
func exchange(p place) string {
	words := strings.Fields(p.Sentence)
	for i, w := range words {
		if j := slices.Index(exchanged, w); i > 0 && j >= 0 {
			words[i] = exchanged[j^1]
			return strings.Join(words, " ")
		}
	}
	return ""
}

// renumber adds 13 to the first number in the sentence.
func renumber(p place) string {
	n := digits.FindString(p.Sentence)
	v, err := strconv.Atoi(n)
	other := strconv.Itoa(v + 13)
	if err != nil || strings.Contains(p.Passage, other) {
		return ""
	}
	return strings.Replace(p.Sentence, n, other, 1)
}

func negate(p place) string {
	at := auxiliary.FindStringIndex(p.Sentence)
	if at == nil || negator.MatchString(p.Sentence) {
		return ""
	}
	return p.Sentence[:at[1]] + "not " + p.Sentence[at[1]:]
}

func affirm(p place) string {
	for _, c := range [][2]string{{" not ", " "}, {"cannot", "can"}, {" never ", " always "}, {" no ", " a "}, {"No ", "Every "}} {
		if strings.Count(p.Sentence, c[0]) == 1 {
			return strings.Replace(p.Sentence, c[0], c[1], 1)
		}
	}
	return ""
}

var (
	digits    = regexp.MustCompile(`\b\d+\b`)
	auxiliary = regexp.MustCompile(` (is|are|was|were|can|may|must|will) `)
	exchanged = strings.Fields(`all some every some most few many few must may can must always sometimes often rarely usually rarely
	more less before after first last open closed high low higher lower large small long short early late old new north south east west
	inside outside above below begins ends began ended increased decreased won lost bought sold accepted rejected left joined day night`)
)
