package pdf

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"regexp"
)

var (
	flateOnly = regexp.MustCompile(`/Filter[ \t\r\n]*(?:\[[ \t\r\n]*)?/(?:FlateDecode|Fl)\b[ \t\r\n]*[\]/>]`)
	notText   = regexp.MustCompile(`/Subtype[ \t\r\n]*/Image\b|/Length[123]\b|/FontFile|/Type1C|/CIDFontType0C|/OpenType|` +
		`/N[ \t\r\n]+[134]\b`)
	streamStart = regexp.MustCompile(`>>[ \t\r\n]*stream\r?\n`)
)

// maxInflated limits the bytes that are unpacked to find damage.
const maxInflated = 256 << 20

// Damaged reports whether content of a file is corrupt: compressed data that
// cannot be unpacked, which readers such as PDFium silently skip. Pictures,
// fonts and encrypted files are not checked.
func Damaged(data []byte) bool {
	if encryptEntry.Match(data) {
		return false
	}
	left := int64(maxInflated)
	for _, m := range streamStart.FindAllIndex(data, maxObjects) {
		head := data[max(0, m[0]-1024):m[0]]
		if i := bytes.LastIndex(head, []byte(" obj")); i >= 0 {
			head = head[i:]
		}
		head = append(bytes.Clone(head), '>')
		if !flateOnly.Match(head) || notText.Match(head) || len(data)-m[1] < 2 {
			continue
		}
		// The two bytes of the zlib header are skipped: many intact files have
		// a wrong checksum or none.
		z := flate.NewReader(bytes.NewReader(data[m[1]+2:]))
		n, err := io.Copy(io.Discard, io.LimitReader(z, left))
		var corrupt flate.CorruptInputError
		if errors.As(err, &corrupt) {
			return true
		}
		if left -= n; left <= 0 {
			return false
		}
	}
	return false
}
