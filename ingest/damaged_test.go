package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A PDF of which a part cannot be read says so, and gives the rest.
func TestDamagedPDFIsPartial(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("..", "data", "library", "minutes", "annual-report-2024.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	intact, err := new(Reader).Read(t.Context(), "report.pdf", whole)
	if err != nil {
		t.Fatal(err)
	}
	if intact.Partial != "" {
		t.Fatalf("the intact file is called partial: %s", intact.Partial)
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
		if head := torn[max(0, start-200):start]; bytes.Contains(head, []byte("/Filter /FlateDecode")) && !bytes.Contains(head, []byte("/Length1")) && end-start > 500 {
			for i := (start + end) / 2; i < (start+end)/2+30; i++ {
				torn[i] = ^torn[i]
			}
			streams++
		}
		at = end + len("endstream")
	}
	if streams == 0 {
		t.Fatal("no content stream was found")
	}
	for name, data := range map[string][]byte{"torn": torn, "cut": whole[:len(whole)*2/3]} {
		t.Run(name, func(t *testing.T) {
			doc, err := new(Reader).Read(t.Context(), "report.pdf", data)
			if err != nil {
				t.Fatal(err)
			}
			if len(doc.Text) >= len(intact.Text) || len(doc.Text) == 0 {
				t.Fatalf("%d bytes of text against %d of the intact file", len(doc.Text), len(intact.Text))
			}
			if !strings.Contains(doc.Partial, "damaged") {
				t.Errorf("of %d bytes %d were read, and it says %q", len(intact.Text), len(doc.Text), doc.Partial)
			}
		})
	}
}

// List items may stand outside any list, in HTML and in Markdown with HTML in it.
func TestStrayListItems(t *testing.T) {
	for _, text := range []string{
		"<p>hello there</p><li>orphan item one</li>",
		"<dl><dd>x<li>orphan item one</dl>",
		"</ul></ul><ul><li>a</ul><li>orphan item one",
	} {
		for _, name := range []string{"a.html", "a.md"} {
			doc, err := new(Reader).Read(t.Context(), name, []byte(text+"\n"))
			if err != nil {
				t.Errorf("%s %q: %v", name, text, err)
			} else if !strings.Contains(doc.Text, "orphan item one") {
				t.Errorf("%s %q: %q", name, text, doc.Text)
			}
		}
	}
}
