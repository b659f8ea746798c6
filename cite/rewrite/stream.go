package rewrite

import (
	"io"
	"iter"
	"slices"
)

// Prompt tells a model how to cite documents by their positions in the list that it gets.
const Prompt = `After each statement, cite the documents that it is from by their numbers in square brackets, such as [1] or [2][5]. ` +
	`Use only the numbers of the documents above, do not write addresses or titles of sources, and do not add a list of sources.`

// A Result is a rewritten text with its list of sources.
type Result struct {
	Text    string   `json:"text"`
	List    string   `json:"list"`
	Sources []Source `json:"sources"`
}

// An Event is one step of rewriting. Exactly one of its members is set.
type Event struct {
	// Cited is a source cited for the first time. It comes before the text that shows its
	// number, with only the documents cited so far in IDs.
	Cited *Source `json:"cited,omitempty"`
	// Text is the next piece of the rewritten text.
	Text string `json:"text,omitempty"`
	// Done is the whole result, at the end.
	Done *Result `json:"done,omitempty"`
}

// Events rewrites a text that comes in pieces, cut anywhere, and closes the rewriter. On an
// error of pieces it yields the text held back before the error.
func (r *Rewriter) Events(pieces iter.Seq2[[]byte, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var text []byte
		known := 0
		send := func(from int) bool {
			for ; known < len(r.sources); known++ {
				s := r.sources[known]
				s.IDs = slices.Clone(s.IDs)
				if !yield(Event{Cited: &s}, nil) {
					return false
				}
			}
			return from == len(text) || yield(Event{Text: string(text[from:])}, nil)
		}
		var failed error
		for piece, err := range pieces {
			from := len(text)
			if text = r.Append(text, piece); !send(from) {
				return
			}
			if failed = err; err != nil {
				break
			}
		}
		from := len(text)
		if text = r.Close(text); !send(from) {
			return
		}
		if failed != nil {
			yield(Event{}, failed)
			return
		}
		yield(Event{Done: &Result{Text: string(text), List: r.List(), Sources: r.Sources()}}, nil)
	}
}

// Pieces reads a text in pieces as it arrives.
func Pieces(from io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		piece := make([]byte, 32<<10)
		for {
			n, err := from.Read(piece)
			ended := err == io.EOF
			if ended {
				err = nil
			}
			if !yield(piece[:n], err) || err != nil || ended {
				return
			}
		}
	}
}
