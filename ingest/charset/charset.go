// Package charset decodes text files of any age and country to UTF-8. [Decode] trusts a byte order
// mark, then valid UTF-8, then the encoding in which the bytes look most like a language. It uses a
// declared encoding unless the bytes contradict it.
package charset

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	stdunicode "unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

var (
	// ErrBinary means that the bytes are not text.
	ErrBinary = errors.New("it is a binary file, not text")
	// ErrEncoding means that the text is in an unsupported encoding.
	ErrEncoding = errors.New("its text is in an encoding that is not supported: save it as UTF-8")
)

// Decode decodes the bytes of a text file to UTF-8. declared is the encoding that the file states,
// or "". The running time is linear.
func Decode(data []byte, declared string) (string, error) {
	enc, data, err := encodingOf(data, declared)
	if err != nil {
		return "", err
	}
	if enc == nil {
		return checkText(string(data))
	}
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("decoding it: %w", err)
	}
	return checkText(string(out))
}

// encodingOf returns the encoding, nil for UTF-8, and the data without its byte order mark.
func encodingOf(data []byte, declared string) (encoding.Encoding, []byte, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")) || bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff")) { // UTF-32
		return nil, nil, ErrEncoding
	}
	if enc, rest, ok := byOrderMark(data); ok {
		return enc, rest, nil
	}
	if binary := bytes.IndexByte(data, 0) >= 0; binary || !utf8.Valid(data) {
		if enc := wideEncoding(data); enc != nil {
			return enc, data, nil
		} else if binary {
			return nil, nil, ErrBinary
		}
	}
	switch {
	case bytes.Contains(data, []byte("\x1b$)C")): // ISO-2022-KR
		return nil, nil, ErrEncoding
	case bytes.Contains(data, []byte("\x1b$")):
		return japanese.ISO2022JP, data, nil
	case isMostlyUTF8(data):
		return nil, data, nil
	case bytes.Count(data, []byte("@"))*20 > len(data) && bytes.Count(data, []byte(" "))*100 < len(data): // EBCDIC, whose space is "@"
		return nil, nil, ErrEncoding
	}
	enc, err := detectEncoding(data, Lookup(declared))
	return enc, data, err
}

// checkText rejects data that decodes but is not text: over one percent control characters, or a
// fifth from the upper half of Latin-1.
func checkText(s string) (string, error) {
	control, high, all := 0, 0, 0
	for _, r := range s {
		all++
		switch {
		case r >= 0x80 && r < 0xa0:
			high++
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b:
			control++
		}
	}
	if high > 4 && high*5 > all || control > 4 && control > len(s)/100 {
		return "", ErrBinary
	}
	return s, nil
}

func byOrderMark(data []byte) (enc encoding.Encoding, rest []byte, ok bool) {
	for _, m := range []struct {
		mark string
		enc  encoding.Encoding
	}{
		{"\xef\xbb\xbf", nil},
		{"\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
		{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{"\x84\x31\x95\x33", simplifiedchinese.GB18030},
	} {
		if rest, ok := bytes.CutPrefix(data, []byte(m.mark)); ok {
			return m.enc, rest, true
		}
	}
	return nil, data, false
}

// wideEncoding recognises UTF-16 without a byte order mark by the scripts of its characters.
func wideEncoding(data []byte) encoding.Encoding {
	sample := data[:min(len(data), 64<<10)&^1]
	n := len(sample) / 2
	for _, order := range []struct {
		enc  encoding.Encoding
		high int // index of the high byte of a character
	}{{unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), 1}, {unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), 0}} {
		likely, ascii, kana := 0, 0, 0
		for i := 0; i < len(sample); i += 2 {
			r := rune(sample[i+order.high])<<8 | rune(sample[i+1-order.high])
			if isUsual(r) {
				likely++
			}
			if r < utf8.RuneSelf {
				ascii++
			}
			if r > 0x3040 && r < 0x3100 {
				kana++
			}
		}
		// Any text has lines, spaces or numbers, except a short one in Japanese.
		if likely*100 >= n*97 && (ascii > 0 && ascii*200 >= n || kana > 4 && kana*5 > n) {
			return order.enc
		}
	}
	return nil
}

// isUsual reports whether a character is common in texts: a letter of an alphabet, or a Chinese,
// Japanese or Korean character. Characters with swapped bytes hardly ever are.
func isUsual(r rune) bool {
	switch {
	case r < 0x80:
		return r >= ' ' && r < 0x7f || r == '\n' || r == '\r' || r == '\t'
	case r < 0xe80:
		return r == 0xa0 || stdunicode.IsPrint(r)
	case r >= 0x2010 && r < 0x2040, r >= 0x3000 && r < 0x3100, r >= 0xff00 && r < 0xff60:
		return true
	}
	return r >= 0x4e00 && r < 0xa000 && !(r&0xff == 0x20 || r&0xff == 0x0a) || r >= 0xac00 && r < 0xd7a4
}

// isMostlyUTF8 accepts UTF-8 with a few invalid bytes, such as a file cut in the middle of a
// character.
func isMostlyUTF8(data []byte) bool {
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

// Lookup returns the encoding for a name used by web pages, mails and XML files. It returns nil for
// unknown names, and for UTF-8 and UTF-16, which are recognised by their bytes.
func Lookup(name string) encoding.Encoding {
	name = strings.ToLower(strings.Trim(name, " \t\r\n\"'"))
	if name == "cp932" || name == "windows-932" {
		return japanese.ShiftJIS
	}
	if enc, err := htmlindex.Get(name); err == nil {
		// The caller has ruled out UTF-8 and UTF-16 by the bytes. The replacement encoding would
		// lose the text.
		if enc == unicode.UTF8 || enc == encoding.Replacement || strings.HasPrefix(name, "utf-16") {
			return nil
		}
		return enc
	}
	if enc, err := ianaindex.IANA.Encoding(name); err == nil && enc != nil && enc != encoding.Replacement {
		return enc
	}
	return nil
}
