package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/retrieve"
)

// A quoteState compares a quote with the document as it is now.
type quoteState string

// The states of quotes.
const (
	quoteUnchanged quoteState = "unchanged" // the words are at their place
	quoteMoved     quoteState = "moved"     // they are at another place, or the file was renamed
	quoteChanged   quoteState = "changed"   // some of the words are missing
	quoteGone      quoteState = "gone"      // nothing similar was found, or the document was deleted
)

// rank orders the states: a source has the highest-ranked state of its quotes.
func (s quoteState) rank() int {
	return slices.Index([]quoteState{quoteUnchanged, quoteMoved, quoteChanged, quoteGone}, s)
}

// A quoteRef identifies the quoted words of a link. It has their hash, not the words, since
// addresses end up in logs.
type quoteRef struct {
	Digest  string // first characters of the digest of the cited file
	Hash    string // of the words
	Renamed bool   // the file has been renamed

	words string    // from the record of the answer in ?run=
	day   time.Time // when the answer ended
}

// loadQuote adds the quoted words and their date from the record in ?run=, if the caller may
// see the record.
func (d *documents) loadQuote(c echo.Context, q *quoteRef) error {
	id := c.QueryParam("run")
	if id == "" || q.Hash == "" {
		return nil
	}
	_, record, err := d.records.find(c, id)
	if problem := (*Problem)(nil); errors.As(err, &problem) {
		return nil // there is no such record, or the caller may not see it
	}
	if err != nil || record.Ended == nil || record.Answer == nil {
		return err
	}
	a, err := decodeStored[cite.Answer](record.Answer)
	for _, c := range a.Citations {
		if hashQuote(c.Quote) == q.Hash {
			q.words, q.day = c.Quote, *record.Ended
		}
	}
	return err
}

// The number of hex digits of the digest and of the hash in a link.
const (
	linkDigest = 12
	linkHash   = 16
)

func quoteRefOf(digest, words string) quoteRef {
	return quoteRef{Digest: digest[:min(len(digest), linkDigest)], Hash: hashQuote(words)}
}

func hashQuote(words string) string {
	sum := sha256.Sum256([]byte(words))
	return hex.EncodeToString(sum[:])[:linkHash]
}

// QuoteLink is [Link] for words of a passage. If the document has changed, the viewer finds
// the words at their new place, or reports that they are missing.
func QuoteLink(base string, p retrieve.Passage, start, end int) string {
	link := Link(base, p.Document, start, end)
	place, found := strings.CutSuffix(link, "#quote")
	if from, to := start-p.Start, end-p.Start; found && 0 <= from && to <= len(p.Text) {
		q := quoteRefOf(p.Digest, p.Text[from:to])
		return place + "&digest=" + url.QueryEscape(q.Digest) + "&quote=" + q.Hash + "#quote"
	}
	return link
}

// locate returns the present place of the words that were at r in a document. It compares the
// words themselves if known, otherwise their hash. Without a hash it returns r.
func (q quoteRef) locate(d *ingest.Document, r textRange, words string) (now textRange, state quoteState) {
	if q.Hash == "" || r.End <= r.Start {
		return r, ""
	}
	if r.End <= len(d.Text) && hashQuote(d.Text[r.Start:r.End]) == q.Hash {
		if q.Renamed {
			return r, quoteMoved
		}
		return r, quoteUnchanged
	}
	if at := q.find(d.Text, r, words); at >= 0 {
		return textRange{Start: at, End: at + r.End - r.Start}, quoteMoved
	}
	from, to := runeStart(d.Text, r.Start-nearby), runeEnd(d.Text, r.End+nearby)
	if start, end := mostSimilar(d.Text[from:to], words); end > start {
		return textRange{Start: from + start, End: from + end}, quoteChanged
	}
	if words != "" {
		return textRange{At: r.Start}, quoteGone
	}
	return textRange{At: r.Start}, quoteChanged
}

// A moved quote is searched for within nearby bytes of its old place. A search by hash also
// stops after hashing mostBytes, since a link can name a range of any length.
const (
	nearby    = 2 << 20
	mostBytes = 32 << 20
	hashCost  = 256 // fixed cost of hashing a text, in bytes
)

// find returns the place of the words nearest to the old one, or -1.
func (q quoteRef) find(text string, old textRange, words string) int {
	n := old.End - old.Start
	if words == "" {
		return q.findHash(text, old.Start, n)
	}
	if len(words) != n {
		return -1
	}
	place := min(old.Start, len(text))
	before := strings.LastIndex(text[:min(place+n, len(text))], words)
	after := strings.Index(text[place:], words)
	if after < 0 || before >= 0 && old.Start-before <= after {
		return before
	}
	return place + after
}

// findHash returns the nearest place where n bytes from the start of a word have the hash, or
// -1.
func (q quoteRef) findHash(text string, old, n int) int {
	left := mostBytes
	for distance := 0; distance <= nearby && left > 0; distance++ {
		for _, at := range []int{old - distance, old + distance} {
			if at < 0 || at+n > len(text) || !beginsWord(text, at) {
				continue
			}
			if left -= n + hashCost; hashQuote(text[at:at+n]) == q.Hash {
				return at
			}
		}
	}
	return -1
}

// beginsWord reports whether a word or a symbol may begin at a byte. In scripts other than
// Latin every character may begin one.
func beginsWord(text string, at int) bool {
	plain := func(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' }
	r, _ := utf8.DecodeRuneInString(text[at:])
	return utf8.RuneStart(text[at]) && !unicode.IsSpace(r) && (at == 0 || !plain(text[at]) || !plain(text[at-1]))
}

// likeness is the share of the words of a changed quote that must be found together.
const likeness = .5

// mostSimilar returns the range of a text, with as many words as words, that has the most of
// them. It is empty if no range has enough of them.
func mostSimilar(text, words string) (start, end int) {
	sought := map[string]int{}
	n := 0
	for _, w := range wordsOf(words) {
		sought[words[w.Start:w.End]]++
		n++
	}
	here := wordsOf(text)
	best, have := 0, 0
	left := func(i int) string { return text[here[i].Start:here[i].End] }
	for i := range here {
		if i >= n {
			w := left(i - n)
			if count, ok := sought[w]; ok {
				if sought[w] = count + 1; count >= 0 {
					have--
				}
			}
		}
		w := left(i)
		if count, ok := sought[w]; ok {
			if sought[w] = count - 1; count > 0 {
				have++
			}
		}
		if have > best && float64(have) >= likeness*float64(n) {
			best, start, end = have, here[max(0, i-n+1)].Start, here[i].End
		}
	}
	return start, end
}

// wordsOf returns the ranges of the words in a text.
func wordsOf(text string) (words []rewrite.Span) {
	end := 0
	separates := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }
	for word := range strings.FieldsFuncSeq(text, separates) {
		start := end + strings.Index(text[end:], word) // only separators precede it
		end = start + len(word)
		words = append(words, rewrite.Span{Start: start, End: end})
	}
	return words
}

// renames finds renamed documents. It lists the documents once.
type renames struct {
	catalog *catalog
	all     []retrieve.DocumentInfo
}

// findFirst returns the first document for which f returns true, or nil.
func (l *renames) findFirst(ctx context.Context, f func(retrieve.DocumentInfo) bool) (doc *ingest.Document, err error) {
	if l.all == nil {
		if l.all, err = l.catalog.Documents(ctx, retrieve.Filter{}); err != nil {
			return nil, fmt.Errorf("finding a renamed document: %w", err)
		}
	}
	if i := slices.IndexFunc(l.all, f); i >= 0 {
		doc, err = l.catalog.document(ctx, l.all[i].ID, "")
	}
	return doc, err
}

// findByFormerID returns the document that had an id before it was renamed, or nil. Another
// document may have the id now.
func (l *renames) findByFormerID(ctx context.Context, id string) (*ingest.Document, error) {
	return l.findFirst(ctx, func(d retrieve.DocumentInfo) bool { return slices.Contains(ingest.FormerIDs(d.Meta), id) })
}

// findRenamed returns the document that was cited under another name: its file has the digest
// prefix in a link, or it had this id before it was renamed. It returns nil if it finds no
// document.
func (l *renames) findRenamed(ctx context.Context, id, digest string) (*ingest.Document, error) {
	if len(digest) >= linkDigest {
		doc, err := l.findFirst(ctx, func(d retrieve.DocumentInfo) bool { return strings.HasPrefix(d.Digest, digest) })
		if doc == nil && err == nil {
			doc, err = l.findByFormerID(ctx, id)
		}
		return doc, err
	}
	return nil, nil
}

// copies returns the ids of the other documents with an identical file.
func (l *catalog) copies(ctx context.Context, doc *ingest.Document) (ids []string, err error) {
	if doc.Digest == "" {
		return nil, nil
	}
	all, err := l.Documents(ctx, retrieve.Filter{Digests: []string{doc.Digest}})
	if err != nil {
		return nil, fmt.Errorf("finding copies of %s: %w", doc.ID, err)
	}
	for _, d := range all {
		if d.ID != doc.ID {
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

// setStates sets the states of the sources of a recorded answer.
func (l *renames) setStates(ctx context.Context, a *cite.Answer) error {
	digests := map[string]string{}
	for _, c := range a.Citations {
		digests[c.Document] = c.Digest
	}
	for i := range a.Sources {
		s := &a.Sources[i]
		doc, state, err := l.findCited(ctx, s.Document, digests[s.Document], func(doc *ingest.Document) quoteState { return stateIn(doc, s) })
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			return err
		}
		if s.State = string(state); doc != nil && doc.ID != s.Document {
			s.Now = doc.ID
		}
	}
	return nil
}

// findCited returns the document that was cited under an id, and the state of its quote. It
// follows renames, even if another document has the id now.
func (l *renames) findCited(ctx context.Context, id, digest string, stateOf func(*ingest.Document) quoteState) (
	doc *ingest.Document, state quoteState, err error) {
	if doc, err = l.catalog.document(ctx, id, ""); errors.Is(err, retrieve.ErrNotFound) {
		if now, failed := l.findRenamed(ctx, id, digest); now != nil || failed != nil {
			doc, err = now, failed
		}
	} else if err == nil {
		if state = stateOf(doc); state.rank() < quoteChanged.rank() {
			return doc, state, nil
		}
		var now *ingest.Document
		if now, err = l.findByFormerID(ctx, id); now == nil || stateOf(now).rank() >= state.rank() {
			return doc, state, err
		}
		doc = now
	}
	if err != nil {
		return nil, quoteGone, err
	}
	return doc, worse(stateOf(doc), quoteMoved), nil
}

// stateIn returns the worst state of a source's quotes in a document.
func stateIn(doc *ingest.Document, s *cite.Source) quoteState {
	state := quoteUnchanged
	for _, p := range s.Passages {
		if _, is := (quoteRef{Hash: hashQuote(p.Quote)}).locate(doc, textRange{Start: p.Start, End: p.End}, p.Quote); p.Quote != "" {
			state = worse(state, is)
		}
	}
	return state
}

// sourcesState returns the worst state of the sources of a record; empty without sources.
func (l *renames) sourcesState(ctx context.Context, archive retrieve.Archive, id string) (state quoteState, err error) {
	stored, err := archive.Record(ctx, id)
	if err != nil {
		return "", err
	}
	record, err := recordWithEvents(stored)
	if err != nil || record.Answer == nil {
		return "", err
	}
	a, err := decodeStored[cite.Answer](record.Answer)
	if err == nil {
		err = l.setStates(ctx, &a)
	}
	for _, s := range a.Sources {
		state = worse(state, quoteState(s.State))
	}
	return state, err
}

// ChangedAnswers counts the records of callers, and the records with quotes that are no
// longer in their documents.
func ChangedAnswers(ctx context.Context, l Library, archive retrieve.Archive, callers []string) (changed, all int, err error) {
	c := &renames{catalog: &catalog{Library: l}}
	for _, by := range callers {
		for r, err := range recordsOf(ctx, archive, by) {
			var state quoteState
			if err == nil {
				state, err = c.sourcesState(ctx, archive, r.ID)
			}
			if err != nil {
				return 0, 0, fmt.Errorf("comparing the quotes of the record %s: %w", r.ID, err)
			}
			if all++; state.rank() >= quoteChanged.rank() {
				changed++
			}
		}
	}
	return changed, all, nil
}

// worse returns the state with the higher rank.
func worse(a, b quoteState) quoteState {
	if a.rank() < b.rank() {
		return b
	}
	return a
}
