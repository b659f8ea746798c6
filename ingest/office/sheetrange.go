package office

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// cellPlace parses a place such as "AB12": column from 0, row from 1.
func cellPlace(ref string) (column, row int, ok bool) {
	i := 0
	for ; i < len(ref) && i < 4; i++ {
		c := ref[i] &^ 0x20
		if c < 'A' || c > 'Z' {
			break
		}
		column = column*26 + int(c-'A') + 1
	}
	if i == 0 || column > maxSheetColumns {
		return 0, 0, false
	}
	row, err := strconv.Atoi(ref[i:])
	return column - 1, row, err == nil && row > 0 && row <= maxSheetRows
}

// A cellRange is a rectangle of cells: columns from 0, rows from 1.
type cellRange struct{ left, top, right, bottom int }

func readRange(ref string) (r cellRange, ok bool) {
	first, last, two := strings.Cut(strings.ReplaceAll(ref, "$", ""), ":")
	var ok1, ok2 bool
	r.left, r.top, ok1 = cellPlace(first)
	r.right, r.bottom, ok2 = cellPlace(last)
	if !two {
		r.right, r.bottom, ok2 = r.left, r.top, true
	}
	return r, ok1 && ok2 && r.right >= r.left && r.bottom >= r.top
}

// merges returns the merged cells of a sheet. They follow its rows in the
// file, so a sheet that is not too large is read twice.
func (b *workbookReader) merges(part string) []cellRange {
	if p := b.parts[partName(part)]; p.size > maxMergeScan {
		return nil
	}
	if in, err := b.open(part); err != nil || !holds(in, "mergeCell ") {
		return nil
	}
	var out []cellRange
	_ = b.elements(part, func(x *xmlReader, e element) error { // the second pass reports damage
		if e.Name.Local != "mergeCells" {
			return nil
		}
		return x.each(func(e element) error {
			if r, ok := readRange(attr(e, "ref")); ok && len(out) < maxMerges {
				out = append(out, r)
			}
			return nil
		})
	})
	return out
}

// holds reports whether a part holds the word, and closes it.
func holds(in io.ReadCloser, word string) bool {
	defer in.Close()
	buffer := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := in.Read(buffer[kept:])
		n += kept
		if bytes.Contains(buffer[:n], []byte(word)) {
			return true
		}
		if err != nil {
			return false
		}
		// The word may be split between two reads.
		kept = copy(buffer, buffer[max(0, n-len(word)):n])
	}
}
