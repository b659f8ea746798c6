package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"

	"ibid/retrieve"
)

// errRow reports that a row is not as it was stored.
var errRow = errors.New("its checksum does not match")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// rowSum is the checksum of a row: CRC-32C over its columns in order, each text
// after its length. It detects every changed byte.
func rowSum(columns ...any) int64 {
	var sum uint32
	var buffer [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(buffer[:], uint64(n))
		sum = crc32.Update(sum, castagnoli, buffer[:])
	}
	for _, c := range columns {
		switch c := plain(c).(type) {
		case int64:
			number(c)
		case []byte:
			number(int64(len(c)))
			sum = crc32.Update(sum, castagnoli, c)
		case string:
			number(int64(len(c)))
			sum = crc32.Update(sum, castagnoli, unsafe.Slice(unsafe.StringData(c), len(c)))
		}
	}
	return int64(sum)
}

// plain returns the value of a column, or of a pointer to one, as an int64, a
// string or bytes. It panics at any other type.
func plain(v any) any {
	switch v := v.(type) {
	case int64, string, []byte:
		return v
	case int:
		return int64(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case [32]byte:
		return v[:]
	case retrieve.Digest:
		return v[:]
	case *int64:
		return *v
	case *string:
		return *v
	case *[]byte:
		return *v
	case *int:
		return int64(*v)
	case *bool:
		return plain(*v)
	}
	panic(fmt.Sprintf("a column of type %T", v))
}

// A scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// checked scans a row whose last column is its checksum over the others, which
// are scanned into dest in order. The error wraps errRow if the sum is another.
func checked(r scanner, dest ...any) error {
	var sum int64
	if err := r.Scan(append(dest[:len(dest):len(dest)], &sum)...); err != nil {
		return err
	}
	if rowSum(dest...) != sum {
		return errRow
	}
	return nil
}
