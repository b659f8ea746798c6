package web

import (
	"sort"
	"strings"
	"unicode/utf8"

	"ibid/ingest"
)

// window is how much of a text is shown before and after a place, in bytes.
const window = 48 << 10

// An excerpt is the part of a document around a place in it, in blocks, as the
// page's panel and the viewer show it.
type excerpt struct {
	Document string `json:"document"`
	Root     string `json:"root"`
	Path     string `json:"path"`
	Title    string `json:"title"`
	Format   string `json:"format"`
	Digest   string `json:"digest"`
	Bytes    int    `json:"bytes"` // length of the whole text
	Pages    int    `json:"pages"` // 0 without pages
	// Start and End are the marked bytes of the text; equal when nothing is marked.
	Start int `json:"start"`
	End   int `json:"end"`
	// Missing means that the place is not in the text: the document has changed
	// since the link was made.
	Missing bool    `json:"missing"`
	Blocks  []block `json:"blocks"`
	// Earlier and Later are offsets to ask for (at) where there is more text
	// before or after the blocks; -1 where there is none.
	Earlier int `json:"earlier"`
	Later   int `json:"later"`
}

// A block is a heading, a paragraph or the beginning of a page.
type block struct {
	Kind  string `json:"kind"`            // "heading", "text" or "page"
	Level int    `json:"level,omitempty"` // of a heading, 1 is the outermost
	Page  int    `json:"page,omitempty"`
	Runs  []span `json:"runs,omitempty"`
}

// A span is a part of a block's text, marked or not.
type span struct {
	Text string `json:"text"`
	Mark bool   `json:"mark,omitempty"`
	// First is set on the first marked span: the one to scroll to.
	First bool `json:"first,omitempty"`
}

// excerptOf cuts the text around a place into blocks.
func excerptOf(d *ingest.Document, r textRange) excerpt {
	x := excerpt{Document: d.ID, Root: d.Root, Path: d.Path, Title: d.Title, Format: d.Format, Digest: d.Digest,
		Bytes: len(d.Text), Pages: len(d.Pages), Earlier: -1, Later: -1, Blocks: []block{}}
	at := min(r.At, len(d.Text))
	if r.End > r.Start {
		if r.End <= len(d.Text) {
			x.Start, x.End = runeStart(d.Text, r.Start), runeEnd(d.Text, r.End)
			at = x.Start
		} else {
			x.Missing = true
		}
	}
	lo, hi := 0, len(d.Text)
	if at > window {
		lo = lineStart(d.Text, at-window)
		x.Earlier = max(0, lo-window/2)
	}
	if end := max(at, x.End); end+window < len(d.Text) {
		hi = lineEnd(d.Text, end+window)
		x.Later = min(len(d.Text), hi+window/2)
	}
	x.Blocks = blocks(d, lo, hi, x.Start, x.End)
	return x
}

// blocks cuts Text[lo:hi], which begins and ends with lines, at empty lines,
// headings and pages. The bytes from start to end are marked.
func blocks(d *ingest.Document, lo, hi, start, end int) []block {
	out := []block{}
	marked := false
	add := func(kind string, level, from, to int) {
		if to > from {
			to = from + len(strings.TrimRight(d.Text[from:to], "\n "))
		}
		if to <= from {
			return
		}
		b := block{Kind: kind, Level: level}
		a, z := max(from, start), min(to, end)
		if a >= z {
			a, z = to, to
		}
		if from < a {
			b.Runs = append(b.Runs, span{Text: d.Text[from:a]})
		}
		if a < z {
			b.Runs = append(b.Runs, span{Text: d.Text[a:z], Mark: true, First: !marked})
			marked = true
		}
		if z < to {
			b.Runs = append(b.Runs, span{Text: d.Text[z:to]})
		}
		out = append(out, b)
	}
	section := sort.Search(len(d.Sections), func(i int) bool { return d.Sections[i].Start >= lo })
	page := sort.Search(len(d.Pages), func(i int) bool { return d.Pages[i].End > lo })
	paragraph := lo
	for line := lo; line < hi; {
		next := lineEnd(d.Text, line)
		for page < len(d.Pages) && d.Pages[page].Start <= line {
			add("text", 0, paragraph, line)
			paragraph = line
			out = append(out, block{Kind: "page", Page: d.Pages[page].Number})
			page++
		}
		for section < len(d.Sections) && d.Sections[section].Start < line {
			section++
		}
		switch {
		case section < len(d.Sections) && d.Sections[section].Start < next:
			add("text", 0, paragraph, line)
			paragraph = line
			// A section without a heading is a row of a table: a paragraph.
			if d.Sections[section].Heading != "" {
				add("heading", min(max(d.Sections[section].Level, 1), 6), line, next)
				paragraph = next
			}
		case strings.TrimSpace(d.Text[line:next]) == "":
			add("text", 0, paragraph, line)
			paragraph = next
		}
		line = next
	}
	add("text", 0, paragraph, hi)
	return out
}

// lineStart is the beginning of the line that contains byte i.
func lineStart(text string, i int) int { return strings.LastIndexByte(text[:i], '\n') + 1 }

// lineEnd is the offset after the line that contains byte i.
func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// runeStart moves i back to the beginning of a UTF-8 sequence, runeEnd forward to
// the end of one. Both return an offset within the text.
func runeStart(text string, i int) int {
	i = min(max(i, 0), len(text))
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

func runeEnd(text string, i int) int {
	i = min(max(i, 0), len(text))
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return i
}
