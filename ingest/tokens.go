package ingest

import (
	"fmt"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	"github.com/tiktoken-go/tokenizer/codec"
)

// Merging byte pairs takes time quadratic in the length of one run of letters,
// spaces or signs, so longer runs are cut before they are counted. Words of
// this many letters do not occur; a run that long counts a few tokens more.
const maxRun = 128

// Text is counted in windows of about this many bytes, so that the token list
// of a large text is never held whole. A window begins at a space,
// where the vocabulary's own word pattern begins a word: the sum is exact.
const countWindow = 4 << 10

// A window in which there is no such space (numbers, base64, signs between
// letters) ends where the class of the characters changes: a count of thousands
// may be off by one there, but text without spaces takes no more memory.
const maxCountWindow = 4 * countWindow

// The vocabulary is cl100k_base rather than o200k_base: half the memory (13 MB)
// and start-up. In English the two differ by a few percent; in other languages it
// counts more, up to five times as much (see LeastShare), so a text that fits a
// window by its count does fit.
//
// It is part of the binary and loaded at the first count. tiktoken-go's own
// offline loader embeds four vocabularies, 4 MB more; package codec has each in a
// variable of its own, so that the linker keeps this one.
var vocabulary = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(codecLoader{})
	t, err := tiktoken.GetEncoding(tiktoken.MODEL_CL100K_BASE)
	if err != nil {
		panic(fmt.Sprintf("unreachable: the embedded vocabulary: %v", err))
	}
	return t
})

// A codecLoader is a [tiktoken.BpeLoader] that reads the ranks of cl100k_base out
// of package codec.
type codecLoader struct{}

// cl100kTokens is the number of ordinary tokens; the special ones come after them.
const cl100kTokens = 100256

func (codecLoader) LoadTiktokenBpe(string) (map[string]int, error) {
	c := codec.NewCl100kBase()
	ranks := make(map[string]int, cl100kTokens)
	for id := range uint(cl100kTokens) {
		token, err := c.Decode([]uint{id})
		if err != nil {
			return nil, err
		}
		ranks[token] = int(id)
	}
	return ranks, nil
}

// countPiece counts the tokens of a short text.
func countPiece(text string) int { return len(vocabulary().EncodeOrdinary(text)) }

// CountTokens returns the number of tokens of a text in the vocabulary
// cl100k_base. It is exact for ordinary text, and takes time linear in the
// length of any text: runs of more than 128 letters, spaces or signs are
// counted in parts. Names of special tokens count as the ordinary text they are.
func CountTokens(text string) int {
	if text == "" {
		return 0
	}
	n, start := 0, 0
	run, class, previous := 0, classNone, classNone
	for i, r := range text {
		c := classOf(r)
		if c == class {
			run++
		} else {
			previous, class, run = class, c, 1
		}
		switch {
		case run > maxRun || run == 1 && i-start >= maxCountWindow:
			n += countPiece(text[start:i])
			start, run = i, 1
		case r == ' ' && run == 1 && previous != classSpace && i-start >= countWindow && spaceAlone(text[i:]):
			n += countPiece(text[start:i])
			start = i
		}
	}
	return n + countPiece(text[start:])
}

// spaceAlone reports whether the space that text begins with is followed by a
// letter, to which the vocabulary's pattern then ties it.
func spaceAlone(text string) bool {
	r, _ := utf8.DecodeRuneInString(text[1:])
	return unicode.IsLetter(r)
}

type runeClass uint8

const (
	classNone runeClass = iota
	classLetter
	classDigit
	classSpace
	classSign
)

func classOf(r rune) runeClass {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		return classLetter
	case r == ' ' || r == '\n' || r == '\t':
		return classSpace
	case '0' <= r && r <= '9':
		return classDigit
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return classLetter
	case unicode.IsSpace(r):
		return classSpace
	case unicode.IsNumber(r):
		return classDigit
	}
	return classSign
}
