package web

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
)

// errEnough ends an answer at a stop sequence or at the maximum of tokens.
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
// API, which clients show as Markdown: it is made neutral, numbers become links with
// annotations, and it is cut at stop sequences and at the maximum of tokens.
type linkedText struct {
	stops     []string // before which it is cut
	maxTokens int      // 0 for any number
	links     bool
	write     func(string) error

	neutral neutralText
	text    []byte // of the answer, neutral, with plain numbers
	sent    int    // bytes of it that are sent
	counted int    // bytes of it that are counted
	tokens  int    // in those
	cut     string // why it is cut: "stop" or "length"; empty if it is not

	sources     map[int]cite.Cited
	numbers     []cite.Placed // that are not sent yet
	runes       int           // of the content
	annotations []annotation
}

// A neutralText makes the text of an answer neutral, and moves its numbers.
type neutralText struct {
	rewrite.Neutralizer
	numbers       []cite.Placed // to come, at their offsets in the answer
	read, written int
}

// add returns the next piece and the numbers in it, at their offsets in what was
// returned.
func (t *neutralText) add(piece string) (out []byte, numbers []cite.Placed) {
	for len(t.numbers) > 0 && t.numbers[0].End <= t.read+len(piece) {
		n := t.numbers[0]
		t.numbers = t.numbers[1:]
		out = t.Append(out, []byte(piece[:n.Start-t.read]))
		var start int
		out, start = t.AppendNumber(out, []byte(piece[n.Start-t.read:n.End-t.read]))
		piece, t.read = piece[n.End-t.read:], n.End
		numbers = append(numbers, cite.Placed{Number: n.Number, Start: t.written + start, End: t.written + len(out)})
	}
	out = t.Append(out, []byte(piece))
	t.read += len(piece)
	t.written += len(out)
	return out, numbers
}

// append adds a piece of the answer. After a cut it fails with errEnough.
func (t *linkedText) append(piece string) error {
	text, numbers := t.neutral.add(piece)
	t.text, t.numbers = append(t.text, text...), append(t.numbers, numbers...)
	return t.advance(false)
}

func (t *linkedText) close() error {
	t.text = t.neutral.Close(t.text)
	return t.advance(true)
}

// advance sends what can no longer change.
func (t *linkedText) advance(final bool) error {
	if t.cut != "" {
		return errEnough
	}
	to := len(t.text)
	if t.maxTokens > 0 {
		to = t.withinTokens(final)
	}
	found := -1
	for _, stop := range t.stops {
		if i := strings.Index(string(t.text[t.sent:]), stop); i >= 0 && (found < 0 || i < found) {
			found = i
		}
	}
	if found >= 0 && t.sent+found <= to {
		to, t.cut = t.sent+found, "stop"
	} else if !final && t.cut == "" {
		to = min(to, len(t.text)-t.stopPrefix())
	}
	for _, n := range t.numbers {
		if n.Start < to && to < n.End {
			to = n.Start
		}
	}
	if err := t.sendTo(to); err != nil {
		return err
	}
	if t.cut != "" {
		return errEnough
	}
	return nil
}

// stopPrefix is how many bytes at the end of the text may begin a stop sequence.
func (t *linkedText) stopPrefix() int {
	rest, most := t.text[t.sent:], 0
	for _, stop := range t.stops {
		for n := min(len(stop)-1, len(rest)); n > most; n-- {
			if strings.HasSuffix(string(rest), stop[:n]) {
				most = n
				break
			}
		}
	}
	return most
}

// withinTokens is how far the text is within the maximum of tokens, in whole words.
// A word that may continue is not counted yet.
func (t *linkedText) withinTokens(final bool) int {
	for t.cut == "" && t.counted < len(t.text) {
		n := wordEnd(t.text[t.counted:], final)
		if n == 0 {
			break
		}
		t.tokens += ingest.CountTokens(string(t.text[t.counted : t.counted+n]))
		if t.tokens > t.maxTokens {
			t.cut = "length"
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

func (t *linkedText) sendTo(to int) error {
	var b strings.Builder
	for len(t.numbers) > 0 && t.numbers[0].End <= to {
		n := t.numbers[0]
		t.numbers = t.numbers[1:]
		b.Write(t.text[t.sent:n.Start])
		start := t.runes + utf8.RuneCountInString(b.String())
		number := string(t.text[n.Start:n.End])
		c := t.sources[n.Number]
		if t.links && c.Link != "" {
			number = fmt.Sprintf("[%s](%s)", number, linkTarget(c.Link))
		}
		b.WriteString(number)
		t.annotations = append(t.annotations, annotation{"url_citation", urlCitation{
			Start: start, End: start + utf8.RuneCountInString(number), URL: c.Link, Title: titleOf(c)}, n.Number})
		t.sent = n.End
	}
	b.Write(t.text[t.sent:max(to, t.sent)])
	t.sent = max(to, t.sent)
	return t.addRaw(b.String())
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

// linkTarget escapes an address as the target of a Markdown link.
func linkTarget(address string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\\", "%5C").Replace(address)
}
