package extract

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	passage  int // index of the kept passage
	index    int // position among the sentences of its passage
	span     ingest.Span
	text     string
	joins    bool   // it is in the paragraph or list item of the sentence before it
	title    bool   // it names what follows, and says nothing itself
	asks     bool   // it is a question
	bare     bool   // it says nothing that could be an answer: a rule, a path, a licence
	licensed bool   // it is of the notice of a licence
	other    bool   // it answers another question: of another year, or with yes or no
	inAsked  bool   // it is in the section that tells the way that is asked for
	outside  bool   // it begins or ends a mail: a greeting, a signature
	together int    // its place among rows that are asked for together; 0 if it is none
	code     bool   // it is a block of code
	headed   bool   // … right under a heading, which leads in to it
	declares bool   // it is in source code, whose declarations are quoted with their comments
	reply    bool   // a mail quotes it to reply to it
	by       string // who wrote it in a mail, and when
	terms    map[string]bool
	covers   coverage // of the question
	window   coverage // … with its headings and neighbours
	signals  [sentenceSignals]float64
	about    passageReading
	score    float64 // log-odds against other sentences, up to a constant
	second   float64 // of question and sentence by the encoder: see secondScores
}

// answers reports whether a sentence may be an answer.
func (s *sentence) answers() bool { return !s.title && !s.asks && !s.bare && !s.other }

// The signals of a sentence, in the order of sentenceModel.
const (
	sigContext     = iota // share of the question's weight in the sentence with its headings, words of like meaning in part
	sigWindow             // … and with its neighbours
	sigPassageNear        // … in the whole passage
	sigShort              // too short to say much
	sigKind               // has a date, an amount … where the question asks for one
	sigScore              // the passage's score among those found
	sigCell               // share of the question's weight in whole cells of a table row
	sigAfter              // cosine of question and the question that it comes after
	sigYear               // is about another year than the question
	sigDense              // cosine of question and sentence
	sigTitle              // cosine of question and headings
	sigDenies             // has no "not" or the like, where the question has one
	sigAside              // is in the test of a program, or quoted by a mail to reply to it
	sentenceSignals
)

// sentences splits the passages into sentences and scores each as an answer.
func (d *Reading) sentences(ctx context.Context, kept []retrieve.Passage) ([][]sentence, error) {
	all := make([][]sentence, len(kept))
	var texts []string
	for i, p := range kept {
		all[i] = split(d.query, i, p)
		for _, s := range all[i] {
			texts = append(texts, plainLine(s.text))
		}
		texts = append(texts, p.Title+" "+p.Heading)
	}
	d.chooseRows(kept, all)
	vectors, err := d.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("comparing sentences with the question: %w", err)
	}
	for i, p := range kept {
		m := measurer{d.query, p, d.passages[p.ID], all[i]}
		title, otherYear, test := dot(d.vector, vectors[len(all[i])]), m.otherYear(), m.isTest()
		for k := range all[i] {
			f := &all[i][k].signals
			f[sigDense], f[sigTitle], f[sigYear], f[sigAside] = dot(d.vector, vectors[k]), title, otherYear, test
			if all[i][k].reply {
				f[sigAside] = 1
			}
			m.measure(k)
		}
		vectors = vectors[len(all[i])+1:]
	}
	for i := range all {
		for k := range all[i] {
			for n, x := range all[i][k].signals {
				all[i][k].score += sentenceModel[n] * x
			}
		}
	}
	return all, d.encode(ctx, kept, all)
}

// encoded is how many sentences get a second score, of encodedTokens tokens each at
// most: with eight of 30 tokens, about 30 ms of a core.
const encoded, encodedTokens = 8, 64

// encode gives the best sentences a second score: the cosine by the encoder. It says
// how likely the answer is in any of them; which of them has it, the first score tells
// better, unless the question is in another language.
func (d *Reading) encode(ctx context.Context, kept []retrieve.Passage, all [][]sentence) error {
	best := ranking(all)
	switch {
	case d.foreign != nil:
		d.foreign.score(best)
	case d.encoder != nil && len(best) > 0:
		return d.secondScores(ctx, best[:min(encoded, len(best))], kept)
	}
	return nil
}

// secondScores sets the second score of sentences: their cosine with the question by
// the encoder, from 0 for unrelated texts to 1.
func (d *Reading) secondScores(ctx context.Context, all []*sentence, kept []retrieve.Passage) error {
	texts := make([]string, len(all))
	for i, s := range all {
		p := kept[s.passage]
		headings := strings.Split(p.Heading, ingest.HeadingSeparator)
		heading := headings[len(headings)-1]
		if isMail(p) {
			heading, _ = ingest.Envelope(p.Format, p.Title, p.Heading)
		}
		texts[i] = strings.TrimSpace(p.Title+" "+heading) + ": " + plainLine(s.text)
	}
	scores, err := SecondScores(ctx, d.encoder, d.query.text, d.query.language, texts)
	for i, score := range scores {
		all[i].second = score
	}
	return err
}

// SecondScores returns the cosine of a question, or of a statement, with each text of a
// language by an encoder: from 0 for unrelated texts to 1.
func SecondScores(ctx context.Context, m retrieve.Encoder, question, language string, texts []string) ([]float64, error) {
	vector, err := m.EmbedQuestion(ctx, question)
	if err != nil {
		return nil, fmt.Errorf("encoding the question: %w", err)
	}
	rows, err := m.EmbedPassages(ctx, texts, encodedTokens)
	if err != nil {
		return nil, fmt.Errorf("encoding sentences: %w", err)
	}
	space, scores := m.Space(), make([]float64, len(rows))
	apart := cmp.Or(unrelated[space+" "+language], unrelated[space])
	for i, row := range rows {
		scores[i] = (dot(vector, row) - apart) / (1 - apart)
	}
	return scores, nil
}

// spansOf cuts a passage into its sentences, and into blocks of code, each with the part
// of a letter that it is in.
func spansOf(p retrieve.Passage) (spans []ingest.Span, code []bool, parts []letterPart) {
	for _, part := range letterOf(p).parts {
		for span := range ingest.Sentences(p.Text[part.span.Start:part.span.End]) {
			span.Start, span.End = part.span.Start+span.Start, part.span.Start+span.End
			indented, last := isIndented(p, span), len(spans)-1
			if last >= 0 && parts[last] == part && (indented && code[last] ||
				!indented && !code[last] && continues(p, spans[last], span)) {
				spans[last].End = span.End
				continue
			}
			spans, code, parts = append(spans, span), append(code, indented), append(parts, part)
		}
	}
	return spans, code, parts
}

// split cuts a passage, the i-th of those that are kept, into its sentences and blocks of code.
func split(q *query, i int, p retrieve.Passage) []sentence {
	spans, code, parts := spansOf(p)
	in := make([]sentence, len(spans))
	rows, before := rowReader{q}, sentence{}
	for k, span := range spans {
		text, rest := p.Text[span.Start:span.End], p.Text[span.End:]
		terms, said := termSet(text), text
		if !code[k] {
			said = q.headsOfCompounds(text)
		}
		s := sentence{
			passage: i, index: k, span: span, text: text, code: code[k], declares: p.Format == "code",
			terms: terms, covers: q.coverageOf(termSet(said)), reply: parts[k].reply, by: parts[k].by,
		}
		if s.code {
			s.headed = before.title && !s.declares
			s.bare = !s.headed || !q.needs.kind.isWay()
		} else {
			s.joins = k > 0 && joins(p.Text[before.span.End:span.Start], before, text)
			s.asks = isAsking(text)
			s.title = isTitle(text, rest) || isHeading(text, p)
			s.outside = parts[k].head || parts[k].end
			s.licensed = !s.outside && (licence.MatchString(plainLine(text)) || s.joins && before.licensed)
			s.other = isRow(text) && (rows.otherYears(text, p) || rows.unpriced(text, p)) || q.answersOther(lastTitle(in, k), text)
			s.bare = s.outside || isBare(text) || s.licensed && !asksLicence.MatchString(q.text) || q.saysNothing(s, before, p)
		}
		in[k], before = s, s
	}
	return in
}

// saysNothing reports whether a sentence says nothing that the question does not say, or is about another number.
func (q *query) saysNothing(s, before sentence, p retrieve.Passage) bool {
	tells := s.by != "" && q.asksSender() || q.isNamedBy(before, s, p) ||
		endsOpen(s.text) || refersBack(s.text) && s.joins // with what it refers to
	return !tells && q.repeats(s) || q.otherNumber(s.text)
}

// joins reports whether a sentence is in the paragraph or list item of the one before
// it, with gap between them.
func joins(gap string, before sentence, text string) bool {
	if before.code || before.title || isItem(text) || isRow(text) {
		return false
	}
	return !strings.Contains(gap, "\n") || strings.Count(gap, "\n") == 1 && !isRow(before.text)
}

// indentsCode reports whether in a passage only code is indented: readers of marked-up
// text and of source code see to it.
func indentsCode(p retrieve.Passage) bool {
	return !slices.Contains([]string{"", "text", "pdf", "image", "mail", "mbox", "outlook", "subtitles"}, p.Format)
}

// isIndented reports whether a sentence is a line of a block of code.
func isIndented(p retrieve.Passage, s ingest.Span) bool {
	if !indentsCode(p) {
		return false
	}
	start := strings.LastIndexByte(p.Text[:s.Start], '\n') + 1
	if line, rest, _ := strings.Cut(p.Text, "\n"); start == 0 && strings.HasPrefix(rest, "    ") && s.End <= len(line) {
		return true // the passage begins within a block: there is no blank line after this one
	}
	line := p.Text[start:s.Start]
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) == ""
}

// repeats reports whether a text without a verdict of its own says nothing that
// the question does not say: "Tesla Q2 2020 revenue." for "Tesla Q2 2020 revenue?".
func (q *query) repeats(s sentence) bool {
	if q.needs.kind != nil && q.needs.kind.name == "yes" {
		return false
	}
	for t := range s.terms {
		if !slices.Contains(q.nearness[t], 1) {
			return false
		}
	}
	return len(s.terms) > 0
}

// numbered is a word and the number of one of several things, with the word after it.
var numbered = regexp.MustCompile(`(\pL{3,})[ -](\d+)\b[ -]?(\pL*)`)

// otherNumber reports whether a text is about another of several numbered things
// than the question: Level 3 where it asks about Level 2. An amount numbers nothing: it is
// after a word that says nothing of a subject, before a unit, or before what both count.
func (q *query) otherNumber(text string) bool {
	of := numbered.FindAllStringSubmatch(strings.ToLower(text), -1)
	return slices.ContainsFunc(numbered.FindAllStringSubmatch(strings.ToLower(q.text), -1), func(asked []string) bool {
		if !q.needs.asksOf(asked[1]) || unitWords[asked[3]] {
			return false
		}
		other, same := false, false
		for _, m := range of {
			if m[1] == asked[1] {
				other = true
				same = same || m[2] == asked[2] || m[3] == asked[3] && q.needs.asksOf(m[3])
			}
		}
		return other && !same
	})
}

// asksOf reports whether a word says something of the subject of the question.
func (n *needs) asksOf(word string) bool {
	return slices.ContainsFunc(n.terms, func(n need) bool { return strings.EqualFold(n.word, word) })
}

// verdict matches a text that begins with a yes or no.
var verdict = func() *regexp.Regexp {
	words := slices.Sorted(maps.Keys(wordsOf("yes")))
	return regexp.MustCompile(`^(?i:` + strings.Join(words, "|") + `)(?:[,;:!.]*$|[,;:!.]? ?[–—-] |[,;:!] |\. \D)`)
}()

// answersOther reports whether a text is a yes or no to the question or heading before it,
// which is not like this question.
func (q *query) answersOther(title sentence, text string) bool {
	return title.text != "" && q.needs.near(title.covers) < asksSame && verdict.MatchString(plainLine(text))
}

// otherYear is 1 where the headings of a passage name another year than the
// question, and less where nothing in it names that year.
func (m *measurer) otherYear() float64 {
	asked, p := m.q.years, m.passage
	over := years(p.Title + " " + p.Heading + " " + p.Path)
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

// isTest is 1 for the test of a program, unless the question is about tests.
func (m *measurer) isTest() float64 {
	if retrieve.IsTest(m.passage) && !strings.Contains(strings.ToLower(m.q.text), "test") {
		return 1
	}
	return 0
}

// A measurer measures the signals of the sentences of one passage.
type measurer struct {
	q       *query
	passage retrieve.Passage
	about   passageReading
	in      []sentence
}

// measure computes the signals of sentence k that need no embedder, in order.
func (m *measurer) measure(k int) {
	in, s := m.in, &m.in[k]
	f := &s.signals
	s.about = m.about
	s.window = m.about.head.with(s.covers)
	if of := antecedent(in, k); len(m.q.needs.names) > 0 && of != k && !m.q.foreign {
		s.window = s.window.with(m.q.needs.ofNames(in[of].covers))
	}
	if m.q.needs.kind.isWay() { // its steps seldom have the words of the question; a fact often has
		s.window = s.window.with(lastTitle(in, k).covers)
	}
	if s.inAsked = m.isInAsked(k); s.inAsked {
		f[sigAfter] = 1
	}
	f[sigContext] = m.q.needs.near(s.window)
	if k > 0 {
		s.window = s.window.with(in[k-1].covers)
		if in[k-1].asks {
			f[sigAfter] = max(f[sigAfter], in[k-1].signals[sigDense])
		}
	}
	s.other = s.other || m.q.needs.subject >= 0 && !m.q.foreign && s.window[m.q.needs.subject] < namesAlike || m.ofAnother(k)
	if k+1 < len(in) {
		s.window = s.window.with(in[k+1].covers)
	}
	f[sigWindow] = m.q.needs.near(s.window)
	f[sigPassageNear] = m.q.needs.near(m.about.all)
	f[sigShort] = max(0, 1-float64(len(s.terms))/5)
	text := s.text
	if start, end := first(in, k), after(in, k); isItem(in[start].text) { // it is quoted whole
		text = m.passage.Text[in[start].span.Start:in[end-1].span.End]
	}
	f[sigKind] = m.q.needs.kind.in(text, m.q.text)
	if s.by != "" && m.q.asksSender() {
		f[sigKind] = 1
	}
	if m.q.needs.denied && !denials.MatchString(text) {
		f[sigDenies] = 1
	}
	f[sigScore] = m.passage.Score
	f[sigCell] = rowReader{m.q}.cells(s.text)
}

// isInAsked reports whether sentence k is in the steps of a section whose headings have all words of
// a question for a way, or in the comment of the declaration that is asked for.
func (m *measurer) isInAsked(k int) bool {
	in, p := m.in, m.passage
	if in[k].declares {
		return m.about.asked && !slices.ContainsFunc(in[:k+1], func(s sentence) bool { return s.code })
	}
	if !m.q.needs.kind.isWay() {
		return false
	}
	start, end := section(in, k)
	heading, _ := p.PlaceAt(p.Start + in[k].span.Start) // the passage's may be that of another section
	head := m.q.coverageOf(termSet(p.Title, heading)).with(lastTitle(in, k).covers)
	return m.q.needs.exact(head) > .99 && slices.ContainsFunc(in[start:end], func(s sentence) bool { return s.code || isStep(s.text) })
}

// section is where the section or body of a mail that sentence k is in begins and ends within its passage.
func section(in []sentence, k int) (start, end int) {
	for start = k; start > 0 && !in[start-1].title && !in[start-1].outside; start-- {
	}
	for end = k + 1; end < len(in) && !in[end].title && !in[end].outside; end++ {
	}
	return start, end
}

// lastTitle is the last heading or question before sentence k within its passage, or nothing.
func lastTitle(in []sentence, k int) sentence {
	for k--; k >= 0; k-- {
		if in[k].title || in[k].asks {
			return in[k]
		}
	}
	return sentence{}
}

// plainLine is a sentence on one line, without its bullet.
func plainLine(s string) string {
	s, _ = cutBullet(strings.TrimSpace(s))
	return strings.Join(strings.Fields(brokenWord.ReplaceAllString(s, "$1$2")), " ")
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

// isTitle reports whether a sentence is a short line of its own.
func isTitle(s, rest string) bool {
	if isRow(s) {
		return false
	}
	s, _ = cutBullet(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return len(strings.Fields(s)) <= 8 && (unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(")?？", last)) &&
		strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n\n")
}

// continues reports whether a sentence is the rest of the one before it.
func continues(p retrieve.Passage, before, s ingest.Span) bool {
	text := p.Text[before.Start:before.End]
	return s.End-before.Start <= maxListBytes && wraps(text, p.Text[before.End:]) && !inTitleCase(text)
}

// inTitleCase reports whether all words but short ones begin with a capital, and nothing parts
// them: a title, or several.
func inTitleCase(s string) bool {
	return !strings.ContainsAny(s, ".,;:") && !slices.ContainsFunc(strings.Fields(s), func(w string) bool {
		first, _ := utf8.DecodeRuneInString(w)
		return utf8.RuneCountInString(w) > 3 && !unicode.IsUpper(first)
	})
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
	open := unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune(",-\u2010\u00ad", last)
	return open && strings.Contains(s, " ") && !isItem(line) && !isRow(line)
}

var brokenWord = regexp.MustCompile(`(\pL[-\x{2010}\x{ad}])\s*\n\s*(\pL)`)

func isAsking(s string) bool {
	s = strings.TrimRight(strings.TrimSpace(s), "\"'”’)*_")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// isHeading reports whether a sentence is the title of its passage's document or
// one of the headings above it.
func isHeading(s string, p retrieve.Passage) bool {
	s = strings.TrimSpace(strings.TrimLeft(s, "# "))
	for _, path := range []string{p.Title, p.Heading} {
		for h := range strings.SplitSeq(path, ingest.HeadingSeparator) {
			if strings.EqualFold(s, strings.TrimSpace(h)) {
				return true
			}
		}
	}
	return false
}

// licence matches what the usual licences say.
var (
	asksLicence = regexp.MustCompile(`(?i)licen[cs]|copyright`)
	licence     = regexp.MustCompile(`(?i)permission (?:is (?:hereby )?granted|to use, copy)|redistributions? (?:of source|in binary|and use in)|` +
		`provided (?:on an )?[“"'‘]as[ -]is|without (?:any )?warrant(?:y|ies) (?:of|or)|free software[:;,] you|you may not use this (?:file|work|software) except|` +
		`\b(?:governed by|(?:licen[cs]|releas|distribut)ed under) .{2,60}\blicen[cs]e`)
)

// boilerplate is what documents have in common: the head of a message, licences, navigation, entries of a table of contents.
var boilerplate = regexp.MustCompile(`^(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|In-Reply-To):\s|` +
	`(?i:all rights reserved|^(?:copyright )?(?:©|\(c\)) |^copyright .{0,20}\d{4}|` +
	`^skip to (?:main )?content|^edit (?:this page|on github)|^was this (?:page )?helpful|^table of contents$)|` +
	`\S [›»>] \S+(?: \S+){0,3} [›»>] \S|\.{4,}\s*\d+$|(?: \.){4,}\s*\d+$`)

// isBare reports whether a line says nothing that could be an answer: a drawing,
// a rule, a path, boilerplate.
func isBare(s string) bool {
	letters, others := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			letters++
		case r >= 0x2500 && r < 0x2600: // a line, a box or a triangle
			return true
		case !unicode.IsSpace(r):
			others++
		}
	}
	return letters < 2 || letters < others || boilerplate.MatchString(plainLine(s))
}

// compound is words with hyphens between them, the last of which says what it is: a request-id is an id.
var compound = regexp.MustCompile(`\pL+(?:-\pL+)+`)

// headsOfCompounds is a text with only the last words of its compounds that the question has not.
func (q *query) headsOfCompounds(text string) string {
	return compound.ReplaceAllStringFunc(text, func(c string) string {
		parts := strings.Split(c, "-")
		if !slices.ContainsFunc(parts, func(p string) bool { return q.needs.exact(q.coverageOf(termSet(p))) == 0 }) {
			return c
		}
		return parts[len(parts)-1]
	})
}
