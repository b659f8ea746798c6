package state

import (
	"regexp"
	"strings"
	"testing"
)

// The rows of a damaged file are distinguished by the types of their columns.
func TestTypesOfColumns(t *testing.T) {
	tables := regexp.MustCompile(`(?ms)^CREATE TABLE ibid\.(\w+) \(\n(.*?)^\);`)
	columns := regexp.MustCompile(`(?m)^\t(\w+)\s+(ID|INT|BYTES|SERIAL)\b`)
	known := make(map[string]string)
	for _, table := range tables.FindAllStringSubmatch(schema, -1) {
		var types []string
		sum := false
		for _, c := range columns.FindAllStringSubmatch(table[2], -1) {
			types = append(types, c[2])
			sum = sum || c[1] == "sum"
		}
		signature := strings.Join(types, " ")
		if other := known[signature]; other != "" && sum && table[1] != other+"_copy" {
			t.Errorf("the tables %s and %s have the same types: %s", table[1], other, signature)
		}
		if sum {
			known[signature] = table[1]
		}
	}
	if len(known) < 10 {
		t.Errorf("%d tables", len(known))
	}
}
