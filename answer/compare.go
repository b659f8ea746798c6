package answer

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/answer/statement"
	"ibid/cite/marker"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// A comparer compares the statements of an answer with the question and with the
// answer's passages.
type comparer struct {
	*finder
	ctx      context.Context // the strategy's
	passages []retrieve.Passage
	prover   support.Prover
	best     int // the label of the passage that Ibid would quote first without a model; 0 for none
}

// A finding is the result of comparing a statement with passages.
type finding struct {
	quotes     []support.Quote // by passage
	nearest    []int           // the labels that it cites, or all labels if it cites none; the best first
	supported  bool            // by the passages that it cites, or by the one found for it
	foundLabel int             // the label of the passage found for it; 0 if it cites some
	idle       []int           // cited labels that add nothing
	verbatim   bool            // it is a whole sentence of the passage that Ibid would quote first
}

// findSupport compares a statement with the passages that it cites, or with all passages
// if it cites none.
func (c *comparer) findSupport(u statement.Unit) finding {
	f := finding{quotes: make([]support.Quote, len(c.passages)), nearest: u.Labels()}
	cited := len(f.nearest) > 0
	short := !cited && isShort(u)
	for i := 0; !cited && i < len(c.passages); i++ {
		f.nearest = append(f.nearest, i+1)
	}
	evidence := make([]support.Passage, len(f.nearest))
	for i, label := range f.nearest {
		passage := c.passages[label-1]
		evidence[i] = support.Passage{Text: passage.Text, Title: passage.Title, Heading: passage.Heading}
		if short {
			f.quotes[label-1] = c.findShort(u.Plain, evidence[i])
		} else {
			f.quotes[label-1] = c.prover.Find(u.Plain, evidence[i])
		}
	}
	if !cited && !short {
		c.addSecondScores(u.Plain, f.quotes)
	}
	weak := func(label int) bool { return f.quotes[label-1].Verdict == support.Weak }
	f.supported = slices.ContainsFunc(f.nearest, func(label int) bool { return !weak(label) })
	if cited && len(f.nearest) > 1 && slices.ContainsFunc(f.nearest, weak) {
		together := c.prover.Join(u.Plain, evidence)
		joined := together.Support >= support.Threshold && !slices.ContainsFunc(f.nearest, func(label int) bool {
			return f.quotes[label-1].Verdict == support.Quoted // it needs no other passage
		})
		f.supported = f.supported || joined
		for i, label := range f.nearest {
			if f.supported && weak(label) && !(joined && together.Parts[i]) &&
				retrieve.Language(c.passages[label-1].Text) == retrieve.Language(u.Plain) {
				f.idle = append(f.idle, label)
			}
		}
	}
	slices.SortStableFunc(f.nearest, func(a, b int) int { return cmp.Compare(f.quotes[b-1].Support, f.quotes[a-1].Support) })
	if !cited && f.supported {
		f.foundLabel = f.nearest[0]
	}
	f.verbatim = slices.Contains(f.nearest, c.best) && quotesWhole(c.passages[c.best-1].Text, u.Plain, f.quotes[c.best-1])
	return f
}

// isShort reports whether a statement has too few words to say what it is about.
func isShort(u statement.Unit) bool {
	const sentence = 4 // words
	few := len(lowerWords(u.Plain)) < sentence && !strings.ContainsFunc(u.Plain, marker.IsUnspaced)
	return u.Kind == statement.Aside || few && !u.IsListed()
}

// findShort compares a short statement with a passage. Since such a statement does not say
// what it is about, it is compared together with the question. A sentence with the
// statement's words verbatim supports it, more strongly if it has more of the question.
func (c *comparer) findShort(plain string, passage support.Passage) support.Quote {
	q := c.prover.Find(c.standalone+" "+plain, passage)
	q.Support, q.Verdict = q.Support/2, support.Weak
	for s := range ingest.Sentences(passage.Text) {
		if sentence := passage.Text[s.Start:s.End]; hasInRow(sentence, plain) {
			near := c.prover.Find(c.standalone+" "+plain, support.Passage{Text: sentence, Title: passage.Title, Heading: passage.Heading})
			if borne := (1 + near.Support) / 2; borne > q.Support {
				q = support.Quote{Span: support.Span(s), Support: borne, Verdict: support.Supported}
			}
		}
	}
	return q
}

// The encoder's second score of a quote adds comparedWeight·(score − comparedMiddle) to the
// log-odds of its support. On the two halves of WiCE's claims it raises the AUROC from .828 to
// .841 and from .872 to .878. At most mostCompared quotes get a second score, and only with a
// support of at least leastCompared.
const (
	comparedWeight = 3
	comparedMiddle = .65
	leastCompared  = .201
	mostCompared   = 8
)

// addSecondScores uses the encoder's scores to adjust the support of quotes for a statement
// that cites no passage.
func (c *comparer) addSecondScores(plain string, quotes []support.Quote) {
	var near []*support.Quote
	var texts []string
	for i := range quotes {
		q, text := &quotes[i], c.passages[i].Text
		if q.Verdict != support.Quoted && q.Support >= leastCompared && len(near) < mostCompared {
			near, texts = append(near, q), append(texts, text[q.Start:q.End])
		}
	}
	encoder := c.encoder()
	if encoder == nil || len(near) == 0 || !encoder.Knows(retrieve.Language(plain)) {
		return
	}
	scores, err := extract.SecondScores(c.ctx, encoder, plain, retrieve.Language(texts[0]), texts)
	if err != nil {
		c.warn("a statement was compared by its words alone: %s", err)
		return
	}
	for i, q := range near {
		odds := q.Support / (1 - q.Support) * math.Exp(comparedWeight*(scores[i]-comparedMiddle))
		q.Support, q.Verdict = odds/(1+odds), support.Weak
		if q.Support >= support.Threshold {
			q.Verdict = support.Supported
		}
	}
}

// excerpt is the most tokens of a passage that the judge is shown, unless the quote
// is longer.
const excerpt = 80

// excerpt returns the part of a passage around a quote.
func (c *comparer) excerpt(label int, quote support.Span) prompt.Evidence {
	passage := c.passages[label-1]
	from, to := quote.Start, quote.End
	for s := range ingest.Sentences(passage.Text) {
		if s.End > quote.Start && s.Start < quote.End || c.writer.Count(passage.Text[min(from, s.Start):max(to, s.End)]) <= excerpt {
			from, to = min(from, s.Start), max(to, s.End)
		}
	}
	passage.Text = c.writer.Fit(passage.Text[from:to], 2*excerpt)
	return prompt.NewEvidence(label, passage)
}

// statesSomething reports whether a unit must be proved. It is false for code and quotes, offers
// and openings, and for questions and leads that say no more than the question does. A lead that
// ends in a colon is proved with the next unit.
func (c *comparer) statesSomething(u, next statement.Unit) bool {
	switch {
	case u.Kind == statement.Claim:
		return true
	case u.Kind == statement.Verbatim, u.Kind == statement.Trailer, sentence.IsOffer(u.Plain), isOpening(u.Plain),
		sentence.IsRefusal(u.Plain):
		return false
	case len(u.Marks) > 0, !u.IsTableHead() && extract.Decides(wordsWithoutCounts(u, next), c.standalone):
		return true
	case u.Kind == statement.Lead && !u.IsLeadOf(next), u.Kind == statement.Aside && !isQuestion(u.Plain):
		return true
	}
	body := strings.Trim(u.Plain, "`*_# \t")
	switch many := c.newWords(body) > 1; {
	case !u.IsHeading():
		return many && (u.Kind == statement.Aside || next.Kind == statement.Verbatim)
	case strings.ContainsAny(body, ":："): // "Parking: free"
		return true
	default:
		return many && !isQuestion(body) && (strings.ContainsFunc(body, marker.IsUnspaced) || hasPredicate(lowerWords(body)))
	}
}

// wordsWithoutCounts returns the words of a unit. If it introduces a list, numbers of items,
// such as "2" in "the 2 steps", and names with digits, such as "R5", are left out.
func wordsWithoutCounts(u, next statement.Unit) string {
	if u.Kind != statement.Lead || u.IsHeading() || !next.IsListed() {
		return u.Plain
	}
	var words []string
	said := lowerWords(u.Plain)
	for i, w := range said {
		counts := i > 0 && i+1 < len(said) && aboutAnswers[retrieve.Stem(said[i+1])]
		named := unicode.IsLetter([]rune(w)[0]) && strings.ContainsFunc(w, unicode.IsDigit)
		if !counts && !named {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// newWords counts the content words of a text that are neither in the question nor in
// aboutAnswers. In scripts without spaces it counts pairs of characters: three make a word
// in Chinese, Kanji and Katakana, five in Thai.
func (c *comparer) newWords(text string) (n int) {
	asked, terms := stems(c.standalone), retrieve.Terms(text)
	for stem := range stems(text) {
		if slices.Contains(terms, stem) && !asked[stem] && !aboutAnswers[stem] {
			n++
		}
	}
	isContent := func(r rune) bool { return marker.IsUnspaced(r) && !unicode.Is(unicode.Hiragana, r) }
	han, thai, before, seen := 0, 0, ' ', map[string]bool{}
	for _, r := range text {
		pair := string(before) + string(r)
		switch {
		case seen[pair] || strings.Contains(c.standalone, pair) || !isContent(before):
		case unicode.Is(unicode.Thai, r):
			thai++
		case isContent(r):
			han++
		}
		seen[pair], before = true, r
	}
	return n + han/3 + thai/5
}
