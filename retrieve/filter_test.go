package retrieve

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

const filters = "testdata/filters.txt"

func TestDates(t *testing.T) {
	for _, row := range datatest.Rows(t, filters, "asked") {
		var wrong *DateError
		got, err := ParseDate(row[0])
		if refused := errors.As(err, &wrong) && wrong.Text == row[0]; string(got) != row[1] || refused != (got == "") || !refused && err != nil {
			t.Errorf("ParseDate(%q) = %q, %v", row[0], got, err)
		}
	}
	for _, row := range datatest.Rows(t, filters, "read") {
		if got := readDate(row[0]); string(got) != row[1] {
			t.Errorf("readDate(%q) = %q, want %q", row[0], got, row[1])
		}
	}
}

// pairs returns the values of a cell by key.
func pairs(cell string) map[string]string {
	all := make(map[string]string)
	for pair := range strings.SplitSeq(cell, " & ") {
		key, value, _ := strings.Cut(pair, "=")
		all[key] = value
	}
	return all
}

func TestLabels(t *testing.T) {
	for _, row := range datatest.Rows(t, filters, "labels") {
		l := LabelsOf(pairs(row[0]))
		if got := fmt.Sprintf("%s / %s / %s / %s", l.Date, strings.Join(l.Tags, ","), l.Authors, l.Languages); got != row[1] {
			t.Errorf("LabelsOf(%s) = %s, want %s", row[0], got, row[1])
		}
	}
}

func TestFilterMatches(t *testing.T) {
	d := &DocumentInfo{Document: ingest.Document{ID: "a/x/y.md", Root: "a", Path: "x/gru\u0308n.md", Format: "markdown"}, Collection: "work"}
	list := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) }
	for _, row := range datatest.Rows(t, filters, "matches") {
		v := pairs(row[0])
		f := Filter{Collection: v["collection"], Root: v["root"], Document: v["document"], PathPrefix: v["path"], Format: v["format"],
			Author: v["author"], Language: LanguageTag(v["language"]), Since: Date(v["since"]), Until: Date(v["until"]),
			Tags: list(v["tags"]), Collections: list(v["collections"])}
		if got := f.Matches(d, LabelsOf(pairs(row[1]))); fmt.Sprint(got) != row[2] {
			t.Errorf("%s, %s: Matches = %v, want %s", row[0], row[1], got, row[2])
		}
		if f.IsZero() != f.Equal(Filter{}) || f.IsZero() != (row[0] == "") {
			t.Errorf("%s: IsZero = %v", row[0], f.IsZero())
		}
	}
}

func TestFilterJSON(t *testing.T) {
	var f Filter
	text := `{"collection":"work","tags":["a","b"],"author":"Ada","language":"en","since":"2024-03","until":"2024-03-31"}`
	must(t, json.Unmarshal([]byte(text), &f))
	want := Filter{Collection: "work", Tags: []string{"a", "b"}, Author: "Ada", Language: "en", Since: "2024-03", Until: "2024-03-31"}
	if got, err := json.Marshal(f); !f.Equal(want) || string(got) != text || err != nil {
		t.Errorf("%s decodes to %+v and encodes to %s, %v", text, f, got, err)
	}
	if err := json.Unmarshal([]byte(`{"language":"GER"}`), &f); f.Language != "de" || err != nil {
		t.Errorf("language GER = %q, %v; want de", f.Language, err)
	}
	// Requests must not choose the visible collections.
	if err := json.Unmarshal([]byte(`{"Collections":["a"],"-":["a"]}`), &f); f.Collections != nil || err != nil {
		t.Errorf("collections from a request = %q, %v; want none", f.Collections, err)
	}
	if err := json.Unmarshal([]byte(`{"language":"und"}`), &f); f.Language == "" || err != nil {
		t.Errorf("an unknown language is no filter: %v", err)
	}
	var wrong *DateError
	if err := json.Unmarshal([]byte(`{"since":"March"}`), &f); !errors.As(err, &wrong) {
		t.Errorf("wrong date: err = %v", err)
	}
}
