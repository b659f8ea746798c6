package openai

import "strings"

// The tags around a model's thoughts, at the start of its reply.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// A thoughtSplitter separates a reply's thoughts from its text as it streams. A tag after
// the start is text.
type thoughtSplitter struct {
	held   string // may be the beginning of a tag, or the space before it
	inside bool   // in a thought
	ended  bool   // the thought has ended
	text   bool   // everything that follows is text
}

// addPiece adds the next piece of the reply and returns the part that is known to be text or thought.
func (t *thoughtSplitter) addPiece(piece string) (text, thought string) {
	t.held += piece
	for !t.text {
		start := strings.TrimLeft(t.held, " \t\r\n")
		switch before, after, ended := strings.Cut(t.held, thinkClose); {
		case t.inside && !ended:
			keep := len(t.held) - partialSuffix(t.held, thinkClose)
			thought, t.held = t.held[:keep], t.held[keep:]
			return "", thought
		case t.inside:
			t.inside, t.ended = false, true
			thought, t.held = before, after
		case t.ended:
			if t.held = start; start == "" {
				return "", thought
			}
			t.text = true
		case strings.HasPrefix(start, thinkOpen):
			t.inside, t.held = true, start[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, start):
			return "", ""
		default:
			t.text = true
		}
	}
	text, t.held = t.held, ""
	return text, thought
}

// endText returns the held text at the end of the reply.
func (t *thoughtSplitter) endText() (text, thought string) {
	held := t.held
	t.held = ""
	if t.inside {
		return "", held
	}
	return held, ""
}

// partialSuffix returns the length of the longest suffix of s with which the tag begins.
func partialSuffix(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
