package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ibid/answer/extract"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A finder finds passages for one question, and scores them.
type finder struct {
	*Answerer // for this question
	*caller
	question   Question
	standalone string           // the standalone question that is searched for
	reading    *extract.Reading // set by readPassages
}

// searchPassages finds the k nearest passages; if k is 0, the index's default number. It
// emits the search's warnings, but stores a LanguageError in other if that is not nil.
func (f *finder) searchPassages(ctx context.Context, k int, other **retrieve.LanguageError) ([]retrieve.Passage, error) {
	found, err := f.Retriever.Search(ctx, retrieve.Query{Text: f.standalone, K: k, Filter: f.question.Filter, Warn: func(err error) {
		if other == nil || !errors.As(err, other) {
			f.warn("%s", err)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err) // without the question, which must not be logged
	}
	return found, nil
}

// searchTranslated finds the nearest passages. It has a model translate the question and
// searches again if the index reports that its documents are in another language. Unless
// keepAll is set, it does so too if most passages are in another language and none is on
// topic.
func (f *finder) searchTranslated(ctx context.Context, k int, keepAll bool) ([]retrieve.Passage, error) {
	var other *retrieve.LanguageError
	found, err := f.searchPassages(ctx, k, &other)
	if err != nil {
		return nil, err
	}
	if other == nil && !keepAll {
		if err := f.readPassages(ctx, found); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(found, func(p retrieve.Passage) bool { return f.scorePassage(p).Decision == Relevant }) {
			other = f.otherLanguage(found)
		}
	}
	if other == nil {
		return found, nil
	}
	if translated, err := f.translateTo(ctx, other); err != nil || !translated {
		return found, err
	}
	f.reading = nil // it compares the passages with the untranslated question
	return f.searchPassages(ctx, k, nil)
}

func (f *finder) emitRetrieved(found []retrieve.Passage) bool {
	return f.emit(Retrieved{Question: f.standalone, Reworded: f.standalone != f.question.Text, Passages: found})
}

// otherLanguage returns the language of at least half of the passages if it differs from
// the question's. Otherwise, or if the question's language is unknown, it returns nil.
func (f *finder) otherLanguage(passages []retrieve.Passage) *retrieve.LanguageError {
	asked, _ := retrieve.AskedLanguage(f.standalone)
	count, usual := map[string]int{}, ""
	for _, p := range passages {
		language := retrieve.Language(p.Text)
		if count[language]++; count[language] > count[usual] {
			usual = language
		}
	}
	if asked == "" || usual == asked || 2*count[usual] < len(passages) {
		return nil
	}
	return &retrieve.LanguageError{Language: usual}
}

// translateTo has the question translated, and reports whether that succeeded. If not, it
// warns.
func (f *finder) translateTo(ctx context.Context, other *retrieve.LanguageError) (bool, error) {
	question, err := f.translateQuestion(ctx, other.Name())
	switch {
	case err != nil:
		return false, err
	case question == "":
		f.warn("%s", other)
		return false, nil
	}
	f.standalone = question
	return true, nil
}

// defaultEmbedder is loaded once, at the first question.
var defaultEmbedder = sync.OnceValues(embed.New)

// readPassages compares the question with the passages, for the chances and quotes.
func (f *finder) readPassages(ctx context.Context, found []retrieve.Passage) error {
	embedder, ok := f.Embedder.(*embed.Model)
	if !ok {
		var err error
		if embedder, err = defaultEmbedder(); err != nil {
			return fmt.Errorf("loading the embedded embedding model: %w", err)
		}
	}
	if t, ok := f.Retriever.(TurnTaker); ok {
		end, err := t.WaitTurn(ctx)
		if err != nil {
			return fmt.Errorf("waiting to read the passages: %w", err)
		}
		defer end()
	}
	var stats retrieve.Stats
	var err error
	if c, ok := f.Retriever.(Counter); ok {
		if stats, err = c.Stats(ctx, retrieve.QuestionTerms(f.standalone)); err != nil {
			return fmt.Errorf("counting the terms of the question: %w", err)
		}
	} else {
		stats = extract.CountTerms(found)
	}
	f.reading, err = extract.Read(ctx, f.standalone, found, stats, embedder, f.encoder())
	return err
}

func (a *Answerer) encoder() retrieve.Encoder {
	if a.Encoder == nil {
		return nil
	}
	return a.Encoder()
}

// Best returns the n sentences of passages that most likely answer a question, and the
// chance that the first one does. It is for evaluations.
func (a *Answerer) Best(ctx context.Context, question string, passages []retrieve.Passage, n int) ([]string, float64, error) {
	f := &finder{Answerer: a, standalone: question}
	if err := f.readPassages(ctx, passages); err != nil {
		return nil, 0, err
	}
	return f.reading.Best(ctx, passages, n)
}

func (f *finder) scorePassage(p retrieve.Passage) Judged {
	j := Judged{
		Passage: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page,
		By: byScore, Scores: p.Scores, Decision: Irrelevant,
	}
	j.Chance, j.Reason = f.reading.Chance(p)
	if j.Chance >= surelyOff {
		j.Decision = Relevant
	}
	return j
}

// isForeign reports whether a passage is in another language than the question. Its chance
// then says little, and a verdict decides alone.
func (f *finder) isForeign(p retrieve.Passage) bool {
	return retrieve.Language(p.Text) != retrieve.Language(f.standalone)
}

// rankByChance sorts passages by their chance of being on topic, likeliest first.
func (f *finder) rankByChance(passages []retrieve.Passage) []retrieve.Passage {
	chance := map[string]float64{}
	for _, p := range passages {
		chance[p.ID], _ = f.reading.Chance(p)
	}
	return slices.SortedStableFunc(slices.Values(passages), func(a, b retrieve.Passage) int {
		return cmp.Compare(chance[b.ID], chance[a.ID])
	})
}

// quotes returns the sentences that answer, if their chance reaches the confidence, and the
// passages, found by next, in which they continue.
func (f *finder) quotes(ctx context.Context, kept []retrieve.Passage, next extract.Next) ([]extract.Quote, []retrieve.Passage, error) {
	return f.reading.Quote(ctx, kept, cmp.Or(f.Confidence, DefaultConfidence), next)
}

// gap is the most bytes between adjacent passages.
const gap = 8

// nextPassage finds the passage after p by a search for p's text in its document.
func (f *finder) nextPassage(ctx context.Context, p retrieve.Passage) (next retrieve.Passage, ok bool, err error) {
	q := retrieve.Query{Text: p.Heading + "\n" + p.Text[len(p.Text)/2:], K: 24, Filter: f.question.Filter}
	q.Filter.Document = p.Document
	near, err := f.Retriever.Search(ctx, q)
	if err != nil {
		return next, false, fmt.Errorf("searching for the rest of a list: %w", err)
	}
	i := slices.IndexFunc(near, func(n retrieve.Passage) bool {
		return n.Document == p.Document && n.Digest == p.Digest && n.Start <= p.End+gap && p.End < n.End
	})
	if i < 0 {
		return next, false, nil
	}
	return near[i], true, nil
}

// closestParts returns the parts of passages that are nearest to the question.
func (f *finder) closestParts(ctx context.Context, passages []retrieve.Passage) ([]Closest, error) {
	if err := f.readPassages(ctx, passages); err != nil {
		return nil, err
	}
	closest, err := f.reading.Closest(ctx, passages)
	parts := make([]Closest, len(closest))
	for i, c := range closest {
		p := passages[c.Passage]
		start, end := p.Start+c.Span.Start, p.Start+c.Span.End
		p.Heading, p.Anchor = p.PlaceAt(start)
		p.Page = p.PageAt(start)
		parts[i] = Closest{
			Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page, Passage: p,
			Start: start, End: end, Text: p.Text[c.Span.Start:c.Span.End], Marks: []Mark{},
		}
		for _, m := range c.Marks {
			parts[i].Marks = append(parts[i].Marks, Mark{m.Start, m.End})
		}
	}
	return parts, err
}
