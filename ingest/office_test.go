package ingest

import (
	"archive/zip"
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// zipOf packs files as office programs do, in order.
func zipOf(t testing.TB, files ...txtar.File) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		method := zip.Deflate
		if f.Name == "mimetype" {
			method = zip.Store
		}
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method})
		must(t, err)
		_, err = part.Write(f.Data)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// officeFiles returns the files of testdata/office, zipped, by name.
func officeFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/office/*.txtar")
	must(t, err)
	files := map[string][]byte{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		must(t, err)
		name = strings.TrimSuffix(filepath.Base(name), ".txtar")
		files[name] = zipOf(t, archive.Files...)
	}
	return files
}

// TestReadOfficeGolden: a new case is a new txtar archive in testdata/office, which is
// zipped into a file of the same name without .txtar. -update writes its golden file.
func TestReadOfficeGolden(t *testing.T) {
	files := officeFiles(t)
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			checkGoldenRead(t, name, data, filepath.Join("testdata", "office", name+".golden"))
		})
	}
	if len(files) < 1 {
		t.Errorf("only %d cases found", len(files))
	}
}

// TestOfficeRefusals checks that the reason for an unread file says what to do.
func TestOfficeRefusals(t *testing.T) {
	const ole = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	text := func(name, data string) txtar.File { return txtar.File{Name: name, Data: []byte(data)} }
	checkRefusals(t, new(Reader), []refusal{
		{"a.doc", ole, false, "damaged or cut off"},
		{"a.xml.xls", `<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>`, true, "save it as .docx"},
		{"a.docx", "words", false, "not an office document"},
		{"a.docx", string(zipOf(t, text("a.txt", "words"))), false, "a zip archive without a document"},
		{"a.xlsb", string(zipOf(t, officeRels("xl/workbook.bin"), text("xl/workbook.bin", "\x83\x01"))), true, "there is no text in it"},
		{"a.docx", string(zipOf(t, officeRels("m.xml"), text("m.xml", "<html/>"))), false, "not a text, a presentation or a workbook"},
		{"a.docx", string(zipOf(t, officeRels("m.xml"), text("m.xml", "words"))), false, "its main part (m.xml) cannot be read"},
		{"a.docx", string(docxOf(t, "<w:p/>")), true, "there is no text in it"},
		{"a.docx", string(docxOf(t, "<w:p/>")[:120]), false, "damaged or cut off"},
		{"a.odt", string(zipOf(t, text("mimetype", "application/vnd.oasis.opendocument.text"), text("content.xml", "x"),
			text("META-INF/manifest.xml", `<manifest:manifest><manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>`))), false, "protected with a password"},
		{"a.odt", string(zipOf(t, text("mimetype", "application/vnd.oasis.opendocument.text"))), false, "content.xml"},
		{"a.epub", string(zipOf(t, text("mimetype", "application/epub+zip"),
			text("META-INF/encryption.xml",
				`<e><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/><CipherReference URI="OPS/one.xhtml"/></EncryptedData></e>`))), false, "rights management (DRM)"},
		{"a.epub", string(zipOf(t, text("mimetype", "application/epub+zip"), text("META-INF/license.lcpl", "{}"))), false,
			"rights management (DRM)"},
		{"a.epub", string(zipOf(t, text("mimetype", "application/epub+zip"))), false, "the package document"},
		{"a.epub", string(zipOf(t, text("mimetype", "application/epub+zip"),
			text("META-INF/container.xml", `<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>`),
			text("b.opf", `<package><spine><itemref idref="x"/></spine></package>`))), false, "all its pages"},
	})
}

// TestOfficeOddPacking checks that unusual names and compression are read, with a note if
// parts may be missing.
func TestOfficeOddPacking(t *testing.T) {
	const ferry = "<w:p><w:r><w:t>The ferry leaves at nine.</w:t></w:r></w:p>"
	part := func(name, body string) txtar.File {
		return txtar.File{Name: name, Data: []byte(`<w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`)}
	}
	whole := docxOf(t, ferry)
	torn := docxOf(t, ferry+"<w:p><w:r><w:t>And at ten</w:t></w:r></w:q></w:p><w:p><")
	tests := []struct {
		name          string
		data          []byte
		text, partial string
	}{
		{"renamed.doc", whole, "The ferry leaves at nine.", ""},
		{"renamed.odt", whole, "The ferry leaves at nine.", ""},
		{"backslashes.docx", zipOf(t, officeRels("/word/document.xml"), part(`\WORD\Document.xml`, ferry)), "The ferry leaves at nine.", ""},
		{"outside.docx", zipOf(t, officeRels("../../word/document.xml"), part("../../word/document.xml", ferry)), "The ferry leaves at nine.",
			""},
		{"twice.docx", zipOf(t, officeRels("word/document.xml"), part("word/document.xml", ferry),
			part("word/document.xml", "<w:p><w:r><w:t>Another.</w:t></w:r></w:p>")), "The ferry leaves at nine.", ""},
		{"torn.docx", torn, "The ferry leaves at nine.\n\nAnd at ten", "the file is damaged"},
	}
	r := new(Reader)
	for _, tt := range tests {
		doc, err := r.Read(t.Context(), tt.name, tt.data)
		if err != nil {
			t.Errorf("reading %s: %v", tt.name, err)
			continue
		}
		checkDocument(t, doc)
		if doc.Text != tt.text || (tt.partial == "") != (doc.Partial == "") || !strings.Contains(doc.Partial, tt.partial) {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, doc.Text, doc.Partial, tt.text, tt.partial)
		}
	}
}
