package office

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

var must = datatest.Must

// A packed file has the name of its label, or of its path; cut off anywhere, it is
// none.
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
		name, content, ok := native(data)
		if name != tt.want || ok != (tt.want != "") || ok && string(content) != "The plan." {
			t.Errorf("%q, %q: %q, %q, %v", tt.label, tt.from, name, content, ok)
		}
		for n := range data {
			if name, _, ok := native(data[:n]); ok {
				t.Errorf("%q of %d bytes: %q", tt.label, n, name)
			}
		}
	}
}

// Files are taken out of documents that office programs wrote, with their
// endings; of cut ones there are no more.
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
				t.Errorf("%s: %v", file, err)
			}
			slices.Sort(names)
			return names
		}
		all := names(data)
		if got := strings.Join(all, " "); got != want || want != "" && !HoldsFiles(data) {
			t.Errorf("%s: %s", file, got)
		}
		for n := 0; n < len(data); n += 1 + len(data)/50 {
			if got := names(data[:n]); len(got) > len(all) {
				t.Errorf("%s of %d bytes: %q", file, n, got)
			}
		}
	}
}

// The cells, formats and comments of a binary workbook are read; of a damaged one, what
// precedes the damage, or nothing.
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
		if err := f.binaryWorkbook("xl/workbook.bin"); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	whole := read(func(part []byte) []byte { return part })
	for _, want := range []string{"sheet=mySheet1&row=3 String|This is a string float|13.121123132", "currency|$3.03", "percent|20%",
		"Comment on C8: Allison, Timothy B.: test comment2", "merchant1|1|3"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is missing in %s", want, whole)
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
