package charset

import (
	"bytes"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/transform"
)

// A decodeOnly is an encoding of which only the decoder is made.
type decodeOnly struct {
	decoder func() transform.Transformer
}

func (d *decodeOnly) NewDecoder() *encoding.Decoder {
	return &encoding.Decoder{Transformer: d.decoder()}
}

func (d *decodeOnly) NewEncoder() *encoding.Encoder { return encoding.Replacement.NewEncoder() }

var (
	// iso2022KR is ISO-2022-KR (RFC 1557): pairs of KS X 1001 in seven bits,
	// between shift out and shift in.
	iso2022KR encoding.Encoding = &decodeOnly{func() transform.Transformer { return new(shiftedKorean) }}
	// johab is Johab (KS X 1001:1992, annex 3): the letters of a syllable in
	// five bits each, and hanja and signs in pairs computed from KS X 1001.
	johab encoding.Encoding = &decodeOnly{func() transform.Transformer { return johabDecoder{} }}
)

// ksx1001 is the table of KS X 1001, row by row, as the decoder of EUC-KR
// knows it, with the syllables in it marked.
var ksx1001 = sync.OnceValue(func() (t struct {
	at        [94 * 94]rune
	syllables [11172]bool
}) {
	for i := range t.at {
		t.at[i] = utf8.RuneError
		pair := []byte{byte(0xa1 + i/94), byte(0xa1 + i%94)}
		if text, err := korean.EUCKR.NewDecoder().Bytes(pair); err == nil && utf8.RuneCount(text) == 1 {
			t.at[i], _ = utf8.DecodeRune(text)
		}
		if s := t.at[i] - firstSyllable; s >= 0 && int(s) < len(t.syllables) {
			t.syllables[s] = true
		}
	}
	return t
})

const firstSyllable = '가'

// inWansung reports whether a syllable is one of the 2350 in KS X 1001, which
// nearly all text is written with.
func inWansung(r rune) bool {
	t := ksx1001()
	i := r - firstSyllable
	return i < 0 || int(i) >= len(t.syllables) || t.syllables[i]
}

type shiftedKorean struct{ pairs bool }

func (d *shiftedKorean) Reset() { d.pairs = false }

func (d *shiftedKorean) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	table := ksx1001()
	for nSrc < len(src) {
		if nDst+utf8.UTFMax > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		rest, c := src[nSrc:], src[nSrc]
		size, r := 1, rune(c)
		switch {
		case c == 0x1b && len(rest) < 4 && !atEOF, d.pairs && len(rest) < 2 && !atEOF:
			return nDst, nSrc, transform.ErrShortSrc
		case bytes.HasPrefix(rest, []byte("\x1b$)C")):
			size, r = 4, -1
		case c == 0x0e:
			d.pairs, r = true, -1
		case c == 0x0f:
			d.pairs, r = false, -1
		case c == '\n':
			d.pairs = false
		case c >= utf8.RuneSelf:
			r = utf8.RuneError
		case d.pairs && c > ' ' && len(rest) > 1 && rest[1] > ' ' && rest[1] < 0x7f && c < 0x7f:
			size, r = 2, table.at[int(c-0x21)*94+int(rest[1]-0x21)]
		}
		if nSrc += size; r >= 0 {
			nDst += utf8.EncodeRune(dst[nDst:], r)
		}
	}
	return nDst, nSrc, nil
}

type johabDecoder struct{ transform.NopResetter }

func (johabDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if nDst+utf8.UTFMax > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		c := src[nSrc]
		size, r := 1, rune(c)
		switch {
		case c < utf8.RuneSelf:
		case nSrc+1 < len(src):
			if r = johabRune(c, src[nSrc+1]); r != utf8.RuneError || src[nSrc+1] >= utf8.RuneSelf {
				size = 2
			}
		case !atEOF:
			return nDst, nSrc, transform.ErrShortSrc
		default:
			r = utf8.RuneError
		}
		nSrc += size
		nDst += utf8.EncodeRune(dst[nDst:], r)
	}
	return nDst, nSrc, nil
}

// johabRune gives the character of a pair; RuneError when it stands for none.
func johabRune(lead, trail byte) rune {
	if lead >= 0xd9 {
		return johabPair(lead, trail)
	}
	code := int(lead)<<8 | int(trail)
	initial, medial, final := johabInitial(code>>10&31), johabMedial(code>>5&31), johabFinal(code&31)
	switch {
	case initial < none || medial < none || final < none:
	case initial >= 0 && medial >= 0:
		return firstSyllable + rune((initial*21+medial)*28+max(0, final))
	case initial >= 0 && final == none:
		return []rune("ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ")[initial]
	case medial >= 0 && initial == none && final == none:
		return 'ㅏ' + rune(medial)
	case final > 0 && initial == none && medial == none:
		return []rune("ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")[final-1]
	}
	return utf8.RuneError
}

const none = -1 // a place in a syllable that is left empty; below it, a code that is not used

func johabInitial(code int) int {
	if code >= 1 && code <= 20 {
		return code - 2
	}
	return none - 1
}

// johabMedial: the codes of vowels come in eights, the first two of each left out.
func johabMedial(code int) int {
	switch {
	case code == 2:
		return none
	case code >= 3 && code <= 7:
		return code - 3
	case code >= 10 && code <= 15:
		return code - 5
	case code >= 18 && code <= 23:
		return code - 7
	case code >= 26 && code <= 29:
		return code - 9
	}
	return none - 1
}

func johabFinal(code int) int {
	switch {
	case code == 1:
		return none
	case code >= 2 && code <= 17:
		return code - 1
	case code >= 19 && code <= 29:
		return code - 2
	}
	return none - 1
}

// johabPair: each lead byte holds two rows of KS X 1001.
func johabPair(lead, trail byte) rune {
	place := 0
	switch {
	case trail >= 0x31 && trail <= 0x7e:
		place = int(trail) - 0x31
	case trail >= 0x91 && trail <= 0xfe:
		place = int(trail) - 0x91 + 78
	default:
		return utf8.RuneError
	}
	row := 0 // of KS X 1001, from 0
	switch {
	case lead >= 0xd9 && lead <= 0xde:
		row = int(lead-0xd9) * 2
	case lead >= 0xe0 && lead <= 0xf9:
		row = 0x4a - 0x21 + int(lead-0xe0)*2
	default:
		return utf8.RuneError
	}
	return ksx1001().at[row*94+place]
}
