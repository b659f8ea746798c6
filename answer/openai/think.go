package openai

import "strings"

// The tags around a model's thoughts, at the start of its reply.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// A thinkState is the position of a thinker in a reply.
type thinkState int

const (
	beforeThought thinkState = iota // only space so far, or a part of the tag
	inThought
	afterThought // only space since the end of the thought
	inText
)

// A thinker separates a reply's thoughts from its text as it streams. A tag after
// the start is text.
type thinker struct {
	state thinkState
	held  string // may be the beginning of a tag, or the space before it
}

// add takes the next piece of the reply and returns what is certain of it.
func (t *thinker) add(piece string) (text, thought string) {
	t.held += piece
	if t.state == beforeThought {
		start := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(start, thinkOpen):
			t.state, t.held = inThought, start[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, start):
			return "", ""
		default:
			t.state = inText
		}
	}
	if t.state == inThought {
		end := strings.Index(t.held, thinkClose)
		if end < 0 {
			keep := partialSuffix(t.held, thinkClose)
			thought, t.held = t.held[:len(t.held)-keep], t.held[len(t.held)-keep:]
			return "", thought
		}
		thought, t.held = t.held[:end], t.held[end+len(thinkClose):]
		t.state = afterThought
	}
	if t.state == afterThought {
		t.held = strings.TrimLeft(t.held, " \t\r\n")
		if t.held == "" {
			return "", thought
		}
		t.state = inText
	}
	text, t.held = t.held, ""
	return text, thought
}

// end returns the rest, when the reply has ended.
func (t *thinker) end() (text, thought string) {
	held := t.held
	t.held = ""
	if t.state == inThought {
		return "", held
	}
	return held, ""
}

// partialSuffix is the length of the longest end of s that begins the tag.
func partialSuffix(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
