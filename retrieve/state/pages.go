package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// A pageReader reads the rows of a damaged file of SQLite from its leaf pages,
// without its schema, its indexes and the pages that lead to the leaves. The
// format is that of https://www.sqlite.org/fileformat2.html.
type pageReader struct {
	file, log *os.File
	pages     uint32
	// logged has the place in the log of each page that is newer there.
	logged map[uint32]int64
}

func openPages(path string) (*pageReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pageReader{file: f, logged: make(map[uint32]int64)}
	info, err := f.Stat()
	if err == nil {
		p.pages = uint32(min(info.Size()/pageSize, math.MaxUint32))
		p.log, err = os.Open(path + "-wal")
		if errors.Is(err, os.ErrNotExist) {
			p.log, err = nil, nil
		} else if err == nil {
			err = p.readLog()
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pageReader) close() error {
	err := p.file.Close()
	if p.log != nil {
		err = errors.Join(err, p.log.Close())
	}
	return err
}

// Sizes of the headers of the log and of its frames.
const (
	logHeader   = 32
	frameHeader = 24
)

// readLog finds the pages of the log up to its last commit. A frame that does not
// belong to the log or has another checksum ends it, as it does for SQLite.
func (p *pageReader) readLog() error {
	header := make([]byte, logHeader)
	if _, err := io.ReadFull(p.log, header); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	} else if err != nil {
		return err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(header) {
	case 0x377f0683:
		order = binary.BigEndian
	case 0x377f0682:
	default:
		return nil
	}
	sum := logSum(order, [2]uint32{}, header[:24])
	if !sum.matches(header[24:]) || binary.BigEndian.Uint32(header[8:]) != pageSize {
		return nil
	}
	frame := make([]byte, frameHeader+pageSize)
	open := make(map[uint32]int64) // of a transaction that is not committed
	for at := int64(logHeader); ; at += int64(len(frame)) {
		if _, err := p.log.ReadAt(frame, at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if string(frame[8:16]) != string(header[16:24]) { // its salts
			return nil
		}
		sum = logSum(order, sum, frame[:8])
		if sum = logSum(order, sum, frame[frameHeader:]); !sum.matches(frame[16:24]) {
			return nil
		}
		open[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if size := binary.BigEndian.Uint32(frame[4:]); size > 0 { // a commit
			p.pages = size
			for page, at := range open {
				p.logged[page] = at
			}
			clear(open)
		}
	}
}

// A logChecksum is the checksum of the log so far.
type logChecksum [2]uint32

func logSum(order binary.ByteOrder, sum logChecksum, b []byte) logChecksum {
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += order.Uint32(b) + sum[1]
		sum[1] += order.Uint32(b[4:]) + sum[0]
	}
	return sum
}

func (sum logChecksum) matches(b []byte) bool {
	return binary.BigEndian.Uint32(b) == sum[0] && binary.BigEndian.Uint32(b[4:]) == sum[1]
}

// page reads a page, from 1; nil if there is none.
func (p *pageReader) page(n uint32) ([]byte, error) {
	if n == 0 || n > p.pages {
		return nil, nil
	}
	b := make([]byte, pageSize)
	var err error
	if at, ok := p.logged[n]; ok {
		_, err = p.log.ReadAt(b, at)
	} else {
		_, err = p.file.ReadAt(b, int64(n-1)*pageSize)
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading page %d: %w", n, err)
	}
	return b, nil
}

// rows calls f with the number and the values of every row of the leaf pages of
// tables. What cannot be read as a row is left out.
func (p *pageReader) rows(f func(number int64, values []any) error) error {
	for n := uint32(1); n <= p.pages; n++ {
		b, err := p.page(n)
		if err != nil {
			return err
		}
		head := 0
		if n == 1 {
			head = 100
		}
		const tableLeaf = 0x0d
		if len(b) == 0 || b[head] != tableLeaf {
			continue
		}
		for i := range int(binary.BigEndian.Uint16(b[head+3:])) {
			at := head + 8 + 2*i
			if at+2 > len(b) {
				break
			}
			number, payload, err := p.cell(b, int(binary.BigEndian.Uint16(b[at:])))
			if err != nil {
				return err
			}
			values, ok := rowValues(payload)
			if !ok {
				continue
			}
			if err := f(number, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxRow is more than any row has in bytes.
const maxRow = 1 << 30

// cell reads a cell of a leaf page; the payload is nil if it cannot be read.
func (p *pageReader) cell(b []byte, at int) (number int64, payload []byte, err error) {
	if at >= len(b) {
		return 0, nil, nil
	}
	size, n := varint(b[at:])
	rowid, m := varint(b[at+n:])
	if n == 0 || m == 0 || size > maxRow {
		return 0, nil, nil
	}
	at += n + m
	// How much of a row is on its leaf page.
	const most, least = pageSize - 35, (pageSize-12)*32/255 - 23
	local := int(size)
	if local > most {
		if local = least + (int(size)-least)%(pageSize-4); local > most {
			local = least
		}
	}
	if at+local > len(b) {
		return 0, nil, nil
	}
	payload = append(payload, b[at:at+local]...)
	if local == int(size) {
		return int64(rowid), payload, nil
	}
	if at+local+4 > len(b) {
		return 0, nil, nil
	}
	for next := binary.BigEndian.Uint32(b[at+local:]); len(payload) < int(size); {
		over, err := p.page(next)
		if err != nil || over == nil {
			return 0, nil, err
		}
		next = binary.BigEndian.Uint32(over)
		payload = append(payload, over[4:4+min(pageSize-4, int(size)-len(payload))]...)
	}
	return int64(rowid), payload, nil
}

// rowValues returns the values of a row: int64, []byte or nil.
func rowValues(b []byte) (values []any, ok bool) {
	size, n := varint(b)
	if n == 0 || size < uint64(n) || size > uint64(len(b)) {
		return nil, false
	}
	types, body := b[n:size], b[size:]
	for len(types) > 0 {
		kind, n := varint(types)
		if n == 0 {
			return nil, false
		}
		types = types[n:]
		var width int
		switch {
		case kind <= 6:
			width = [...]int{0, 1, 2, 3, 4, 6, 8}[kind]
		case kind == 8, kind == 9:
		case kind >= 12:
			width = int(min((kind-12)/2, maxRow))
		default: // a float, which no table has
			return nil, false
		}
		if width > len(body) {
			return nil, false
		}
		values = append(values, columnValue(kind, body[:width]))
		body = body[width:]
	}
	return values, len(body) == 0
}

func columnValue(kind uint64, b []byte) any {
	switch {
	case kind == 0:
		return nil
	case kind == 8, kind == 9:
		return int64(kind - 8)
	case kind >= 12:
		return b
	}
	n := int64(int8(b[0]))
	for _, x := range b[1:] {
		n = n<<8 | int64(x)
	}
	return n
}

// varint reads a number of 1 to 9 bytes, most significant first; n is 0 if it is
// cut off.
func varint(b []byte) (v uint64, n int) {
	for i := range min(9, len(b)) {
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
