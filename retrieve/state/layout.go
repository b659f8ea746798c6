package state

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// layoutNumber is the version of the layout of the tables. Each library stores the version of its
// layout.
const layoutNumber = 6

//go:embed schema.sql
var schema string

// checkLayout returns an [ErrLayout] if a library has another layout.
func checkLayout(number int) error {
	switch {
	case number > layoutNumber:
		return fmt.Errorf("%w: a newer version wrote it (layout %d, not %d): update ibid, or use another library",
			ErrLayout, number, layoutNumber)
	case number < layoutNumber:
		return fmt.Errorf("%w: an earlier version wrote it (layout %d, not %d): delete it and ingest its folders again, or use another library",
			ErrLayout, number, layoutNumber)
	}
	return nil
}

// layOut creates the tables in an empty database.
func (t *tx) layOut() {
	t.exec(t.s.dialect.ddl(schema))
	t.s.setLayout(t, layoutNumber)
	t.fillLayout()
}

// A table is the definition of a table in the schema.
type table struct {
	name    string
	columns []string // without SERIAL columns
	bytes   []bool   // whether each column holds bytes, not a number
	// numbered means that the first column is the number of the row.
	numbered bool
	// serial means that rows have a number that is not in columns.
	serial bool
	// sum is the index of the column sum, or -1 if the table has no such column.
	sum int
}

var tableText = regexp.MustCompile(`(?ms)^CREATE TABLE ibid\.(\w+) \((.*?)^\);`)

// tables returns the tables that both dialects have.
func tables() (all []table) {
	for _, m := range tableText.FindAllStringSubmatch(comment.ReplaceAllString(schema, ""), -1) {
		t := table{name: m[1]}
		for line := range strings.Lines(m[2]) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] == "PRIMARY" {
				continue
			}
			switch strings.TrimSuffix(words[1], ",") {
			case "SERIAL":
				t.serial = true
				continue
			case "ID":
				t.numbered = true
			}
			t.columns = append(t.columns, words[0])
			t.bytes = append(t.bytes, words[1] == "BYTES")
		}
		t.sum = slices.Index(t.columns, "sum")
		all = append(all, t)
	}
	return all
}

// isIntact reports whether the values of a row have the table's types and match its checksum.
func (t *table) isIntact(values []any) bool {
	if t.sum < 0 || len(values) != len(t.columns) {
		return false
	}
	for i, v := range values {
		_, bytes := v.([]byte)
		if _, number := v.(int64); bytes != t.bytes[i] || !bytes && !number {
			return false
		}
	}
	return rowSum(values[:t.sum]...) == values[t.sum]
}
