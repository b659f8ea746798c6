package charset

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// ibm500 is EBCDIC code page 500, which differs from 037 in seven signs.
var ibm500 encoding.Encoding = &decodeOnly{func() transform.Transformer { return ebcdicDecoder{} }}

// ebcdic knows the code pages of mainframes by the byte of their spaces and of
// their small letters; nil when the data is in none. Letters are the same in
// all of them: what tells 500 from 037 are its exclamation marks and brackets.
func ebcdic(data []byte) encoding.Encoding {
	var count [256]int
	sample := data[:min(len(data), sampleBytes)]
	for _, c := range sample {
		count[c]++
	}
	letters := 0
	for _, span := range [...][2]int{{0x81, 0x89}, {0x91, 0x99}, {0xa2, 0xa9}} {
		for c := span[0]; c <= span[1]; c++ {
			letters += count[c]
		}
	}
	if count[0x40]*20 < len(sample) || letters*2 < len(sample) || count[' ']*100 > len(sample) {
		return nil
	}
	if signs := count[0x4a] + count[0x4f]; signs > 0 && signs >= count[0xba]+count[0xbb]+count[0xb0] {
		return ibm500
	}
	return charmap.CodePage037
}

type ebcdicDecoder struct{ transform.NopResetter }

func (ebcdicDecoder) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for ; nSrc < len(src); nSrc++ {
		if nDst+utf8.UTFMax > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		r := charmap.CodePage037.DecodeByte(src[nSrc])
		if i := bytes.IndexByte([]byte{0x4a, 0x4f, 0x5a, 0x5f, 0xb0, 0xba, 0xbb}, src[nSrc]); i >= 0 {
			r = []rune("[!]^¢¬|")[i]
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
	}
	return nDst, nSrc, nil
}
