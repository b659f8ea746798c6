package ingest

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	"github.com/tiktoken-go/tokenizer/codec"
)

// maxPiece is the length in bytes at which a piece is cut before it is counted, since merging byte
// pairs takes time quadratic in the length. Words, table rules and indentations are rarely that
// long. Each cut may add a token to the count.
const maxPiece = 512

// A vocabulary holds the tokens of cl100k_base. Compared with o200k_base, it needs half the memory
// and start-up time. In English their counts differ by a few percent. In other languages
// cl100k_base counts up to five times as many tokens (see LeastShare), so a text that fits a window
// by this count does fit.
//
// It is part of the binary and loaded at the first count. tiktoken-go's offline loader embeds four
// vocabularies, 4 MB more. Package codec has a variable for each, so the linker keeps only this
// one.
type vocabulary struct {
	ranks map[string]int // rank by token
	bpe   *tiktoken.Tiktoken
}

// cl100kTokens is the number of ordinary tokens. The special tokens follow them.
const cl100kTokens = 100256

var cl100k = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{ranks: make(map[string]int, cl100kTokens)}
	// pieceLen splits the text, so tiktoken-go's pattern matches any text. Filling the map of ranks
	// only after this call avoids a reversed and a sorted copy, which would take most of the time
	// and are used only for decoding.
	bpe, err := tiktoken.NewCoreBPE(v.ranks, nil, `(?s).+`)
	if err != nil {
		panic(fmt.Sprintf("unreachable: the pattern: %v", err))
	}
	v.bpe = tiktoken.NewTiktoken(bpe, nil, nil)
	c := codec.NewCl100kBase()
	for id := range uint(cl100kTokens) {
		token, err := c.Decode([]uint{id})
		if err != nil {
			panic(fmt.Sprintf("unreachable: the embedded vocabulary: %v", err))
		}
		v.ranks[token] = int(id)
	}
	return v
})

// CountTokens returns the number of tokens of a text in the vocabulary cl100k_base. Its running
// time is linear. The result is exact, except that words and runs of spaces or signs longer than
// 512 bytes are counted in parts. Names of special tokens count as ordinary text.
func CountTokens(text string) (n int) {
	v := cl100k()
	for text != "" {
		end := pieceLen(text[:min(len(text), 2*maxPiece)])
		if end > maxPiece {
			for end = maxPiece; !utf8.RuneStart(text[end]) && end > maxPiece-utf8.UTFMax; {
				end--
			}
		}
		piece := text[:end]
		if _, ok := v.ranks[piece]; ok && utf8.ValidString(piece) {
			n++
		} else {
			n += len(v.bpe.EncodeOrdinary(piece))
		}
		text = text[end:]
	}
	return n
}

// pieceLen returns the length in bytes of the piece that text begins with. A piece is a match of
// cl100k_base's pattern, and no token spans two pieces:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func pieceLen(text string) int {
	if n := contraction(text); n > 0 {
		return n
	}
	class, first := classAt(text)
	next, _ := classAt(text[first:])
	switch {
	case class == classLetter, next == classLetter && (class == classSpace || class == classSign):
		return first + runLen(text[first:], classLetter)
	case class == classDigit:
		for digits := 1; digits < 3 && next == classDigit; digits++ {
			_, n := classAt(text[first:])
			first += n
			next, _ = classAt(text[first:])
		}
		return first
	case class == classSign, next == classSign && text[0] == ' ':
		n := first + runLen(text[first:], classSign)
		return n + runLen(text[n:], classLine)
	}
	end := runLen(text, classSpace|classLine)
	if i := strings.LastIndexAny(text[:end], "\r\n"); i >= 0 {
		return i + 1
	}
	if _, last := utf8.DecodeLastRuneInString(text[:end]); end < len(text) && end > last {
		end -= last // it belongs to the next piece
	}
	return end
}

// contraction returns the length of an English ending, such as 's or 'LL, at the start of text.
func contraction(text string) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	switch strings.ToLower(text[1:min(3, len(text))]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// A runeClass is a set of the character classes in the pattern.
type runeClass uint8

const (
	classLetter runeClass = 1 << iota
	classDigit
	classLine // \r and \n
	classSpace
	classSign
)

// runLen returns the length of the run of characters of a class at the start of text.
func runLen(text string, class runeClass) (end int) {
	for end < len(text) {
		c, n := classAt(text[end:])
		if c&class == 0 {
			break
		}
		end += n
	}
	return end
}

// classAt returns the class and length of the first character of text.
func classAt(text string) (runeClass, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case n == 0:
		return 0, 0
	case r == '\r' || r == '\n':
		return classLine, n
	case unicode.IsLetter(r):
		return classLetter, n
	case unicode.IsSpace(r):
		return classSpace, n
	case unicode.IsNumber(r):
		return classDigit, n
	}
	return classSign, n
}
