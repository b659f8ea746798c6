package extract

import (
	"context"
	"regexp"
	"slices"
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
	span    ingest.Span
	text    string
	wraps   bool // its line is wrapped: the next sentence continues it
	title   bool // it names what follows, and says nothing itself
	asks    bool // it is a question
	bare    bool // it has too few words to say anything: a rule, a path, a drawing
	terms   map[string]bool
	covers  coverage // of the question
	window  coverage // … with its headings and neighbours
	signals [sentenceSignals]float64
	score   float64 // log-odds against other sentences, up to a constant
}

// answers reports whether a sentence may be an answer.
func (s *sentence) answers() bool { return !s.title && !s.asks && !s.bare }

// The signals of a sentence, in the order of sentenceModel.
const (
	sigContext     = iota // share of the question's weight in the sentence with its headings, words of like meaning in part
	sigWindow             // … and with its neighbours
	sigHeading            // … in the headings alone
	sigPassageNear        // … in the whole passage
	sigPrecise            // share of the sentence that relates to the question
	sigShort              // too short to say much
	sigKind               // has a date, an amount … where the question asks for one
	sigVotes              // share of other passages whose sentences have the same new name or number
	sigScore              // the passage's score among those found
	sigCell               // share of the question's weight in whole cells of a table row
	sigAfter              // cosine of question and the question that it comes after
	sigYear               // is about another year than the question
	sigDense              // cosine of question and sentence
	sigTitle              // cosine of question and headings
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
				passage: i, index: len(all[i]), span: span, text: text,
				wraps: wraps(text, rest), title: isTitle(text, rest) || isHeading(text, p), asks: isAsking(text), bare: isBare(text),
				terms: terms, covers: d.coverageOf(terms),
			})
			texts = append(texts, plainLine(text))
		}
		texts = append(texts, p.Title+" "+p.Heading)
	}
	vectors, err := d.embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	for i, p := range kept {
		title, otherYear := dot(d.vector, vectors[len(all[i])]), d.otherYear(p)
		for k := range all[i] {
			f := &all[i][k].signals
			f[sigDense], f[sigTitle], f[sigYear] = dot(d.vector, vectors[k]), title, otherYear
			d.measure(p, all[i], k)
		}
		vectors = vectors[len(all[i])+1:]
	}
	d.vote(all)
	for i := range all {
		for k := range all[i] {
			for n, x := range all[i][k].signals {
				all[i][k].score += sentenceModel[n] * x
			}
		}
	}
	return all, nil
}

// otherYear is 1 where the headings of a passage name another year than the
// question, and less where nothing in it names that year.
func (d *Reading) otherYear(p retrieve.Passage) float64 {
	asked, over := years(d.question), years(p.Title+" "+p.Heading+" "+p.Path)
	switch {
	case len(asked) == 0 || meet(asked, over):
		return 0
	case len(over) > 0:
		return 1
	case !meet(asked, years(p.Text)):
		return 2. / 3
	}
	return 0
}

// measure computes the other signals of sentence k of a passage, except votes.
// Those of the sentences before it are known.
func (d *Reading) measure(p retrieve.Passage, in []sentence, k int) {
	s, about := &in[k], d.passages[p.ID]
	f := &s.signals
	s.window = about.head.with(s.covers)
	f[sigContext] = d.needs.near(s.window)
	if k > 0 {
		s.window = s.window.with(in[k-1].covers)
		if in[k-1].asks {
			f[sigAfter] = max(0, in[k-1].signals[sigDense])
		}
	}
	if k+1 < len(in) {
		s.window = s.window.with(in[k+1].covers)
	}
	f[sigWindow] = d.needs.near(s.window)
	f[sigHeading] = d.needs.near(about.head)
	f[sigPassageNear] = d.needs.near(about.all)
	f[sigPrecise] = d.precision(s.terms)
	f[sigShort] = max(0, 1-float64(len(s.terms))/5)
	f[sigKind] = d.needs.kind.in(s.text, d.question)
	f[sigScore] = p.Score
	f[sigCell] = d.cells(s.text)
}

// cells is the share of the question's weight that is in whole cells of a table
// row: "Adult" in "Kind: Adult | A year: 140".
func (d *Reading) cells(row string) float64 {
	if !isRow(row) {
		return 0
	}
	covered := make(coverage, len(d.needs.terms))
	for cell := range strings.SplitSeq(row, "|") {
		if _, value, named := strings.Cut(cell, ": "); named {
			cell = value
		}
		if terms := termSet(cell); len(terms) > 0 && d.precision(terms) > .99-notAlike/2 {
			covered = covered.with(d.coverageOf(terms))
		}
	}
	return d.needs.exact(covered)
}

// nearVoters is the nearness from which a sentence counts for others.
const nearVoters = .6

// vote counts for each sentence in how many other passages a sentence near the
// question has the same new name or number: what several documents say of a
// thing is likelier to be the answer.
func (d *Reading) vote(all [][]sentence) {
	said := map[string]map[int]bool{} // passages by word
	words := map[*sentence][]string{}
	for i := range all {
		for k := range all[i] {
			s := &all[i][k]
			words[s] = d.newNames(s.text)
			if s.signals[sigWindow] < nearVoters {
				continue
			}
			for _, w := range words[s] {
				if said[w] == nil {
					said[w] = map[int]bool{}
				}
				said[w][s.passage] = true
			}
		}
	}
	for s, names := range words {
		for _, w := range names {
			others := len(said[w])
			if said[w][s.passage] {
				others--
			}
			s.signals[sigVotes] = max(s.signals[sigVotes], min(1, float64(others)/4))
		}
	}
}

// newNames are the capitalised words and the numbers of a text that the question
// does not have.
func (d *Reading) newNames(text string) []string {
	var names []string
	for _, w := range wordForm.FindAllString(text, -1) {
		if first, _ := utf8.DecodeRuneInString(w); !unicode.IsUpper(first) && !unicode.IsDigit(first) {
			continue
		}
		w = strings.ToLower(w)
		if !slices.ContainsFunc(retrieve.Terms(w), func(t string) bool { return slices.Contains(d.nearness[t], 1) }) {
			names = append(names, w)
		}
	}
	return names
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
// capitals.
func isTitle(s, rest string) bool {
	if isRow(s) {
		return false
	}
	s, _ = cutBullet(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	if len(strings.Fields(s)) > 8 || !unicode.IsLetter(last) && !unicode.IsDigit(last) && last != ')' {
		return false
	}
	return inCapitals(s) || strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n\n")
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

// isHeading reports whether a sentence is the title of its passage's document or
// one of the headings above or in the passage.
func isHeading(s string, p retrieve.Passage) bool {
	s = strings.TrimSpace(strings.TrimLeft(s, "# "))
	paths := []string{p.Title, p.Heading}
	for _, place := range p.Places {
		paths = append(paths, place.Heading)
	}
	for _, path := range paths {
		for h := range strings.SplitSeq(path, ingest.HeadingSeparator) {
			if strings.EqualFold(s, strings.TrimSpace(h)) {
				return true
			}
		}
	}
	return false
}

// mailHeader is a line at the head of a message.
var mailHeader = regexp.MustCompile(`^(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|In-Reply-To):\s`)

// isBare reports whether a line says nothing that could be an answer: a drawing,
// a rule, a path, a line at the head of a message.
func isBare(s string) bool {
	letters, others := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			letters++
		case r >= 0x2500 && r < 0x2600: // lines, boxes, triangles
			return true
		case !unicode.IsSpace(r):
			others++
		}
	}
	return letters < 2 || letters < others || mailHeader.MatchString(s)
}
