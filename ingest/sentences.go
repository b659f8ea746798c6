package ingest

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"

	"ibid/cite/sentence"
)

// A Span is the byte range [Start, End) of a text.
type Span struct{ Start, End int }

// Sentences yields the sentences of a text in order, without surrounding white space, by the
// Unicode rules (UAX #29). Wrapped lines are joined. List items, table rows, headings and lines of
// code are separate, and a short row is not cut. Common abbreviations don't end a sentence. Every byte
// except white space is in exactly one span. The running time is linear.
func Sentences(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for block := range blocks(text) {
			for s := range blockSentences(text, block) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// blocks yields the ranges of a text in which a line end has the meaning of a space.
func blocks(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		var cur Span    // the block so far; empty when End == 0
		var last string // its last line
		widest := 0     // its longest line
		pos := 0
		for line := range strings.Lines(text) {
			start := pos
			pos += len(line)
			line = strings.TrimSuffix(line, "\n")
			blank := strings.TrimSpace(line) == ""
			if cur.End > 0 && !blank && isWrapped(last, line, widest) {
				cur.End, last, widest = start+len(line), line, max(widest, len(line))
				continue
			}
			if cur.End > 0 && !yield(cur) {
				return
			}
			if cur = (Span{}); !blank {
				cur, last, widest = Span{start, start + len(line)}, line, len(line)
			}
		}
		if cur.End > 0 {
			yield(cur)
		}
	}
}

// maxWrapped is the length in bytes above which a line counts as a whole paragraph.
const maxWrapped = 300

// isWrapped reports whether next continues the paragraph of line. widest is the length of its
// longest line.
func isWrapped(line, next string, widest int) bool {
	if isSeparate(line) && !isListItem(line) || isSeparate(next) || len(line) > maxWrapped || len(next) > maxWrapped {
		return false
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, " \t"))
	if unicode.IsLower(r) {
		return true
	}
	// A line much shorter than the longest one ends on purpose.
	return len(line) >= 40 && len(line)*10 >= widest*6
}

// isSeparate reports whether a line is a list item, a table row or code.
func isSeparate(line string) bool {
	return isCode(line) ||
		strings.HasPrefix(line, "|") || strings.Contains(line, " | ") || isListItem(line)
}

// isCode reports whether a line is indented like code and is not a list item.
func isCode(line string) bool {
	return (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")) && !isListItem(line)
}

// isRow reports whether a line is a row of a table, "Name: Ann | Street: Kirchstr. 8", whose cells
// are seldom sentences.
func isRow(line string) bool {
	cell, _, more := strings.Cut(line, " | ")
	return more && strings.Contains(cell, ": ") && len(line) <= maxWrapped
}

// isListItem reports whether a line begins with a bullet, or with a number of at most three digits
// or one letter, as in Markdown or plain text.
func isListItem(line string) bool {
	s := strings.TrimLeft(line, " \t")
	if s == "" {
		return false
	}
	r, n := utf8.DecodeRuneInString(s)
	if strings.ContainsRune("-*+•‣◦▪●–·", r) {
		return strings.HasPrefix(s[n:], " ")
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits == 0 && (unicode.IsLower(r) && n == 1) {
		digits = 1
	}
	return digits > 0 && digits <= 3 &&
		(strings.HasPrefix(s[digits:], ". ") || strings.HasPrefix(s[digits:], ") "))
}

func blockSentences(text string, block Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if line := text[block.Start:block.End]; isCode(line) || isRow(line) {
			yield(trim(text, block))
			return
		}
		// The rules end a sentence at every line end, but inside a block a line end is a space.
		// Both are one byte, so offsets don't change.
		flat := strings.ReplaceAll(text[block.Start:block.End], "\n", " ")
		var cur Span // the sentence so far; empty when End == 0
		pos := 0
		for tokens := sentences.FromString(flat); tokens.Next(); {
			start := pos
			pos += len(tokens.Value())
			next := trim(flat, Span{start, pos})
			if next.Start == next.End {
				continue
			}
			first := cur.Start == leadingSpace(flat)
			if cur.End > 0 && !(cur.End == next.Start && flat[cur.End-1] == '.') &&
				!continuesWith(flat[cur.Start:cur.End], flat[next.Start:next.End], first) {
				if !yield(Span{block.Start + cur.Start, block.Start + cur.End}) {
					return
				}
				cur = Span{}
			}
			if cur.End == 0 {
				cur.Start = next.Start
			}
			cur.End = next.End
		}
		if cur.End > 0 {
			yield(Span{block.Start + cur.Start, block.Start + cur.End})
		}
	}
}

func leadingSpace(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// continuesWith reports whether the sentence s continues with next. first is set if s begins the
// block.
func continuesWith(s, next string, first bool) bool {
	// A lone closing quote or bracket belongs to the sentence before it.
	if len(next) <= 4 && strings.Trim(next, `"'”’»)]`) == "" {
		return true
	}
	if sentence.InBrackets(s) {
		return true
	}
	before, stops := strings.CutSuffix(s, ".")
	switch {
	case !stops:
		return false
	case first && !strings.ContainsAny(s, " \t") && isListItem(s+" "):
		return true // the number of a list item
	}
	on, _ := sentence.RunsOn(before, next, true)
	return on
}
