package office

import (
	"math"

	"golang.org/x/text/encoding/charmap"
)

// A cursor reads little-endian numbers. After the end of data it returns zeros.
type cursor struct {
	data []byte
	at   int
}

func (c *cursor) number(size int) (n int) {
	b := c.bytes(size)
	for i := range b {
		n |= int(b[i]) << (8 * i)
	}
	if len(b) < size {
		return 0
	}
	return n
}

func (c *cursor) float() float64 { return math.Float64frombits(uint64(c.number(8))) }

// bytes returns the next n bytes, or fewer at the end of data.
func (c *cursor) bytes(n int) []byte {
	start := min(max(c.at, 0), len(c.data))
	c.at = min(start+max(n, 0), len(c.data))
	return c.data[start:c.at]
}

// latin1 decodes ISO 8859-1, which has one byte per character.
func latin1(data []byte) string {
	text, _ := charmap.ISO8859_1.NewDecoder().Bytes(data)
	return string(text)
}
