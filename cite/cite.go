// Package cite turns the labels that a model cites by into the numbered
// citations that a reader sees, and proves them.
//
// [Number] does this for the events of an answer. It adds to each citation the
// exact words of the passage that it rests on ([Quoted]), with how well they
// support the sentence. [Collect] folds the same events into one [Answer], so
// that the stream and the object cannot differ.
//
// The numbers come from package rewrite, which also serves other texts, the sentences from
// package sentence, and the proof from package support. The grammar in package marker decides
// what counts as a marker. None of them uses a model, a store or a network.
package cite

import (
	"ibid/answer"
	"ibid/cite/support"
)

// Cited is the first use of a source. It comes once per number, before the text
// that shows it.
type Cited struct {
	Number   int    `json:"number"`
	Document string `json:"document"`
	Title    string `json:"title"`
	// AlsoIn lists a few other documents with identical files that the caller may see.
	AlsoIn []string `json:"also_in,omitempty"`
	// Link leads to the place in the source; empty if there is no link.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document; empty
	// without [Options.LinkDocuments] and an address in its metadata.
	Original string `json:"original,omitempty"`
}

// Placed is the position of a printed number in the answer's text. It distinguishes numbers
// from the same characters in, for example, code. It comes before the text that shows the
// number.
type Placed struct {
	Number int `json:"number"`
	Start  int `json:"start"`
	End    int `json:"end"`
}

// Revised is the next piece of a revision, numbered as if the revision were the answer. If the
// revision is cut, the draft before it is the answer, numbered by first citation in that draft.
type Revised struct {
	answer.Revision
	// Places are the positions of numbers in the piece, in bytes of the whole revision.
	Places []Placed `json:"places"`
	// Cited lists the sources with new numbers.
	Cited []Cited `json:"cited"`
	// Settled lists the new numbers that stay correct if the revision is cut, because the
	// draft neither gives them to other sources nor gives these sources other numbers.
	// They may be shown at once, other numbers only when the revision is whole.
	Settled []int `json:"settled"`
}

// Quoted links one citation to the words it rests on. It comes once per citation,
// when its sentence has ended.
type Quoted struct {
	Citation
}

// A Citation is one place in the answer where a passage is cited.
type Citation struct {
	Number int `json:"number"`
	// By says whether the model cited the passage, or Ibid found it for a sentence
	// without a citation.
	By By `json:"by"`
	// TextStart and TextEnd are the byte range, in the answer's text, of the
	// sentence that the citation supports.
	TextStart int    `json:"text_start"`
	TextEnd   int    `json:"text_end"`
	Passage   string `json:"passage"` // chunk id
	Document  string `json:"document"`
	Digest    string `json:"digest"`
	Page      int    `json:"page,omitempty"`
	// Heading is the path of headings over the quote.
	Heading string `json:"heading,omitempty"`
	// Start and End are the quote's byte range in the document's extracted text.
	Start int    `json:"start"`
	End   int    `json:"end"`
	Quote string `json:"quote"`
	// Support is the estimated probability, 0 to 1, that the quote supports the sentence
	// or, if this one is weak alone, that all the sentence's quotes together do.
	Support float64         `json:"support"`
	Verdict support.Verdict `json:"verdict"`
	// Link leads to the quote; empty if there is no link.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document; empty
	// without [Options.LinkDocuments] and an address in its metadata.
	Original string `json:"original,omitempty"`
}

// By says who cites a passage.
type By string

// The values of By.
const (
	Written By = "written"
	Found   By = "found"
)

// Unsupported marks a sentence of the answer whose claim no citation supports. It comes when
// the sentence has ended.
type Unsupported struct {
	// TextStart and TextEnd are the sentence's byte range in the answer's text.
	TextStart int `json:"text_start"`
	TextEnd   int `json:"text_end"`
	// Reason is "uncited", "weak" (the citations are weak, each alone and all together) or
	// "doubted" (a judge rejected the sentence twice).
	Reason string `json:"reason"`
}

// A Source is one numbered entry of the list, with every passage cited under it.
type Source struct {
	Number   int    `json:"number"`
	Document string `json:"document"`
	Title    string `json:"title"`
	// AlsoIn lists a few other documents with identical files that the caller may see.
	AlsoIn []string `json:"also_in,omitempty"`
	// Link leads to the first quote, or to the passage if none is known.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document; empty
	// without [Options.LinkDocuments] and an address in its metadata.
	Original string `json:"original,omitempty"`
	// State, in a record only, is the state of the quotes today: "unchanged",
	// "moved", "changed" or "gone".
	State string `json:"state,omitempty"`
	// Now, in a record only, is the id that the document has now, if its file was renamed.
	Now      string          `json:"now,omitempty"`
	Passages []SourcePassage `json:"passages"`
}

// A SourcePassage is a passage cited under a source's number.
type SourcePassage struct {
	ID      string `json:"id"`
	Page    int    `json:"page,omitempty"`
	Heading string `json:"heading,omitempty"`
	Start   int    `json:"start"` // of the quote, in the document's extracted text
	End     int    `json:"end"`
	Quote   string `json:"quote"`
	// Link leads to the quote; empty if there is no link.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document; empty
	// without [Options.LinkDocuments] and an address in its metadata.
	Original string `json:"original,omitempty"`
}

func (Cited) Kind() string       { return "cited" }
func (Placed) Kind() string      { return "placed" }
func (Quoted) Kind() string      { return "quoted" }
func (Unsupported) Kind() string { return "unsupported" }
