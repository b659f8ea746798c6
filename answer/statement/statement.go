// Package statement splits an answer, while it is being written, into units that
// are proved one by one: sentences, list items and rows of tables. It decides which
// units are shown, and calls no model.
//
// A [Splitter] finds the units of a text that comes in pieces; the size of the
// pieces makes no difference. A [Queue] holds each unit until its verdict, and
// returns the text that may be shown.
package statement

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/cite/sentence"
)

// A Kind says what a unit is.
type Kind uint8

// The kinds of units.
const (
	Claim    Kind = iota // it states something
	Verbatim             // it has a block of code, or is in a quote: never dropped
	Lead                 // a heading, an announcement or the head of a table: dropped with all units that it introduces
	Aside                // an opening, an offer, a question, a few words
	Trailer              // only references, which belong to the unit before it
)

// A Unit is a part of an answer.
type Unit struct {
	Kind Kind
	// Space is the white space before the unit, Text the unit as it was written.
	// The Space and Text of all units make the whole answer.
	Space, Text string
	Marks       []Mark // the markers in Text
	Plain       string // Text without markers and without a leading list, quote or table sign
	States      bool   // it states something and needs a verdict

	level  int  // the level of a heading, else 0
	head   bool // the head of a table
	listed bool // a list item or a row of a table
	indent int  // the indent of a list item
}

// IsUnfinished reports whether the unit, the last one of a text whose end is missing, is
// incomplete and without a reference: "The boat is".
func (u Unit) IsUnfinished() bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(u.Text, "*_\"'”’)]"))
	return u.Kind != Verbatim && len(u.Marks) == 0 && !marker.IsStop(last) && last != '|'
}

// IsListed reports whether the unit is a list item or a row of a table.
func (u Unit) IsListed() bool { return u.listed }

// IsHeading reports whether the unit is a heading or a bold line.
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

// Labels returns the labels that a unit cites, without duplicates.
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
