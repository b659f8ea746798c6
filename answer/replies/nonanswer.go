package replies

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons why a reply is not an answer.
const (
	NoAnswer   = "no_answer"
	MetaRemark = "meta_remark" // the model says that nothing changes
)

// nonAnswerForms are the fixed replies in place of an answer: the words that a prompt asks
// for, in capitals, and the variants that models write, with squeezed space and without
// final punctuation.
var nonAnswerForms = []struct {
	reason, capitals string
	form             *regexp.Regexp // matches the words in capitals, whatever follows
	lower            *regexp.Regexp // matches a whole reply in lower case
	openings         []string       // beginnings of replies that may become one
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

// bareRemarks matches replies of a refine step that adds nothing.
var bareRemarks = regexp.MustCompile(`^(((the|my) )?(original|existing|previous|current) (answer|response|summary) ` +
	`(remains|stays|is|is still|still is) (the same|` + states + `)( and ` + states + `)?|` +
	`no (changes?|updates?|refinements?|modifications?) ((is|are) )?(needed|necessary|required)|n/a|none|unchanged|no changes?|same)$`)

const states = `(relevant|accurate|valid|correct|unchanged|complete|sufficient)`

// squeezeSpace puts s in lower case, trims it and replaces every run of white space by
// one space.
func squeezeSpace(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// hasForm reports whether the whole reply has a form, ignoring case, white space and
// final punctuation.
func hasForm(form *regexp.Regexp, reply string) bool {
	return form.MatchString(strings.TrimRight(squeezeSpace(reply), ".! "))
}

// NonAnswers are the allowed replies in place of an answer.
type NonAnswers struct {
	NoAnswer bool // no answer exists: the words NO ANSWER
	NoChange bool // the draft is final: the words NO CHANGE, or a bare remark
}

// mayBe reports whether a reply may be a non-answer for a reason.
func (n NonAnswers) mayBe(reason string) bool {
	return reason == NoAnswer && n.NoAnswer || reason == MetaRemark && n.NoChange
}

// Reason returns the reason why a reply, whole or a beginning, is not an answer, or
// "" if it is one. final reports whether further text cannot change that.
//
// The agreed words may have quotes, brackets or emphasis around them. An explanation
// may follow words in capitals, or a first line that says NO ANSWER in any case.
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
// counted as one, are held back while the reply may still be a non-answer.
const maxHeld = 120

// mayBegin reports whether a reply that begins with s may still become a non-answer.
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

// dress are the characters that may surround the agreed words.
const dress = "\"'`*_~#()[]{}<>“”„‘’«»‹›「」『』【】.! \t\r\n"

// leadingWords splits s into its first words, without the characters around them, and
// the text from the first other character on.
func leadingWords(s string) (words, rest string) {
	s = strings.TrimLeft(s, dress)
	end := strings.IndexFunc(s, func(r rune) bool { return !isWordRune(r) && !unicode.IsSpace(r) || r == '\n' })
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A Held holds back the beginning of a reply while it may still become a non-answer.
type Held struct {
	Expects  NonAnswers
	Text     strings.Builder // the reply so far
	Released bool            // the reply is an answer, or too long to be held back
	reason   string          // why it is not an answer
}

// Add adds the next piece and returns the text that can be shown now. enough reports
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

// End returns the reason why the whole reply is not an answer, or "" if it is one.
func (h *Held) End() (reason string) {
	if h.reason == "" {
		h.reason, _ = h.Expects.Reason(h.Text.String())
	}
	return h.reason
}
