package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
)

// errEnough ends an answer at the maximum of tokens.
var errEnough = errors.New("the answer has all that the client wants")

// An annotation connects a link in the text to its source, in the form of the
// OpenAI API. Offsets count characters (Unicode code points) of the
// message's content; the range is that of the link itself.
type annotation struct {
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

// A linkedText turns the text of an answer into that of a message of the OpenAI
// API, which clients show as Markdown: it is escaped, numbers become links with
// annotations, and it is cut at the maximum of tokens.
type linkedText struct {
	maxTokens int // 0 for any number
	links     bool
	write     func(string) error

	escaper rewrite.Escaper
	text    []byte // of the answer
	sent    int    // bytes of it that the escaper has
	counted int    // bytes of it that are counted
	tokens  int    // in those
	cut     bool   // there are too many

	sources     map[int]cite.Cited
	numbers     []cite.Placed // that the escaper does not have yet
	runes       int           // of the content
	annotations []annotation
}

// append adds a piece of the answer. After a cut it fails with errEnough.
func (t *linkedText) append(piece string) error {
	t.text = append(t.text, piece...)
	return t.advance(false)
}

func (t *linkedText) close() error { return t.advance(true) }

// advance sends what can no longer change.
func (t *linkedText) advance(final bool) error {
	if t.cut {
		return errEnough
	}
	to := len(t.text)
	if t.maxTokens > 0 {
		to = t.withinTokens(final)
	}
	for _, n := range t.numbers {
		if n.Start < to && to < n.End {
			to = n.Start
		}
	}
	if err := t.sendTo(to, final || t.cut); err != nil {
		return err
	}
	if t.cut {
		return errEnough
	}
	return nil
}

// withinTokens is how far the text is within the maximum of tokens, in whole words.
// A word that may continue is not counted yet.
func (t *linkedText) withinTokens(final bool) int {
	for !t.cut && t.counted < len(t.text) {
		n := wordEnd(t.text[t.counted:], final)
		if n == 0 {
			break
		}
		t.tokens += ingest.CountTokens(string(t.text[t.counted : t.counted+n]))
		if t.tokens > t.maxTokens {
			t.cut = true
			break
		}
		t.counted += n
	}
	return t.counted
}

// wordEnd is the end of the first word, with the space before it; 0 while that is
// unknown. A character of a script without spaces is a word.
func wordEnd(b []byte, final bool) int {
	inWord := false
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		space := unicode.IsSpace(r)
		switch {
		case inWord && (space || r >= 0x2E80):
			return i
		case r >= 0x2E80:
			return i + n
		}
		inWord = inWord || !space
		i += n
	}
	if final {
		return len(b)
	}
	return 0
}

// sendTo sends the text up to a place; last means that no more of it is sent.
func (t *linkedText) sendTo(to int, last bool) error {
	var out []byte
	for len(t.numbers) > 0 && t.numbers[0].End <= to {
		n := t.numbers[0]
		t.numbers = t.numbers[1:]
		number, c := string(t.text[n.Start:n.End]), t.sources[n.Number]
		if t.links && c.Link != "" {
			number = fmt.Sprintf("[%s](%s)", number, linkTarget(c.Link))
		}
		var at int
		out, at = t.escaper.AppendNumber(t.escaper.Append(out, t.text[t.sent:n.Start]), []byte(number))
		start := t.runes + utf8.RuneCount(out[:at])
		t.annotations = append(t.annotations, annotation{"url_citation", urlCitation{
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

// shownSources are the sources whose numbers are in the text, by number.
func (t *linkedText) shownSources() []cite.Cited {
	var out []cite.Cited
	for _, c := range t.sources {
		if slices.ContainsFunc(t.annotations, func(a annotation) bool { return a.number == c.Number }) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b cite.Cited) int { return a.Number - b.Number })
	return out
}

// list is the list of the sources shown.
func (t *linkedText) list(shown []cite.Cited) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, c := range shown {
		fmt.Fprintf(&b, "\n- [%d] ", c.Number)
		title := rewrite.EscapeTitle(titleOf(c))
		if t.links && c.Link != "" {
			fmt.Fprintf(&b, "[%s](%s)", title, linkTarget(c.Link))
		} else {
			b.WriteString(title)
		}
	}
	return b.String()
}

// asMarkdown returns the text of an answer as Markdown, as /v1 sends it, with
// links and the list of its sources if links is set.
func asMarkdown(a cite.Answer, links bool) string {
	var b strings.Builder
	write := func(piece string) error {
		b.WriteString(piece)
		return nil
	}
	t := linkedText{links: links, write: write, sources: map[int]cite.Cited{}}
	for _, s := range a.Sources {
		t.sources[s.Number] = cite.Cited{Number: s.Number, Document: s.Document, Title: s.Title, Link: s.Link}
	}
	t.numbers = a.Places
	t.escaper.Plain = a.Plain
	t.escaper.Unknown = func(text string) []string {
		return slices.DeleteFunc(slices.Clone(a.Unknown), func(address string) bool { return !strings.Contains(text, address) })
	}
	// Nothing cuts this text, and a strings.Builder has no errors.
	_ = t.append(a.Text)
	_ = t.close()
	if shown := t.shownSources(); links && len(shown) > 0 {
		b.WriteString(t.list(shown))
	}
	return b.String()
}

func recordedAnswer(stored []byte) (a cite.Answer, err error) {
	if err := json.Unmarshal(stored, &a); err != nil {
		return a, fmt.Errorf("reading a stored answer: %w", err)
	}
	return a, nil
}

// linkTarget escapes an address as the target of a Markdown link.
func linkTarget(address string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\\", "%5C").Replace(address)
}

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
