package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord is the length in runes of the longest run of letters or digits that is treated as one
	// word. Longer runs are cut, so that the work stays linear in the text.
	maxWord = 64
	// maxPiece is the length in bytes of the longest piece that is looked up in a word without a
	// row.
	maxPiece = 20
)

// A class is the role of a rune in cutting text.
type class uint8

const (
	other class = iota
	letter
	digit
	// ideograph is a rune of a script written without spaces: each rune and each adjacent pair is a
	// feature.
	ideograph
	// dropped runes (combining accents, vowel points, joiners, soft hyphens) are skipped without
	// ending a word.
	dropped
)

func classify(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return letter
		case '0' <= r && r <= '9':
			return digit
		}
		return other
	}
	switch {
	case r == utf8.RuneError:
		return other
	case r == 0xAD, r == 0x200C, r == 0x200D,
		0x300 <= r && r <= 0x36F,               // combining diacritical marks
		0x591 <= r && r <= 0x5C7,               // Hebrew points
		0x64B <= r && r <= 0x65F || r == 0x670: // Arabic vowel marks
		return dropped
	case 0x3040 <= r && r <= 0x30FF, // Hiragana, Katakana
		0x3400 <= r && r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, // Han
		0xF900 <= r && r <= 0xFAFF, 0x20000 <= r && r <= 0x3FFFF,
		0x0E00 <= r && r <= 0x0EFF, // Thai, Lao
		0x1000 <= r && r <= 0x109F, // Myanmar
		0x1780 <= r && r <= 0x17FF: // Khmer
		return ideograph
	case unicode.IsLetter(r), unicode.IsMark(r):
		return letter
	case unicode.IsDigit(r):
		return digit
	}
	return other
}

// features splits text into the entries of the table, and calls row with every row number and
// hashed with every hash. A word outside the table may have several hashes; parts is their number.
// Text is read in Unicode's compatibility decomposition without accents; invalid UTF-8 separates
// words.
//
// train/tokens.py does the same, and testdata/golden.json tests both.
func (m *Model) features(text string, row func(uint32), hashed func(hash uint64, parts int)) {
	c := cutter{model: m, row: row, hashed: hashed}
	for _, r := range norm.NFKD.String(text) {
		c.addRune(r)
	}
	c.flush()
}

// A cutter collects a run of letters or digits.
type cutter struct {
	model  *Model
	row    func(uint32)
	hashed func(uint64, int)

	kind  class
	runes int    // in run
	run   []byte // as written
	low   []byte // in lower case
	last  rune   // the ideograph just before, or 0
}

func (c *cutter) addRune(r rune) {
	kind := classify(r)
	if kind == dropped {
		return
	}
	if kind != c.kind || c.runes == maxWord {
		c.flush()
	}
	c.kind = kind
	switch kind {
	case ideograph:
		var buf [2 * utf8.UTFMax]byte
		b := utf8.AppendRune(buf[:0], r)
		c.hashed(hash('c', b), 2)
		if c.last != 0 {
			b = utf8.AppendRune(utf8.AppendRune(buf[:0], c.last), r)
			c.hashed(hash('b', b), 1)
		}
		c.last = r
		return
	case letter, digit:
		c.runes++
		c.run = utf8.AppendRune(c.run, r)
		c.low = utf8.AppendRune(c.low, unicode.ToLower(r))
	}
	c.last = 0
}

// flush ends the run. A word with a row becomes that row, even if it is written in camel case
// (YouTube, iPhone); any other word is cut at its humps.
func (c *cutter) flush() {
	if c.runes == 0 {
		return
	}
	if row, ok := c.model.words[string(c.low)]; ok {
		c.row(row)
	} else {
		// The lower-case form may differ in length, so it is cut at the same rune.
		low := c.low
		for run := c.run; len(run) > 0; {
			end, runes := firstHump(run)
			run = run[end:]
			cut := 0
			for range runes {
				_, size := utf8.DecodeRune(low[cut:])
				cut += size
			}
			c.addWord(low[:cut])
			low = low[cut:]
		}
	}
	c.runes, c.run, c.low = 0, c.run[:0], c.low[:0]
}

// firstHump returns the length of the first hump of camelCase or HTTPServer, in bytes and in runes. A
// word without humps is one hump.
func firstHump(word []byte) (bytes, runes int) {
	before, size := utf8.DecodeRune(word)
	at, runes := size, 1
	for at < len(word) {
		here, size := utf8.DecodeRune(word[at:])
		if unicode.IsUpper(here) {
			after, _ := utf8.DecodeRune(word[at+size:])
			if unicode.IsLower(before) || unicode.IsUpper(before) && unicode.IsLower(after) {
				break
			}
		}
		before = here
		at += size
		runes++
	}
	return at, runes
}

// addWord adds the features of one word in lower case: its row; or the longest pieces from the left
// together with a hash of the whole word, so that equal unknown words match; or, in other scripts,
// its runs of four runes.
func (c *cutter) addWord(word []byte) {
	m := c.model
	if row, ok := m.words[string(word)]; ok {
		c.row(row)
		return
	}
	var rows [maxWord]uint32
	if n := m.split(word, &rows); n > 0 {
		for _, row := range rows[:n] {
			c.row(row)
		}
		c.hashed(hash('w', word), 1)
		return
	}
	if c.kind == digit {
		c.hashed(hash('w', word), 1)
		return
	}
	var buf [maxWord*utf8.UTFMax + 2]byte
	padded := append(append(append(buf[:0], '<'), word...), '>')
	grams := max(1, utf8.RuneCount(padded)-3)
	start, end := 0, 0
	for range min(4, utf8.RuneCount(padded)) {
		_, size := utf8.DecodeRune(padded[end:])
		end += size
	}
	for range grams {
		c.hashed(hash('g', padded[start:end]), grams)
		_, size := utf8.DecodeRune(padded[start:])
		start += size
		_, size = utf8.DecodeRune(padded[end:])
		end += size
	}
}

// split cuts a word into the longest pieces from the left and returns their number, or 0 if some
// part has no piece.
func (m *Model) split(word []byte, rows *[maxWord]uint32) int {
	n := 0
	for at := 0; at < len(word); n++ {
		table := m.pieces
		if at == 0 {
			table = m.words
		}
		end := min(len(word), at+maxPiece)
		for ; end > at; end-- {
			if row, ok := table[string(word[at:end])]; ok {
				rows[n] = row
				break
			}
		}
		if end == at {
			return 0
		}
		at = end
	}
	return n
}

// hash returns the FNV-1a hash of the kind of feature and its text.
func hash(kind byte, text []byte) uint64 {
	const prime = 0x100000001B3
	h := (uint64(0xCBF29CE484222325) ^ uint64(kind)) * prime
	for _, b := range text {
		h = (h ^ uint64(b)) * prime
	}
	return h
}
