package web

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
)

// errEnough ends an answer at the maximum number of tokens.
var errEnough = errors.New("the answer has as many tokens as the client wants")

// A chatAnnotation connects a link in the text to its source, in the form of the OpenAI API.
// Offsets count characters (Unicode code points) of the message's content, and span the link.
type chatAnnotation struct {
	Type string      `json:"type"`
	URL  urlCitation `json:"url_citation"`

	number int
}

type urlCitation struct {
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// A linkedText turns the text of an answer into a message of the OpenAI API, which clients
// show as Markdown. It escapes the text, replaces numbers by links with annotations, and cuts
// at the maximum number of tokens.
type linkedText struct {
	maxTokens int // 0 for any number
	links     bool
	before    int // number of the client's own sources
	write     func(string) error

	escaper rewrite.Escaper
	text    []byte // of the answer
	sent    int    // bytes of text passed to the escaper
	pending string // text not counted yet
	tokens  int
	cut     bool // the text was cut at maxTokens

	sources     map[int]cite.Cited
	citations   []cite.Citation // of a complete answer, so that each number leads to its own quote
	numbers     []cite.Placed   // not passed to the escaper yet
	runes       int             // of the content
	annotations []chatAnnotation
}

// append adds a piece of the answer. After a cut it returns errEnough.
func (t *linkedText) append(piece string) error {
	t.pending += piece
	return t.advance(false)
}

func (t *linkedText) close() error { return t.advance(true) }

// advance sends the text that can no longer change.
func (t *linkedText) advance(final bool) error {
	if t.cut {
		return errEnough
	}
	t.count(final)
	to := len(t.text)
	for _, n := range t.numbers {
		if n.Start < to && to < n.End {
			to = n.Start
		}
	}
	err := t.sendTo(to, final || t.cut)
	if err == nil && t.cut {
		err = errEnough
	}
	return err
}

// wordPattern matches a word with the space before it. In scripts without spaces each
// character is a word.
var wordPattern = regexp.MustCompile(`\s*(?:[⺀-\x{10ffff}]|[^\s⺀-\x{10ffff}]+)|\s+`)

// count moves whole words from pending to text, up to maxTokens. Unless final is set, the
// last word may be incomplete.
func (t *linkedText) count(final bool) {
	words := []string{t.pending}
	if t.maxTokens > 0 {
		words = wordPattern.FindAllString(t.pending, -1)
	}
	for i, word := range words {
		if t.maxTokens > 0 {
			if i == len(words)-1 && !final {
				return
			}
			t.tokens += ingest.CountTokens(word)
			if t.cut = t.tokens > t.maxTokens; t.cut {
				return
			}
		}
		t.text = append(t.text, word...)
		t.pending = t.pending[len(word):]
	}
}

// sendTo sends the text up to an offset; last means that no text follows.
func (t *linkedText) sendTo(to int, last bool) error {
	var out []byte
	for len(t.numbers) > 0 && t.numbers[0].End <= to {
		n := t.numbers[0]
		t.numbers = t.numbers[1:]
		number, c := string(t.text[n.Start:n.End]), t.sources[n.Number]
		c.Link = cmp.Or(linkAt(t.citations, n), c.Link)
		if t.before > 0 {
			number = fmt.Sprintf("[%d]", t.before+n.Number)
		}
		number = linkOf(t.links, number, c.Link)
		var at int
		out, at = t.escaper.AppendNumber(t.escaper.Append(out, t.text[t.sent:n.Start]), []byte(number))
		start := t.runes + utf8.RuneCount(out[:at])
		t.annotations = append(t.annotations, chatAnnotation{"url_citation", urlCitation{
			Start: start, End: start + utf8.RuneCountInString(number), URL: c.Link, Title: titleOf(c)}, n.Number})
		t.sent = n.End
	}
	out = t.escaper.Append(out, t.text[t.sent:max(to, t.sent)])
	t.sent = max(to, t.sent)
	if last {
		out = t.escaper.Close(out)
	}
	return t.addRaw(string(out))
}

func (t *linkedText) addRaw(piece string) error {
	if piece == "" {
		return nil
	}
	t.runes += utf8.RuneCountInString(piece)
	return t.write(piece)
}

// shownSources returns the sources whose numbers are in the text, sorted by number.
func (t *linkedText) shownSources() []cite.Cited {
	var out []cite.Cited
	for _, c := range t.sources {
		if slices.ContainsFunc(t.annotations, func(a chatAnnotation) bool { return a.number == c.Number }) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b cite.Cited) int { return a.Number - b.Number })
	return out
}

// list returns the list of the shown sources, each followed by the result of more.
func (t *linkedText) list(shown []cite.Cited, more func(number int) string) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, c := range shown {
		fmt.Fprintf(&b, "\n- [%d] ", c.Number)
		b.WriteString(linkOf(t.links, rewrite.EscapeTitle(titleOf(c)), c.Link) + more(c.Number))
	}
	return b.String()
}

// linkAt returns the link to the quote of a number: of the citations with that number, the
// nearest in the text; "" if it has no link.
func linkAt(citations []cite.Citation, n cite.Placed) (link string) {
	least := math.MaxInt
	for _, c := range citations {
		if distance := max(0, c.TextStart-n.Start, n.Start-c.TextEnd); c.Number == n.Number && distance < least {
			least, link = distance, c.Link
		}
	}
	return link
}

// maxListedQuote is the maximum length of a quote in the list of sources, in bytes.
const maxListedQuote = 400

// quotes returns the document, places and quotes of a source for the list of sources.
func quotes(s cite.Source) string {
	var b strings.Builder
	if s.Title != "" {
		b.WriteString(", " + rewrite.EscapeTitle(s.Document))
	}
	for _, p := range s.Passages {
		quote := strings.Join(strings.Fields(p.Quote), " ")
		if len(quote) > maxListedQuote {
			quote = quote[:runeStart(quote, maxListedQuote)] + " …"
		}
		b.WriteString("\n  - ")
		if p.Page > 0 {
			fmt.Fprintf(&b, "p. %d, ", p.Page)
		}
		if heading, _ := strings.CutPrefix(strings.TrimPrefix(p.Heading, s.Title), " › "); heading != "" {
			b.WriteString(rewrite.EscapeTitle(heading) + ": ")
		}
		b.WriteString(linkOf(true, rewrite.EscapeTitle("“"+quote+"”"), p.Link))
	}
	return b.String()
}

// asMarkdown returns the text of an answer as Markdown, as in /v1. If links is set, each
// number is a link to its quote, and the list of sources has all quotes with pages and
// headings.
func asMarkdown(a cite.Answer, links bool) string {
	var b strings.Builder
	write := func(piece string) error {
		b.WriteString(piece)
		return nil
	}
	t := linkedText{links: links, write: write, citations: a.Citations}
	t.setAnswer(a)
	// This text has no limit, and writing to a strings.Builder never fails.
	_ = t.append(a.Text)
	_ = t.close()
	if shown := t.shownSources(); links && len(shown) > 0 {
		b.WriteString(t.list(shown, func(number int) string {
			i := slices.IndexFunc(a.Sources, func(s cite.Source) bool { return s.Number == number })
			return quotes(a.Sources[i])
		}))
	}
	return b.String()
}

// setAnswer sets the citations of a complete answer, but not its text.
func (t *linkedText) setAnswer(a cite.Answer) {
	t.sources = map[int]cite.Cited{}
	for _, s := range a.Sources {
		t.sources[s.Number] = cite.Cited{Number: s.Number, Document: s.Document, Title: s.Title, Link: s.Link}
	}
	t.numbers, t.escaper.Plain = a.Places, a.Plain
	t.escaper.Unknown = func(text string) []string {
		return slices.DeleteFunc(slices.Clone(a.Unknown), func(address string) bool { return !strings.Contains(text, address) })
	}
}

// linkOf returns Markdown as a link if links is set and there is an address.
func linkOf(links bool, markdown, address string) string {
	if !links || address == "" {
		return markdown
	}
	return "[" + markdown + "](" + linkTarget(address) + ")"
}

// linkTarget escapes an address for the target of a Markdown link.
var linkTarget = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\\", "%5C").Replace

// quotations returns the parts of documents closest to an unanswered question as Markdown:
// quotations with their documents, which are links if links is set.
func quotations(closest []answer.Closest, links bool) string {
	var b strings.Builder
	for _, c := range closest {
		b.WriteString("\n\n")
		for line := range strings.Lines(c.Text) {
			b.WriteString("> " + rewrite.EscapeTitle(line) + "  \n")
		}
		b.WriteString("> — " + linkOf(links, rewrite.EscapeTitle(cmp.Or(c.Title, c.Document)), c.Link))
		if c.Heading != "" {
			b.WriteString(", " + rewrite.EscapeTitle(c.Heading))
		}
	}
	return b.String()
}
