package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"ibid/ingest/office"
)

// Table reads comma- or tab-separated values. Each row is one line with its column names, and a
// section with the anchor "row=N" (RFC 7111), where N is the row's 1-based position in the file,
// counting the row of names.
func Table(doc *Document, text string) error {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, "\r", "\n") // line ends of old Macintosh programs
	}
	comma, names := tableSeparator(doc.Path, text)
	if at := openQuote(text, comma); at >= 0 {
		doc.Partial = fmt.Sprintf("a quote that opens in line %d is never closed: quotes were left out from there on",
			1+strings.Count(text[:at], "\n"))
		text = text[:at] + strings.ReplaceAll(text[at:], `"`, "")
	}
	r := csvReader(text, comma)
	var w tableWriter
	for n := 1; ; n++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		line, _ := r.FieldPos(0)
		switch row := (tableRow{n, line, record}); {
		case n < names: // it names the separator
		case n >= names+office.RegionRows:
			w.write(row)
		default:
			row.cells = slices.Clone(record)
			if w.top = append(w.top, row); len(w.top) == office.RegionRows {
				w.writeTop()
			}
		}
	}
	w.writeTop()
	w.moveTo(doc)
	return nil
}

// A tableRow is a row with its number and its first line.
type tableRow struct {
	number, line int
	cells        []string
}

// A tableWriter writes the rows of a table.
type tableWriter struct {
	builder
	top    []tableRow // first rows, until it is known whether one of them names the columns
	header []string
	labels bool // the rows are labels and values
}

// writeTop searches the first rows for column names and writes the rows.
func (w *tableWriter) writeTop() {
	var texts [][]string
	for _, r := range w.top {
		texts = append(texts, r.cells)
	}
	if w.labels = office.AreLabels(texts); !w.labels && len(texts) > 1 && office.NamesColumns(texts[0], texts[1]) {
		w.header, w.top = mergeNames(nil, texts[0]), w.top[1:]
	}
	for _, r := range w.top {
		w.write(r)
	}
	w.top = nil
}

func (w *tableWriter) write(r tableRow) {
	if w.labels {
		r.cells = []string{office.Labelled(r.cells)}
	}
	w.line = r.line
	w.begin(Section{Level: 1, Anchor: "row=" + strconv.Itoa(r.number)}, func() { w.Row(w.header, r.cells) })
}

// tableSeparator returns the separator of a table, and the number of the row that may name the
// columns.
func tableSeparator(name, text string) (comma rune, names int) {
	if sep, ok := strings.CutPrefix(text, "sep="); ok && len(sep) > 1 && strings.IndexByte(",;|\t", sep[0]) >= 0 { // written by Excel
		return rune(sep[0]), 2
	}
	if ext := strings.ToLower(path.Ext(name)); ext == ".tsv" || ext == ".tab" {
		return '\t', 1
	}
	return separatorOf(text), 1
}

// csvReader returns a reader that accepts quotes inside fields and rows of any length.
func csvReader(text string, comma rune) *csv.Reader {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = comma, true, -1, true
	return r
}

// openQuote returns the start of the row with a quote that is never closed, or -1. The quote would
// make all later rows part of its row.
func openQuote(text string, comma rune) int {
	r := csvReader(text, comma)
	for start := 0; ; start = int(r.InputOffset()) {
		record, err := r.Read()
		if err != nil {
			return -1
		}
		atEnd := int(r.InputOffset()) == len(text) && !strings.HasSuffix(strings.TrimRight(text, "\r\n"), `"`)
		if atEnd && strings.Contains(record[len(record)-1], "\n") {
			return start
		}
	}
}

// separatorOf returns the separator that yields the largest common number of columns in the first
// rows, or a comma if none yields two.
func separatorOf(text string) rune {
	best, most := ',', 1
	for _, sep := range []rune{',', ';', '\t', '|'} {
		r := csvReader(text[:min(len(text), 64<<10)], sep)
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
