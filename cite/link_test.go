package cite

import (
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

func TestOriginal(t *testing.T) {
	for _, tt := range []struct {
		address, format, anchor string
		page                    int
		quote, want             string
	}{
		{"/o/a.pdf", "pdf", "", 3, "some words", "/o/a.pdf#page=3"},
		{"/o/a.pdf", "pdf", "", 0, "some words", "/o/a.pdf"},
		{"/o/a.md", "markdown", "the-rules", 0, "some words", "/o/a.md#the-rules"},
		{"/o/a.csv", "csv", "row=12", 0, "some words", "/o/a.csv#row=12"},
		{"/o/a.xlsx", "xlsx", "sheet=Fees & #1&row=12", 0, "some words", "/o/a.xlsx#sheet=Fees%20&%20%231&row=12"},
		{"/o/a.html", "html", "", 0, "well-known, & old", "/o/a.html#:~:text=well%2Dknown%2C%20%26%20old"},
		{"/o/a.html", "html", "s 1", 0, "one two three four five six seven eight nine",
			"/o/a.html#s%201:~:text=one%20two%20three%20four,six%20seven%20eight%20nine"},
		{"/o/a.html", "html", "", 0, "", "/o/a.html"},
		{"/o/a.html#there", "html", "x", 0, "words", "/o/a.html#there"},
		{"javascript:x", "html", "x", 0, "words", ""},
	} {
		p := retrieve.Passage{Format: tt.format, Chunk: ingest.Chunk{Anchor: tt.anchor, Page: tt.page}}
		if got := Original(tt.address, p, tt.quote); got != tt.want {
			t.Errorf("Original(%q, %q) = %q, want %q", tt.address, tt.quote, got, tt.want)
		}
	}
}
