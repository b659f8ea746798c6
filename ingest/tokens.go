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

// Merging byte pairs takes time quadratic in the length of a piece, so longer
// ones are cut before they are counted. A word, a rule of a table or an
// indentation of this many bytes hardly occurs; it may count a token more per cut.
const maxPiece = 512

// The vocabulary is cl100k_base rather than o200k_base: half the memory and
// start-up. In English the two differ by a few percent; in other languages it
// counts more, up to five times as much (see LeastShare), so a text that fits a
// window by its count does fit.
//
// It is part of the binary and loaded at the first count. tiktoken-go's own
// offline loader embeds four vocabularies, 4 MB more; package codec has each in a
// variable of its own, so that the linker keeps this one.
type vocabulary struct {
	ranks map[string]int // of the tokens
	bpe   *tiktoken.Tiktoken
}

// cl100kTokens is the number of ordinary tokens; the special ones come after them.
const cl100kTokens = 100256

var cl100k = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{ranks: make(map[string]int, cl100kTokens)}
	// The pieces come from pieceLen, so tiktoken-go's pattern takes all of its text.
	// It keeps the map of ranks, which is filled later so that it makes no reversed
	// and no sorted copy: they would take most of the time and are for decoding.
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

// CountTokens returns the number of tokens of a text in the vocabulary
// cl100k_base. It takes time linear in the length of any text, and is exact but
// for words and runs of spaces or signs of more than 512 bytes, which are counted
// in parts. Names of special tokens count as the ordinary text they are.
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

// pieceLen returns the length in bytes of the piece that text begins with. It is
// what cl100k_base's pattern matches there, and no token spans two of them:
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
		end -= last // it belongs to the next
	}
	return end
}

// contraction returns the length of an English ending, such as 's or 'LL, that text begins with.
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

// A runeClass is a set of the classes of characters that the pattern knows.
type runeClass uint8

const (
	classLetter runeClass = 1 << iota
	classDigit
	classLine // \r and \n
	classSpace
	classSign
)

// runLen returns the length of the run of characters of a class that text begins with.
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
