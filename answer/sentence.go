package answer

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// A sentence is a unit of a passage that can be quoted by itself: a sentence,
// a list item, a table row.
type sentence struct {
	passage int // index of the kept passage
	index   int // position among the sentences of its passage
	text    string
	terms   map[string]bool
	fits    [sentenceSignals]float64
	score   float64 // chance that it holds the answer, if the passages hold it
}

// The signals of a sentence, in the order of sentenceModel.
const (
	sigCovers  = iota // share of the question's weight in the sentence itself
	sigContext        // … in the sentence with its title and headings
	sigWindow         // … and with its neighbours
	sigNamed          // share of the weight of names and numbers in the window
	sigHeading        // share of the question's weight in the headings alone
	sigDense          // cosine of question and sentence
	sigAbout          // cosine of question and sentence under its heading
	sigKind           // holds a thing of the kind that is asked for
	sigRank           // 1 for the first passage, falling with the rank
	sigPassage        // cosine of question and passage
	sigShort          // too short to say much
	sigAsks           // is itself a question, or a heading
	sentenceSignals
)

// sentences reads the passages as sentences and scores each as an answer.
func (r *run) sentences(ctx context.Context, kept []retrieve.Passage) ([][]sentence, error) {
	all := make([][]sentence, len(kept))
	texts := []string{r.asked}
	for i, p := range kept {
		for s := range ingest.Sentences(p.Text) {
			text := p.Text[s.Start:s.End]
			all[i] = append(all[i], sentence{passage: i, index: len(all[i]), text: text, terms: termSet(text)})
			texts = append(texts, plainLine(text), p.Title+" "+p.Heading+" "+plainLine(text))
		}
	}
	var vectors [][]float32
	if r.Embedder != nil {
		var err error
		if vectors, err = r.Embedder.Embed(ctx, texts); err != nil {
			return nil, fmt.Errorf("comparing sentences with the question: %w", err)
		}
		if len(vectors) != len(texts) {
			return nil, fmt.Errorf("comparing sentences with the question: the embedder %s gave %d rows for %d texts", r.Embedder.Space(), len(vectors), len(texts))
		}
	}
	row := 1
	for i, p := range kept {
		head := termSet(p.Title, p.Heading)
		heading, _ := r.needs.has(head)
		for k := range all[i] {
			s := &all[i][k]
			inContext := union(head, s.terms)
			window := inContext
			if k > 0 {
				window = union(window, all[i][k-1].terms)
			}
			if k+1 < len(all[i]) {
				window = union(window, all[i][k+1].terms)
			}
			f := &s.fits
			f[sigCovers], _ = r.needs.has(s.terms)
			f[sigContext], _ = r.needs.has(inContext)
			f[sigWindow], f[sigNamed] = r.needs.has(window)
			f[sigHeading] = heading
			if vectors != nil {
				f[sigDense] = dot(vectors[0], vectors[row])
				f[sigAbout] = dot(vectors[0], vectors[row+1])
			}
			row += 2
			f[sigKind] = r.needs.kind.in(s.text)
			f[sigRank] = 1 / float64(1+i)
			f[sigPassage] = p.Scores.Dense
			f[sigShort] = math.Max(0, 1-float64(len(s.terms))/5)
			if isAsking(s.text) || isHeading(s.text, p.Heading) {
				f[sigAsks] = 1
			}
			s.score = logistic(sentenceModel[:], f[:])
		}
	}
	return all, nil
}

func union(a, b map[string]bool) map[string]bool {
	out := make(map[string]bool, len(a)+len(b))
	for t := range a {
		out[t] = true
	}
	for t := range b {
		out[t] = true
	}
	return out
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// plainLine is a sentence on one line without the sign of a list item.
func plainLine(s string) string {
	return strings.Join(strings.Fields(withoutBullet(s)), " ")
}

// withoutBullet takes the sign of a list item off the front.
func withoutBullet(s string) string {
	s = strings.TrimSpace(s)
	if rest, ok := cutBullet(s); ok {
		return rest
	}
	return s
}

func cutBullet(s string) (rest string, ok bool) {
	first, n := utf8.DecodeRuneInString(s)
	if strings.ContainsRune("-*+•‣◦▪●–·", first) && strings.HasPrefix(s[n:], " ") {
		return strings.TrimSpace(s[n:]), true
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits > 0 && digits <= 3 && (strings.HasPrefix(s[digits:], ". ") || strings.HasPrefix(s[digits:], ") ")) {
		return strings.TrimSpace(s[digits+2:]), true
	}
	return s, false
}

// isRow tells whether a sentence is a row of a table.
func isRow(s string) bool { return strings.Contains(s, " | ") || strings.HasPrefix(s, "|") }

func isAsking(s string) bool {
	s = strings.TrimRight(strings.TrimSpace(s), "\"'”’)*_")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// isHeading tells whether a sentence is no more than one of the headings over it.
func isHeading(s, path string) bool {
	s = strings.TrimSpace(strings.TrimLeft(s, "# "))
	for h := range strings.SplitSeq(path, ingest.HeadingSeparator) {
		if strings.EqualFold(s, strings.TrimSpace(h)) {
			return true
		}
	}
	return false
}

var (
	monthsAndDays = words(`january february march april may june july august september october november december
		monday tuesday wednesday thursday friday saturday sunday weekday weekdays weekend weekends daily annually
		morning afternoon evening noon midnight spring summer autumn winter today century`)
	numberWords = words(`one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty
		forty fifty sixty hundred thousand million billion half twice once dozen none no free several`)
	placeWords = words(`at in on near beside behind opposite under above below between outside inside along`)
	whyWords   = words(`because since therefore so due reason cause causes caused owing thanks to otherwise`)
)

// in tells how far a text holds a thing of this kind: 1 yes, 0 no, ½ where
// every text may.
func (k answerKind) in(text string) float64 {
	if k == anyKind || k == listKind {
		return .5
	}
	digits := strings.ContainsFunc(text, unicode.IsDigit)
	start := true
	for _, w := range strings.Fields(text) {
		bare := strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		lower := strings.ToLower(bare)
		first, _ := utf8.DecodeRuneInString(bare)
		switch k {
		case timeKind:
			if digits || monthsAndDays[lower] {
				return 1
			}
		case amountKind:
			if digits || numberWords[lower] {
				return 1
			}
		case personKind:
			if unicode.IsUpper(first) && !start {
				return 1
			}
		case placeKind:
			if unicode.IsUpper(first) && !start || placeWords[lower] {
				return 1
			}
		case reasonKind:
			if whyWords[lower] {
				return 1
			}
		}
		start = strings.HasSuffix(w, ".")
	}
	return 0
}
