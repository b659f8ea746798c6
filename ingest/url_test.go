package ingest

import "testing"

func TestMetaURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://example.org/a?b=c": "https://example.org/a?b=c",
		"http://example.org":        "http://example.org",
		"javascript:alert(1)":       "",
		"/a":                        "",
		"a printed book":            "",
	} {
		for _, key := range []string{"url", "source", "canonical"} {
			var doc Document
			readFrontMatter(&doc, key+": "+address+"\n")
			if got := doc.Meta["url"]; got != want {
				t.Errorf("%s: %s gives %q, want %q", key, address, got, want)
			}
		}
	}
}
