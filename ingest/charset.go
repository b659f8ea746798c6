package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

var errBinary = errors.New("it is a binary file, not text")

// decode turns the bytes of a text file into UTF-8: by a byte order mark, else
// as UTF-8 when they are, else as declared (by the document itself; may be
// empty), else as they look.
func decode(data []byte, declared string) (string, error) {
	enc, data := byOrderMark(data)
	if enc == nil && bytes.IndexByte(data, 0) >= 0 {
		if enc = wideByZeros(data); enc == nil {
			return "", errBinary
		}
	}
	if enc == nil {
		if escaped := bytes.Contains(data, []byte("\x1b$")); !escaped && mostlyUTF8(data) {
			return textual(string(data))
		} else if escaped {
			enc = japanese.ISO2022JP
		}
	}
	if enc == nil {
		enc = encodingNamed(declared)
	}
	if enc == nil {
		enc = byLook(data)
	}
	if enc == nil {
		return "", errors.New("its character encoding cannot be told: save it as UTF-8")
	}
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("decoding it: %w", err)
	}
	return textual(string(out))
}

// textual refuses what decodes but is no text: more than one control
// character in a hundred.
func textual(s string) (string, error) {
	control := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b {
			control++
		}
	}
	if control > 4 && control > len(s)/100 {
		return "", errBinary
	}
	return s, nil
}

func byOrderMark(data []byte) (encoding.Encoding, []byte) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), data[4:]
	case bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff")):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), data[4:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), data[2:]
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), data[2:]
	}
	return nil, data
}

// wideByZeros knows UTF-16 and UTF-32 without a mark by where their zero
// bytes stand, in any text that has spaces and line ends.
func wideByZeros(data []byte) encoding.Encoding {
	sample := data[:min(len(data), 64<<10)&^3]
	var zeros [4]int
	for i, c := range sample {
		if c == 0 {
			zeros[i%4]++
		}
	}
	n := len(sample) / 4
	most := func(i int) bool { return zeros[i]*10 >= n*9 }
	few := func(i int) bool { return zeros[i]*100 <= n }
	some := func(i int) bool { return zeros[i]*20 >= n }
	switch {
	case n == 0:
		return nil
	case most(0) && most(1) && few(3):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case most(2) && most(3) && few(0):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case some(0) && some(2) && few(1) && few(3):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case some(1) && some(3) && few(0) && few(2):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	}
	return nil
}

// mostlyUTF8 accepts UTF-8 with a few broken places, such as a file cut in
// the middle of a character.
func mostlyUTF8(data []byte) bool {
	if utf8.Valid(data) {
		return true
	}
	good, bad := 0, 0
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		data = data[n:]
	}
	return good >= 10*bad
}

func encodingNamed(name string) encoding.Encoding {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return nil
	}
	if name == "gb-18030" {
		name = "gb18030"
	}
	if enc, err := htmlindex.Get(name); err == nil {
		// Declared as UTF-8 or UTF-16, but it is neither: that was looked at first.
		if enc == unicode.UTF8 || strings.HasPrefix(name, "utf-16") {
			return nil
		}
		return enc
	}
	if enc, err := ianaindex.IANA.Encoding(name); err == nil {
		return enc
	}
	return nil
}

// byLook guesses from at most 64 KB around the first byte beyond ASCII.
func byLook(data []byte) encoding.Encoding {
	first := bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
	start := max(0, first-4<<10)
	sample := data[start:min(len(data), start+64<<10)]
	enc, single := detect(sample)
	if single {
		// Tags and addresses in plain letters would drown the few words that
		// tell single-byte encodings apart.
		var words []byte
		for word := range bytes.FieldsFuncSeq(sample, func(r rune) bool { return r < utf8.RuneSelf && !letter(byte(r)) }) {
			if bytes.IndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
				words = append(append(words, word...), ' ')
			}
		}
		if e, single := detect(words); e != nil && single && !latin[e] {
			enc = e
		}
	}
	return enc
}

// latin are encodings whose texts are mostly plain letters: what stands between
// the accented words tells them apart too.
var latin = map[encoding.Encoding]bool{
	charmap.ISO8859_1: true, charmap.ISO8859_2: true, charmap.ISO8859_9: true, charmap.ISO8859_15: true,
	charmap.Windows1250: true, charmap.Windows1252: true, charmap.Windows1254: true,
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// detect gives the likeliest encoding, and whether its characters are single bytes.
func detect(sample []byte) (enc encoding.Encoding, single bool) {
	results, err := chardet.NewTextDetector().DetectAll(sample)
	if err != nil {
		return nil, false
	}
	for _, r := range results {
		if enc := encodingNamed(r.Charset); enc != nil {
			return enc, strings.HasPrefix(r.Charset, "ISO-8859") || strings.HasPrefix(r.Charset, "windows-") || strings.HasPrefix(r.Charset, "KOI8")
		}
	}
	return nil, false
}
