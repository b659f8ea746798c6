package charset

import (
	"math"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// A doubleByte encoding has two bytes per character. Its table is sorted by how common the
// characters are, so the first byte indicates the likelihood.
type doubleByte struct {
	enc encoding.Encoding
	// rows gives the likelihood of characters by first byte, from each entry up to the next.
	rows []row
	// alone reports whether a byte beyond ASCII is a character by itself.
	alone func(c byte) bool
}

type row struct {
	lead byte
	cost float64
}

// Likelihoods of characters by kind. There are fewer kana than syllables, and fewer syllables than
// Chinese characters. The first level of each standard has a few thousand characters, which make up
// nearly all text.
const (
	hiragana   = -4.2
	katakana   = -5.5
	stops      = -5.5 // punctuation
	fullwidth  = -7.5
	syllable   = -7.0
	levelOne   = -7.5
	levelTwo   = -12.0
	otherSigns = -12.0
	vendor     = -14.0 // added by a vendor
	broken     = -18.0
)

// wides are the two-byte encodings.
var wides = []doubleByte{
	{enc: simplifiedchinese.GB18030, rows: []row{{0x81, vendor}, {0xa1, stops}, {0xa2, otherSigns}, {0xa3, fullwidth},
		{0xa4, otherSigns}, {0xaa, vendor}, {0xb0, levelOne}, {0xd8, levelTwo}, {0xf8, vendor}}},
	{enc: traditionalchinese.Big5, rows: []row{{0x81, vendor}, {0xa1, stops}, {0xa2, fullwidth}, {0xa3, otherSigns}, {0xa4, levelOne},
		{0xc7, otherSigns}, {0xc9, levelTwo}, {0xfa, vendor}}},
	{enc: japanese.ShiftJIS, rows: []row{{0x81, stops}, {0x82, hiragana}, {0x83, katakana}, {0x84, otherSigns}, {0x88, levelOne},
		{0x98, levelTwo}, {0xeb, vendor}},
		alone: func(c byte) bool { return c >= 0xa1 && c <= 0xdf }},
	{enc: japanese.EUCJP, rows: []row{{0x81, vendor}, {0xa1, stops}, {0xa2, otherSigns}, {0xa3, fullwidth}, {0xa4, hiragana},
		{0xa5, katakana}, {0xa6, otherSigns}, {0xb0, levelOne}, {0xd0, levelTwo}, {0xf5, vendor}}},
	{enc: korean.EUCKR, rows: []row{{0x81, levelTwo}, {0xa1, stops}, {0xa2, otherSigns}, {0xa3, fullwidth}, {0xa4, otherSigns},
		{0xb0, syllable}, {0xc9, levelTwo}, {0xfe, vendor}}},
}

// likelihood returns the log likelihood of the characters beyond ASCII.
func (w doubleByte) likelihood(sample []byte) float64 {
	text, err := w.enc.NewDecoder().Bytes(sample)
	if err != nil {
		return math.Inf(-1)
	}
	sum := 0.0
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if text = text[n:]; r == utf8.RuneError {
			sum += broken
		}
	}
	var cost [256]float64
	for i, row := range w.rows {
		end := 256
		if i+1 < len(w.rows) {
			end = int(w.rows[i+1].lead)
		}
		for c := int(row.lead); c < end; c++ {
			cost[c] = row.cost
		}
	}
	for i := 0; i < len(sample); i++ {
		c := sample[i]
		switch {
		case c < utf8.RuneSelf:
		case w.alone != nil && w.alone(c):
			sum += fullwidth
		default:
			sum += cost[c]
			i++
		}
	}
	return sum
}
