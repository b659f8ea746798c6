package ingest

import (
	"ibid/data/datatest"
	"reflect"
	"strings"
	"testing"
)

// A large tree is read in a child with the same result.
func TestLargeTrees(t *testing.T) {
	r := new(Reader)
	defer r.Close()
	type tree struct{ name, unit string }
	for _, tree := range datatest.Pick(t, []tree{{"a.md", "# Mooring\n\nThe *fee* is due in May.\n\n"},
		{"a.html", "<h2>Mooring</h2><p>The fee is due in May.\n"}}) {
		name, unit := tree.name, tree.unit
		data := []byte(strings.Repeat(unit+strings.Repeat("It is paid by boat and year. ", 40)+"\n\n", largeTree/len(unit)/100))
		f, _ := formatOf(name)
		here, there := &Document{Path: name}, &Document{Path: name}
		must(t, f.into(here, data))
		must(t, r.readInChild(t.Context(), f.name, there, data))
		if !reflect.DeepEqual(here, there) {
			t.Errorf("%s: a child makes something else of it", name)
		}
	}
}
