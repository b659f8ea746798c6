package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/ingest"
)

// TestDrawnPages: the viewer of a PDF file shows its page, with the quoted words
// marked, out of a folder as out of an archive in it.
func TestDrawnPages(t *testing.T) {
	t.Parallel()
	reader := &ingest.Reader{PDF: ingest.PDFOptions{Helped: true}}
	if from, _ := reader.PDFium(); from == "" {
		t.Skip("there is no PDFium: run 'go generate ./ingest/pdf' and give the tag pdfium")
	}
	sample, err := os.ReadFile("sample.pdf")
	must(t, err)
	folder := filepath.Join(t.TempDir(), "club")
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	light, err := archive.Create("papers/light.pdf")
	must(t, err)
	_, err = light.Write(sample)
	must(t, errors.Join(err, archive.Close()))
	writeFiles(t, folder, map[string]string{"harbour.pdf": string(sample), "packed.zip": packed.String(),
		"changed.pdf": string(sample) + "\n", "gone.pdf": string(sample) + "\n\n", "note.md": "# Note\n\nNo page of this is drawn."})
	address := serve(t, t.TempDir(), "--no-watch", folder)
	ready(t, address)
	writeFiles(t, folder, map[string]string{"changed.pdf": string(sample)})
	must(t, os.Remove(filepath.Join(folder, "gone.pdf")))

	get := func(path string, status int) []byte { return fetch(t, "GET", address+path, "", "", status) }
	picture := func(path string) image.Image {
		t.Helper()
		img, err := png.Decode(bytes.NewReader(get(path, http.StatusOK)))
		must(t, err)
		return img
	}
	for _, document := range []string{"/documents/club/harbour.pdf", "/documents/club/packed.zip/papers/light.pdf"} {
		const quoted = "?start=4&end=17" // "harbour light"
		page := string(get(document+quoted, http.StatusOK))
		if want := `<img src="` + document + `?drawn=1&amp;end=17&amp;start=4"`; !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
		plain, marked := picture(document+"?drawn=1&width=600"), picture(document+quoted+"&drawn=1&width=600")
		if plain.Bounds() != image.Rect(0, 0, 600, 400) || marked.Bounds() != plain.Bounds() {
			t.Fatalf("the page is drawn as %v, and marked as %v", plain.Bounds(), marked.Bounds())
		}
		var changed image.Rectangle
		for y := range 400 {
			for x := range 600 {
				if plain.At(x, y) != marked.At(x, y) {
					changed = changed.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		// Two words of six in one line.
		if changed.Dx() < 60 || changed.Dx() > 300 || changed.Dy() < 10 || changed.Dy() > 80 {
			t.Errorf("%s: what is marked is %v", document, changed)
		}
	}
	for _, tt := range []struct {
		path   string
		status int
		code   string
	}{
		{"harbour.pdf?drawn=2", 404, "page_not_found"},
		{"harbour.pdf?drawn=0", 400, "bad_page"},
		{"harbour.pdf?drawn=1&width=20000", 400, "bad_width"},
		{"changed.pdf?drawn=1", 404, "original_changed"},
		{"gone.pdf?drawn=1", 404, "original_not_found"},
		{"note.md?drawn=1", 404, "not_drawn"},
		{"never.pdf?drawn=1", 404, "document_not_found"},
	} {
		var p struct{ Code string }
		if err := json.Unmarshal(get("/documents/club/"+tt.path, tt.status), &p); err != nil || p.Code != tt.code {
			t.Errorf("%s: %q (%v), want %s", tt.path, p.Code, err, tt.code)
		}
	}
}
