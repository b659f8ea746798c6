package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ibid/cite/sentence"
	"ibid/ingest"
	"ibid/retrieve"
)

// Limits of what is shown of a document's inside.
const (
	maxFind     = 200 // bytes of words to look for
	maxFound    = 100 // places with them
	foundAround = 80  // bytes of text before and after such a place
	maxOutline  = 60  // headings
	maxOpening  = 300 // bytes of the sentence below a heading
)

// pageAfter returns most documents of a list by id after one, and whether more follow.
func pageAfter(all []retrieve.DocumentInfo, after string, most int) (page []retrieve.DocumentInfo, more bool) {
	i := slices.IndexFunc(all, func(d retrieve.DocumentInfo) bool { return d.ID > after })
	if i < 0 {
		return nil, false
	}
	return all[i:min(i+most, len(all))], i+most < len(all)
}

// A foundPlace is a place in a document with the words that were looked for.
type foundPlace struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Page  int    `json:"page,omitempty"`
	Runs  []span `json:"runs"` // the words, marked, in the text around them
}

// findIn returns the first places with the words, in upper or lower case and with
// any space between them.
func findIn(doc *ingest.Document, words string) []foundPlace {
	fields := strings.Fields(norm.NFC.String(strings.ToValidUTF8(words[:min(len(words), maxFind)], "")))
	if len(fields) == 0 {
		return nil
	}
	for i, f := range fields {
		fields[i] = regexp.QuoteMeta(f)
	}
	found := []foundPlace{}
	for _, at := range regexp.MustCompile(`(?i)`+strings.Join(fields, `\s+`)).FindAllStringIndex(doc.Text, maxFound) {
		from, to := runeStart(doc.Text, at[0]-foundAround), runeEnd(doc.Text, at[1]+foundAround)
		before, after := doc.Text[from:at[0]], doc.Text[at[1]:to]
		if from > 0 { // no part of a word
			before = before[strings.IndexAny(before, " \n")+1:]
		}
		if i := strings.LastIndexAny(after, " \n"); i > 0 && to < len(doc.Text) {
			after = after[:i]
		}
		found = append(found, foundPlace{at[0], at[1], doc.PageAt(at[0]),
			[]span{{Text: before}, {Text: doc.Text[at[0]:at[1]], Mark: true}, {Text: after}}})
	}
	return found
}

// A heading is one line of a document's outline.
type heading struct {
	Text      string
	Level, At int    // At is its place in the text
	Opening   string // first sentence below it
}

// outline returns the headings down to the level at which they are few enough; nil
// for fewer than two.
func outline(doc *ingest.Document) (list []heading) {
	for level := 6; level > 0 && (list == nil || len(list) > maxOutline); level-- {
		list = []heading{}
		for _, s := range doc.Sections {
			if s.Heading != "" && s.Level <= level {
				list = append(list, heading{Text: s.Heading, Level: max(s.Level, 1), At: s.Start, Opening: opening(doc, s)})
			}
		}
	}
	if len(list) < 2 {
		return nil
	}
	return list[:min(len(list), maxOutline)]
}

// opening returns the first sentence of a section below its heading.
func opening(doc *ingest.Document, s ingest.Section) string {
	text := strings.TrimSpace(doc.Text[min(lineEnd(doc.Text, s.Start), s.End):s.End])
	text = text[:runeStart(text, 4*maxOpening)]
	first, ok := new(sentence.Splitter).Next([]byte(text), nil, nil, true)
	if !ok || first.End-first.Start > maxOpening {
		return ""
	}
	return strings.TrimSpace(text[first.Start:first.End])
}

// pageOf returns a page of a document by its number.
func pageOf(doc *ingest.Document, number int) (ingest.Page, error) {
	i := slices.IndexFunc(doc.Pages, func(p ingest.Page) bool { return p.Number == number })
	if i < 0 {
		return ingest.Page{}, problem(http.StatusNotFound, "page_not_found",
			"the document has %d pages, and no page %d", len(doc.Pages), number)
	}
	return doc.Pages[i], nil
}
