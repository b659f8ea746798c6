package ingest

import (
	"archive/zip"
	"bytes"
	"fmt"
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
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// officeFiles gives the files of testdata/office, packed, by name.
func officeFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/office/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		name = strings.TrimSuffix(filepath.Base(name), ".txtar")
		if strings.HasPrefix(filepath.Ext(name), ".f") { // one flat file
			files[name] = archive.Files[0].Data
		} else {
			files[name] = zipOf(t, archive.Files...)
		}
	}
	return files
}

// A new case is a new archive of texts in testdata/office, which is packed
// into a file of the name in front of .txtar; -update writes what came of it
// beside it.
func TestReadOfficeGolden(t *testing.T) {
	files := officeFiles(t)
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			var got string
			doc, err := new(Reader).Read(t.Context(), name, data)
			if err != nil {
				got = fmt.Sprintf("error (%T): %v\n", err, err)
			} else {
				checkDocument(t, doc)
				got = dump(doc)
			}
			checkGolden(t, filepath.Join("testdata", "office", name+".golden"), got)
		})
	}
	if len(files) < 1 {
		t.Errorf("only %d cases found", len(files))
	}
}
