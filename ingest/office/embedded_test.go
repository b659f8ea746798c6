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

// Files are taken out of compound files that office programs wrote, with their
// endings; of cut ones there are no more.
func TestFilesOfRealDocuments(t *testing.T) {
	dir := filepath.Join(datatest.Sets(t, "files"), "mixed-tika")
	for file, want := range map[string]string{
		"Doc1_ole.doc":                     "MSj00748450000[1].wav MSj00974840000[1].wav",
		"test_recursive_embedded.doc":      "embed1.zip",
		"testPDFEmbeddingAndEmbedded.docx": "oleobject1.pdf",
		"testPPT_oleWorkbook.pptx":         "oleobject1.xlsx",
		"testWORD_EMFAndAttachments.docx":  "TestText.txt microsoft_word_document.docx oleobject2.pdf",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		names := func(data []byte) (names []string) {
			if err := Files(data, func(name string, _ []byte) error { names = append(names, name); return nil }); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			slices.Sort(names)
			return names
		}
		all := names(data)
		if got := strings.Join(all, " "); got != want || !HoldsFiles(data) {
			t.Errorf("%s: %s", file, got)
		}
		for n := 0; n < len(data); n += 1 + len(data)/50 {
			if got := names(data[:n]); len(got) > len(all) {
				t.Errorf("%s of %d bytes: %q", file, n, got)
			}
		}
	}
}
