package retrieve

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"ibid/ingest"
)

func TestParseDate(t *testing.T) {
	for in, want := range map[string]Date{
		"2024": "2024", "2024-03": "2024-03", "2024-02-29": "2024-02-29", "2024-03-31T23:59:00-05:00": "2024-03-31",
	} {
		if got, err := ParseDate(in); got != want || err != nil {
			t.Errorf("ParseDate(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "24", "2024-3", "2023-02-29", "2024-13", "2024-03-32", "31.03.2024", "yesterday", " 2024", "2024 "} {
		var wrong *DateError
		if got, err := ParseDate(in); got != "" || !errors.As(err, &wrong) || wrong.Text != in {
			t.Errorf("ParseDate(%q) = %q, %v", in, got, err)
		}
	}
}

func TestReadDate(t *testing.T) {
	for in, want := range map[string]Date{
		"2024-03-31": "2024-03-31", "2024-03-31T10:00:00Z": "2024-03-31", "2024-03-31 10:00:00 +0200": "2024-03-31",
		"2024/3/1": "2024-03-01", "2024.03.01": "2024-03-01", "2024-3": "2024-03", "2024": "2024", " 2024-03 ": "2024-03",
		"20240331": "2024-03-31", "20240331T100000": "2024-03-31", "2024-12-1": "2024-12-01",
		"March 31, 2024": "", "": "", "03/04/2024": "", "2024-02-30": "", "2024-13-01": "", "20241": "", "202403311": "", "v2024": "",
	} {
		if got := readDate(in); got != want {
			t.Errorf("readDate(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		meta map[string]string
		want Labels
	}{
		{nil, Labels{}},
		{map[string]string{"tags": "Sea, #Harbour ;; two words,"}, Labels{Tags: []string{"sea", "harbour", "two words"}}},
		{map[string]string{"date": "2024-03-31", "updated": "2025"}, Labels{Date: "2024-03-31"}},
		{map[string]string{"date": "long ago", "updated": "2025-01"}, Labels{Date: "2025-01"}},
		{map[string]string{"author": "Müller, José; J. O'Neil <jo@example.org>"},
			Labels{Authors: []string{"muller", "jose", "j", "o", "neil", "jo", "example", "org"}}},
		{map[string]string{"language": "EN_us"}, Labels{Languages: []LanguageTag{"en-US"}}},
		{map[string]string{"language": "deu, und; Old Norse,"}, Labels{Languages: []LanguageTag{"de", "und", "old norse"}}},
	} {
		if got := LabelsOf(c.meta); got.Date != c.want.Date || !slices.Equal(got.Tags, c.want.Tags) ||
			!slices.Equal(got.Authors, c.want.Authors) || !slices.Equal(got.Languages, c.want.Languages) {
			t.Errorf("LabelsOf(%v) = %+v, want %+v", c.meta, got, c.want)
		}
	}
}

func TestFilterMatches(t *testing.T) {
	d := &DocumentInfo{Document: ingest.Document{ID: "a/x/y.md", Root: "a", Path: "x/y.md", Format: "markdown"}, Collection: "work"}
	tagged := Labels{Date: "2024-03-15", Tags: []string{"sea", "boat"}}
	written := LabelsOf(map[string]string{"author": "Ada Lovelace, José Müller", "language": "de-AT, en"})
	for _, c := range []struct {
		f    Filter
		l    Labels
		want bool
	}{
		{Filter{}, Labels{}, true},
		{Filter{Collection: "work", Root: "a", Document: "a/x/y.md", PathPrefix: "x/", Format: "markdown"}, Labels{}, true},
		{Filter{Collection: "works"}, Labels{}, false},
		{Filter{Collections: []string{"home", "work"}}, Labels{}, true},
		{Filter{Collections: []string{"home"}}, Labels{}, false},
		{Filter{Collection: "work", Collections: []string{"home"}}, Labels{}, false},
		{Filter{PathPrefix: "y"}, Labels{}, false},
		{Filter{Tags: []string{"Boat", " #SEA "}}, tagged, true},
		{Filter{Tags: []string{"boat", "land"}}, tagged, false},
		{Filter{Tags: []string{"sea"}}, Labels{}, false},
		{Filter{Author: "lovelace"}, written, true},
		{Filter{Author: "Lovelace, Ada"}, written, true},
		{Filter{Author: "jose Muller"}, written, true},
		{Filter{Author: "Love"}, written, false},
		{Filter{Author: "Ada Byron"}, written, false},
		{Filter{Author: "?"}, written, false},
		{Filter{Author: "ada"}, Labels{}, false},
		{Filter{Language: "de"}, written, true},
		{Filter{Language: "de-AT"}, written, true},
		{Filter{Language: "de-CH"}, written, false},
		{Filter{Language: "d"}, written, false},
		{Filter{Language: "en"}, written, true},
		{Filter{Language: "en-GB"}, written, false},
		{Filter{Language: "en"}, Labels{}, false},
		{Filter{Since: "2024-03-15"}, tagged, true},
		{Filter{Since: "2024-03-16"}, tagged, false},
		{Filter{Until: "2024-03-15"}, tagged, true},
		{Filter{Until: "2024-03-14"}, tagged, false},
		{Filter{Since: "2024", Until: "2024-03"}, tagged, true},
		{Filter{Since: "2024-04"}, tagged, false},
		{Filter{Until: "2023"}, tagged, false},
		{Filter{Since: "1000"}, Labels{}, false},
		{Filter{Until: "9999"}, Labels{}, false},
		// What says less may be any of its days.
		{Filter{Since: "2024-03-31", Until: "2024-03-31"}, Labels{Date: "2024-03"}, true},
		{Filter{Since: "2024-04-01"}, Labels{Date: "2024-03"}, false},
		{Filter{Until: "2024-02-29"}, Labels{Date: "2024-03"}, false},
	} {
		if got := c.f.Matches(d, c.l); got != c.want {
			t.Errorf("%+v, %+v: %v", c.f, c.l, got)
		}
		if c.f.IsZero() != c.f.Equal(Filter{}) {
			t.Errorf("%+v: IsZero is %v", c.f, c.f.IsZero())
		}
	}
}

func TestFilterJSON(t *testing.T) {
	var f Filter
	text := `{"collection":"work","tags":["a","b"],"author":"Ada","language":"en","since":"2024-03","until":"2024-03-31"}`
	must(t, json.Unmarshal([]byte(text), &f))
	want := Filter{Collection: "work", Tags: []string{"a", "b"}, Author: "Ada", Language: "en", Since: "2024-03", Until: "2024-03-31"}
	if got, err := json.Marshal(f); !f.Equal(want) || string(got) != text || err != nil {
		t.Errorf("%s became %+v and %s, %v", text, f, got, err)
	}
	if err := json.Unmarshal([]byte(`{"language":"GER"}`), &f); f.Language != "de" || err != nil {
		t.Errorf("GER is the language %q, %v", f.Language, err)
	}
	// Requests cannot choose the collections that they may see.
	if err := json.Unmarshal([]byte(`{"Collections":["a"],"-":["a"]}`), &f); f.Collections != nil || err != nil {
		t.Errorf("collections of the asker's own: %q, %v", f.Collections, err)
	}
	if err := json.Unmarshal([]byte(`{"language":"und"}`), &f); f.Language == "" || err != nil {
		t.Errorf("a language that is not known lets all through: %v", err)
	}
	var wrong *DateError
	if err := json.Unmarshal([]byte(`{"since":"March"}`), &f); !errors.As(err, &wrong) {
		t.Errorf("a wrong date: %v", err)
	}
}
