package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"ibid/ingest/charset"
	"io"
	"path"
	"strconv"
	"strings"

	"ibid/ingest/office"
)

// Table reads comma- or tab-separated values. Each row is one line with the names
// of its columns, and a section with the anchor "row=N" (RFC 7111), N being the
// row's 1-based position in the file, the row of names included.
func Table(doc *Document, data []byte) error {
	text, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, "\r", "\n") // as old Macintosh programs end lines
	}
	comma, names := tableSeparator(doc.Path, text)
	if at := openQuote(text, byte(comma)); at >= 0 {
		doc.Partial = fmt.Sprintf("a quote that opens in line %d is never closed: quotes were left out from there on",
			1+strings.Count(text[:at], "\n"))
		text = text[:at] + strings.ReplaceAll(text[at:], `"`, "")
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
		case n < names: // it names the separator
		case n == names && office.NamesColumns(record):
			header = make([]string, len(record))
			for i, c := range record {
				header[i] = oneLine(Clean(c))
			}
			first = append(first, header...)
		default:
			first = nil
			write(n, record)
		}
	}
	if first != nil { // names and nothing else
		header = nil
		write(names, first)
	}
	b.into(doc)
	return nil
}

// tableSeparator returns the separator of a table, and the number of the row that
// may name the columns.
func tableSeparator(name, text string) (comma rune, names int) {
	if c, ok := separatorSaid(text); ok {
		return c, 2
	}
	if ext := strings.ToLower(path.Ext(name)); ext == ".tsv" || ext == ".tab" {
		return '\t', 1
	}
	if c := separatorOf(text); c != 0 {
		return c, 1
	}
	return ',', 1
}

// separatorSaid reads a first line that names the separator for Excel.
func separatorSaid(text string) (rune, bool) {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.ToLower(strings.TrimSuffix(line, "\r"))
	if len(line) == len("sep=;") && strings.HasPrefix(line, "sep=") && strings.ContainsRune(",;|:\t", rune(line[4])) {
		return rune(line[4]), true
	}
	return 0, false
}

// openQuote returns the place of a quote that opens a field and is never closed,
// which would make all later rows one; -1 if there is none. It reads quotes as
// [csv.Reader] does with LazyQuotes.
func openQuote(text string, comma byte) int {
	for at := 0; at < len(text); {
		if text[at] != '"' {
			end := strings.IndexAny(text[at:], string(rune(comma))+"\n")
			if end < 0 {
				return -1
			}
			at += end + 1
			continue
		}
		open := at
		for at++; ; at++ {
			quote := strings.IndexByte(text[at:], '"')
			if quote < 0 {
				return open
			}
			at += quote + 1
			rest := text[at:]
			if rest == "" || rest == "\r" {
				return -1
			}
			if rest[0] == comma || rest[0] == '\n' || strings.HasPrefix(rest, "\r\n") {
				at += strings.IndexAny(rest, string(rune(comma))+"\n") + 1
				break
			}
			if rest[0] != '"' {
				at-- // a literal quote
			}
		}
	}
	return -1
}

// separatorOf returns the separator that gives the first rows the most common
// columns; 0 if none gives two.
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
