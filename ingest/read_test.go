package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"golang.org/x/text/unicode/norm"

	"ibid/data/datatest"
	"ibid/ingest/format"
	"ibid/ingest/pdf"
)

// checkDocument fails the test unless a document is valid.
func checkDocument(t testing.TB, doc *Document) {
	t.Helper()
	text := doc.Text
	if !utf8.ValidString(text) || !norm.NFC.IsNormalString(text) || text != format.Clean(text) {
		t.Errorf("%s: text is not clean", doc.Path)
	}
	last := 0
	for _, s := range doc.Sections {
		if s.Start < last || s.End < s.Start || s.End > len(text) || s.Level < 1 {
			t.Fatalf("%s: section %+v after byte %d of %d", doc.Path, s, last, len(text))
		}
		message := slices.Contains([]string{"mail", "mbox", "outlook"}, doc.Format) // headings of messages are not in the text
		if !message && !strings.HasPrefix(strings.TrimLeft(text[s.Start:], " "), s.Heading) {
			t.Errorf("%s: section %q has the text %q", doc.Path, s.Heading, text[s.Start:s.End])
		}
		last = s.Start
	}
	last = 0
	for i, p := range doc.Pages {
		if p.Number != i+1 || p.Start < last || p.End < p.Start || p.End > len(text) {
			t.Fatalf("%s: page %+v after byte %d of %d", doc.Path, p, last, len(text))
		}
		last = p.End
	}
}

// TestPicturesPage checks that PICTURES.md shows the current chunks of its files.
func TestPicturesPage(t *testing.T) {
	page, err := os.ReadFile("PICTURES.md")
	must(t, err)
	for _, name := range []string{"columns.pdf", "form.pdf", "hebrew.pdf"} {
		doc, err := new(Reader).Read(t.Context(), name, testPDF(t, name))
		must(t, err)
		var cell []string
		for _, c := range split(t.Context(), doc, 60, 90) {
			text := strings.NewReplacer("\n\n", "<br>", "\n", "<br>", "|", `\|`).Replace(strings.TrimSpace(doc.Text[c.Start:c.End]))
			cell = append(cell, fmt.Sprintf("**%d** · %s · %d tokens<br>%s", c.Ordinal, c.Heading, c.Tokens, text))
		}
		want := strings.Join(cell, "<br><br>") + " |\n"
		if !strings.Contains(string(page), "| `"+name+"` | chunks |\n") || !strings.Contains(string(page), want) {
			t.Errorf("%s: the page lacks\n%s", name, want)
		}
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

// samples returns the files of testdata/read by name, if their format matches.
func samples(t testing.TB, match func(fileFormat) bool) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := filepath.Glob("testdata/read/*")
	must(t, err)
	for _, name := range names {
		if f, ok := formatOf(name); ok && match(f) {
			data, err := os.ReadFile(name)
			must(t, err)
			files[filepath.Base(name)] = data
		}
	}
	if len(files) < 12 {
		t.Fatalf("only %d files found", len(files))
	}
	return files
}

// inProcess reports whether files of a format are read by this process alone.
func inProcess(f fileFormat) bool { return !f.isolated && (f.read != nil || f.readText != nil) }

// TestReadGolden: a new case is a new file in testdata/read; -update writes its golden
// file.
func TestReadGolden(t *testing.T) {
	for name, data := range samples(t, func(fileFormat) bool { return true }) {
		t.Run(name, func(t *testing.T) { checkGoldenRead(t, name, data, filepath.Join("testdata", "read", name+".golden")) })
	}
}

// checkGoldenRead compares the result or error of reading a file with a golden file.
func checkGoldenRead(t *testing.T, name string, data []byte, golden string) {
	t.Helper()
	doc, err := new(Reader).Read(t.Context(), name, data)
	if err != nil {
		datatest.Golden(t, golden, fmt.Sprintf("error (%T): %v\n", err, err))
		return
	}
	checkDocument(t, doc)
	datatest.Golden(t, golden, dump(doc))
}

// A refusal is a file that is not read, with a part of the reason. A file with an empty
// reason is read.
type refusal struct {
	name, data string
	skipped    bool
	reason     string
}

func checkRefusals(t *testing.T, r *Reader, refusals []refusal) {
	t.Helper()
	for _, tt := range refusals {
		doc, err := r.Read(t.Context(), tt.name, []byte(tt.data))
		if tt.reason == "" && err == nil {
			continue
		}
		if err == nil {
			t.Errorf("%s, %q: read as %.100q", tt.name, tt.reason, doc.Text)
			continue
		}
		var skip *SkipError
		if errors.As(err, &skip) != tt.skipped || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %T %v, want skipped %v, %q", tt.name, err, err, tt.skipped, tt.reason)
		}
	}
}

// TestReadCases: a new case is a new row of testdata/cases.txt.
func TestReadCases(t *testing.T) {
	for _, section := range []string{
		"rtf", "calendars", "words parted by style alone", "pages", "tables", "titles", "metadata", "refused", "hostile",
	} {
		for _, row := range datatest.Rows(t, "testdata/cases.txt", section) {
			doc, err := new(Reader).Read(t.Context(), row[0], []byte(row[1]))
			want := map[string]string{"partial": "", "skipped": "", "failed": ""}
			for pair := range slices.Chunk(row[2:], 2) {
				want[pair[0]] = pair[1]
			}
			got := map[string]string{}
			if skip := (*SkipError)(nil); errors.As(err, &skip) {
				got["skipped"] = skip.Reason
			} else if err != nil {
				got["failed"] = err.Error()
			} else {
				checkDocument(t, doc)
				got = readOf(doc)
			}
			for key, value := range want {
				reason := (key == "skipped" || key == "failed") && value != "" && strings.Contains(got[key], value)
				if got[key] != value && !reason {
					t.Errorf("%s, %.60q: %s %q, want %q", row[0], row[1], key, got[key], value)
				}
			}
		}
	}
}

// readOf returns the properties of a document that test cases may check.
func readOf(doc *Document) map[string]string {
	var anchors, meta []string
	for _, s := range doc.Sections {
		anchors = append(anchors, s.Anchor)
	}
	delete(doc.Meta, ReaderKey)
	for _, key := range slices.Sorted(maps.Keys(doc.Meta)) {
		meta = append(meta, key+"="+doc.Meta[key])
	}
	return map[string]string{"text": doc.Text, "title": doc.Title, "format": doc.Format, "partial": doc.Partial,
		"anchors": strings.Join(anchors, " "), "meta": strings.Join(meta, "; ")}
}

func TestReadRefuses(t *testing.T) {
	checkRefusals(t, &Reader{MaxBytes: 1 << 20}, []refusal{
		{"a.txt", strings.Repeat("x", 1<<20+1), true, "larger than 1 MB"},
		{"a.csv", "a,b\n\"" + strings.Repeat("x\n", 1<<19), true, "larger than"},
	})
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

// TestLargeTrees checks that a large tree is read in a child with the same result.
func TestLargeTrees(t *testing.T) {
	r := new(Reader)
	defer r.Close()
	type tree struct{ name, unit string }
	for _, tree := range datatest.Pick(t, []tree{{"a.md", "# Mooring\n\nThe *fee* is due in May.\n\n"},
		{"a.html", "<h2>Mooring</h2><p>The fee is due in May.\n"}}) {
		name, unit := tree.name, tree.unit
		data := []byte(strings.Repeat(unit+strings.Repeat("It is paid by boat and year. ", 40)+"\n\n", largeTree/len(unit)/100))
		f, _ := formatOf(name)
		here, there := &Document{Path: name}, &Document{Path: name}
		must(t, f.readInto(here, data))
		must(t, r.readInChild(t.Context(), f.name, there, data))
		if !reflect.DeepEqual(here, there) {
			t.Errorf("%s: the result of a child differs", name)
		}
	}
}

var must = datatest.Must

func TestMain(m *testing.M) {
	if code, ran := RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "ibid-test-")
	if err == nil {
		err = os.Setenv(compiledVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Children of readers that were not closed end by themselves.
	children := goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2")
	goleak.VerifyTestMain(m, children, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
