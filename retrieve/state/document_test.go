package state

import (
	"fmt"
	"math"
	"strings"

	"ibid/ingest"
)

// newDocument returns a document of the root with one chunk for each text.
func newDocument(root, path string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{
		ID: root + "/" + path, Root: root, Path: path, Title: "Title of " + path, Format: "text",
		Digest: fmt.Sprintf("%x", strings.Join(texts, "|")), Text: strings.Join(texts, "\n"),
		Sections: []ingest.Section{{Heading: "All", Level: 1, Anchor: "all", End: len(strings.Join(texts, "\n"))}},
		Meta:     map[string]string{"author": "Ann <b>"},
	}
	if strings.HasSuffix(path, ".md") {
		doc.Format = "markdown"
	}
	var chunks []ingest.Chunk
	at := 0
	for i, text := range texts {
		chunks = append(chunks, ingest.Chunk{
			ID: fmt.Sprintf("%s#%d", doc.ID, i+1), Document: doc.ID, Ordinal: i + 1, Start: at, End: at + len(text),
			Heading: "All", Anchor: "all", Line: i + 1, Text: text, Tokens: len(strings.Fields(text)),
		})
		at += len(text) + 1
	}
	return doc, chunks
}

// vectorAt returns the unit vector at an angle in degrees.
func vectorAt(angle float64) []float32 {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0}
}
