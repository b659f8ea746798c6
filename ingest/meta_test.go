package ingest

import (
	"maps"
	"testing"
)

// Metadata that filters use has one name, whatever a page or front matter calls it.
func TestMetaForFilters(t *testing.T) {
	const tag, day = `<meta property="article:tag" content="`, `" content="2024-03-31T10:00:00Z">`
	for name, c := range map[string]struct {
		text string
		want map[string]string
	}{
		"a.html": {`<meta name=keywords content="sea, harbour">` + tag + `boats">` + tag + `rules">` + `<meta name="DCTERMS.created` + day +
			`<p>Text`,
			map[string]string{"tags": "sea, harbour, boats, rules", "date": "2024-03-31T10:00:00Z"}},
		"b.html": {`<meta property="article:modified_time` + day + `<meta name=keywords content=""><p>Text`,
			map[string]string{"updated": "2024-03-31T10:00:00Z"}},
		"a.md": {"---\ncreated: 2024-03-31\ntags:\n  - sea\n  - \"two words\"\n---\nText",
			map[string]string{"tags": "sea, two words", "date": "2024-03-31"}},
		"b.md": {"+++\npublishDate = 2024-03-31\ntags = [\"sea\", \"land\"]\nlastmod = 2025-01-01\n+++\nText",
			map[string]string{"tags": "sea, land", "date": "2024-03-31", "updated": "2025-01-01"}},
		"c.html": {`<html lang="de-AT"><meta name=author content="Ada Lovelace"><p>Text`,
			map[string]string{"language": "de-AT", "author": "Ada Lovelace"}},
		"d.md": {"---\nauthors:\n  - name: Ada Lovelace\n    email: ada@example.org\n  - Charles Babbage\nlang: de\n---\nText",
			map[string]string{"author": "Ada Lovelace, Charles Babbage", "language": "de"}},
		"c.md": {"---\ntag: sea, land\n---\nText", map[string]string{"tags": "sea, land"}},
		"e.md": {"---\nsource: javascript:alert(1)\ncanonical: /a\nurl: https://example.org/a?b=c\n---\nText",
			map[string]string{"url": "https://example.org/a?b=c"}},
		"d.html": {`<meta property="article:published_time" content="2023-01-02"><meta name="dc.creator" content="Bo Lind">` +
			`<meta http-equiv="content-language" content="de"><p>Text`, map[string]string{"date": "2023-01-02", "author": "Bo Lind", "language": "de"}},
		"e.html": {`<meta property="article:author" content="https://example.org/ada"><p>Text`, nil}, // a profile is no author
		"f.md":   {"---\nurl: a printed book\nsource: http://example.org\n---\nText", map[string]string{"url": "http://example.org"}},
	} {
		doc, err := new(Reader).Read(t.Context(), name, []byte(c.text))
		must(t, err)
		if delete(doc.Meta, ReaderKey); !maps.Equal(doc.Meta, c.want) {
			t.Errorf("%s: %q, want %q", name, doc.Meta, c.want)
		}
	}
}
