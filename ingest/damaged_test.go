package ingest

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedPDFIsPartial checks that a PDF file that is only partly read is marked as
// partial.
func TestDamagedPDFIsPartial(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("..", "data", "library", "minutes", "annual-report-2024.pdf"))
	must(t, err)
	intact, err := new(Reader).Read(t.Context(), "report.pdf", whole)
	must(t, err)
	if intact.Partial != "" {
		t.Fatalf("intact file: Partial = %q, want none", intact.Partial)
	}

	// Thirty bytes in the middle of every content stream are inverted.
	torn := bytes.Clone(whole)
	streams := 0
	for at := 0; ; {
		start := bytes.Index(torn[at:], []byte("stream\n"))
		if start < 0 {
			break
		}
		start += at + len("stream\n")
		end := start + bytes.Index(torn[start:], []byte("endstream"))
		if head := torn[max(0, start-200):start]; bytes.Contains(head, []byte("/Filter /FlateDecode")) &&
			!bytes.Contains(head, []byte("/Length1")) && end-start > 500 {
			for i := (start + end) / 2; i < (start+end)/2+30; i++ {
				torn[i] = ^torn[i]
			}
			streams++
		}
		at = end + len("endstream")
	}
	if streams == 0 {
		t.Fatal("no content stream found")
	}
	doc, err := new(Reader).Read(t.Context(), "report.pdf", torn)
	must(t, err)
	if len(doc.Text) >= len(intact.Text) || len(doc.Text) == 0 {
		t.Fatalf("damaged file has %d bytes of text, the intact file %d", len(doc.Text), len(intact.Text))
	}
	if !strings.Contains(doc.Partial, "damaged") {
		t.Errorf("%d of %d bytes were read, Partial = %q", len(doc.Text), len(intact.Text), doc.Partial)
	}
	// Without its fonts, the file has glyph numbers instead of letters.
	doc, err = new(Reader).Read(t.Context(), "report.pdf", whole[:len(whole)*2/3])
	if err == nil || !strings.Contains(err.Error(), "fonts") {
		t.Errorf("without fonts: err = %v, document = %+v", err, doc)
	}
}

// pdfOf returns a file with the given objects, numbered from 1, and a valid cross-reference
// table.
func pdfOf(objects ...string) []byte {
	out := []byte("%PDF-1.4\n")
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out = fmt.Appendf(out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return fmt.Appendf(out, "%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", table, len(objects)+1, len(out))
}

// TestPagesThatCannotBeReadAreNamed checks that unreadable pages are named, and that the
// other pages are read, even if their content is encoded in ASCII.
func TestPagesThatCannotBeReadAreNamed(t *testing.T) {
	const (
		catalog = "<</Type/Catalog/Pages 2 0 R>>"
		helv    = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
		ferry   = "<</Length 58>>\nstream\nBT /F 12 Tf 72 700 Td (The ferry leaves at nine.) Tj ET   \nendstream"
		lzw     = "<</Length 3/Filter/LZWDecode>>\nstream\nabc\nendstream"
	)
	page := func(contents string) string {
		return "<</Type/Page/Parent 2 0 R/Resources<</Font<</F 3 0 R>>>>/Contents " + contents + ">>"
	}
	kids := func(refs string, n int) string { return fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", refs, n) }
	const text = "BT /F 12 Tf 72 700 Td (The ferry leaves at nine.) Tj ET"
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write([]byte(text))
	must(t, errors.Join(err, z.Close()))
	based := func(s string) string {
		out := make([]byte, ascii85.MaxEncodedLen(len(s)))
		return string(out[:ascii85.Encode(out, []byte(s))]) + "~>"
	}
	filtered := func(filter, content string) []byte {
		return pdfOf(catalog, kids("4 0 R", 1), helv, page("5 0 R"),
			fmt.Sprintf("<</Filter %s/Length %d>>\nstream\n%s\nendstream", filter, len(content), content))
	}
	tests := []struct {
		name    string
		data    []byte
		partial string // expected for a file that is read
		err     string
	}{
		{"in letters", filtered("/ASCII85Decode", based(text)), "", ""},
		{"packed, in letters", filtered("[/ASCII85Decode/FlateDecode]", based(packed.String())), "", ""},
		{"in digits", filtered("/ASCIIHexDecode", fmt.Sprintf("%x>", text)), "", ""},
		{"packed, in digits", filtered("[ /ASCIIHexDecode/FlateDecode]", fmt.Sprintf("%X>", packed.String())), "", ""},
		{"whole", pdfOf(catalog, kids("4 0 R", 1), helv, page("5 0 R"), ferry), "", ""},
		{"a page is not there", pdfOf(catalog, kids("99 0 R 4 0 R", 2), helv, page("5 0 R"), ferry),
			"page 1 of 2 could be read only in part or not at all: the file is damaged", ""},
		{"a part of a page is not there", pdfOf(catalog, kids("4 0 R", 1), helv, page("[5 0 R 99 0 R]"), ferry), "page 1 of 1", ""},
		{"the length of a page is not there", pdfOf(catalog, kids("4 0 R 6 0 R", 2), helv, page("5 0 R"), ferry, page("7 0 R"),
			strings.Replace(ferry, "58", "99 0 R", 1)), "page 2 of 2", ""},
		{"a filter on one page", pdfOf(catalog, kids("4 0 R 6 0 R", 2), helv, page("5 0 R"), ferry, page("7 0 R"), lzw),
			`page 2 of 2 could be read only in part or not at all: filters that are not supported ("LZWDecode")`, ""},
		{"a filter on every page", pdfOf(catalog, kids("4 0 R", 1), helv, page("5 0 R"), lzw), "", `the filter "LZWDecode" is not supported`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := new(Reader).Read(t.Context(), "a.pdf", tt.data)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("err = %v, want %q", err, tt.err)
				}
				return
			}
			must(t, err)
			checkDocument(t, doc)
			if doc.Text != "The ferry leaves at nine." {
				t.Errorf("text = %q, want that of the undamaged file", doc.Text)
			}
			if (tt.partial == "") != (doc.Partial == "") || !strings.Contains(doc.Partial, tt.partial) {
				t.Errorf("Partial = %q, want %q", doc.Partial, tt.partial)
			}
			if tt.name == "a page is not there" && doc.PageAt(0) != 2 {
				t.Errorf("the first text is on page %d, want 2", doc.PageAt(0))
			}
		})
	}
}
