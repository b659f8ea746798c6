package cite

import (
	"strconv"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestOriginal(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/claims.txt", "originals") {
		address, quote, want := row[0], row[4], row[5]
		page, err := strconv.Atoi(row[3])
		if err != nil {
			t.Fatal(err)
		}
		p := retrieve.Passage{Format: row[1], Chunk: ingest.Chunk{Anchor: row[2], Page: page}}
		if got := Original(address, p, quote); got != want {
			t.Errorf("Original(%q, %q) = %q, want %q", address, quote, got, want)
		}
	}
}
