package ingest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// A row longer than this is a quote that was never closed.
const maxRowBytes = 1 << 20

// readTable reads comma- or tab-separated values. Each row becomes one line
// that can be read alone, led by the names of its columns, and a section of
// its own with the anchor "row=N" (RFC 7111), N being the row's 1-based
// position in the file, the row of names included.
func readTable(doc *Document, data []byte) error {
	text, err := decode(data, "")
	if err != nil {
		return err
	}
	comma := ','
	if ext := strings.ToLower(path.Ext(doc.Path)); ext == ".tsv" || ext == ".tab" {
		comma = '\t'
	} else if c := separatorOf(text); c != 0 {
		comma = c
	}
	if err := checkRows(text); err != nil {
		return err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = comma, true, -1, true
	var b builder
	var header []string
	var first []string // the first row, until it is known whether it names the columns
	write := func(n int, cells []string) {
		b.line, _ = r.FieldPos(0)
		if start, ok := b.Row(header, cells); ok {
			b.Section(Section{Level: 1, Anchor: "row=" + strconv.Itoa(n), Start: start})
		}
	}
	for n := 1; ; n++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		switch {
		case n == 1 && namesColumns(record):
			header = make([]string, len(record))
			for i, c := range record {
				header[i] = oneLine(clean(c))
			}
			first = append(first, header...)
		default:
			first = nil
			write(n, record)
		}
	}
	if first != nil { // names and nothing else
		header = nil
		write(1, first)
	}
	b.into(doc)
	return nil
}

// namesColumns reports whether a first row holds names rather than values:
// no number, nothing twice, hardly anything empty.
func namesColumns(row []string) bool {
	seen := map[string]bool{}
	empty := 0
	for _, c := range row {
		c = strings.TrimSpace(c)
		if c == "" {
			if empty++; empty > 1 {
				return false
			}
			continue
		}
		if _, err := strconv.ParseFloat(strings.ReplaceAll(c, ",", "."), 64); err == nil || seen[c] || len(c) > 200 {
			return false
		}
		seen[c] = true
	}
	return len(seen) > 0
}

// separatorOf picks the separator that gives the first rows the most columns
// in common; 0 when none gives two.
func separatorOf(text string) rune {
	var best rune
	most := 1
	for _, sep := range []rune{',', ';', '\t', '|'} {
		r := csv.NewReader(strings.NewReader(text[:min(len(text), 64<<10)]))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = sep, true, -1
		columns := 0
		for range 5 {
			record, err := r.Read()
			if err != nil {
				break
			}
			if columns == 0 || len(record) < columns {
				columns = len(record)
			}
		}
		if columns > most {
			best, most = sep, columns
		}
	}
	return best
}

// checkRows refuses rows that would be held in memory as one endless field.
func checkRows(text string) error {
	start, row, quoted := 0, 1, false
	for i := range len(text) {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\n':
			if !quoted {
				start, row = i+1, row+1
			}
		}
		if i-start > maxRowBytes {
			return fmt.Errorf("row %d is longer than 1 MB: is a quote left open, or is this no table?", row)
		}
	}
	return nil
}
