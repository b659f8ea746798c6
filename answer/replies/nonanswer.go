package replies

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons for which a reply is no answer.
const (
	NoAnswer   = "no_answer"
	MetaRemark = "meta_remark" // the model says that nothing changes
)

// nonAnswerForms are the few fixed things that a model says in place of an answer: the
// words that a prompt asks for, in capitals, and how models vary them, squeezed and
// without the marks at their end.
var nonAnswerForms = []struct {
	reason, capitals string
	form             *regexp.Regexp // of the words in capitals, whatever follows
	lower            *regexp.Regexp // what counts in lower case, with nothing after it
	openings         []string       // what begins so may become one, and what is a beginning of these
}{
	{NoAnswer, "NO ANSWER", noAnswerForm, noAnswerForm, []string{"no answer", "there is no answer"}},
	{MetaRemark, "NO CHANGE", regexp.MustCompile(`^no changes?( ((is|are) )?(needed|necessary|required))?` +
		`( to it| (to|in) the (existing |current )?(answer|summary)( so far)?)?$`), regexp.MustCompile(`^no changes?$`), []string{
		"no ", "the original", "the existing", "the previous", "the current", "my ", "original", "existing", "previous", "current",
		"n/a", "none", "unchanged", "same",
	}},
}

var noAnswerForm = regexp.MustCompile(`^(there is )?no answer( found| (is )?available| can be found)?` +
	`( in (the|this|the given|the provided) (evidence|documents|passages|text))?$`)

// bareRemarks are what a refine step says by itself when it has nothing to add.
var bareRemarks = regexp.MustCompile(`^(((the|my) )?(original|existing|previous|current) (answer|response|summary) ` +
	`(remains|stays|is|is still|still is) (the same|` + states + `)( and ` + states + `)?|` +
	`no (changes?|updates?|refinements?|modifications?) ((is|are) )?(needed|necessary|required)|n/a|none|unchanged|no changes?|same)$`)

const states = `(relevant|accurate|valid|correct|unchanged|complete|sufficient)`

// squeezeSpace lowers s, trims it and makes every run of white space one space.
func squeezeSpace(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// hasForm reports whether the whole reply has a form, ignoring case, white space and
// the marks at its end.
func hasForm(form *regexp.Regexp, reply string) bool {
	return form.MatchString(strings.TrimRight(squeezeSpace(reply), ".! "))
}

// NonAnswers are what a reply may say in place of an answer.
type NonAnswers struct {
	NoAnswer bool // that none exists: the words NO ANSWER
	NoChange bool // that the draft is final: the words NO CHANGE, or a bare remark
}

// mayBe reports whether a reason is one of those that a reply may give.
func (n NonAnswers) mayBe(reason string) bool {
	return reason == NoAnswer && n.NoAnswer || reason == MetaRemark && n.NoChange
}

// Reason returns the reason for which a reply, or one that begins so, is no
// answer; empty when it is one. final reports that the rest of the reply cannot
// change that.
//
// The agreed words may have quotes, brackets or emphasis around them. In
// capitals they count even if an explanation follows, NO ANSWER as a line of its own
// in any case.
func (n NonAnswers) Reason(reply string) (reason string, final bool) {
	words, rest := leadingWords(reply)
	asWritten := strings.Join(strings.Fields(words), " ")
	line, more, _ := strings.Cut(strings.TrimSpace(reply), "\n")
	for _, w := range nonAnswerForms {
		switch {
		case !n.mayBe(w.reason):
		case w.reason == NoAnswer && more != "" && hasForm(w.lower, strings.Trim(line, dress)):
			return w.reason, true
		case strings.HasPrefix(asWritten, w.capitals) && hasForm(w.form, words):
			if strings.ContainsFunc(rest, isWordRune) {
				return w.reason, true
			}
			reason = w.reason
		case strings.Trim(rest, dress) == "" && hasForm(w.lower, words):
			reason = w.reason
		}
	}
	if reason == "" && n.NoChange && hasForm(bareRemarks, reply) {
		reason = MetaRemark
	}
	return reason, false
}

// maxHeld is how many characters of a reply, with each run of white space
// counted as one, are held back while it may still be no answer.
const maxHeld = 120

// mayBegin reports whether a reply that begins with s may still turn out to be
// no answer.
func (n NonAnswers) mayBegin(s string) bool {
	if utf8.RuneCountInString(squeezeSpace(s)) > maxHeld {
		return false
	}
	begun := squeezeSpace(strings.TrimLeft(s, dress))
	for _, w := range nonAnswerForms {
		if n.mayBe(w.reason) && slices.ContainsFunc(w.openings, func(o string) bool {
			return strings.HasPrefix(o, begun) || strings.HasPrefix(begun, o)
		}) {
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

// A Held holds the beginning of a reply back while it may still turn out
// to be no answer.
type Held struct {
	Expects  NonAnswers
	Text     strings.Builder // the reply so far
	Released bool            // it is an answer, or too long to be held back
	reason   string          // why it is not an answer
}

// Add takes the next piece and returns what can be shown now. enough reports
// that the reply is not an answer, whatever follows.
func (h *Held) Add(piece string) (show string, enough bool) {
	h.Text.WriteString(piece)
	if h.Released {
		return piece, false
	}
	all := h.Text.String()
	if reason, final := h.Expects.Reason(all); final {
		h.reason = reason
		return "", true
	}
	if h.Expects.mayBegin(all) {
		return "", false
	}
	h.Released = true
	return all, false
}

// End returns why the whole reply is not an answer; empty when it is one.
func (h *Held) End() (reason string) {
	if h.reason == "" {
		h.reason, _ = h.Expects.Reason(h.Text.String())
	}
	return h.reason
}
