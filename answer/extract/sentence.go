package extract

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/ingest"
	"ibid/retrieve"
)

// A sentence is a unit of a passage that can be quoted alone: a sentence, a list
// item, a table row.
type sentence struct {
	passage int // index of the kept passage
	index   int // position among the sentences of its passage
	text    string
	wraps   bool // its line is wrapped: the next sentence continues it
	title   bool // a line of its own that names what follows
	terms   map[string]bool
	covers  coverage // of the question
	window  coverage // … with its headings and neighbours
	signals [sentenceSignals]float64
	score   float64 // log-odds against other sentences, up to a constant
}

// The signals of a sentence, in the order of sentenceModel.
const (
	sigExact       = iota // share of the question's weight in the sentence itself
	sigNear               // … in words of like meaning too
	sigNearContext        // … with its title and headings
	sigNearWindow         // … and with its neighbours
	sigLeast              // how near the window comes to what it misses most
	sigNamed              // share of the weight of names and numbers in the window
	sigHeading            // nearness of the headings alone
	sigDense              // cosine of question and sentence
	sigAbout              // cosine of question and sentence under its heading
	sigUnit               // has a number of the unit asked for
	sigTitle              // cosine of question and headings
	sigAfter              // cosine of question and the question right before it
	sigYear               // its headings name another year than the question
	sigScore              // the passage's score among those found
	sigLexical            // its BM25 over the highest the question could reach
	sigPassage            // cosine of question and passage
	sigPassageNear        // nearness of the passage
	sigShort              // too short to say much
	sigAsks               // is itself a question, or a title
	sigPrecise            // share of the sentence that relates to the question
	sigFirst              // is first under its heading
	sentenceSignals
)

// sentences splits the passages into sentences and scores each as an answer.
func (d *Reading) sentences(ctx context.Context, kept []retrieve.Passage) ([][]sentence, error) {
	all := make([][]sentence, len(kept))
	var texts []string
	for i, p := range kept {
		for span := range ingest.Sentences(p.Text) {
			text, rest := p.Text[span.Start:span.End], p.Text[span.End:]
			terms := termSet(text)
			all[i] = append(all[i], sentence{
				passage: i, index: len(all[i]), text: text,
				wraps: wraps(text, rest), title: isTitle(text, rest),
				terms: terms, covers: d.coverageOf(terms),
			})
			line := plainLine(text)
			texts = append(texts, line, p.Title+" "+p.Heading+" "+line)
		}
	}
	for _, p := range kept {
		texts = append(texts, p.Title+" "+p.Heading)
	}
	vectors, err := d.embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	headings := vectors[len(vectors)-len(kept):]
	for i, p := range kept {
		title, otherYear := dot(d.vector, headings[i]), d.otherYear(p)
		for k := range all[i] {
			s := &all[i][k]
			s.signals[sigDense], s.signals[sigAbout] = dot(d.vector, vectors[0]), dot(d.vector, vectors[1])
			s.signals[sigTitle], s.signals[sigYear] = title, otherYear
			vectors = vectors[2:]
			d.score(p, all[i], k)
		}
	}
	return all, nil
}

// otherYear is 1 where the headings of a passage name another year than the
// question.
func (d *Reading) otherYear(p retrieve.Passage) float64 {
	asked, over := years(d.question), years(p.Title+" "+p.Heading+" "+p.Path)
	if len(asked) > 0 && len(over) > 0 && !meet(asked, over) {
		return 1
	}
	return 0
}

// score computes the other signals of sentence k of a passage, and from all of
// them its score. Those of the sentences before it are known.
func (d *Reading) score(p retrieve.Passage, in []sentence, k int) {
	s, about, is := &in[k], d.passages[p.ID], func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	f := &s.signals
	s.window = about.head.with(s.covers)
	f[sigNearContext] = d.needs.near(s.window)
	if k > 0 {
		s.window = s.window.with(in[k-1].covers)
		if isAsking(in[k-1].text) {
			f[sigAfter] = max(0, in[k-1].signals[sigDense])
		}
	}
	if k+1 < len(in) {
		s.window = s.window.with(in[k+1].covers)
	}
	s.title = s.title || isHeading(s.text, p.Heading)
	f[sigExact] = d.needs.exact(s.covers)
	f[sigNear] = d.needs.near(s.covers)
	f[sigNearWindow] = d.needs.near(s.window)
	f[sigLeast] = d.needs.least(s.window)
	f[sigNamed] = d.needs.named(s.window)
	f[sigHeading] = d.needs.near(about.head)
	f[sigUnit] = d.needs.unit.in(s.text)
	f[sigScore] = p.Score
	f[sigLexical] = about.lexical
	f[sigPassage] = about.dense
	f[sigPassageNear] = d.needs.near(about.all)
	f[sigShort] = max(0, 1-float64(len(s.terms))/5)
	f[sigAsks] = is(s.title || isAsking(s.text))
	f[sigPrecise] = d.precision(s.terms)
	f[sigFirst] = is(k == 0 || k == 1 && isHeading(in[0].text, p.Heading))
	for i, x := range f {
		s.score += sentenceModel[i] * x
	}
}

// plainLine is a sentence on one line, without its bullet.
func plainLine(s string) string {
	s, _ = cutBullet(strings.TrimSpace(s))
	return strings.Join(strings.Fields(s), " ")
}

var bullet = regexp.MustCompile(`^(?:[-*+•‣◦▪●–·]|\d{1,3}[.)]) `)

// cutBullet removes the bullet or number of a list item.
func cutBullet(s string) (rest string, ok bool) {
	at := bullet.FindStringIndex(s)
	if at == nil {
		return s, false
	}
	return strings.TrimSpace(s[at[1]:]), true
}

// isTitle reports whether a sentence is a short line of its own, or one in
// capitals above an indented text, as in manuals.
func isTitle(s, rest string) bool {
	last, _ := utf8.DecodeLastRuneInString(s)
	if len(strings.Fields(s)) > 8 || isItem(s) || isRow(s) || !unicode.IsLetter(last) && !unicode.IsDigit(last) && last != ')' {
		return false
	}
	if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n\n") {
		return true
	}
	return (strings.HasPrefix(rest, "\n   ") || strings.HasPrefix(rest, "\n\t")) && inCapitals(s)
}

func inCapitals(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters >= 3
}

// wraps reports whether a sentence that was cut at the end of a line continues
// on the next one.
func wraps(s, rest string) bool {
	next, ok := strings.CutPrefix(rest, "\n")
	if !ok || strings.HasPrefix(strings.TrimLeft(next, " \t"), "\n") || isRow(s) {
		return false
	}
	line, _, _ := strings.Cut(next, "\n")
	line = strings.TrimLeft(line, " \t")
	last, _ := utf8.DecodeLastRuneInString(s)
	open := unicode.IsLetter(last) || unicode.IsDigit(last) || last == ',' || hyphenated(s)
	return open && strings.Contains(s, " ") &&
		!isItem(line) && !isRow(line) && !isEntry(line)
}

var (
	brokenWord = regexp.MustCompile(`\pL[-\x{2010}\x{ad}]$`)
	entry      = regexp.MustCompile(`^\d{1,5}(?:\t|  |[ \t]+[-–—=:] )`)
)

// hyphenated reports whether a line ends inside a word.
func hyphenated(s string) bool { return brokenWord.MatchString(s) }

// isEntry reports whether a line begins with a number that it explains, as in a
// list of codes: "4 - no space left".
func isEntry(line string) bool { return entry.MatchString(line) }

// isRow reports whether a sentence is a row of a table.
func isRow(s string) bool { return strings.Contains(s, " | ") || strings.HasPrefix(s, "|") }

func isAsking(s string) bool {
	s = strings.TrimRight(strings.TrimSpace(s), "\"'”’)*_")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// isHeading reports whether a sentence is one of the headings above it.
func isHeading(s, path string) bool {
	s = strings.TrimSpace(strings.TrimLeft(s, "# "))
	for h := range strings.SplitSeq(path, ingest.HeadingSeparator) {
		if strings.EqualFold(s, strings.TrimSpace(h)) {
			return true
		}
	}
	return false
}
