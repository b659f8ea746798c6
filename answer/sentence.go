package answer

import (
	"context"
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
	goesOn  bool // its line ends in the middle; the next sentence carries it on
	title   bool // a line by itself that names what follows
	terms   map[string]bool
	cover   cover // what of the question it has
	window  cover // … with its headings and neighbours
	fits    [sentenceSignals]float64
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
	sigKind               // holds a thing of the kind that is asked for
	sigUnit               // holds a number of the unit that is asked for
	sigPairs              // share of neighbouring words of the question that it holds both
	sigTitle              // cosine of question and headings
	sigAfter              // cosine of question and the question that stands before it
	sigYear               // another year stands over it than the question names
	sigScore              // the passage's score among those found
	sigLexical            // its BM25 over the highest the question could reach
	sigPassage            // cosine of question and passage
	sigPassageNear        // nearness of the passage
	sigShort              // too short to say much
	sigAsks               // is itself a question, or a title
	sigRow                // is a row of a table
	sigPrecise            // share of the sentence that has to do with the question
	sigFirst              // stands first under its heading
	sentenceSignals
)

// sentences reads the passages as sentences and scores each as an answer.
func (r *run) sentences(ctx context.Context, kept []retrieve.Passage) ([][]sentence, error) {
	d := r.reading
	all := make([][]sentence, len(kept))
	var texts []string
	for i, p := range kept {
		for s := range ingest.Sentences(p.Text) {
			text := p.Text[s.Start:s.End]
			terms := termSet(text)
			all[i] = append(all[i], sentence{
				passage: i, index: len(all[i]), text: text,
				goesOn: goesOn(text, p.Text[s.End:]), title: isTitle(text, p.Text[s.End:]),
				terms: terms, cover: d.cover(terms),
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
	heads := vectors[len(vectors)-len(kept):]
	asked := years(r.asked)
	for i, p := range kept {
		about := d.passages[p.ID]
		title := dot(d.question, heads[i])
		otherYear := 0.0
		if over := years(p.Title + " " + p.Heading + " " + p.Path); len(asked) > 0 && len(over) > 0 && !meet(asked, over) {
			otherYear = 1
		}
		for k := range all[i] {
			s := &all[i][k]
			s.window = about.head.with(s.cover)
			f := &s.fits
			f[sigNearContext] = d.needs.near(s.window)
			if k > 0 {
				s.window = s.window.with(all[i][k-1].cover)
			}
			if k+1 < len(all[i]) {
				s.window = s.window.with(all[i][k+1].cover)
			}
			f[sigExact] = d.needs.exact(s.cover)
			f[sigNear] = d.needs.near(s.cover)
			f[sigNearWindow] = d.needs.near(s.window)
			f[sigLeast] = d.needs.least(s.window)
			f[sigNamed] = d.needs.named(s.window)
			f[sigHeading] = d.needs.near(about.head)
			f[sigDense], f[sigAbout] = dot(d.question, vectors[0]), dot(d.question, vectors[1])
			vectors = vectors[2:]
			f[sigKind] = d.needs.kind.in(s.text)
			f[sigUnit] = d.needs.unit.in(s.text)
			f[sigPairs] = d.needs.pairs(s.cover)
			f[sigTitle], f[sigYear] = title, otherYear
			if k > 0 && isAsking(all[i][k-1].text) {
				f[sigAfter] = max(0, all[i][k-1].fits[sigDense])
			}
			f[sigScore] = p.Score
			f[sigLexical] = about.lexical
			f[sigPassage] = about.dense
			f[sigPassageNear] = d.needs.near(about.all)
			f[sigShort] = math.Max(0, 1-float64(len(s.terms))/5)
			if s.title = s.title || isHeading(s.text, p.Heading); s.title || isAsking(s.text) {
				f[sigAsks] = 1
			}
			if isRow(s.text) {
				f[sigRow] = 1
			}
			f[sigPrecise] = d.precise(s.terms)
			if k == 0 || k == 1 && isHeading(all[i][0].text, p.Heading) {
				f[sigFirst] = 1
			}
			for i, x := range f {
				s.score += sentenceModel[i] * x
			}
		}
	}
	return all, nil
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

// isTitle tells whether a sentence is a short line by itself, as a title is, or
// one in capitals over an indented text, as in manuals.
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

// goesOn tells whether a sentence that was taken to end at the end of a line
// is carried on in the next one.
func goesOn(s, rest string) bool {
	next, ok := strings.CutPrefix(rest, "\n")
	if !ok || strings.HasPrefix(strings.TrimLeft(next, " \t"), "\n") || isRow(s) {
		return false
	}
	line, _, _ := strings.Cut(next, "\n")
	line = strings.TrimLeft(line, " \t")
	last, _ := utf8.DecodeLastRuneInString(s)
	return strings.Contains(s, " ") && (unicode.IsLetter(last) || unicode.IsDigit(last) || last == ',' || hyphenated(s)) &&
		!isItem(line) && !isRow(line) && !isEntry(line)
}

// hyphenated tells whether a line ends inside a word.
func hyphenated(s string) bool {
	for _, hyphen := range []string{"-", "\u2010", "\u00ad"} {
		if before, ok := strings.CutSuffix(s, hyphen); ok {
			last, _ := utf8.DecodeLastRuneInString(before)
			return unicode.IsLetter(last)
		}
	}
	return false
}

// isEntry tells whether a line begins with a number that it explains, as those
// of a list of codes do: "4 - no space left".
func isEntry(line string) bool {
	rest := strings.TrimLeft(line, "0123456789")
	number := len(line) - len(rest)
	if number == 0 || number > 5 {
		return false
	}
	said := strings.TrimLeft(rest, " \t")
	first, n := utf8.DecodeRuneInString(said)
	return len(said) < len(rest) && (strings.ContainsRune("-–—=:", first) && strings.HasPrefix(said[n:], " ") || strings.HasPrefix(rest, "\t") || strings.HasPrefix(rest, "  "))
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
