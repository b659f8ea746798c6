package web

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ibid/cite/sentence"
	"ibid/ingest"
	"ibid/retrieve"
)

// Limits for the search in a document and for its outline.
const (
	maxFind     = 200 // bytes of the words searched for
	maxFound    = 100 // places found
	foundAround = 80  // bytes of text before and after such a place
	maxOutline  = 60  // headings
	maxOpening  = 300 // bytes of the first sentence of a section
	maxOpenings = 400 // sentences that key passages are chosen from
	maxKey      = 5   // key passages
)

// pageAfter returns the documents whose ids follow after, up to the limit most, and whether more
// follow. all is sorted by id.
func pageAfter(all []retrieve.DocumentInfo, after string, most int) (page []retrieve.DocumentInfo, more bool) {
	i := slices.IndexFunc(all, func(d retrieve.DocumentInfo) bool { return d.ID > after })
	if i < 0 {
		return nil, false
	}
	return all[i:min(i+most, len(all))], i+most < len(all)
}

// A foundPlace is a place in a document where the words were found.
type foundPlace struct {
	Start int        `json:"start"`
	End   int        `json:"end"`
	Page  int        `json:"page,omitempty"`
	Runs  []blockRun `json:"runs"` // the words, marked, with the surrounding text
}

// findIn returns the first places of the words in a document, ignoring case and the kind of
// space.
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
		if from > 0 { // begin at a whole word
			before = before[strings.IndexAny(before, " \n")+1:]
		}
		if i := strings.LastIndexAny(after, " \n"); i > 0 && to < len(doc.Text) {
			after = after[:i]
		}
		found = append(found, foundPlace{at[0], at[1], doc.PageAt(at[0]),
			[]blockRun{{Text: before}, {Text: doc.Text[at[0]:at[1]], Mark: true}, {Text: after}}})
	}
	return found
}

// A heading is one line of a document's outline.
type heading struct {
	Text      string
	Level, At int // At is the heading's offset in the text
}

// outline returns the headings down to the deepest level that gives at most maxOutline of
// them; nil if there are fewer than two.
func outline(doc *ingest.Document) (list []heading) {
	for level := 6; level > 0 && (list == nil || len(list) > maxOutline); level-- {
		list = []heading{}
		for _, s := range doc.Sections {
			if s.Heading != "" && s.Level <= level {
				list = append(list, heading{Text: s.Heading, Level: max(s.Level, 1), At: s.Start})
			}
		}
	}
	if len(list) < 2 {
		return nil
	}
	return list[:min(len(list), maxOutline)]
}

// A keyPassage is a sentence that says what a document is about.
type keyPassage struct {
	Text       string
	Start, End int
	terms      map[string]bool
	weight     float64
}

// keyPassages returns the first sentences of paragraphs that share the most words with the
// other first sentences, in document order.
func keyPassages(doc *ingest.Document) []keyPassage {
	var all []keyPassage
	frequency := map[string]int{}
	for _, b := range blocks(doc, 0, lineEnd(doc.Text, min(len(doc.Text), 4*window)), 0, 0) {
		if b.Kind != "text" || len(all) == maxOpenings {
			continue
		}
		first, _ := new(sentence.Splitter).Next([]byte(b.Runs[0].Text), nil, nil, true)
		k := keyPassage{Start: b.At + first.Start, End: b.At + first.End, terms: map[string]bool{}}
		k.Text = strings.TrimSpace(doc.Text[k.Start:k.End])
		for _, term := range retrieve.Terms(k.Text) {
			k.terms[term] = true
		}
		same := func(other keyPassage) bool { return other.Text == k.Text }
		if len(k.terms) < 5 || len(k.Text) > maxOpening || !strings.ContainsAny(k.Text[len(k.Text)-1:], ".!?") ||
			slices.ContainsFunc(all, same) {
			continue // not a sentence, or a duplicate
		}
		for term := range k.terms {
			frequency[term]++
		}
		all = append(all, k)
	}
	if len(all) <= maxKey {
		return nil // the document is short
	}
	for i, k := range all {
		for term := range k.terms {
			all[i].weight += float64(frequency[term]) / float64(len(k.terms)+5)
		}
	}
	slices.SortStableFunc(all, func(a, b keyPassage) int { return cmp.Compare(b.weight, a.weight) })
	all = all[:min(len(all), maxKey)]
	slices.SortFunc(all, func(a, b keyPassage) int { return cmp.Compare(a.Start, b.Start) })
	return all
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
