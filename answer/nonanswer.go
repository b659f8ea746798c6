package answer

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A phrasing is a sequence of places with the wordings that each may have. It
// describes the few fixed things that a model says in place of an answer, and
// can also recognize the beginning of one.
type phrasing [][]string

var (
	states = []string{"relevant", "accurate", "valid", "correct", "unchanged", "complete", "sufficient"}

	// bareRemarks are what a refine step says when it has nothing to add.
	bareRemarks = []phrasing{
		{
			{"", "the ", "my "},
			{"original ", "existing ", "previous ", "current "},
			{"answer ", "response ", "summary "},
			{"remains ", "stays ", "is ", "is still ", "still is "},
			append([]string{"the same"}, states...),
			append([]string{""}, prefixed(" and ", states)...),
		},
		{
			{"no "},
			{"change", "changes", "update", "updates", "refinement", "refinements", "modification", "modifications"},
			{" ", " is ", " are "},
			{"needed", "necessary", "required"},
		},
		{{"n/a", "none", "unchanged", "no change", "no changes", "same"}},
	}

	// noChanges are the words that a prompt asks for when a step has nothing
	// to add, and how models vary them.
	noChanges = []phrasing{{
		{"no change", "no changes"},
		{
			"", " needed", " necessary", " required", " is needed", " is necessary", " is required",
			" are needed", " are necessary", " are required",
		},
		{
			"", " to it", " to the answer", " to the answer so far", " to the existing answer", " to the current answer", " in the answer",
			" to the summary", " to the summary so far", " to the existing summary", " to the current summary", " in the summary",
		},
	}}

	// noAnswers are what a step says when the evidence has no answer: the words
	// that the prompt asks for, and how models vary them.
	noAnswers = []phrasing{
		{
			{"no answer", "no answer found", "no answer available", "no answer is available", "no answer can be found", "there is no answer"},
			{
				"", " in the evidence", " in this evidence", " in the given evidence", " in the provided evidence",
				" in the documents", " in the passages", " in the text",
			},
		},
	}
)

func prefixed(prefix string, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = prefix + w
	}
	return out
}

// match reports whether s is one of the wordings, and whether it is the
// beginning of one.
func (p phrasing) match(s string) (whole, begins bool) {
	if len(p) == 0 {
		return s == "", s == ""
	}
	for _, w := range p[0] {
		if rest, ok := strings.CutPrefix(s, w); ok {
			wh, be := p[1:].match(rest)
			whole, begins = whole || wh, begins || be
		} else if strings.HasPrefix(w, s) {
			begins = true
		}
		if whole {
			return true, true
		}
	}
	return whole, begins
}

// squeeze lowers s, trims it and makes every run of white space one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// says reports whether the whole reply is one of the phrasings, ignoring case,
// white space and the marks at its end.
func says(phrasings []phrasing, reply string) bool {
	s := strings.TrimRight(squeeze(reply), ".! ")
	for _, p := range phrasings {
		if whole, _ := p.match(s); whole {
			return true
		}
	}
	return false
}

// nonAnswers are what a reply may say in place of an answer.
type nonAnswers struct {
	noAnswer bool // that none exists: the words NO ANSWER
	noChange bool // that the draft is final: the words NO CHANGE, or a bare remark
}

// agreedWords are words that a prompt asks for.
type agreedWords struct {
	reason   string
	capitals string     // the words as the prompt has them
	variants []phrasing // of models
	lower    []phrasing // those that count in lower case too
	line     bool       // … even as the first line of a longer reply
}

func (n nonAnswers) agreed() []agreedWords {
	var out []agreedWords
	if n.noAnswer {
		out = append(out, agreedWords{noAnswer, "NO ANSWER", noAnswers, noAnswers, true})
	}
	if n.noChange {
		out = append(out, agreedWords{metaRemark, "NO CHANGE", noChanges, []phrasing{{{"no change", "no changes"}}}, false})
	}
	return out
}

// reason returns the reason for which a reply, or one that begins so, is no
// answer; empty when it is one. final reports that the rest of the reply cannot
// change that.
//
// The agreed words may have quotes, brackets or emphasis around them. In
// capitals they count even if an explanation follows.
func (n nonAnswers) reason(reply string) (reason string, final bool) {
	words, rest := leadingWords(reply)
	asWritten := strings.Join(strings.Fields(words), " ")
	line, more, ended := strings.Cut(strings.TrimSpace(reply), "\n")
	for _, w := range n.agreed() {
		switch {
		case w.line && ended && more != "" && says(w.lower, strings.Trim(line, dress)):
			return w.reason, true
		case strings.HasPrefix(asWritten, w.capitals) && says(w.variants, words):
			if strings.ContainsFunc(rest, isWordRune) {
				return w.reason, true
			}
			reason = w.reason
		case strings.Trim(rest, dress) == "" && says(w.lower, words):
			reason = w.reason
		}
	}
	if reason == "" && n.noChange && says(bareRemarks, reply) {
		reason = metaRemark
	}
	return reason, false
}

// maxHeld is how many characters of a reply, with each run of white space
// counted as one, are held back while it may still be no answer.
const maxHeld = 120

// possible reports whether a reply that begins with s may still turn out to be
// no answer.
func (n nonAnswers) possible(s string) bool {
	all := squeeze(s)
	if utf8.RuneCountInString(all) > maxHeld {
		return false
	}
	if all == "" {
		return true
	}
	words, rest := leadingWords(s)
	for _, w := range n.agreed() {
		if rest == "" && begins(w.variants, words) ||
			!strings.ContainsFunc(rest, isWordRune) && says(w.variants, words) {
			return true
		}
	}
	return n.noChange && (begins(bareRemarks, s) || says(bareRemarks, s))
}

// begins reports whether s is the beginning of one of the phrasings.
func begins(phrasings []phrasing, s string) bool {
	folded := squeeze(s)
	// squeeze removes the last white space, but it separates words.
	if last, _ := utf8.DecodeLastRuneInString(s); folded != "" && unicode.IsSpace(last) {
		folded += " "
	}
	for _, p := range phrasings {
		if _, begins := p.match(folded); begins {
			return true
		}
	}
	return false
}

// dress may surround the agreed words and changes nothing.
const dress = "\"'`*_~#()[]{}<>“”„‘’«»‹›「」『』【】.! \t\r\n"

// leadingWords separates the words that s begins with, without what surrounds
// them, from the first sign after them.
func leadingWords(s string) (words, rest string) {
	s = strings.TrimLeft(s, dress)
	end := strings.IndexFunc(s, func(r rune) bool { return !isWordRune(r) && !unicode.IsSpace(r) || r == '\n' })
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A heldReply holds the beginning of a reply back while it may still turn out
// to be no answer.
type heldReply struct {
	expects  nonAnswers
	text     strings.Builder // the reply so far
	released bool            // it is an answer, or too long to be held back
	reason   string          // why it is no answer
}

// add takes the next piece and returns what can be shown now. enough reports
// that the reply is no answer, whatever follows.
func (h *heldReply) add(piece string) (show string, enough bool) {
	h.text.WriteString(piece)
	if h.released {
		return piece, false
	}
	all := h.text.String()
	if reason, final := h.expects.reason(all); final {
		h.reason = reason
		return "", true
	}
	if h.expects.possible(all) {
		return "", false
	}
	h.released = true
	return all, false
}

// end returns why the whole reply is no answer; empty when it is one.
func (h *heldReply) end() (reason string) {
	if h.reason == "" {
		h.reason, _ = h.expects.reason(h.text.String())
	}
	return h.reason
}

// show makes the call and shows its reply piece by piece from where it is certain
// to be an answer. It stops where it is certain to be none, or show returns false.
func (c *call) show(ctx context.Context, m Model, reply *heldReply, show func(text string) bool) error {
	for piece, err := range c.pieces(ctx, m) {
		if err != nil {
			return callError(c.prompt.Role, err)
		}
		text, enough := reply.add(piece)
		if enough {
			c.enough = true
			break
		}
		if text != "" && !show(text) {
			break
		}
	}
	return nil
}
