package format

import (
	"errors"
	"fmt"
	"ibid/ingest/charset"
	"io"
	"strconv"
	"strings"
)

// JSONLines reads one JSON value from each line as a record with the anchor
// "row=N", N being its 1-based line. Invalid lines are kept as text.
func JSONLines(doc *Document, data []byte) error {
	if err := checkLines(data, maxJSONLine); err != nil {
		return err
	}
	src, err := charset.Decode(data, "")
	if err != nil {
		return err
	}
	var b builder
	number, values, broken, first := 0, 0, 0, 0
	for line := range strings.SplitSeq(src, "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		values++
		r := newJSONReader(&b, line)
		b.line = number
		s := Section{Level: 1, Anchor: "row=" + strconv.Itoa(number)}
		fields, err := r.whole()
		switch {
		case errors.Is(err, errTooDeep):
			return fmt.Errorf("line %d: %w", number, err)
		case err != nil:
			if broken++; broken == 1 {
				first = number
			}
			r.b.begin(s, func() { b.Paragraph(line) })
		default:
			r.record(s, fields)
		}
		if b.text.Len() > maxDataText {
			return errTooMuchText
		}
	}
	switch {
	case broken > 0 && broken == values:
		return errors.New("none of its lines is valid JSON")
	case broken > 0:
		doc.Partial = fmt.Sprintf("%d of its %d lines are not valid JSON (line %d is the first), and were kept unchanged", broken, values, first)
	}
	b.into(doc)
	return nil
}

// whole returns the fields of a text with one value.
func (r *jsonReader) whole() ([]jsonField, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	fields, err := r.fields(nil, "", token, 1)
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return fields, nil
}
