package cite

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"ibid/answer"
	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/retrieve"
)

// An Answer is the result of a stream of events: the JSON reply, and the payload of the event
// "done". Offsets are in bytes of UTF-8. Its arrays are never null.
type Answer struct {
	// Answered is false if the documents do not answer the question. Text then says so, and
	// Sources is empty.
	Answered bool `json:"answered"`
	// Incomplete is set if the answer broke off.
	Incomplete bool `json:"incomplete"`
	// Reason is why the question is unanswered or the answer incomplete.
	Reason string `json:"reason,omitempty"`
	// Fallback is why sentences are quoted instead of an answer by a model:
	// "model_unreachable", "model_timeout", "model_rejected",
	// "model_window", "model_failed" or "model_untrusted".
	Fallback string `json:"fallback,omitempty"`
	// Searched is the question that was searched for, if it differs from the question
	// asked: extended with words of earlier questions, or translated.
	Searched string `json:"searched,omitempty"`
	Text     string `json:"text"`
	// Plain says that Text consists of words of documents. Its only Markdown is the "- "
	// and "1. " of list items and fenced code.
	Plain bool `json:"plain,omitempty"`
	// Places are the positions of source numbers in Text.
	Places []Placed `json:"places"`
	// Unknown lists the addresses in Text that occur in no passage.
	Unknown []string `json:"unknown_addresses,omitempty"`
	// List is the list of the sources as text, to be appended to Text; empty if nothing is
	// cited. It names a source by its original on the web if known, otherwise by its
	// document.
	List        string          `json:"list"`
	Sources     []Source        `json:"sources"`
	Citations   []Citation      `json:"citations"`
	Unsupported []Unsupported   `json:"unsupported"`
	Judged      []answer.Judged `json:"judged"`
	// Verified lists the statements of the answer that were proved by more than their
	// citations. Dropped statements are not in Text.
	Verified []answer.Verified `json:"verified"`
	Drafts   []Draft           `json:"drafts"`
	// Steps reports how each call for the answer ended, and the labels that it used.
	Steps   []answer.Stepped   `json:"steps"`
	Nearest []retrieve.Passage `json:"nearest"`
	// Closest are the verbatim sentences of the documents nearest to an unanswered
	// question.
	Closest  []answer.Closest `json:"closest"`
	Warnings []string         `json:"warnings"`
	Usage    answer.Usage     `json:"usage"`
	// Indexing is the progress of the first sync when the question was asked. The caller
	// sets it.
	Indexing *Indexing `json:"indexing,omitempty"`
}

// A Draft is a whole version of the answer that a later step improved.
type Draft struct {
	Step   int    `json:"step"`
	Text   string `json:"text"`
	Labels []int  `json:"labels"`
}

// Indexing counts the files of a first sync.
type Indexing struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Collect reads the numbered events (see [Number]) to their end and folds them into the answer.
// On an error it returns the answer so far with the error.
func Collect(events iter.Seq2[answer.Event, error]) (Answer, error) {
	var f Fold
	for e, err := range events {
		if err != nil {
			return f.Answer(), err
		}
		f.Add(e)
	}
	return f.Answer(), nil
}

// A Fold builds an [Answer] from numbered events one by one, for callers that
// forward the events too. The zero value is ready.
type Fold struct {
	answer  Answer
	text    []byte
	unknown func(text string) []string // addresses; nil before the passages are known
	draft   Draft                      // not whole yet
	drafted []byte                     // the draft's text
	refused bool                       // an Unanswered was added
}

// Add adds the next event.
func (f *Fold) Add(e answer.Event) {
	a := &f.answer
	switch e := e.(type) {
	case answer.Retrieved:
		if e.Reworded {
			a.Searched = e.Question
		}
	case answer.Judged:
		a.Judged = append(slices.DeleteFunc(a.Judged, func(j answer.Judged) bool { return j.Passage == e.Passage }), e)
	case answer.Verified:
		a.Verified = append(a.Verified, e)
	case answer.Stepped:
		a.Steps = append(a.Steps, e)
	case answer.Draft:
		f.addDraft(e)
	case answer.Text:
		f.text = append(f.text, e.Text...)
		a.Plain = e.Plain
	case answer.Kept:
		f.unknown = UnknownAddresses(e.Passages)
	case answer.Unanswered:
		a.Reason = e.Reason
		a.Nearest, a.Closest = e.Nearest, e.Closest
		f.setRefusal(e.Text)
	case answer.Fallback:
		a.Fallback = e.Reason
	case answer.Incomplete:
		a.Incomplete = true
		a.Reason = e.Reason
	case answer.Warning:
		a.Warnings = append(a.Warnings, e.Message)
	case answer.Usage:
		a.Usage = e
	case Cited:
		a.Sources = append(a.Sources, Source{
			Number: e.Number, Document: e.Document, Title: e.Title, AlsoIn: e.AlsoIn, Link: e.Link, Original: e.Original,
			Passages: []SourcePassage{},
		})
		slices.SortFunc(a.Sources, func(x, y Source) int { return x.Number - y.Number })
	case Placed:
		a.Places = append(a.Places, e)
	case Quoted:
		a.Citations = append(a.Citations, e.Citation)
		f.addPassage(e.Citation)
	case Unsupported:
		a.Unsupported = append(a.Unsupported, e)
	}
}

// Answer returns the answer from the events so far.
func (f *Fold) Answer() Answer {
	a := f.answer
	a.Text = string(f.text)
	a.Answered = len(f.text) > 0 && !f.refused
	a.List = listSources(a.Sources)
	if f.unknown != nil {
		a.Unknown = f.unknown(a.Text)
	}
	a.Places = nonNil(a.Places)
	a.Sources, a.Citations, a.Unsupported = nonNil(a.Sources), nonNil(a.Citations), nonNil(a.Unsupported)
	a.Judged, a.Steps, a.Warnings = nonNil(a.Judged), nonNil(a.Steps), nonNil(a.Warnings)
	a.Nearest, a.Closest = nonNil(a.Nearest), nonNil(a.Closest)
	a.Drafts, a.Verified = nonNil(a.Drafts), nonNil(a.Verified)
	return a
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (f *Fold) addDraft(e answer.Draft) {
	if f.draft.Step != e.Step {
		f.draft, f.drafted = Draft{Step: e.Step}, nil
	}
	f.drafted = append(f.drafted, e.Text...)
	if e.Final {
		f.draft.Text, f.draft.Labels = string(f.drafted), nonNil(e.Labels)
		f.answer.Drafts = append(f.answer.Drafts, f.draft)
	}
}

func (f *Fold) setRefusal(text string) {
	f.refused = true
	f.text = []byte(text)
	f.answer.Sources, f.answer.Places, f.answer.Citations, f.answer.Unsupported = nil, nil, nil, nil
}

// addPassage adds a quote to its source, unless the source already has it.
func (f *Fold) addPassage(c Citation) {
	for i := range f.answer.Sources {
		s := &f.answer.Sources[i]
		if s.Number != c.Number {
			continue
		}
		for _, p := range s.Passages {
			if p.ID == c.Passage && p.Start == c.Start && p.End == c.End {
				return
			}
		}
		quoted := func(p SourcePassage) bool { return p.Quote != "" }
		if c.Quote != "" && !slices.ContainsFunc(s.Passages, quoted) {
			// The link to the quote is more exact than the link to the passage in Cited.
			s.Link, s.Original = cmp.Or(c.Link, s.Link), cmp.Or(c.Original, s.Original)
		}
		s.Passages = append(s.Passages, SourcePassage{
			ID: c.Passage, Page: c.Page, Heading: c.Heading, Start: c.Start, End: c.End, Quote: c.Quote, Link: c.Link, Original: c.Original,
		})
		return
	}
}

// UnknownAddresses returns a function that lists the addresses in a text that neither the
// passages nor their documents contain.
func UnknownAddresses(passages []retrieve.Passage) func(text string) []string {
	known := sync.OnceValue(func() rewrite.Addresses {
		known := rewrite.Addresses{}
		for _, p := range passages {
			known.Add(p.Text)
			known.Add(p.Title + "\n" + p.Heading + "\n" + cmp.Or(p.Meta[ingest.AddressKey], p.Meta["url"]))
		}
		return known
	})
	return func(text string) []string {
		if len(rewrite.Addresses{}.Missing(text)) == 0 {
			return nil // most texts: the passages need not be read
		}
		return known().Missing(text)
	}
}

// listSources returns the list of the sources as text.
func listSources(sources []Source) string {
	list := make([]rewrite.Source, len(sources))
	for i, s := range sources {
		list[i] = rewrite.Source{Number: s.Number, Source: cmp.Or(s.Original, s.Document), Title: s.Title, IDs: []int{0}}
	}
	return rewrite.Text.List(list)
}
