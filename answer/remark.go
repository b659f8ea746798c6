package answer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A phrasing is a sequence of places, each with the wordings that may stand
// there. It describes the few fixed things that a model says in place of an
// answer, and can tell, of the beginning of a reply, whether it may still
// become one of them.
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
	noChanges = []phrasing{{{"no change", "no changes"}, {"", " needed", " necessary", " required", " is needed", " is necessary", " is required", " are needed", " are necessary", " are required"}, aboutIt}}

	// aboutIt may stand behind that.
	aboutIt = []string{"", " to it", " to the answer", " to the answer so far", " to the existing answer", " to the current answer", " in the answer", " to the summary", " to the summary so far", " to the existing summary", " to the current summary", " in the summary"}

	// noAnswers are what a step says when the evidence holds no answer: the
	// words the prompt asks for, and how models vary them.
	noAnswers = []phrasing{
		{
			{"no answer", "no answer found", "no answer available", "no answer is available", "no answer can be found", "there is no answer"},
			{"", " in the evidence", " in this evidence", " in the given evidence", " in the provided evidence", " in the documents", " in the passages", " in the text"},
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

// match tells whether s is one of the wordings, and whether it is the
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

// fold lowers s, trims it, makes every run of white space one space and takes
// full stops, exclamation marks and spaces off its end.
func fold(s string) string {
	return strings.TrimRight(squeeze(s), ".! ")
}

// squeeze lowers s, trims it and makes every run of white space one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// says tells whether the reply is one of the phrasings and nothing else.
func says(phrasings []phrasing, reply string) bool {
	s := fold(reply)
	for _, p := range phrasings {
		if whole, _ := p.match(s); whole {
			return true
		}
	}
	return false
}

// metaRemark is the reason of a step in which the model said that nothing changes.
const metaRemark = "meta_remark"

// A said is what a model may say in place of an answer.
type said struct {
	answer  bool // that there is none: the words NO ANSWER
	changed bool // that the answer so far stays: the words NO CHANGE, or a bare remark
}

// agreed are the words that a prompt asks for.
type agreed struct {
	reason   string
	capitals string     // the words as they are asked for
	alike    []phrasing // how models vary them
	small    []phrasing // those of them that count in small letters too
	line     bool       // … and do so when they fill the first line of more
}

func (a said) agreed() []agreed {
	var out []agreed
	if a.answer {
		out = append(out, agreed{noAnswer, "NO ANSWER", noAnswers, noAnswers, true})
	}
	if a.changed {
		out = append(out, agreed{metaRemark, "NO CHANGE", noChanges, []phrasing{{{"no change", "no changes"}}}, false})
	}
	return out
}

// hears gives the reason for which a reply, or one that begins so, is no
// answer; empty when it is one. sure tells that what may follow does not
// matter any more.
//
// The agreed words may stand in quotes, brackets or emphasis. In capitals, as
// they were asked for, they count with an explanation behind them as well.
func (a said) hears(reply string) (reason string, sure bool) {
	words, rest := leading(reply)
	asWritten := strings.Join(strings.Fields(words), " ")
	line, more, ended := strings.Cut(strings.TrimSpace(reply), "\n")
	for _, w := range a.agreed() {
		switch {
		case w.line && ended && more != "" && says(w.small, strings.Trim(line, dress)):
			return w.reason, true
		case strings.HasPrefix(asWritten, w.capitals) && says(w.alike, words):
			if strings.ContainsFunc(rest, isWordRune) {
				return w.reason, true
			}
			reason = w.reason
		case strings.Trim(rest, dress) == "" && says(w.small, words):
			reason = w.reason
		}
	}
	if reason == "" && a.changed && says(bareRemarks, reply) {
		reason = metaRemark
	}
	return reason, false
}

// maxHeld is how many characters of a reply, runs of white space counted as
// one, are held back while it may still be no answer.
const maxHeld = 120

// mayHear tells whether a reply that begins with s may still turn out to be no
// answer.
func (a said) mayHear(s string) bool {
	all := squeeze(s)
	if utf8.RuneCountInString(all) > maxHeld {
		return false
	}
	if all == "" {
		return true
	}
	words, rest := leading(s)
	for _, w := range a.agreed() {
		if rest == "" && begins(w.alike, words) ||
			!strings.ContainsFunc(rest, isWordRune) && says(w.alike, words) {
			return true
		}
	}
	return a.changed && (begins(bareRemarks, s) || says(bareRemarks, s))
}

// begins tells whether s is the beginning of one of the phrasings.
func begins(phrasings []phrasing, s string) bool {
	folded := squeeze(s)
	// The last white space is gone, but it parts words.
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

// dress may stand around the agreed words and changes nothing.
const dress = "\"'`*_~#()[]{}<>“”„‘’«»‹›「」『』【】.! \t\r\n"

// leading parts the words that s begins with, whatever is around them, from
// the first sign behind them.
func leading(s string) (words, rest string) {
	s = strings.TrimLeft(s, dress)
	end := strings.IndexFunc(s, func(r rune) bool { return !isWordRune(r) && !unicode.IsSpace(r) || r == '\n' })
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A listener holds the beginning of a reply back while it may still turn out
// to be no answer.
type listener struct {
	said
	reply    strings.Builder // all that has come
	released bool            // it is an answer, or too long to be held back
	reason   string          // why it is none
}

// hear takes the next piece and gives what can be shown now. enough tells that
// the reply is no answer, whatever follows.
func (l *listener) hear(piece string) (show string, enough bool) {
	l.reply.WriteString(piece)
	if l.released {
		return piece, false
	}
	all := l.reply.String()
	if reason, sure := l.hears(all); sure {
		l.reason = reason
		return "", true
	}
	if l.mayHear(all) {
		return "", false
	}
	l.released = true
	return all, false
}

// end tells what a reply is that has come to its end.
func (l *listener) end() (reason string) {
	if l.reason == "" {
		l.reason, _ = l.hears(l.reply.String())
	}
	return l.reason
}
