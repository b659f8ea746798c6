package ingest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"ibid/ingest/format"
	"ibid/ingest/pdf"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// checkDocument fails the test unless a document is valid.
func checkDocument(t testing.TB, doc *Document) {
	t.Helper()
	text := doc.Text
	if !utf8.ValidString(text) || !norm.NFC.IsNormalString(text) || text != format.Clean(text) {
		t.Errorf("%s: the text is not clean", doc.Path)
	}
	last := 0
	for _, s := range doc.Sections {
		if s.Start < last || s.End < s.Start || s.End > len(text) || s.Level < 1 {
			t.Fatalf("%s: section %+v after %d of %d", doc.Path, s, last, len(text))
		}
		if s.Heading != "" && !strings.HasPrefix(strings.TrimLeft(text[s.Start:], " "), s.Heading) {
			t.Errorf("%s: section %q stands at %q", doc.Path, s.Heading, text[s.Start:s.End])
		}
		last = s.Start
	}
	last = 0
	for i, p := range doc.Pages {
		if p.Number != i+1 || p.Start < last || p.End < p.Start || p.End > len(text) {
			t.Fatalf("%s: page %+v after %d of %d", doc.Path, p, last, len(text))
		}
		last = p.End
	}
}

// dump returns a document as text.
func dump(doc *Document) string {
	var out strings.Builder
	fmt.Fprintf(&out, "title: %s\nformat: %s\n", doc.Title, doc.Format)
	for _, k := range []string{"author", "date", "updated", "tags", "language", "description", "version", "status"} {
		if v := doc.Meta[k]; v != "" {
			fmt.Fprintf(&out, "%s: %s\n", k, v)
		}
	}
	if doc.Partial != "" {
		fmt.Fprintf(&out, "partial: %s\n", doc.Partial)
	}
	for _, s := range doc.Sections {
		fmt.Fprintf(&out, "section %d %d-%d #%s %s\n", s.Level, s.Start, s.End, s.Anchor, s.Heading)
	}
	for _, p := range doc.Pages {
		fmt.Fprintf(&out, "page %d %d-%d\n", p.Number, p.Start, p.End)
	}
	fmt.Fprintf(&out, "----\n%s\n", doc.Text)
	for _, c := range split(context.Background(), doc, 60, 90) {
		fmt.Fprintf(&out, "---- %d [%d-%d] %d tokens, page %d, #%s, %s\n", c.Ordinal, c.Start, c.End, c.Tokens, c.Page, c.Anchor, c.Heading)
	}
	return out.String()
}

// checkGolden compares the result of a case with its golden file.
func checkGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// A new case is a new file in testdata/read; -update writes its golden file.
func TestReadGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/read/*")
	must(t, err)
	cases := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		cases++
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			must(t, err)
			var got string
			doc, err := new(Reader).Read(t.Context(), filepath.Base(name), data)
			if err != nil {
				got = fmt.Sprintf("error (%T): %v\n", err, err)
			} else {
				checkDocument(t, doc)
				got = dump(doc)
			}
			checkGolden(t, name+".golden", got)
		})
	}
	if cases < 12 {
		t.Errorf("only %d cases found", cases)
	}
}

func TestReadRefuses(t *testing.T) {
	r := &Reader{MaxBytes: 1 << 20}
	tests := []struct {
		name, data string
		skipped    bool
		reason     string
	}{
		{"a.md", "", true, "empty"},
		{"a.md", " \n\u200b\n", true, "no text"},
		{"a.zip", "PK", true, "read as a folder"},
		{"a.txt", strings.Repeat("x", 1<<20+1), true, "larger than 1 MB"},
		{"a.md", "%PDF-1.4 …", false, "a PDF named .md"},
		{"standard input", "%PDF-1.4 …", false, "it is a PDF, and its name has no ending"},
		{"a.md", "\x89PNG\r\n\x1a\n\x00\x00", false, "a PNG picture named .md"},
		{"a.md", strings.Repeat("\x00\x01\x02\x03\x91\x92", 50), false, "binary"},
		{"a.csv", "a,b\n\"" + strings.Repeat("x\n", 1<<19), true, "larger than"},
		{"ibid", "\x7fELF\x02\x01", true, "a program"},
		{"LICENCE", strings.Repeat("\x00\x01\x02\x03\x91\x92", 50), true, "binary"},
		{"libharbour.so.6", "\x7fELF\x02\x01", true, "a program"},
		{"lamp-2.0", strings.Repeat("\x00\x01\x02\x03\x91\x92", 50), true, "binary"},
		{"README.mp3", strings.Repeat("\x00\x01\x02\x03\x91\x92", 50), true, "binary"},
		{"lamp.dns", "The lamp is lit.", true, ".dns files are not read"},
		{"lamp.7z.001", "The lamp is lit.", true, ".001 files are not read"},
	}
	for _, tt := range tests {
		doc, err := r.Read(t.Context(), tt.name, []byte(tt.data))
		if err == nil {
			t.Errorf("%s %.20q: read as %q", tt.name, tt.data, doc.Text)
			continue
		}
		if _, skipped := err.(*SkipError); skipped != tt.skipped || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s %.20q: %T %v, want skipped %v, %q", tt.name, tt.data, err, err, tt.skipped, tt.reason)
		}
	}
}

func TestReadDoesNotKeepData(t *testing.T) {
	data := []byte("# Title\n\nText that stays.\n")
	doc, err := new(Reader).Read(t.Context(), "a.md", data)
	must(t, err)
	copy(data, bytes.Repeat([]byte("x"), len(data)))
	if doc.Text != "Title\n\nText that stays." {
		t.Errorf("the text changed with the input: %q", doc.Text)
	}
}

// A placeholder is no title.
func TestReadTitles(t *testing.T) {
	for _, tt := range []struct{ name, data, title, format string }{
		{"notes/lamp.txt", "The lamp is lit.", "lamp", "text"},
		{"licences/Apache-2.0", "The lamp is lit.", "Apache-2.0", "text"},
		{"log/lamps.1", "The lamp is lit.", "lamps.1", "text"},
		{"README.Debian", "The lamp is lit.", "README.Debian", "text"},
		{"README.md", "The lamp is lit.", "README", "markdown"},
		{"lamp.md", "# Lamp [![build](b.svg)](b) ![Version](v.svg)\n\nIt is lit.", "Lamp", "markdown"},
		{"notes/a\n\n[2] Statutes\u202e.txt", "The lamp is lit.", `a\n\n[2] Statutes\u202e`, "text"},
		{"a\x1b[2m.go", "package lamp\n\n// Lit is on.\nvar Lit = 1\n", `a\x1b[2m.go`, "code"},
		{"lamp.md", "![Lamp](l.svg)\n====\n\nIt is lit.", "Lamp", "markdown"},
	} {
		doc, err := new(Reader).Read(t.Context(), tt.name, []byte(tt.data))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		checkDocument(t, doc)
		if doc.Title != tt.title || doc.Format != tt.format {
			t.Errorf("%s: title %q, format %q; want %q, %q", tt.name, doc.Title, doc.Format, tt.title, tt.format)
		}
	}
}

func TestPDFStandIns(t *testing.T) {
	for _, tt := range []struct{ title, author, wantTitle, wantAuthor string }{
		{"(anonymous)", "(anonymous)", "The lamp", ""},
		{"Untitled", "Anonymous", "The lamp", ""},
		{"The anonymous letters", "A. Nonym", "The anonymous letters", "A. Nonym"},
	} {
		doc := new(Document)
		format.PDF(doc, &pdf.File{Title: tt.title, Author: tt.author, Pages: []pdf.Page{{Blocks: []pdf.Block{
			{Heading: 1, Text: "The lamp"}, {Text: "It is lit."},
		}}}})
		if doc.Title != tt.wantTitle || doc.Meta["author"] != tt.wantAuthor {
			t.Errorf("%+v: title %q, author %q", tt, doc.Title, doc.Meta["author"])
		}
	}
}
