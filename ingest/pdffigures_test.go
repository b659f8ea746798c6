package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"ibid/data/datatest"
	"ibid/ingest/child"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"
)

// A shelved file is a PDF file of the evaluation sets with Poppler's figures.
type shelved struct {
	Path    string
	Poppler *struct {
		Pages      int
		Encrypted  string
		TextChars  int `json:"text_chars"`
		TextReturn int `json:"text_rc"`
	}
	data []byte
}

// shelf reads the PDF files of the evaluation sets.
func shelf(t testing.TB) (files []shelved) {
	t.Helper()
	dir := datatest.Sets(t, "files")
	f, err := os.Open(filepath.Join(dir, "MANIFEST.jsonl"))
	must(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s shelved
		must(t, json.Unmarshal(lines.Bytes(), &s))
		if !strings.HasSuffix(strings.ToLower(s.Path), ".pdf") || s.Poppler == nil {
			continue
		}
		if s.data, err = os.ReadFile(filepath.Join(dir, s.Path)); err != nil {
			t.Fatal(err)
		}
		files = append(files, s)
	}
	if len(files) < 100 {
		t.Fatalf("%d PDF files", len(files))
	}
	return files
}

// latin reports whether a text is long enough to be compared, and in Latin
// letters.
func latin(text string) bool {
	letters, latin := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if unicode.Is(unicode.Latin, r) {
				latin++
			}
		}
	}
	return letters >= 60 && latin*10 >= letters*9
}

// references returns the output of pdftotext for a file, in its two orders.
func references(ctx context.Context, data []byte) (texts []string, err error) {
	for _, order := range []string{"-q", "-raw"} {
		out, err := child.Task{Name: "pdftotext", Args: []string{child.Program("pdftotext"), "-enc", "UTF-8", order, "-", "-"},
			Stdin: bytes.NewReader(data), Limit: child.Seconds * time.Second, MaxOutput: child.MaxOutput}.Run(ctx)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(out))
	}
	return texts, nil
}

// As many characters are found as by Poppler, and the same words in the same
// order.
func TestPDFShelf(t *testing.T) {
	if child.Program("pdftotext") == "" {
		t.Skip("pdftotext is not installed: there is nothing to compare with")
	}
	files := datatest.Pick(t, shelf(t))
	want := make([][]string, len(files))
	for i, f := range files {
		if f.Poppler.TextChars > 0 {
			var err error
			if want[i], err = references(t.Context(), f.data); err != nil {
				t.Logf("%s: pdftotext: %v", f.Path, err)
			}
		}
	}
	r := new(Reader)
	t.Cleanup(r.Close)
	docs, errs := make([]*Document, len(files)), make([]error, len(files))
	start := time.Now()
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, f := range files {
		group.Go(func() error {
			docs[i], errs[i] = r.Read(t.Context(), filepath.Base(f.Path), f.data)
			return nil
		})
	}
	must(t, group.Wait())
	took := time.Since(start)
	var ratios []float64
	pages, read, few, scored := 0, 0, 0, 0
	var one, two float64
	for i, f := range files {
		found := 0
		if errs[i] == nil {
			checkDocument(t, docs[i])
			found = letters(docs[i].Text)
			pages += len(docs[i].Pages)
			read++
		}
		if want[i] == nil {
			continue
		}
		if n := letters(want[i][0]); n > 0 {
			ratio := float64(found) / float64(n)
			ratios = append(ratios, ratio)
			if ratio < .8 {
				few++
				t.Logf("%s: %.2f of %d characters (%v)", f.Path, ratio, n, errs[i])
			}
		}
		if latin(want[i][0]) {
			text := ""
			if errs[i] == nil {
				text = docs[i].Text
			}
			scored++
			one += max(gramF1(text, want[i][0], 1), gramF1(text, want[i][1], 1))
			two += max(gramF1(text, want[i][0], 2), gramF1(text, want[i][1], 2))
		}
	}
	slices.Sort(ratios)
	median := ratios[len(ratios)/2]
	t.Logf("figure: PDF: %d of %d files read; characters against pdftotext: median %.3f, under 80 %%: %d of %d; %d Latin files: word "+
		"F1 %.3f, F1 of pairs %.3f; %.1f pages/s",
		read, len(files), median, few, len(ratios), scored, one/float64(scored), two/float64(scored), float64(pages)/took.Seconds())
	if datatest.Campaign() && (median < .97 || two/float64(scored) < .85) {
		t.Errorf("median of characters %.3f, F1 of pairs of words %.3f", median, two/float64(scored))
	}
}

// letters counts the characters other than white space.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

func TestPDFMutants(t *testing.T) {
	files := shelf(t)
	files = slices.DeleteFunc(files, func(f shelved) bool { return len(f.data) > 300_000 })
	rng := datatest.Rand(t)
	r := new(Reader)
	t.Cleanup(r.Close)
	var mutants []mutation
	for range datatest.Cases(t, 260) {
		f := files[rng.IntN(len(files))]
		mutants = append(mutants, mutation{"mutant.pdf", mutant(rng, f.data, files[rng.IntN(len(files))].data)})
	}
	checkMutants(t, r, mutants, true)
}
