package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest/child"
	"ibid/ingest/pdf/pdfium"
)

// compiled returns a folder shared by the tests, so that PDFium is compiled once. TestMain creates
// and removes it.
func compiled(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(compiledVariable)
	if dir == "" {
		t.Fatal("TestMain created no folder")
	}
	return dir
}

const compiledVariable = "IBID_TEST_COMPILED"

// helpedReader returns a reader that draws pages and recognises text if PDFium and tesseract are
// installed.
func helpedReader(t testing.TB) *Reader {
	t.Helper()
	r := &Reader{PDF: PDFOptions{Helped: true, Folder: compiled(t)}}
	t.Cleanup(r.Close)
	return r
}

// needPDFium skips a test that needs PDFium.
func needPDFium(t testing.TB) *Reader {
	t.Helper()
	r := helpedReader(t)
	if from, _ := r.PDFium(); from == "" {
		t.Skip("no PDFium: run 'go generate ./ingest/pdf' and set the tag pdfium")
	}
	return r
}

func needTesseract(t testing.TB) {
	t.Helper()
	if child.Program("tesseract") == "" {
		t.Skip("tesseract is not installed")
	}
}

func testPDF(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "read", name))
	must(t, err)
	return data
}

// shifted returns a text as read from a font whose glyph numbers begin at 3.
func shifted(text string) string {
	return strings.Map(func(r rune) rune { return r - 29 }, text)
}

// TestPDFErrors checks that the error names the fault of the file.
func TestPDFErrors(t *testing.T) {
	blank := pdfOf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R>>")
	soup := scan(t, image.NewGray(image.Rect(0, 0, 300, 400)), 0, shifted("The ferry leaves the harbour at nine in the morning, "+
		"and on Sundays an hour later than on other days."))
	for _, tt := range []struct {
		data, reason string
		skip         bool
	}{
		{"not a PDF at all", "", false},
		{"%PDF-1.7\n" + strings.Repeat("x", 500), "", false},
		{string(blank), "empty: nothing is on its pages", true},
		{string(soup), "no readable text (scanned, or garbled by its fonts): install", true},
	} {
		_, err := new(Reader).Read(t.Context(), "a.pdf", []byte(tt.data))
		var skip *SkipError
		if err == nil || !strings.Contains(err.Error(), tt.reason) || errors.As(err, &skip) != tt.skip {
			t.Errorf("reading %.20q: err = %v, want %q (skipped: %v)", tt.data, err, tt.reason, tt.skip)
		}
	}
}

// TestEncryptedPDFs checks that files that need a password only for changes are read,
// whatever the cipher.
func TestEncryptedPDFs(t *testing.T) {
	qpdf, err := exec.LookPath("qpdf")
	if err != nil {
		t.Skip("qpdf is not installed")
	}
	dir := t.TempDir()
	plain, locked := filepath.Join(dir, "plain.pdf"), filepath.Join(dir, "locked.pdf")
	must(t, os.WriteFile(plain, testPDF(t, "rates.pdf"), 0o600))
	want, err := new(Reader).Read(t.Context(), "rates.pdf", testPDF(t, "rates.pdf"))
	must(t, err)
	for _, how := range []string{"40", "128 --use-aes=n", "128 --use-aes=n --force-V4", "128 --use-aes=y", "256", "256 --force-R5"} {
		for user, protected := range map[string]bool{"": false, "secret": true} {
			args := append([]string{"--allow-weak-crypto", "--encrypt", user, "owner"}, strings.Fields(how)...)
			if out, err := exec.Command(qpdf, append(args, "--", plain, locked)...).CombinedOutput(); err != nil {
				t.Fatalf("encrypting with %s: %v: %s", how, err, out)
			}
			data, err := os.ReadFile(locked)
			must(t, err)
			doc, err := new(Reader).Read(t.Context(), "rates.pdf", data)
			if protected && (err == nil || !strings.Contains(err.Error(), "protected by a password")) {
				t.Errorf("%s with a password: %v", how, err)
			}
			if !protected && (err != nil || doc.Text != want.Text || doc.Title != want.Title) {
				t.Errorf("%s without a password: %v, %+v; want the text of the plain file", how, err, doc)
			}
		}
	}
}

// TestFieldNames checks that the value of a form field without a label gets the name of the
// field.
func TestFieldNames(t *testing.T) {
	content := "BT /F 10 Tf 60 700 Td (Length:) Tj 0 -40 Td (Port of registry) Tj ET"
	field := func(entries string, y int) string {
		return fmt.Sprintf("<</Type/Annot/Subtype/Widget/FT/Tx/Rect[120 %d 220 %d]%s>>", y, y+14, entries)
	}
	data := pdfOf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[5 0 R]/Count 1>>", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(content), content),
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents 4 0 R/Annots["+
			field("/T(len)/TU(Length in metres)/V(9.5)", 697)+field("/T(port)/V(Velmere)", 640)+
			field("/T(surname)/TU(Family name)/V(Osborne)", 540)+field("/T(boat)/V(Atlas)", 440)+field("/T(empty)", 340)+"]>>")
	doc, err := new(Reader).Read(t.Context(), "form.pdf", data)
	must(t, err)
	want := "Length: | 9.5 Port of registry Velmere Family name: Osborne boat: Atlas"
	if got := strings.Join(strings.Fields(doc.Text), " "); got != want {
		t.Errorf("text of a form = %q, want %q", got, want)
	}
}

// TestUnknownPDFium checks that an unknown build of PDFium is not run.
func TestUnknownPDFium(t *testing.T) {
	if _, from, err := pdfium.Code(""); err == nil {
		t.Skipf("PDFium is %s", from)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, pdfium.FileName), []byte("\x00asm\x01\x00\x00\x00"), 0o600))
	r := &Reader{PDF: PDFOptions{Helped: true, Folder: dir}}
	defer r.Close()
	if from, trouble := r.PDFium(); from != "" || !strings.Contains(trouble, "not a known build") {
		t.Errorf("PDFium = %q, %q; want no path, and that the file is not a known build", from, trouble)
	}
}

// TestDrawPage checks that a page is drawn with the words of a quote marked at the returned
// places.
func TestDrawPage(t *testing.T) {
	r := needPDFium(t)
	data := testPDF(t, "columns.pdf")
	doc, err := r.Read(t.Context(), "columns.pdf", data)
	must(t, err)
	// a quote of several lines
	words := strings.Fields(doc.Text)
	quote := strings.Join(words[len(words)/2:len(words)/2+14], " ")
	page, err := r.DrawPage(t.Context(), data, 1, quote, 850)
	must(t, err)
	img, err := png.Decode(bytes.NewReader(page.PNG))
	must(t, err)
	if len(page.Marked) == 0 || len(page.Marked) > 6 {
		t.Fatalf("%q is marked at %v", quote, page.Marked)
	}
	plain, err := r.DrawPage(t.Context(), data, 1, "", 850)
	must(t, err)
	without, err := png.Decode(bytes.NewReader(plain.PNG))
	must(t, err)
	bounds := img.Bounds()
	inside := func(x, y int) bool {
		fx, fy := float64(x)/float64(bounds.Dx()), float64(y)/float64(bounds.Dy())
		const slack = .005
		for _, m := range page.Marked {
			if fx > m.X0-slack && fx < m.X1+slack && fy > m.Y0-slack && fy < m.Y1+slack {
				return true
			}
		}
		return false
	}
	changed, strays := 0, 0
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			if img.At(x, y) != without.At(x, y) {
				changed++
				if !inside(x, y) {
					strays++
				}
			}
		}
	}
	if changed < 500 || strays > 0 {
		t.Errorf("%d dots are marked, %d of them outside %v", changed, strays, page.Marked)
	}
	if _, err := r.DrawPage(t.Context(), data, 99, "", 850); err == nil || !strings.Contains(err.Error(), "no page 99") {
		t.Errorf("page 99: err = %v", err)
	}
	if _, err := r.DrawPage(t.Context(), []byte("%PDF-1.4"), 1, "", 850); err == nil {
		t.Error("no error for a file without pages")
	}
	if _, err := new(Reader).DrawPage(t.Context(), data, 1, "", 850); !errors.Is(err, ErrNoDrawing) {
		t.Errorf("without PDFium: err = %v, want ErrNoDrawing", err)
	}
}

// picture draws a page of text.
func picture(t *testing.T, dpi int) image.Image {
	t.Helper()
	path := child.Program("pdftoppm")
	if path == "" {
		t.Skip("pdftoppm is not installed, which draws the test's page")
	}
	out, err := child.Task{Name: "pdftoppm", Args: []string{path, "-r", fmt.Sprint(dpi), "-f", "1", "-l", "1", "-singlefile",
		"-gray", "-png", "-"},
		Stdin: bytes.NewReader(testPDF(t, "rates.pdf")), Limit: time.Minute, MaxOutput: 64 << 20}.Run(t.Context())
	must(t, err)
	img, err := png.Decode(bytes.NewReader(out))
	must(t, err)
	gray := image.NewGray(img.Bounds())
	draw.Draw(gray, gray.Rect, img, image.Point{}, draw.Src)
	return gray
}

// scan returns a PDF file of pages with the texts, and then of pictures.
func scan(t *testing.T, img image.Image, pages int, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, jpeg.Encode(&b, img, nil))
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", fmt.Sprintf("<</Type/XObject/Subtype/Image/Width %d/Height "+
		"%d/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode/Length %d>>\nstream\n%s\nendstream", w, h, b.Len(), b.String()),
		"<</Length 30>>\nstream\nq 595 0 0 842 0 0 cm /I Do Q   \nendstream"}
	kids := ""
	for _, text := range texts {
		text = "BT /F 12 Tf 72 700 Td (" + text + ") Tj ET"
		objects = append(objects, fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(text), text),
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 "+
				"842]/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>/Contents %d 0 R>>", len(objects)+1))
		kids += fmt.Sprintf(" %d 0 R", len(objects))
	}
	for range pages {
		objects = append(objects, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I 3 0 R>>>>/Contents 4 0 R>>")
		kids += fmt.Sprintf(" %d 0 R", len(objects))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids, pages+len(texts))
	return pdfOf(objects...)
}

// TestReadScans checks that the text of scans and pictures is recognized if tesseract is
// installed, and that otherwise they are skipped with a reason.
func TestReadScans(t *testing.T) {
	img := picture(t, 150)
	data := scan(t, img, 2)
	want, err := new(Reader).Read(t.Context(), "rates.pdf", testPDF(t, "rates.pdf"))
	must(t, err)
	var skip *SkipError
	if _, err := new(Reader).Read(t.Context(), "scan.pdf", data); !errors.As(err, &skip) ||
		skip.Reason != "no readable text (scanned, or garbled by its fonts): install tesseract to read it" {
		t.Errorf("without tesseract: err = %v", err)
	}
	// A scan among pages with text, and a blank one.
	mixed := scan(t, img, 1, "The ferry leaves at nine.", "", "It comes back at six.")
	alone := new(Reader)
	doc, err := alone.Read(t.Context(), "mixed.pdf", mixed)
	must(t, err)
	if doc.Partial != "page 4 of 4: no readable text (scanned, or garbled by its fonts): install tesseract to read it" ||
		doc.Meta[ReaderKey] != readerName()+withoutOCR {
		t.Errorf("without tesseract: Partial = %q, reader %q", doc.Partial, doc.Meta[ReaderKey])
	}
	t.Run("pages", func(t *testing.T) {
		needTesseract(t)
		r := needPDFium(t)
		if alone.outdated(doc.Meta[ReaderKey]) || !r.outdated(doc.Meta[ReaderKey]) {
			t.Error("outdated is not true exactly for a reader that can read the scanned page")
		}
		doc, err := r.Read(t.Context(), "mixed.pdf", mixed)
		must(t, err)
		checkDocument(t, doc)
		if doc.Partial != "" || doc.Meta[ReaderKey] != readerName() || len(doc.Pages) != 4 {
			t.Fatalf("Partial = %q, reader %q, pages %+v", doc.Partial, doc.Meta[ReaderKey], doc.Pages)
		}
		page := func(n int) string { return doc.Text[doc.Pages[n-1].Start:doc.Pages[n-1].End] }
		if !strings.Contains(page(1), "The ferry leaves at nine.") || strings.TrimSpace(page(2)) != "" ||
			!strings.Contains(page(3), "It comes back at six.") {
			t.Errorf("pages %q", []string{page(1), page(2), page(3)})
		}
		if f1 := wordF1(page(4), want.Text[:want.Pages[0].End]); f1 < .8 { // column names are not recognized by their type
			t.Errorf("word F1 of the scanned page %.3f:\n%s", f1, page(4))
		}
		datatest.CampaignOnly(t, "tesseract needs seconds for a page")
		if doc, err = r.Read(t.Context(), "scan.pdf", data); err != nil {
			t.Fatal(err)
		}
		checkDocument(t, doc)
		if len(doc.Pages) != 2 || doc.Pages[1].Start == doc.Pages[1].End {
			t.Fatalf("pages %+v", doc.Pages)
		}
		if f1 := wordF1(doc.Text[:doc.Pages[0].End], want.Text[:want.Pages[0].End]); f1 < .8 {
			t.Errorf("word F1 %.3f:\n%s", f1, doc.Text)
		}
	})
	t.Run("undecoded text", func(t *testing.T) { // the font maps the letters to other letters
		cmap := "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <20> <7e> <0420> endbfrange"
		text := "BT /F 18 Tf 14 TL 72 700 Td (The ferry leaves the harbour at nine.) Tj 0 -40 Td (It comes back at six in the evening.) Tj ET"
		data := pdfOf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[6 0 R]/Count 1>>",
			"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 4 0 R>>",
			fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(cmap), cmap),
			fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(text), text),
			"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>/Contents 5 0 R>>")
		if _, err := new(Reader).Read(t.Context(), "soup.pdf", data); !errors.As(err, &skip) {
			t.Errorf("without tesseract: err = %v", err)
		}
		needTesseract(t)
		doc, err := needPDFium(t).Read(t.Context(), "soup.pdf", data)
		must(t, err)
		if !strings.Contains(doc.Text, "The ferry leaves the harbour at nine.") {
			t.Errorf("recognized text = %q, want the words of the page", doc.Text)
		}
	})
	t.Run("picture", func(t *testing.T) {
		var b bytes.Buffer
		must(t, png.Encode(&b, img))
		if _, err := new(Reader).Read(t.Context(), "a.png", b.Bytes()); !errors.As(err, &skip) || !strings.Contains(skip.Reason, "tesseract") {
			t.Errorf("without tesseract: err = %v", err)
		}
		needTesseract(t)
		datatest.CampaignOnly(t, "tesseract needs seconds for a page")
		r := helpedReader(t)
		doc, err := r.Read(t.Context(), "a.png", b.Bytes())
		must(t, err)
		checkDocument(t, doc)
		if f1 := wordF1(doc.Text, want.Text[:want.Pages[0].End]); f1 < .8 || doc.Format != "image" {
			t.Errorf("%s, word F1 %.3f:\n%s", doc.Format, f1, doc.Text)
		}
		var small bytes.Buffer
		must(t, png.Encode(&small, image.NewGray(image.Rect(0, 0, 16, 16))))
		if _, err := r.Read(t.Context(), "icon.png", small.Bytes()); !errors.As(err, &skip) || !strings.Contains(skip.Reason, "too small") {
			t.Errorf("small icon: err = %v", err)
		}
		if _, err := r.Read(t.Context(), "torn.png", b.Bytes()[:2000]); err == nil || err.Error() == "" {
			t.Errorf("truncated picture: err = %v", err)
		}
	})
}
