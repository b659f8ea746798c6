package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/url"
	"strconv"
	"strings"

	"ibid/ingest/charset"
)

// A header is the fields of a message or part, by name in lower case. Of
// fields that come more than once the first counts, as in what people see.
type header map[string]string

// cutHeader cuts the header off a message or part. What begins with no field
// has none.
func cutHeader(data []byte) (h header, body []byte) {
	h = make(header)
	name, size := "", 0
	var value []byte // of the field in hand
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
		case field == "": // it is text, perhaps from its start
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

// trimStart takes off what stands before the header of a message in a file:
// blank lines, and the line that parts it from others in a mailbox.
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

// fieldName gives the name that a line of a header begins with; empty when it
// is none.
func fieldName(line []byte) string {
	i := bytes.IndexByte(line, ':')
	if i <= 0 || i > 100 {
		return ""
	}
	for _, c := range line[:i] {
		if c <= ' ' || c >= 0x7f {
			return ""
		}
	}
	return string(line[:i])
}

func (h header) raw(name string) string { return h[name] }

// text gives a field as people read it.
func (h header) text(name string) string { return decodeWords(h[name]) }

func decodeWords(s string) string {
	s, err := charset.Decode([]byte(s), "")
	if err != nil {
		return ""
	}
	if decoded, err := wordDecoder().DecodeHeader(s); err == nil {
		s = decoded
	}
	return strings.Join(strings.Fields(s), " ")
}

// charsetReader decodes encoded words. The encoding is often not the one that
// they name.
func charsetReader(name string, in io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text, err := charset.Decode(data, name)
	return strings.NewReader(text), err
}

// params gives the value of a field in lower case and its parameters, decoded
// (RFC 2045, 2231), by name in lower case.
func (h header) params(name string) (value string, params map[string]string) {
	params = make(map[string]string)
	fields := cutParams(h[name])
	if len(fields) == 0 {
		return "", params
	}
	type piece struct {
		text    string
		percent bool
	}
	pieces := make(map[string][]piece) // of parameters in several, by number
	for _, f := range fields[1:] {
		key, text, ok := strings.Cut(f, "=")
		if !ok {
			continue
		}
		key, text = strings.ToLower(strings.TrimSpace(key)), unquote(strings.TrimSpace(text))
		base, rest, split := strings.Cut(key, "*")
		if !split {
			if _, twice := params[key]; !twice {
				params[key] = decodeWords(text)
			}
			continue
		}
		number, percent := rest, rest == ""
		if cut, ok := strings.CutSuffix(rest, "*"); ok {
			number, percent = cut, true
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			n = 0
		}
		if n < 0 || n > 100 {
			continue
		}
		for len(pieces[base]) <= n {
			pieces[base] = append(pieces[base], piece{})
		}
		pieces[base][n] = piece{text, percent}
	}
	for key, list := range pieces {
		var data []byte
		declared := ""
		for i, p := range list {
			if p.percent {
				if i == 0 {
					if set, rest, ok := strings.Cut(p.text, "'"); ok {
						if _, text, ok := strings.Cut(rest, "'"); ok {
							declared, p.text = set, text
						}
					}
				}
				if text, err := url.PathUnescape(p.text); err == nil {
					p.text = text
				}
			}
			data = append(data, p.text...)
		}
		if text, err := charset.Decode(data, declared); err == nil {
			params[key] = text
		}
	}
	return strings.ToLower(strings.TrimSpace(fields[0])), params
}

// cutParams cuts a field at its semicolons, but for those in quotes.
func cutParams(s string) (fields []string) {
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if quoted && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
				i++
			}
		case '"':
			quoted = !quoted
		case ';':
			if !quoted {
				fields = append(fields, s[start:i])
				start = i + 1
			}
		}
	}
	return append(fields, s[start:])
}

func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' {
		return s
	}
	var out strings.Builder
	for i := 1; i < len(s) && s[i] != '"'; i++ {
		// Programs that do not know of escapes write paths here.
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// decodeTransfer undoes a content transfer encoding. What is broken in it is
// passed over.
func decodeTransfer(body []byte, encoding string) []byte {
	switch encoding {
	case "base64":
		return decodeBase64(body)
	case "quoted-printable":
		return decodeQuoted(body)
	}
	return body
}

func decodeBase64(body []byte) []byte {
	out := make([]byte, 0, base64.StdEncoding.DecodedLen(len(body)))
	var group, n uint32
	for _, c := range body {
		switch {
		case c >= 'A' && c <= 'Z':
			group = group<<6 | uint32(c-'A')
		case c >= 'a' && c <= 'z':
			group = group<<6 | uint32(c-'a'+26)
		case c >= '0' && c <= '9':
			group = group<<6 | uint32(c-'0'+52)
		case c == '+' || c == '-':
			group = group<<6 | 62
		case c == '/' || c == '_':
			group = group<<6 | 63
		case c == '=': // the end, or the end of one of several pieces
			out = endGroup(out, group, n)
			group, n = 0, 0
			continue
		default:
			continue
		}
		if n++; n == 4 {
			out = append(out, byte(group>>16), byte(group>>8), byte(group))
			group, n = 0, 0
		}
	}
	return endGroup(out, group, n)
}

// endGroup adds the bytes of a group of fewer than four characters.
func endGroup(out []byte, group, n uint32) []byte {
	switch n {
	case 2:
		return append(out, byte(group>>4))
	case 3:
		return append(out, byte(group>>10), byte(group>>2))
	}
	return out
}

// decodeQuoted decodes quoted-printable (RFC 2045, 6.7).
func decodeQuoted(body []byte) []byte {
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
