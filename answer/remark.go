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

// saysNoAnswer tells whether a reply says that the evidence holds no answer.
// A model that explains itself after the agreed words is taken at the words.
func saysNoAnswer(reply string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(reply), "\n")
	return says(noAnswers, strings.Trim(first, "\"'`*.! \r")) || says(noAnswers, reply)
}

// maxHeld is how many characters of a reply, runs of white space counted as
// one, are held back while it may still be a bare remark.
const maxHeld = 120

// mayBe tells whether a reply that begins with s may still turn out to be one
// of the phrasings.
func mayBe(phrasings []phrasing, s string) bool {
	lower := strings.TrimLeft(squeeze(s), "\"'`*")
	if lower == "" {
		return true
	}
	if utf8.RuneCountInString(lower) > maxHeld {
		return false
	}
	// The last white space is gone from lower, but it parts words.
	spaced := lower
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsSpace(last) {
		spaced += " "
	}
	core := strings.TrimRight(lower, ".! \"'`*")
	for _, p := range phrasings {
		if _, begins := p.match(spaced); begins {
			return true
		}
		if whole, _ := p.match(core); whole {
			return true
		}
	}
	return false
}
