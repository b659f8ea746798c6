package ingest

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The vocabulary is cl100k_base rather than o200k_base: half the memory
// (12 MB) and start-up. In English the two differ by a few percent; in other
// languages it counts more, up to five times as much (see LeastShare), so that
// what it finds to fit a model's window does.
const vocabulary = "cl100k_base"

// Merging byte pairs takes time quadratic in the length of one run of letters,
// spaces or signs, so longer runs are cut before they are counted. Words of
// this many letters do not occur; a run that long counts a few tokens more.
const maxRun = 128

// loadVocabulary reads the bytes of each token, and the rank by which it is
// merged, from the binary, never from the network: once, at the first count.
var loadVocabulary = sync.OnceValue(func() tokenRanks {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(vocabulary + ".tiktoken")
	if err != nil {
		panic(fmt.Sprintf("unreachable: the embedded vocabulary %s cannot be read: %v", vocabulary, err))
	}
	return ranks
})

// CountTokens gives the number of tokens of a text in the vocabulary
// cl100k_base. It is exact for ordinary text, and takes time linear in the
// length of any text: runs of more than 128 letters, spaces or signs are
// counted in parts. Names of special tokens count as the ordinary text they are.
func CountTokens(text string) int {
	if text == "" {
		return 0
	}
	ranks := loadVocabulary()
	text = strings.ToValidUTF8(text, "\ufffd")
	n := 0
	for text != "" {
		size, runes := tokenWord(text)
		word := text[:size]
		text = text[size:]
		for runes > maxRun {
			cut := byteOfRune(word, maxRun)
			n += ranks.count(word[:cut])
			word, runes = word[cut:], runes-maxRun
		}
		n += ranks.count(word)
	}
	return n
}

type tokenRanks map[string]int

// count gives the number of tokens of one word of at most maxRun runes. While
// two neighbours are a token together, those of the lowest rank are joined: byte
// pair encoding, as OpenAI's tiktoken does it.
func (ranks tokenRanks) count(word string) int {
	if _, ok := ranks[word]; ok {
		return 1
	}
	type part struct{ start, rank int32 } // rank of it joined with the next
	var space [maxRun*utf8.UTFMax + 1]part
	parts := space[:len(word)+1]
	rank := func(i int) int32 {
		if i+2 < len(parts) {
			if r, ok := ranks[word[parts[i].start:parts[i+2].start]]; ok {
				return int32(r)
			}
		}
		return math.MaxInt32
	}
	for i := range parts {
		parts[i].start = int32(i)
	}
	for i := range parts {
		parts[i].rank = rank(i)
	}
	for {
		lowest, at := int32(math.MaxInt32), 0
		for i, p := range parts {
			if p.rank < lowest {
				lowest, at = p.rank, i
			}
		}
		if lowest == math.MaxInt32 {
			return len(parts) - 1
		}
		parts = append(parts[:at+1], parts[at+2:]...)
		parts[at].rank = rank(at)
		if at > 0 {
			parts[at-1].rank = rank(at - 1)
		}
	}
}

func byteOfRune(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// tokenWord gives the length of the first word of a text, in bytes and in
// runes, as the vocabulary's own pattern cuts it. A regular expression with the
// look ahead that it needs takes ten times as long:
//
//	'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func tokenWord(text string) (size, runes int) {
	first, width := firstRune(text)
	class := classOf(first)
	if first == '\'' {
		if n := contraction(text[1:]); n > 0 {
			return 1 + n, 1 + n
		}
	}
	switch class {
	case classLetter:
		size, runes = runOf(text, classLetter, 0)
		return size, runes
	case classDigit:
		return runOf(text, classDigit, 3)
	}
	// A space or sign belongs to the letters behind it, and a space to the signs.
	next, _ := firstRune(text[width:])
	following := classOf(next)
	if len(text) == width {
		following = classNone
	}
	if following == classLetter && first != '\r' && first != '\n' {
		size, runes = runOf(text[width:], classLetter, 0)
		return width + size, 1 + runes
	}
	if class == classSign || first == ' ' && following == classSign {
		if class != classSign {
			size, runes = width, 1
		}
		signs, n := runOf(text[size:], classSign, 0)
		size, runes = size+signs, runes+n
		for size < len(text) && (text[size] == '\n' || text[size] == '\r') {
			size, runes = size+1, runes+1
		}
		return size, runes
	}
	return tokenSpace(text)
}

// tokenSpace is tokenWord where a text begins with space: all of it up to the
// last line end in it; else all but the last, which belongs to what follows.
func tokenSpace(text string) (size, runes int) {
	var before, last, lines, n int // bytes without the last rune, runes, and both up to the last line end
	for i, r := range text {
		if classOf(r) != classSpace {
			break
		}
		before, last = i, i+utf8.RuneLen(r)
		n++
		if r == '\n' || r == '\r' {
			lines, runes = last, n
		}
	}
	switch {
	case lines > 0:
		return lines, runes
	case last == len(text) || n == 1:
		return last, n
	}
	return before, n - 1
}

// contraction gives the length of the ending that stands behind an apostrophe.
func contraction(text string) int {
	for _, ending := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
		if len(text) >= len(ending) && strings.EqualFold(text[:len(ending)], ending) {
			return len(ending)
		}
	}
	return 0
}

// runOf gives the length of the run of a class that a text begins with, of at
// most so many runes; 0 is no limit.
func runOf(text string, class runeClass, most int) (size, runes int) {
	for i, r := range text {
		if classOf(r) != class || most > 0 && runes == most {
			return i, runes
		}
		runes++
	}
	return len(text), runes
}

func firstRune(text string) (rune, int) {
	if text != "" && text[0] < utf8.RuneSelf {
		return rune(text[0]), 1
	}
	return utf8.DecodeRuneInString(text)
}

type runeClass uint8

const (
	classNone runeClass = iota
	classLetter
	classDigit
	classSpace
	classSign
)

// classOf tells the classes of the vocabulary's pattern apart.
func classOf(r rune) runeClass {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		return classLetter
	case r == ' ' || '\t' <= r && r <= '\r':
		return classSpace
	case '0' <= r && r <= '9':
		return classDigit
	case r < utf8.RuneSelf:
		return classSign
	case unicode.IsLetter(r):
		return classLetter
	case unicode.IsSpace(r):
		return classSpace
	case unicode.IsNumber(r):
		return classDigit
	}
	return classSign
}
