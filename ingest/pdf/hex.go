package pdf

import (
	"bytes"
	"regexp"
)

var hexFilter = regexp.MustCompile(`/Filter[ \t\r\n]*(\[[ \t\r\n]*)?(/(?:ASCIIHexDecode|AHx)\b)`)

// decodeHex decodes, in place, the streams whose first filter is ASCIIHexDecode,
// which the library does not know, and takes the filter out. Nothing moves: the
// file's table of objects stays true, and what is left over of a stream is filled
// with spaces, which mean nothing behind content or compressed data.
func decodeHex(data []byte) {
	if encryptEntry.Match(data) {
		return // what is encoded is encrypted too
	}
	for _, m := range streamStart.FindAllIndex(data, maxObjects) {
		head := data[max(0, m[0]-1024):m[0]]
		if i := bytes.LastIndex(head, []byte(" obj")); i >= 0 {
			head = head[i:]
		}
		at := hexFilter.FindSubmatchIndex(head)
		if at == nil || bytes.Contains(head, []byte("/DecodeParms")) { // their parameters are counted
			continue
		}
		name := head[at[0]:at[1]]
		if at[2] >= 0 { // the first of a list
			name = head[at[4]:at[5]]
		}
		copy(name, bytes.Repeat([]byte{' '}, len(name)))
		end := bytes.Index(data[m[1]:], []byte("endstream"))
		if end < 0 {
			return
		}
		unhex(data[m[1] : m[1]+end])
	}
}

// unhex decodes to the sign of its end, or to what is none of it.
func unhex(data []byte) {
	digits, end := 0, 0
	for done := false; end < len(data) && !done; end++ {
		c := data[end]
		switch lower := c | 0x20; {
		case c >= '0' && c <= '9':
			c -= '0'
		case lower >= 'a' && lower <= 'f':
			c = lower - 'a' + 10
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == 0:
			continue
		default:
			done = true
			continue
		}
		if digits%2 == 0 {
			data[digits/2] = c << 4
		} else {
			data[digits/2] |= c
		}
		digits++
	}
	for i := (digits + 1) / 2; i < end; i++ {
		data[i] = ' '
	}
}
