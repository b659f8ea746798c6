// Package statement cuts an answer that is being written into units that are
// proved one by one: sentences, list items and rows of tables. It decides what is
// shown of them, and calls no model.
//
// A [Splitter] finds the units of a text that comes in pieces, the same ones
// however it is cut. A [Queue] takes the verdict on each and returns the text that
// may be shown, which only ever grows.
package statement

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/cite/sentence"
)

// A Kind says what a unit is.
type Kind uint8

// The kinds of units.
const (
	Claim    Kind = iota // it states something
	Verbatim             // it has a block of code, or is in a quote: never dropped
	Lead                 // a heading, an announcement or the head of a table: falls with all that it introduces
	Aside                // an opening, an offer, a question, a few words
	Trailer              // references alone: they belong to the unit before
)

// A Unit is a part of an answer.
type Unit struct {
	Kind Kind
	// Space is the white space before the unit, Text the unit as it was written.
	// Those of all units together are the whole answer.
	Space, Text string
	Marks       []Mark // the markers in Text
	Plain       string // Text without markers and the signs of lists, quotes and tables before it
	States      bool   // a verdict on it is given, as on each claim

	level  int  // of a heading; 0 for others
	head   bool // the head of a table
	listed bool // a list item or a row of a table
	indent int  // of a list item
}

// IsUnfinished reports whether the unit, the last of a text whose end is missing, is the
// beginning of one, without a reference: "The boat is".
func (u Unit) IsUnfinished() bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(u.Text, "*_\"'”’)]"))
	return u.Kind != Verbatim && len(u.Marks) == 0 && !sentence.IsStop(last) && last != '|'
}

// IsListed reports whether the unit is a list item or a row of a table.
func (u Unit) IsListed() bool { return u.listed }

// IsHeading reports whether the unit is a heading or a line in bold letters.
func (u Unit) IsHeading() bool { return u.level > 0 }

// IsTableHead reports whether the unit is the head of a table, or the row under it.
func (u Unit) IsTableHead() bool { return u.head }

// IsLeadOf reports whether the unit, a lead, introduces the next one.
func (u Unit) IsLeadOf(next Unit) bool { return next.Text != "" && u.isLeadOf(next, 0) }

// IsQuoted reports whether the unit is in a quote.
func (u Unit) IsQuoted() bool { return u.Text[0] == '>' }

// A Mark is a marker in a unit, and the labels that it cites.
type Mark struct {
	sentence.Span
	Labels []int
}

// Labels returns the labels that a unit cites, each once.
func (u Unit) Labels() (labels []int) {
	for _, m := range u.Marks {
		for _, l := range m.Labels {
			if !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	return labels
}
