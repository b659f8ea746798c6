package ingest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Many files are read at a time, some of which crash their reader.
func TestReaderInParallel(t *testing.T) {
	var r Reader
	defer r.Close()
	var g errgroup.Group
	for i := range 40 {
		g.Go(func() error {
			data := minimalPDF("Ferry " + strconv.Itoa(i) + " leaves at nine.")
			doc, err := r.Read(t.Context(), "a.pdf", []byte(data))
			if err != nil {
				return err
			}
			if !strings.Contains(doc.Text, "Ferry "+strconv.Itoa(i)+" leaves") {
				return fmt.Errorf("file %d was read as %q", i, doc.Text)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// minimalPDF is a page with one line.
func minimalPDF(line string) string {
	stream := "BT /F 12 Tf 72 700 Td (" + line + ") Tj ET"
	return string(pdfOf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(stream), stream),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"))
}
