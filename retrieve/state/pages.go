package state

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
)

// A pageReader reads the rows of a damaged SQLite file from its leaf pages, without using the
// schema, the indexes or interior pages. https://www.sqlite.org/fileformat2.html describes the
// format.
type pageReader struct{ *os.File }

// sqliteHeader is the size of the header of an SQLite file in bytes.
const sqliteHeader = 100

// copyWithLog copies a damaged file with its log and makes SQLite move the log into the copy. SQLite
// does not read a file with a damaged header, so the copy gets the header of an undamaged file.
func copyWithLog(ctx context.Context, damaged, whole, to string) error {
	for _, name := range []string{"", "-wal"} {
		if err := copyFile(damaged+name, to+name); err != nil {
			return err
		}
	}
	header, err := os.ReadFile(whole)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header[:sqliteHeader], 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	// With a writable schema SQLite also opens a file whose schema is damaged.
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: to}).EscapedPath(),
		RawQuery: url.Values{"_pragma": {"writable_schema(ON)"}}.Encode()}).String())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return errors.Join(err, db.Close())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Close())
	}
	return errors.Join(err, in.Close())
}

// page returns a page, or nil if it does not exist. The first page has the number 1.
func (p pageReader) page(n uint32) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, pageSize)
	_, err := p.ReadAt(b, int64(n-1)*pageSize)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading page %d: %w", n, err)
	}
	return b, nil
}

// rows calls f with the number and the values of every row of the tables' leaf pages. It skips data
// that cannot be read as a row.
func (p pageReader) rows(f func(number int64, values []any) error) error {
	for n := uint32(1); ; n++ {
		b, err := p.page(n)
		if err != nil || b == nil {
			return err
		}
		head := 0
		if n == 1 {
			head = sqliteHeader
		}
		const tableLeaf = 0x0d
		if b[head] != tableLeaf {
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
}

// maxRow is larger than any row, in bytes.
const maxRow = 1 << 30

// cell reads a cell of a leaf page. The payload is nil if the cell cannot be read.
func (p pageReader) cell(b []byte, at int) (number int64, payload []byte, err error) {
	if at >= len(b) {
		return 0, nil, nil
	}
	size, n := varint(b[at:])
	rowid, m := varint(b[at+n:])
	if n == 0 || m == 0 || size > maxRow {
		return 0, nil, nil
	}
	at += n + m
	// Bounds of the size of a row's part on its leaf page.
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

// rowValues returns the values of a row, each an int64, a []byte or nil.
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
		default: // a float, which occurs in no table
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

// varint reads a number of 1 to 9 bytes, most significant first. It returns n = 0 if the number is
// incomplete.
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
