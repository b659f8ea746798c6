package answer

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The few fixed things that a model says in place of an answer: the words that a
// prompt asks for and how models vary them, squeezed and without the marks at
// their end.
var (
	noAnswerForm = regexp.MustCompile(`^(there is )?no answer( found| (is )?available| can be found)?` +
		`( in (the|this|the given|the provided) (evidence|documents|passages|text))?$`)
	noChangeForm = regexp.MustCompile(`^no changes?( ((is|are) )?(needed|necessary|required))?` +
		`( to it| (to|in) the (existing |current )?(answer|summary)( so far)?)?$`)
	onlyNoChange = regexp.MustCompile(`^no changes?$`)

	// bareRemarks are what a refine step says by itself when it has nothing to add.
	bareRemarks = regexp.MustCompile(`^(((the|my) )?(original|existing|previous|current) (answer|response|summary) ` +
		`(remains|stays|is|is still|still is) (the same|` + states + `)( and ` + states + `)?|` +
		`no (changes?|updates?|refinements?|modifications?) ((is|are) )?(needed|necessary|required)|n/a|none|unchanged|no changes?|same)$`)
)

const states = `(relevant|accurate|valid|correct|unchanged|complete|sufficient)`

// The beginnings of bare remarks: what begins so may become one, and what is a
// beginning of these too.
var remarkOpenings = func() (openings []string) {
	for _, article := range []string{"", "the ", "my "} {
		for _, adjective := range []string{"original ", "existing ", "previous ", "current "} {
			openings = append(openings, article+adjective+"answer ", article+adjective+"response ", article+adjective+"summary ")
		}
	}
	return append(openings, "no change", "no update", "no refinement", "no modification")
}()

// opens reports whether s is a beginning of one of the openings, or begins with
// one.
func opens(s string, openings ...string) bool {
	folded := squeeze(s)
	// squeeze removes the last white space, but it separates words.
	if last, _ := utf8.DecodeLastRuneInString(s); folded != "" && unicode.IsSpace(last) {
		folded += " "
	}
	return slices.ContainsFunc(openings, func(o string) bool { return strings.HasPrefix(o, folded) || strings.HasPrefix(folded, o) })
}

// squeeze lowers s, trims it and makes every run of white space one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// says reports whether the whole reply has a form, ignoring case, white space and
// the marks at its end.
func says(form *regexp.Regexp, reply string) bool {
	return form.MatchString(strings.TrimRight(squeeze(reply), ".! "))
}

// nonAnswers are what a reply may say in place of an answer.
type nonAnswers struct {
	noAnswer bool // that none exists: the words NO ANSWER
	noChange bool // that the draft is final: the words NO CHANGE, or a bare remark
}

// agreedWords are words that a prompt asks for.
type agreedWords struct {
	reason   string
	capitals string // the words as the prompt has them
	openings []string
	form     *regexp.Regexp // as models vary them
	lower    *regexp.Regexp // what counts in lower case too
	line     bool           // … even as the first line of a longer reply
}

func (n nonAnswers) agreed() []agreedWords {
	var out []agreedWords
	if n.noAnswer {
		out = append(out, agreedWords{noAnswer, "NO ANSWER", []string{"no answer", "there is no answer"}, noAnswerForm, noAnswerForm, true})
	}
	if n.noChange {
		out = append(out, agreedWords{metaRemark, "NO CHANGE", []string{"no change"}, noChangeForm, onlyNoChange, false})
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
		case strings.HasPrefix(asWritten, w.capitals) && says(w.form, words):
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
		if rest == "" && opens(words, w.openings...) ||
			!strings.ContainsFunc(rest, isWordRune) && says(w.form, words) {
			return true
		}
	}
	return n.noChange && (opens(s, remarkOpenings...) || says(bareRemarks, s) ||
		slices.ContainsFunc([]string{"n/a", "none", "unchanged", "same"}, func(w string) bool { return strings.HasPrefix(w, all) }))
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
