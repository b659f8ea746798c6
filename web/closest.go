package web

import (
	"cmp"
	"fmt"
	"strings"

	"ibid/answer"
	"ibid/cite/rewrite"
)

// quotations are the parts of documents nearest to an unanswered question, as
// Markdown: each a quotation with its sentences nearest to the question in bold,
// and its document, a link where links is set.
func quotations(closest []answer.Closest, links bool) string {
	var b strings.Builder
	b.WriteString("Closest passages:")
	for _, c := range closest {
		b.WriteString("\n\n")
		at := 0
		for line := range strings.Lines(c.Text) {
			b.WriteString("> " + boldLine(line, at, c.Marks) + "  \n")
			at += len(line)
		}
		name := rewrite.EscapeTitle(cmp.Or(c.Title, c.Document))
		if links && c.Link != "" {
			name = fmt.Sprintf("[%s](%s)", name, linkTarget(c.Link))
		}
		b.WriteString("> — " + name)
		if c.Heading != "" {
			b.WriteString(", " + rewrite.EscapeTitle(c.Heading))
		}
	}
	return b.String()
}

// boldLine is a line of a text, which begins at a byte of it, with what is marked in
// bold.
func boldLine(line string, at int, marks []answer.Mark) string {
	var b strings.Builder
	done := 0
	for _, m := range marks {
		start, end := max(m.Start-at, done), min(m.End-at, len(strings.TrimRight(line, "\r\n")))
		if start >= end {
			continue
		}
		if words := rewrite.EscapeTitle(line[start:end]); words != "" {
			b.WriteString(spacedText(line[done:start]) + "**" + words + "**")
		}
		done = end
	}
	return strings.TrimRight(b.String()+spacedText(line[done:]), " ")
}

// spacedText is a piece of a line as Markdown, with the white space at its ends
// as one space.
func spacedText(piece string) string {
	words := rewrite.EscapeTitle(piece)
	if words == "" {
		return ""
	}
	if strings.TrimLeft(piece, " \t") != piece {
		words = " " + words
	}
	if strings.TrimRight(piece, " \t\r\n") != piece {
		words += " "
	}
	return words
}
