package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/ingest/charset"
)

// A header maps lower-case field names of a message or part to the first field of that name.
type header map[string]string

// cutHeader separates the header of a message or part from its body.
func cutHeader(data []byte) (h header, body []byte) {
	h = make(header)
	name, size := "", 0
	var value []byte // of the current field
	end := func() {
		if name != "" {
			h[name] = string(value)
		}
	}
	defer end()
	for rest := data; len(rest) > 0; {
		line, after := cutLine(rest)
		if len(line) == 0 {
			return h, after
		}
		size += len(line)
		switch field := fieldName(line); {
		case size > maxHeader:
			return h, rest
		case size > len(line) && (line[0] == ' ' || line[0] == '\t'):
			value = append(append(value, ' '), bytes.TrimSpace(line)...)
		case field == "": // the body begins here, perhaps without a header
			return h, rest
		default:
			end()
			name, value = strings.ToLower(field), append(value[:0], bytes.TrimSpace(line[len(field)+1:])...)
			if h[name] != "" {
				name = ""
			}
		}
		rest = after
	}
	return h, nil
}

// trimStart removes blank lines and a mailbox separator before the header of a message.
func trimStart(data []byte) []byte {
	for len(data) > 0 {
		line, rest := cutLine(data)
		if len(bytes.TrimSpace(line)) > 0 && !bytes.HasPrefix(line, []byte("From ")) && !bytes.HasPrefix(line, []byte(">From ")) {
			break
		}
		data = rest
	}
	return data
}

func cutLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// fieldName returns the field name at the start of a line, or "".
func fieldName(line []byte) string {
	i := bytes.IndexByte(line, ':')
	if i <= 0 || i > 100 || bytes.ContainsFunc(line[:i], func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return ""
	}
	return string(line[:i])
}

// text returns a decoded field.
func (h header) text(name string) string { return decodeWords(h[name]) }

// words decodes encoded words (RFC 2047), whose actual encoding often differs from the declared
// one.
var words = mime.WordDecoder{CharsetReader: func(name string, in io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text, err := charset.Decode(data, name)
	return strings.NewReader(text), err
}}

func decodeWords(s string) string {
	s, err := charset.Decode([]byte(s), "")
	if err != nil {
		return ""
	}
	if decoded, err := words.DecodeHeader(s); err == nil {
		s = decoded
	}
	return strings.Join(strings.Fields(s), " ")
}

// looseParam matches a parameter as written by programs that do not quote values.
var looseParam = regexp.MustCompile(`;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^;]*))`)

// params returns the value of a field in lower case and its decoded parameters (RFC 2045, 2231) by
// lower-case name.
func (h header) params(name string) (value string, params map[string]string) {
	value, params, err := mime.ParseMediaType(h[name])
	if err != nil {
		value, _, _ = strings.Cut(h[name], ";")
		params = make(map[string]string)
		for _, m := range looseParam.FindAllStringSubmatch(h[name], -1) {
			if key := strings.ToLower(m[1]); params[key] == "" {
				params[key] = strings.TrimSpace(m[2] + m[3])
			}
		}
	}
	for key, text := range params {
		params[key] = decodeWords(text)
	}
	return strings.ToLower(strings.TrimSpace(value)), params
}

// decodeBase64 decodes any number of concatenated pieces, each up to its padding.
func decodeBase64(body []byte) (out []byte) {
	for piece := range bytes.SplitSeq(body, []byte("=")) {
		letters := bytes.Map(func(r rune) rune {
			if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' || r == '/') {
				return r
			}
			return -1
		}, piece)
		if len(letters)%4 == 1 {
			letters = letters[:len(letters)-1]
		}
		// Only letters of the alphabet are left, so decoding can't fail.
		out, _ = base64.RawStdEncoding.AppendDecode(out, letters)
	}
	return out
}

// DecodeQuoted decodes quoted-printable (RFC 2045, 6.7).
func DecodeQuoted(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		text := bytes.TrimRight(line, " \t\r\n")
		end := line[len(bytes.TrimRight(line, "\r\n")):]
		if soft, ok := bytes.CutSuffix(text, []byte("=")); ok {
			text, end = soft, nil
		}
		for i := 0; i < len(text); i++ {
			if text[i] == '=' && i+2 < len(text) {
				if v, err := strconv.ParseUint(string(text[i+1:i+3]), 16, 8); err == nil {
					out = append(out, byte(v))
					i += 2
					continue
				}
			}
			out = append(out, text[i])
		}
		out = append(out, end...)
	}
	return out
}
