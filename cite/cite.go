// Package cite turns the labels that a model cites by into the numbered
// citations that a reader sees, and proves them.
//
// A [Rewriter] is the citation manager for any text: documents and a [Style]
// in, text in pieces in, the same text with numbers out while it streams, the
// list of sources at its end.
//
// [Number] does this for the events of an answer, and adds to each citation the
// exact words of the passage that it rests on ([Quoted]), with how well they
// bear the sentence out. [Collect] folds the same events into one [Answer], so
// that the stream and the object cannot differ.
//
// The package knows no model, store or network: links, sources and finders of
// quotes come in as functions ([Options]). What counts as a marker is decided
// by the grammar in package marker.
package cite

import "ibid/cite/support"

// Cited is the first use of a source: it comes once per number, before the
// text that shows it.
type Cited struct {
	Number   int    `json:"number"`
	Document string `json:"document"`
	Title    string `json:"title"`
	// Link leads to the place in the source; empty when there is none to give.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document, where its
	// metadata tell an http or https address; empty otherwise.
	Original string `json:"original,omitempty"`
}

// Placed tells which bytes of the answer's text are a printed number: the same
// words elsewhere, in code for one, are none. It comes before the text that
// shows the number, and only where [Options.Places] asks for it.
type Placed struct {
	Number int `json:"number"`
	Start  int `json:"start"`
	End    int `json:"end"`
}

// Quoted ties one citation to the words it rests on. It comes once per
// citation, when the sentence that carries it has ended.
type Quoted struct {
	Citation
}

// A Citation is one place in the answer where a passage is cited.
type Citation struct {
	Number int `json:"number"`
	// TextStart and TextEnd are the byte range, in the answer's text, of the
	// sentence that the citation supports.
	TextStart int    `json:"text_start"`
	TextEnd   int    `json:"text_end"`
	Passage   string `json:"passage"` // chunk id
	Document  string `json:"document"`
	Digest    string `json:"digest"`
	Page      int    `json:"page,omitempty"`
	// Heading is the path of headings that the quote stands under.
	Heading string `json:"heading,omitempty"`
	// Start and End are the quote's byte range in the document's extracted text.
	Start int    `json:"start"`
	End   int    `json:"end"`
	Quote string `json:"quote"`
	// Support is the estimated chance, 0 to 1, that the quote bears the sentence
	// out, where it is weak alone and not with others: together with these.
	Support float64         `json:"support"`
	Verdict support.Verdict `json:"verdict"`
	// Link leads to the quote; empty when there is no link to give.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document, where its
	// metadata tell an http or https address; empty otherwise.
	Original string `json:"original,omitempty"`
}

// Unsupported marks a sentence of the answer that makes a claim and has no
// citation that bears it out. It comes when the sentence has ended.
type Unsupported struct {
	// TextStart and TextEnd are the sentence's byte range in the answer's text.
	TextStart int `json:"text_start"`
	TextEnd   int `json:"text_end"`
	// Reason is "uncited" or "weak" (no citation is more than weak, nor are
	// all of them together).
	Reason string `json:"reason"`
}

// A Source is one numbered entry of the list, with every passage cited under it.
type Source struct {
	Number   int    `json:"number"`
	Document string `json:"document"`
	Title    string `json:"title"`
	// Link leads to the first quote, and to the passage where none is known.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document, where its
	// metadata tell an http or https address; empty otherwise.
	Original string          `json:"original,omitempty"`
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
	// Link leads to the quote; empty when there is no link to give.
	Link string `json:"link,omitempty"`
	// Original leads to the place in the original of the document, where its
	// metadata tell an http or https address; empty otherwise.
	Original string `json:"original,omitempty"`
}

func (Cited) Kind() string       { return "cited" }
func (Placed) Kind() string      { return "placed" }
func (Quoted) Kind() string      { return "quoted" }
func (Unsupported) Kind() string { return "unsupported" }
