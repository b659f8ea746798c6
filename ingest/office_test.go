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
		if _, err := part.Write(f.Data); err != nil {
			t.Fatal(err)
		}
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

// A new case is a new txtar archive in testdata/office, which is zipped into a
// file of the name before .txtar; -update writes its golden file.
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

// A file that is not read says why, and what to do.
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
			text("b.opf", `<package><spine><itemref idref="x"/></spine></package>`))), false, "all the pages"},
	})
}

// What a file has as the number of an item is text like any other.
func TestOfficeMarkers(t *testing.T) {
	data := `{\rtf1{\listtext\u8238 ? 1\'01.\tab}\ls1 Moor the boat.\par{\listtext ` + strings.Repeat("1", 300) + `}\ls1 Pay.\par}`
	doc, err := new(Reader).Read(t.Context(), "a.rtf", []byte(data))
	must(t, err)
	checkDocument(t, doc)
	if doc.Text != "1. Moor the boat.\n- Pay." {
		t.Errorf("%q", doc.Text)
	}
}

// Unusual names and compression are read, with a note if something may be missing.
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
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		checkDocument(t, doc)
		if doc.Text != tt.text || (tt.partial == "") != (doc.Partial == "") || !strings.Contains(doc.Partial, tt.partial) {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, doc.Text, doc.Partial, tt.text, tt.partial)
		}
	}
}

func TestRTF(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"paragraphs", `The ferry\par leaves at {\b nine}.\par`, "The ferry\n\nleaves at nine."},
		{"a heading", `{\stylesheet{\s1\outlinelevel0 heading 1;}}\pard\s1 Fares\par\pard Deck: 4.\par`, "Fares\n\nDeck: 4."},
		{"encodings", `{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 f\'fcr {\f1\'c4\'e0} \u8364?\uc2\u-10179??\u-8704??`, "für Да €😀"},
		{"a table", `\trowd\intbl What\cell Fee\cell\row\intbl Canoe\cell 7\cell\row\pard After.\par`, "What: Canoe | Fee: 7\n\nAfter."},
		{"what is not text", `{\*\generator X;}{\info{\title T}}{\header Page \chpgn}{\pict 00ff}{\field{\*\fldinst HYPERLINK "x"}{\fldrslt Link}}`,
			"Link"},
		{"hidden text", `{\v hidden \u8364? {\xe\v entry}}Seen \v hidden\plain again.`, "Seen again."},
		{"drawn words", `{\shp{\*\shpinst{\sp{\sn gtextUNICODE}{\sv DRAFT}}}}Text.\par{\*\do{\dptxbxtext\pard Box.\par}}`,
			"Text.\n\nBox.\n\nDrawn text: DRAFT"},
		{"notes", `Text{\footnote A note.} goes on.\par`, "Text (A note.) goes on."},
		{"notes of LibreOffice", `Text{\*\footnote\chftn A note.} goes on.\par`, "Text (A note.) goes on."},
		{"signs", `\{a\}\line b\~c\emdash d\tab e\'`, "{a}\nb c—d\te"},
		{"after its end", `a}garbage`, "a"},
		{"a list", `\pard\ls1 one\par\pard\ls1 two\par`, "- one\n- two"},
	} {
		doc, err := new(Reader).Read(t.Context(), "a.rtf", []byte(`{\rtf1\ansi `+tt.body+`}`))
		partial := map[string]string{"hidden text": "hidden text is left out: 2"}[tt.name]
		if err != nil || doc.Text != tt.want || doc.Partial != partial {
			t.Errorf("%s: %+v, %v, want %q", tt.name, doc, err, tt.want)
			continue
		}
		checkDocument(t, doc)
	}
}

func TestCalendar(t *testing.T) {
	const event = "BEGIN:VCALENDAR\r\nX-WR-CALNAME:Harbour\r\nBEGIN:VTIMEZONE\r\nTZID:Europe/Oslo\r\nBEGIN:STANDARD\r\n" +
		"DTSTART:19701025T030000\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nSUMMARY:Regatta\\, day 1\r\n" +
		"DTSTART;TZID=Europe/Oslo:20240308T090000\r\nATTACH;FILENAME=Plan.pdf;ENCODING=BASE64;VALUE=BINARY:QQ==\r\n" +
		"DESCRIPTION:Bring \r\n ropes.\r\nATTENDEE;CN=\"Ada Marsh\":mailto:ada@example.org\r\nUID:1\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	const contact = "BEGIN:VCARD\nVERSION:3.0\nFN:Ada Marsh\nORG:Harbour;Office\nitem1.TEL;TYPE=work:+47 1\n" +
		"NOTE;ENCODING=QUOTED-PRINTABLE:F=C3=A4hre\nEND:VCARD\nBEGIN:VCARD\nFN:Bo\nEND:VCARD\nBEGIN:VCARD\nN:Osborne;Ann;;Dr.\nFN:\nEND:VCARD\n"
	for name, tt := range map[string]struct{ data, want, partial string }{
		"a.ics": {event, "Regatta, day 1\n\n- Start: 2024-03-08 09:00 Europe/Oslo\n- Description: Bring ropes.\n" +
			"- Attendee: Ada Marsh (ada@example.org)", "files in it are not read: Plan.pdf"},
		"a.vcf": {contact, "Ada Marsh\n\n- Organization: Harbour, Office\n- Phone: +47 1\n- Note: Fähre\n\nBo\n\nDr. Ann Osborne", ""},
	} {
		doc, err := new(Reader).Read(t.Context(), name, []byte(tt.data))
		if err != nil || doc.Text != tt.want || doc.Partial != tt.partial {
			t.Errorf("%s: %+v, %v, want %q", name, doc, err, tt.want)
			continue
		}
		checkDocument(t, doc)
	}
	if _, err := new(Reader).Read(t.Context(), "a.ics", []byte("Nothing.\n")); err == nil {
		t.Error("a text without events was read")
	}
}
