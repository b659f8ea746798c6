// Package extract reads passages without a model: it estimates the chance that
// a passage is on topic, and answers a question with the sentences that hold
// the answer.
//
// [Read] compares a question with the passages found for it, [Reading.Chance]
// is the gate's score of a passage, and [Reading.Quote] writes the answer of the
// strategy extract. The package calls no model, no store and no network: the
// caller passes the embedder. The same input always gives the same result.
//
// The types, from the question to the answer:
//
//   - kind (kind.go, kinds.txt): the kind of answer, such as an amount or a date
//   - needs (needs.go): the words of the question, and how many of them a text has
//   - query (query.go): the question, with the similarity of the passages' words
//   - letter (mail.go): the parts of a mail and their authors
//   - cell (row.go): the cells of a row that the question asks for
//   - sentence (sentence.go, split.go): a part of a passage and its place there
//   - table (table.go): the rows that a question about several rows asks for
//   - measurer (measure.go): the signals of the sentences of one passage
//   - foreign (foreign.go): scores for a question in another language
//   - expander (expand.go): the list, section or declaration around a sentence
//   - chooser (quote.go): the pieces to quote
//   - selection (write.go): the pieces as text, with labels
//   - Reading (reading.go, score.go, closest.go): the models, and the exported methods
package extract

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Reading is a question compared with the passages found for it.
type Reading struct {
	query    *query
	vector   []float32 // of the question
	passages map[string]passageReading
	embedder retrieve.Embedder
	encoder  retrieve.Encoder // nil if no encoder knows the languages
	foreign  *foreign         // nil if passages are in the question's language
	partly   bool             // parts of the library have no vectors of the encoder yet
	// technical is the share of the kept passages with code or identifiers, lower if there are few.
	technical float64
}

// A passageReading is the comparison of one passage with the question.
type passageReading struct {
	head  coverage // of the title and headings
	all   coverage // of the title, headings and text
	dense float64  // cosine of question and passage
	// lexical is the lexical score with priorChunks added to the library.
	lexical float64
	letter  letter
	source  string // the document
	asked   bool   // the question names the declaration in it
}

// codeForm matches text that is rare outside programs: a name with an underscore or an inner
// capital, a flag, a call, a path.
var codeForm = regexp.MustCompile("`" + `|\pL\(\)|\pL\.\p{Ll}+\(|\b\p{Ll}+\p{Lu}\p{Ll}|\s--\p{Ll}|\s/\pL+/|(?m:^[^|]*[\pL\d]_\pL[^|]*$)`)

// hasCode reports whether codeForm matches a text. It first searches for characters that the
// slow expression needs.
func hasCode(text string) bool {
	lower := false
	return strings.ContainsFunc(text, func(r rune) bool {
		camel := lower && unicode.IsUpper(r)
		lower = unicode.IsLower(r)
		return camel || strings.ContainsRune("`(/_-", r)
	}) && codeForm.MatchString(text)
}

// Read compares a question with passages. stats counts the terms of the question in the whole
// collection, or in the passages ([CountTerms]) if the collection cannot be counted. The models
// of this package are calibrated for [ibid/retrieve/embed.Model] only. encoder, which may be
// nil, gives the best sentences a second score, which is their only score if the passages are in
// another language than the question.
func Read(ctx context.Context, question string, passages []retrieve.Passage, stats retrieve.Stats, e retrieve.Embedder,
	encoder retrieve.Encoder) (*Reading, error) {
	d := &Reading{
		query: &query{text: question, needs: readNeeds(question, stats), years: years(question),
			nearness: map[string][]float64{}, language: "en"},
		passages: map[string]passageReading{}, embedder: e, partly: stats.Unencoded,
	}
	d.query.sender = len(d.query.needs.terms)
	if len(passages) > 0 {
		d.query.language = retrieve.Language(passages[0].Text)
	}
	asked, evident := retrieve.AskedLanguage(question)
	if asked = cmp.Or(asked, "en"); encoder != nil && encoder.Knows(asked) && encoder.Knows(d.query.language) {
		d.encoder = encoder
	}
	vectors, err := d.embed(ctx, passages)
	if err != nil {
		return nil, fmt.Errorf("comparing passages with the question: %w", err)
	}
	d.readPassages(passages, vectors)
	near := passages[:min(nearest, len(passages))]
	// The language of a short question is uncertain, so passages with its words count as being in its
	// language.
	if d.encoder != nil && !slices.ContainsFunc(near, func(p retrieve.Passage) bool {
		return retrieve.Language(p.Text) == asked || (asked == "en" || !evident) && d.query.needs.exactShare(d.passages[p.ID].all) >= .5
	}) {
		d.foreign, err = d.readForeign(ctx, passages)
		d.query.foreign = true
	}
	return d, err
}

// embed returns the vectors of the passages, and sets the vector of the question and the
// nearness of terms, in one call of the embedder.
func (d *Reading) embed(ctx context.Context, passages []retrieve.Passage) ([][]float32, error) {
	texts := []string{d.query.text}
	for _, t := range d.query.needs.terms {
		texts = append(texts, t.word)
	}
	for _, p := range passages {
		texts = append(texts, ingest.EmbeddingText(p.Title, p.Chunk))
	}
	stems, words := stemsOf(passages)
	vectors, err := d.embedder.Embed(ctx, append(texts, words...))
	if err != nil {
		return nil, err
	}
	d.vector = vectors[0]
	needed := vectors[1 : 1+len(d.query.needs.terms)]
	vectors = vectors[1+len(needed):]
	for i, stem := range stems {
		near := make([]float64, len(needed))
		for k, v := range needed {
			near[k] = min(.99, max(0, (dot(v, vectors[len(passages)+i])-notAlike)/(1-notAlike)))
		}
		d.query.nearness[stem] = near
	}
	for k, t := range d.query.needs.terms {
		for _, stem := range []string{t.stem, cmp.Or(t.own, t.stem)} {
			if d.query.nearness[stem] == nil {
				d.query.nearness[stem] = make([]float64, len(needed))
			}
			d.query.nearness[stem][k] = 1
		}
	}
	return vectors[:len(passages)], nil
}

// readPassages compares each passage with the question.
func (d *Reading) readPassages(passages []retrieve.Passage, vectors [][]float32) {
	for i, p := range passages {
		about, letter := []string{p.Title, p.Heading}, letterOf(p)
		if isMail(p) {
			d.query.readSender(letter)
			about = append(about, letter.author, strings.Join(asksMail.FindAllString(d.query.text, -1), " "))
		}
		declared := retrieve.DeclaredIdentifier(p, d.query.text)
		head := d.query.coverageOf(termSet(append(about, declared)...))
		read := passageReading{
			head:    head,
			all:     head.union(d.query.coverageOf(termSet(p.Text))),
			dense:   dot(d.vector, vectors[i]),
			lexical: p.Scores.Lexical,
			letter:  letter,
			source:  p.Document,
			asked:   declared != "",
		}
		if p.Scores.Coverage > 0 {
			read.lexical = min(1, read.lexical*d.query.needs.idfShare(read.all)/p.Scores.Coverage)
		}
		d.passages[p.ID] = read
	}
}

// stemsOf returns the distinct stems of passages, each with the first word that has it.
func stemsOf(passages []retrieve.Passage) (stems, words []string) {
	read, known := map[string]bool{}, map[string]bool{}
	for _, p := range passages {
		for _, part := range []string{p.Title, p.Heading, p.Text} {
			for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
				if read[word] {
					continue
				}
				read[word] = true
				for _, stem := range retrieve.Terms(word) {
					if !known[stem] {
						known[stem] = true
						stems, words = append(stems, stem), append(words, word)
					}
				}
			}
		}
	}
	return stems, words
}

// nearest is the number of passages whose language is compared with the question's.
const nearest = 3

// CountTerms counts the passages that contain each term.
func CountTerms(passages []retrieve.Passage) retrieve.Stats {
	stats := retrieve.Stats{Chunks: len(passages), Frequency: map[string]int{}}
	for _, p := range passages {
		for t := range termSet(p.Title, p.Heading, p.Text) {
			stats.Frequency[t]++
		}
	}
	return stats
}

// sentences splits the passages into sentences and scores each as an answer.
func (d *Reading) sentences(ctx context.Context, kept []retrieve.Passage) ([][]sentence, error) {
	all := make([][]sentence, len(kept))
	d.technical = 0
	var texts []string
	for i, p := range kept {
		if p.Format == "code" || hasCode(p.Text) || indentsCode(p) && strings.Contains(p.Text, "\n    ") {
			d.technical += 1 / math.Sqrt(float64(len(kept)*max(len(kept), retrieve.DefaultK)))
		}
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
			for n, x := range f {
				all[i][k].score += sentenceModel[n] * x
			}
		}
		vectors = vectors[len(all[i])+1:]
	}
	return all, d.encode(ctx, kept, all)
}

// The encoder scores at most encoded sentences, each cut to encodedTokens tokens. Eight
// sentences of 30 tokens take about 30 ms on one core.
const encoded, encodedTokens = 8, 64

// encode gives the best sentences a second score. This score shows better than the first
// whether any sentence answers, but not which one; for another language it replaces the
// first.
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

// secondScores sets the second score of sentences.
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

// SecondScores returns the cosine of a question or statement with each of the texts, which are
// in the given language, scaled from 0 for unrelated texts to 1.
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
