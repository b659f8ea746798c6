package ingest

import "ibid/ingest/charset"

var errBinary = charset.ErrBinary

// decode turns the bytes of a text file into UTF-8; declared is the encoding
// that the document says it is in, and may be empty.
func decode(data []byte, declared string) (string, error) {
	return charset.Decode(data, declared)
}
