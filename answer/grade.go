package answer

import (
	"strings"
	"unicode"
)

// Grade reads a judge's reply as a verdict. It ignores case, white space, quotes,
// backticks and asterisks at both ends, and punctuation at the end. The rest must
// be one of the known words; anything else is [Unparsable].
func Grade(reply string) Decision {
	const quotes = "\"'`*"
	word := strings.ToLower(strings.TrimSpace(reply))
	word = strings.TrimLeftFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(quotes, r)
	})
	word = strings.TrimRightFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(quotes+".,;:!?", r)
	})
	switch word {
	case "yes", "y", "true", "relevant", "1":
		return Relevant
	case "no", "n", "false", "irrelevant", "not relevant", "0":
		return Irrelevant
	}
	return Unparsable
}

// A judgement reads a judge's reply as it streams: the verdict from the first
// line that is not blank, a reason from the next one.
type judgement struct {
	reply   strings.Builder
	verdict Decision // empty while unknown
	reason  string
}

const (
	maxVerdictBytes = 200 // a first line longer than this is no verdict
	maxReasonBytes  = 160
	maxReasonWords  = 12
)

// add takes the next piece and reports whether the rest does not matter, so that
// the call can be stopped. A relevant verdict needs no reason.
func (j *judgement) add(piece string) (done bool) {
	j.reply.WriteString(piece)
	text := strings.TrimLeftFunc(j.reply.String(), unicode.IsSpace)
	first, rest, ended := strings.Cut(text, "\n")
	if !ended {
		if len(first) <= maxVerdictBytes {
			return false
		}
		j.verdict = Unparsable
		return true
	}
	j.verdict = Grade(first)
	if j.verdict != Irrelevant {
		return true
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	line, _, ended := strings.Cut(rest, "\n")
	j.reason = line
	return ended || len(line) > maxReasonBytes || len(strings.Fields(line)) > maxReasonWords
}

// end returns the verdict of a reply that ends here. A reply that was cut in its
// first line has none, whatever it looks like so far.
func (j *judgement) end(cut bool) (Decision, string) {
	if j.verdict == "" && cut {
		j.verdict = Unparsable
	}
	if j.verdict == "" {
		j.verdict = Grade(j.reply.String())
	}
	return j.verdict, shortReason(j.reason)
}

// shortReason makes the judge's words safe to show: one line of printable
// characters, at most maxReasonWords words.
func shortReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	words := strings.Fields(s)
	if len(words) > maxReasonWords {
		words = words[:maxReasonWords]
	}
	s = strings.Join(words, " ")
	for len(s) > maxReasonBytes {
		cut := strings.LastIndexByte(s, ' ')
		if cut < 0 {
			return ""
		}
		s = s[:cut]
	}
	return strings.TrimRight(s, ".,;: ")
}
