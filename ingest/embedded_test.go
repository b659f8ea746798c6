package ingest

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"ibid/data/datatest"
	"ibid/ingest/pdf"
)

// TestSyncOfEmbeddedFiles checks that files embedded in a document become documents below
// it, even in archives, and that files that cannot be extracted are named.
func TestSyncOfEmbeddedFiles(t *testing.T) {
	const start = `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>`
	report := func(pairs ...string) *fstest.MapFile {
		return zipped(t, append([]string{"word/document.xml", start + "The report.</w:t></w:r></w:p></w:body></w:document>"}, pairs...)...)
	}
	inner := report("word/embeddings/Fares.csv", "class,fare\ndeck,4\n")
	fsys := fstest.MapFS{
		"a.docx": report("word/embeddings/Inner.docx", string(inner.Data), "word/embeddings/control1.bin", "\x00\x01",
			"word/embeddings/song.mp3", "\xff\xd8", "word/charts/chart1.xml", "<c/>",
			"word/charts/_rels/chart1.xml.rels", `<Relationships><Relationship Id="r1" Type="http://schemas.openxmlformats.org/`+
				`officeDocument/2006/relationships/package" Target="../embeddings/Data.xlsx"/></Relationships>`,
			"word/embeddings/Data.xlsx", "data of the chart"),
		"b.zip":  zipped(t, "b.docx", string(inner.Data)),
		"c.pdf":  file1(pdfWith("notes/plan.txt", "The plan.")),
		"f.pdf":  file1(strings.Replace(pdfWith("song.txt", "x"), "/Type /EmbeddedFile", "/Filter /NoSuchKind", 1)),
		"d.docx": report(),
		"g.odt": zipped(t, "mimetype", "application/vnd.oasis.opendocument.text", "content.xml",
			`<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"/>`, "Obj100", string(report().Data)),
		"e.docx": report("word/embeddings/bomb.txt", strings.Repeat("x", 30<<20)),
	}
	const pictured = `<w:document xmlns:w="w" xmlns:a="a" xmlns:wp="wp" xmlns:r="x/relationships"><w:body>%s` +
		`<w:p><w:r><wp:docPr descr="A boat at the pier"/><a:blip r:embed="r1"/></w:r></w:p>` +
		`<w:p><w:r><wp:docPr descr="image1.png"/><a:blip r:embed="r1"/><a:blip r:embed="r2"/></w:r></w:p></w:body></w:document>`
	parts := []string{"word/_rels/document.xml.rels", `<Relationships><Relationship Id="r1" Target="media/1.png"/>` +
		`<Relationship Id="r2" Target="media/2.png"/></Relationships>`, "word/media/1.png", pngOf(t, 400, 300), "word/media/2.png", pngOf(t, 40, 40)}
	text := strings.Replace(fmt.Sprintf(pictured, ""), "A boat at the pier", "1.png", 1)
	fsys["h.docx"] = zipped(t, append(parts, "word/document.xml", text)...)
	fsys["i.docx"] = zipped(t, append(parts, "word/document.xml", fmt.Sprintf(pictured, "<w:p><w:r><w:t>Minutes.</w:t></w:r></w:p>"))...)
	fsys["j.epub"] = zipped(t, "mimetype", "application/epub+zip", "META-INF/container.xml", `<c><rootfile full-path="O/b.opf"/></c>`,
		"O/b.opf", `<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`,
		"O/a.xhtml", `<html><body><p>One.</p><img alt="" src="p%201.png"/><img src="2.png"/><img alt="A boat" src="p%201.png"/></body></html>`,
		"O/p 1.png", pngOf(t, 400, 300), "O/2.png", pngOf(t, 40, 40))
	sink := newMemory()
	got, err := syncAll(t, &Syncer{Sink: sink}, fsys)
	must(t, err)
	datatest.Golden(t, filepath.Join("testdata", "sync", "embedded.golden"), strings.Join(got, "\n")+"\n")
	if doc := sink.docs["harbour/c.pdf/plan.txt"]; doc == nil || doc.Text != "The plan." {
		t.Errorf("document in c.pdf = %+v, want the text of plan.txt", doc)
	}
	if said := sink.docs["harbour/a.docx"].Meta[UnreadKey]; said != "files in it are not read: control1.bin" ||
		sink.docs["harbour/d.docx"].Meta[UnreadKey] != "" {
		t.Errorf("a.docx: unread = %q", said)
	}
	data, err := new(Reader).Original(t.Context(), fsys, sink.docs["harbour/a.docx/inner.docx/fares.csv"])
	if err != nil || string(data) != "class,fare\ndeck,4\n" {
		t.Errorf("original of fares.csv = %q, %v; want the embedded file", data, err)
	}

	fsys["a.docx"] = report()
	got, err = syncAll(t, &Syncer{Sink: sink, Include: []string{"*.docx"}}, fstest.MapFS{"a.docx": fsys["a.docx"], "c.pdf": fsys["c.pdf"]})
	must(t, err)
	if got[0] != "updated a.docx" || strings.Contains(strings.Join(got, "\n"), "unchanged c.pdf") {
		t.Errorf("changes = %q, want a.docx updated, and nothing about c.pdf, which is not included", got)
	}
	got, err = syncAll(t, &Syncer{Sink: newMemory(), Include: []string{"#archive"}}, fstest.MapFS{"c.pdf": fsys["c.pdf"]})
	if must(t, err); len(got) > 0 {
		t.Errorf("changes = %q, want none: a comment includes no file", got)
	}
}

func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var out strings.Builder
	must(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))))
	return out.String()
}

// TestMayHold checks that mayHold recognizes every PDF file with attached files.
func TestMayHold(t *testing.T) {
	found := 0
	for _, set := range []string{"pdf-tika", "pdf-pdfjs", "pdf-real"} {
		names, err := filepath.Glob(filepath.Join(datatest.Sets(t, "files"), set, "*.pdf"))
		must(t, err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			must(t, err)
			holds := 0
			must(t, pdf.Files(data, func(string, []byte) error { holds++; return nil }))
			if found += holds; holds > 0 && !mayHold(name, data) {
				t.Errorf("%s has %d attached files, but mayHold = false", name, holds)
			}
		}
	}
	if found == 0 {
		t.Error("no attached file found")
	}
}

// pdfWith returns a PDF file with two attached files: one in its list, one on its page.
func pdfWith(name, content string) string {
	const page = "BT /F 12 Tf 72 700 Td (A page with words on it.) Tj ET"
	stream := func(dict, data string) string {
		return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
	}
	objects := []string{
		"<</Type /Catalog /Pages 2 0 R /Names <</EmbeddedFiles <</Names [(plan) 6 0 R]>>>>>>",
		"<</Type /Pages /Kids [3 0 R] /Count 1>>",
		"<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Font <</F 5 0 R>>>> /Annots [" +
			"<</Subtype /FileAttachment /FS 8 0 R>> <</Subtype /FileAttachment /FS 6 0 R>>]>>",
		stream("", page),
		"<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
		"<</Type /Filespec /F (" + name + ") /EF <</F 7 0 R>>>>",
		stream("/Type /EmbeddedFile", content),
		"<</Type /Filespec /UF (chart.csv) /EF <</F 9 0 R>>>>",
		stream("/Type /EmbeddedFile", "depth,place\n4,pier\n"),
	}
	return string(pdfOf(objects...))
}
