package eval

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/cite/support"
)

// A Claim is a sentence with the page that it cites.
type Claim struct {
	Text, Page string
	Supported  bool // wholly
}

// ReadClaims reads judged claims: queries.jsonl (text, article, label) and
// corpus.jsonl (_id, text). Only the label "supported" means wholly supported; queries
// without a label are none.
func ReadClaims(fsys fs.FS) (claims []Claim, err error) {
	entries, err := ReadCorpus(fsys)
	if err != nil {
		return nil, err
	}
	pages := make(map[string]string)
	for _, e := range entries {
		pages[e.ID] = e.Text
	}
	err = readRecords(fsys, queriesFile, func(r record, line []byte) error {
		var c struct{ Article, Label string }
		err := decode(line, &c)
		if c.Label != "" {
			claims = append(claims, Claim{r.Text, pages[c.Article], c.Label == "supported"})
		}
		return err
	})
	return claims, err
}

// MeasureClaims measures how well the support separates supported claims from others,
// and the verdicts.
func MeasureClaims(prover support.Prover, claims []Claim) []Figure {
	var scores [2][]float64
	var verdicts [2][2]float64 // [supported by the verdict][by the label]
	for _, c := range claims {
		q := prover.Find(c.Text, support.Passage{Text: c.Page})
		label, verdict := 0, 0
		if c.Supported {
			label = 1
		}
		if q.Verdict != support.Weak {
			verdict = 1
		}
		scores[label] = append(scores[label], q.Support)
		verdicts[verdict][label]++
	}
	figure := func(name, says string, value, of float64) Figure {
		return Figure{Name: name, Unit: ShareUnit, Value: value / max(of, 1), Questions: int(of), Says: says}
	}
	v, n := verdicts, float64(len(claims))
	return []Figure{
		figure("auroc", "chance that a supported claim has the higher support", n*AUROC(scores[1], scores[0]), n),
		figure("precision", "claims called supported that are, wholly", v[1][1], v[1][1]+v[1][0]),
		figure("called_weak", "supported claims that are called weak", v[0][1], v[0][1]+v[1][1]),
		figure("weak_precision", "claims called weak that are", v[0][0], v[0][0]+v[0][1]),
	}
}

// A Place is a longer sentence of a text, with the sentence after it and the passage
// around it.
type Place struct{ Sentence, Next, Passage string }

// Places returns the longer sentences of a text.
func Places(prover support.Prover, text string) (places []Place) {
	spans := prover.Sentences(text)
	for i, s := range spans {
		p := Place{Sentence: text[s.Start:s.End]}
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

// An Edit changes a sentence as an answer may, or so that its passage no longer
// supports it. Change returns "" for a sentence that cannot be changed so.
type Edit struct {
	Name, Says string
	Weak       bool // the verdict wanted
	Change     func(p Place) string
}

// Edits are those that 'ibid eval support' makes.
var Edits = []Edit{
	{"verbatim", "sentences that are supported as they are", false, func(p Place) string { return p.Sentence }},
	{"reworded", "… without every fifth word", false, leaveOut},
	{"other_name", "sentences that are weak with a name that the passage lacks", true, func(p Place) string {
		return renamed(p.Sentence, p.Passage, " Zanzibar")
	}},
	{"passage_name", "… with another name of the passage", true, func(p Place) string {
		return renamed(p.Sentence, p.Passage, namesIn(p.Passage, p.Passage)...)
	}},
	{"swapped_names", "… with two names swapped", true, swapNames},
	{"opposite", "… with a word replaced by its opposite", true, exchange},
	{"other_number", "… with a number that the passage lacks", true, renumber},
	{"negated", "… with \"not\" put in", true, negate},
	{"affirmed", "… with a negator taken out", true, affirm},
}

// MeasureEdits returns the share of edited sentences with the wanted verdict.
func MeasureEdits(prover support.Prover, places []Place, edits []Edit) (figures []Figure) {
	for _, e := range edits {
		f := Figure{Name: e.Name, Unit: ShareUnit, Says: e.Says}
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

func leaveOut(p Place) string {
	var kept []string
	for i, w := range strings.Fields(p.Sentence) {
		if i%5 != 3 || negator.MatchString(w) {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// namesIn returns the names in a sentence that are after other words, with a space
// before each. A word that its passage has without a capital too is no name.
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

// swapNames swaps two names with a longer word between them: those of a list, and the
// parts of one name, can be in either order.
func swapNames(p Place) string {
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

// exchange replaces the first word that has one in this list by the other.
func exchange(p Place) string {
	words := strings.Fields(p.Sentence)
	for i, w := range words {
		if j := slices.Index(exchanged, w); i > 0 && j >= 0 {
			words[i] = exchanged[j^1]
			return strings.Join(words, " ")
		}
	}
	return ""
}

// renumber adds 13 to the first number.
func renumber(p Place) string {
	n := digits.FindString(p.Sentence)
	v, err := strconv.Atoi(n)
	other := strconv.Itoa(v + 13)
	if err != nil || strings.Contains(p.Passage, other) {
		return ""
	}
	return strings.Replace(p.Sentence, n, other, 1)
}

func negate(p Place) string {
	at := auxiliary.FindStringIndex(p.Sentence)
	if at == nil || negator.MatchString(p.Sentence) {
		return ""
	}
	return p.Sentence[:at[1]] + "not " + p.Sentence[at[1]:]
}

func affirm(p Place) string {
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
