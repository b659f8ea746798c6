package embed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

//go:embed table.bin
var file []byte

const (
	magic  = "IBIDVEC1"
	levels = 16
	header = len(magic) + 2 + 4 + 4 + 2 + levels
)

var errTable = errors.New("the built-in embedding table is damaged: install the program again")

// parse reads a table, all little endian:
//
//	magic     "IBIDVEC1"
//	dims u16 · rows u32 · words u32 · magnitude u16 · levels 16 x i8
//	scales    rows x u16
//	nibbles   rows x dims/2 bytes, the lower half first
//	names     gzip: every word, then every piece, in order of the rows, each ended by \n
//	checksum  SHA-256 of all the bytes before it
//
// A component of a row is levels[nibble] * scale.
func parse(data []byte) (*Model, error) {
	body := data[:max(0, len(data)-sha256.Size)]
	if sum := sha256.Sum256(body); string(sum[:]) != string(data[len(body):]) {
		return nil, errTable
	}
	le := binary.LittleEndian
	b := body[len(magic):]
	dims, rows, words := int(le.Uint16(b)), int(le.Uint32(b[2:])), int(le.Uint32(b[6:]))
	m := &Model{dims: dims, magnitude: int64(le.Uint16(b[10:]))}
	level := b[12 : 12+levels]
	b = body[header:]
	m.scales = make([]int32, rows)
	for i := range m.scales {
		m.scales[i] = int32(le.Uint16(b[2*i:]))
	}
	b = b[2*rows:]
	// Two components at a time: a byte of the file is a pair of levels.
	var pairs [256][2]int8
	for i := range pairs {
		pairs[i] = [2]int8{int8(level[i&15]), int8(level[i>>4])}
	}
	m.table = make([]int8, rows*dims)
	out := m.table
	for _, n := range b[:rows*dims/2] {
		p := &pairs[n]
		out[0], out[1] = p[0], p[1]
		out = out[2:]
	}
	return m, m.fillMaps(b[rows*dims/2:], rows, words)
}

// fillMaps fills the maps of words and pieces.
func (m *Model) fillMaps(packed []byte, rows, words int) error {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	names, err := io.ReadAll(zip)
	m.words, m.pieces = make(map[string]uint32, words), make(map[string]uint32, rows-words)
	row := 0
	for name := range strings.Lines(string(names)) {
		in := m.pieces
		if row < words {
			in = m.words
		}
		in[name[:len(name)-1]] = uint32(row)
		row++
	}
	return err
}
