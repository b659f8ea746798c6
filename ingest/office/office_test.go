package office

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

var must = datatest.Must

// TestNative checks that a packed file gets its name from its label or its path, and that a
// truncated one is not a file.
func TestNative(t *testing.T) {
	packed := func(label, from, content string) []byte {
		out := append([]byte("\x00\x00\x00\x00\x02\x00"), label+"\x00"+from+"\x00\x00\x00\x03\x00"...)
		out = append(binary.LittleEndian.AppendUint32(out, 4), "t.x\x00"...)
		return append(binary.LittleEndian.AppendUint32(out, uint32(len(content))), content...)
	}
	for _, tt := range []struct{ label, from, want string }{
		{"plan.txt", `C:\in\plan.txt`, "plan.txt"}, {"Plan", `C:\in\plan.txt`, "plan.txt"}, {"Plan", "plan", ""},
		{"../up/plan.txt", "", "plan.txt"},
	} {
		data := packed(tt.label, tt.from, "The plan.")
		name, content, ok := packedFile(data)
		if name != tt.want || ok != (tt.want != "") || ok && string(content) != "The plan." {
			t.Errorf("packed file %q from %q = %q, %q, %v; want %q", tt.label, tt.from, name, content, ok, tt.want)
		}
		for n := range data {
			if name, _, ok := packedFile(data[:n]); ok {
				t.Errorf("truncated %q of %d bytes: file %q", tt.label, n, name)
			}
		}
	}
}

// TestFilesOfRealDocuments checks that files are extracted from office documents with the
// right extensions, and that truncated documents yield no more files.
func TestFilesOfRealDocuments(t *testing.T) {
	dir := filepath.Join(datatest.Sets(t, "files"), "mixed-tika")
	for file, want := range map[string]string{
		"testPDFEmbeddingAndEmbedded.docx": "oleobject1.pdf",
		"testPPT_oleWorkbook.pptx":         "oleobject1.xlsx",
		"testWORD_EMFAndAttachments.docx":  "TestText.txt microsoft_word_document.docx oleobject2.pdf",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		names := func(data []byte) (names []string) {
			if err := Files(data, func(name string, _ []byte) error { names = append(names, name); return nil }); err != nil {
				t.Errorf("listing the files in %s: %v", file, err)
			}
			slices.Sort(names)
			return names
		}
		all := names(data)
		if got := strings.Join(all, " "); got != want || want != "" && !HoldsFiles(data) {
			t.Errorf("%s: files = %s, want %s", file, got, want)
		}
		for n := 0; n < len(data); n += 1 + len(data)/50 {
			if got := names(data[:n]); len(got) > len(all) {
				t.Errorf("%s truncated to %d bytes: files = %q", file, n, got)
			}
		}
	}
}

// TestBinaryWorkbook checks that the cells, formats and comments of a binary workbook are
// read, up to any damage.
func TestBinaryWorkbook(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(datatest.Sets(t, "files"), "mixed-tika", "testEXCEL_various.xlsb"))
	must(t, err)
	read := func(damage func(part []byte) []byte) string {
		var out strings.Builder
		f := &file{archive: &archive{}, meta: func(string, string) {}, size: int64(len(data)), out: func(b Block) {
			out.WriteString(b.Anchor + " " + b.Text)
			for _, row := range b.Rows {
				out.WriteString(strings.Join(row, "|") + " ")
			}
			out.WriteString("\n")
		}}
		must(t, f.load(data))
		for _, name := range f.names {
			if content, err := f.content(name, maxOut); err == nil && strings.HasSuffix(name, ".bin") {
				content = damage(content)
				f.parts[name] = part{packed: content, size: int64(len(content))}
			}
		}
		must(t, f.binaryWorkbook("xl/workbook.bin"))
		return out.String()
	}
	whole := read(func(part []byte) []byte { return part })
	for _, want := range []string{"sheet=mySheet1&row=3 String|This is a string float|13.121123132", "currency|$3.03", "percent|20%",
		"Comment on C8: Allison, Timothy B.: test comment2", "merchant1|1|3"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is not in %s", want, whole)
		}
	}
	rng := datatest.Rand(t)
	for range datatest.Cases(t, 200) {
		read(func(part []byte) []byte {
			part = part[:rng.IntN(len(part)+1)]
			for range min(len(part), rng.IntN(20)) {
				part[rng.IntN(len(part))] ^= 1 << rng.IntN(8)
			}
			return part
		})
	}
}

func TestFormatNumber(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "numbers") {
		if got := formatNumber(row[0], row[1], false); got != row[2] {
			t.Errorf("formatNumber(%s, %s) = %q, want %q", row[0], row[1], got, row[2])
		}
	}
	if got := formatNumber("43920", "yyyy-mm-dd", true); got != "2024-03-31" {
		t.Errorf("formatNumber since 1904 = %s", got)
	}
}

func FuzzFormatNumber(f *testing.F) {
	for _, format := range []string{"#,##0.00_);[Red](#,##0.00)", "# ??/??", "[h]:mm:ss.000", "0.00E+00", "[<1]\"a\";;@", "yyyy\\-mm",
		"%%%", "General\" x\""} {
		f.Add("1234.5", format)
		f.Add("-1e-300", format)
	}
	f.Fuzz(func(t *testing.T, value, format string) {
		// The text of a number is short, whatever the format.
		if got := formatNumber(value, format, false); len(got) > len(value)+1000+10*len(format) {
			t.Errorf("formatNumber(%q, %q) has %d bytes", value, format, len(got))
		}
	})
}

func TestItemNumber(t *testing.T) {
	for _, c := range datatest.Table[struct {
		Format string
		N      int
		Want   string
	}](t, "testdata/tables.txt", "items") {
		if got := itemNumber(c.Format, c.N); got != c.Want {
			t.Errorf("itemNumber(%s, %d) = %q, want %q", c.Format, c.N, got, c.Want)
		}
	}
}

func TestUnescapeCell(t *testing.T) {
	for in, want := range map[string]string{"a_x000A_b": "a\nb", "_x005F_x000D_": "_x000D_", "_x": "_x", "a_xyz": "a_xyz",
		"_x00e9_": "é", "_x0041": "_x0041"} {
		if got := unescapeCell(in); got != want {
			t.Errorf("unescapeCell(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPrinted checks that a sheet's printed header, which has codes, is written once.
func TestPrinted(t *testing.T) {
	b := &workbook{file: &file{}}
	got := b.readPrinted(`&L&"Arial,Bold"&12For internal &KFF0000use only&C&A&RPage &P of &N`)
	if len(got) != 1 || got[0].Text != "Header or footer: For internal use only" {
		t.Errorf("printed header = %+v, want its words once, without codes", got)
	}
	if again := b.readPrinted("For internal use only"); len(again) != 0 {
		t.Errorf("second header = %+v, want none", again)
	}
}

// TestColumnNamesWithoutRows checks that a table that has only column names is kept.
func TestColumnNamesWithoutRows(t *testing.T) {
	b := Block{Rows: [][]string{{"a", "b"}, {"", ""}}, Names: 1}
	if b.setNames(); b.Names != 0 {
		t.Errorf("Names = %d, want 0", b.Names)
	}
}

// TestFormsOfText checks that check boxes and lists of forms in a text show their state.
func TestFormsOfText(t *testing.T) {
	for _, c := range datatest.Rows(t, "testdata/tables.txt", "forms") {
		var out []string
		_, err := Read([]byte(`<document xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml"><body><p>`+c[0]+`</p></body></document>`),
			func(b Block) { out = append(out, b.Text) }, func(string, string) {})
		if err != nil || strings.Join(out, "|") != c[1] {
			t.Errorf("reading %s = %q, %v; want %q", c[0], out, err, c[1])
		}
	}
}

// artOf returns a record of a drawing.
func artOf(kind, instance int, content ...string) string {
	data := strings.Join(content, "")
	head := binary.LittleEndian.AppendUint16(nil, uint16(instance<<4|0xf))
	head = binary.LittleEndian.AppendUint16(head, uint16(kind))
	return string(binary.LittleEndian.AppendUint32(head, uint32(len(data)))) + data
}

// TestDrawings checks that shapes of drawings before 2007 have texts or pictures, and that
// large enough pictures are counted, whether they are in the drawing or in their own
// stream.
func TestDrawings(t *testing.T) {
	shape := func(properties map[int]string, picture int) string {
		var short, long string
		for _, id := range slices.Sorted(maps.Keys(properties)) {
			text := utf16Bytes(properties[id]) + "\x00\x00"
			head := binary.LittleEndian.AppendUint16(nil, uint16(id|0x8000))
			short += string(binary.LittleEndian.AppendUint32(head, uint32(len(text))))
			long += text
		}
		short += string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(nil, artPictureID|0x4000), uint32(picture)))
		return artOf(artShape, 0, artOf(artProperties, len(short)/6, short, long))
	}
	pixelsOf := func(side int) string {
		var out bytes.Buffer
		must(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, side, side))))
		return artOf(0xf01e, 0x6e0, strings.Repeat("i", 17), out.String())
	}
	entry := func(place int, blip string) string {
		at := binary.LittleEndian.AppendUint64(nil, uint64(place))
		return artOf(artPicture, 6, strings.Repeat("\x00", 28), string(at), blip)
	}
	large, small := pixelsOf(300), pixelsOf(30)
	f := &file{unread: map[string]unreadCount{}}
	a := &artReader{file: f, delayed: []byte("before" + large)}
	a.read([]byte(artOf(0xf000, 0, artOf(0xf001, 4, entry(0, large), entry(0, small), entry(6, ""), entry(1<<30, "")))), 0)
	a.read([]byte(artOf(0xf002, 0, artOf(0xf003, 0,
		shape(map[int]string{artDescription: "A ferry at the pier"}, 1), shape(map[int]string{artDescription: "ferry.png"}, 1),
		shape(map[int]string{artDrawnText: "To the boats"}, 0), shape(nil, 2), shape(nil, 3), shape(nil, 4), shape(nil, 9)))), 0)
	whole := a.all()
	if len(whole) != 2 || whole[0].Text != "Picture: A ferry at the pier" || whole[1].Text != "Drawn text: To the boats" ||
		f.unread[pictures].times != 2 {
		t.Errorf("drawn objects = %+v, unread %+v; want a picture, a text and 2 unread pictures", whole, f.unread)
	}
}

// TestOldTables checks that on slides before 2007, table cells are shapes of a group, in
// any order. Shapes of other groups, and cells that would fill little of a table, are
// separate texts.
func TestOldTables(t *testing.T) {
	text := func(s string) string { return "\x00" + artOf(pptLatin, 0, s)[1:] } // no container
	cell := func(left, top int32, s string) string {
		var at []byte
		for _, n := range []int32{left, top, left + 9, top + 9} {
			at = binary.LittleEndian.AppendUint32(at, uint32(n))
		}
		return artOf(artShape, 0, artOf(artInGroup, 0, string(at)), artOf(0xf00d, 0, text(s)))
	}
	marked := artOf(artShape, 0, artOf(artMost, 1, "\x9f\x03\x01\x00\x00\x00"))
	apart := marked
	for i := range int32(20) {
		apart += cell(i, i, "c")
	}
	for _, tt := range []struct{ name, group, want string }{
		{"a table", marked + cell(90, 5, "Use") + cell(-4, 5, "Knot") + cell(-4, 15, "Bowline\rtie") + cell(90, 15, "Loop"),
			"Knot|Use;Bowline tie|Loop"},
		{"a cell of two columns", marked + cell(1, 1, "Knots") + cell(1, 2, "Reef") + cell(50, 2, "Flat"), "Knots|;Reef|Flat"},
		{"another group", cell(90, 5, "Use") + cell(-4, 5, "Knot"), "Use\nKnot"},
		{"an empty table", marked, ""},
		{"cells apart", apart, strings.TrimSuffix(strings.Repeat("c\n", 20), "\n")},
	} {
		p := &pptReader{artReader: artReader{file: &file{}}}
		p.texts([]byte(artOf(artGroup, 0, tt.group)), 0)
		var got []string
		for _, sh := range p.shapes {
			for _, b := range sh.blocks {
				var rows []string
				for _, row := range b.Rows {
					rows = append(rows, strings.Join(row, "|"))
				}
				got = append(got, b.Text+strings.Join(rows, ";"))
			}
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLeftOutOfOldDocuments checks that unread parts of old documents are counted with
// their program and place.
func TestLeftOutOfOldDocuments(t *testing.T) {
	dir := datatest.Sets(t, "files")
	for name, want := range map[string]string{
		"mixed-r2r/doc.doc": "embedded objects are not read: 1 (LibreOffice.ChartDocument.1 in " +
			"“In eleifend velit vitae libero sollicitudin euismod.”); pictures without alternative text are not read: 1",
		"mixed-tika/testPPT_embedded2.ppt":        "embedded objects are not read: 2 (MSGraph.Chart.8 in slide 1, Word.Document.8 in slide 1)",
		"mixed-tika/testEXCEL_extra_metadata.xls": "pictures without alternative text are not read: 1 (in “Sheet4”)",
		"mixed-tika/testWORD_embedded_rtf.doc":    "embedded objects are not read: 1 (WordPad.Document.1)",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		partial, err := Read(data, func(Block) {}, func(string, string) {})
		if got := strings.Join(partial, "; "); err != nil || got != want {
			t.Errorf("unread parts of %s = %s, %v; want %s", name, got, err, want)
		}
	}
}

// TestChartLabels checks that a label that replaces a value in a chart is written next to
// the value.
func TestChartLabels(t *testing.T) {
	f := &file{archive: &archive{}}
	const text = `<ser><dLbls><dLbl><idx val="1"/><tx><rich><p><r><t>record</t></r></p></rich></tx></dLbl>` +
		`<dLbl><idx val="7"/><tx><rich><p><r><t>none</t></r></p></rich></tx></dLbl></dLbls><val><v>4</v><v>9</v></val></ser>`
	f.parts = map[string]part{"c.xml": {packed: []byte("<chart>" + text + "</chart>"), size: 1 << 10}}
	if got := f.chart("c.xml"); len(got) != 1 || strings.Join(got[0].Rows[1], "|") != "|4|9 (record)" {
		t.Errorf("chart = %+v, want the label with its value", got)
	}
}
