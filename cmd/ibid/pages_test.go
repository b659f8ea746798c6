package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// A pagedQuestion has its answer on known pages, or in known files.
type pagedQuestion struct {
	Text     string
	Evidence []struct {
		Doc   string
		Page0 int
	}
	Sources []string `json:"source_pdfs"`
}

func pagedQuestions(t *testing.T, dir string) (out []pagedQuestion) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "queries.jsonl"))
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q pagedQuestion
		must(t, json.Unmarshal(lines.Bytes(), &q))
		out = append(out, q)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d questions, %v", len(out), err)
	}
	return out
}

// The page with the answer is among the first five passages, of annual reports
// of up to 250 pages each.
func TestEvidencePages(t *testing.T) {
	t.Parallel()
	datatest.CampaignOnly(t) // it measures quality
	const depth = 5
	for _, set := range []string{"financebench-a", "kgrag-10q-a"} {
		t.Run(set, func(t *testing.T) {
			dir := datatest.Sets(t, set)
			names, err := filepath.Glob(filepath.Join(dir, "pdfs", "*.pdf"))
			if err != nil || len(names) == 0 {
				t.Fatalf("%d files, %v", len(names), err)
			}
			s := surroundings{getenv: func(string) string { return "" }, stderr: os.Stderr}
			lib, err := openLibrary(t.Context(), storeConfig{placeConfig: placeConfig{Data: t.TempDir()}}, retrieve.Options{}, s)
			must(t, err)
			defer func() {
				if err := lib.close(); err != nil {
					t.Error(err)
				}
			}()
			lib.reader = new(ingest.Reader)
			docs, bytes, took := storeAll(t, lib, names)
			pages := 0
			for _, doc := range docs {
				pages += len(doc.Pages)
			}
			asked, paged, found, known, first, files := 0, 0, 0, 0, 0, 0
			for _, q := range pagedQuestions(t, dir) {
				wanted := map[string][]int{}
				for _, e := range q.Evidence {
					wanted[e.Doc] = append(wanted[e.Doc], e.Page0+1)
				}
				for _, name := range q.Sources {
					wanted[name] = nil
				}
				if slices.ContainsFunc(keys(wanted), func(name string) bool { return docs[name] == nil }) {
					continue
				}
				asked++
				paged += min(len(q.Evidence), 1)
				passages, err := lib.Search(t.Context(), retrieve.Query{Text: q.Text, K: depth})
				must(t, err)
				if on(passages, docs, wanted) {
					found++
				}
				if len(passages) > 0 {
					if _, right := wanted[passages[0].Path]; right {
						first++
					}
				}
				if slices.ContainsFunc(passages, func(p retrieve.Passage) bool { _, ok := wanted[p.Path]; return ok }) {
					files++
				}
				for name := range wanted {
					inside, err := lib.Search(t.Context(), retrieve.Query{Text: q.Text, K: depth, Filter: retrieve.Filter{PathPrefix: name}})
					must(t, err)
					if on(inside, docs, wanted) {
						known++
						break
					}
				}
			}
			right := "the set names no pages"
			if paged > 0 {
				right = fmt.Sprintf("a right page among the first %d passages: %.3f, %.3f within the right file", depth, share(found, paged),
					share(known, paged))
			}
			t.Logf("figure: %s: %d questions of %d files, %d pages: %s; a right file among the first %d: %.3f, first %.3f; read, split, embedded "+
				"and stored in %.1f s: %.1f pages/s, %.2f MB/s",
				set, asked, len(docs), pages, right, depth, share(files, asked), share(first, asked),
				took.Seconds(), float64(pages)/took.Seconds(), float64(bytes)/1e6/took.Seconds())
			if asked == 0 || files == 0 {
				t.Errorf("%d questions, %d with the right file", asked, files)
			}
		})
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

func keys(m map[string][]int) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// on reports whether a passage is on one of the pages.
func on(passages []retrieve.Passage, docs map[string]*ingest.Document, wanted map[string][]int) bool {
	for _, p := range passages {
		doc := docs[p.Path]
		for page := doc.PageAt(p.Start); page <= doc.PageAt(p.End-1); page++ {
			if slices.Contains(wanted[p.Path], page) {
				return true
			}
		}
	}
	return false
}

// storeAll reads and stores files, by their base names.
func storeAll(t *testing.T, lib *openedLibrary, names []string) (docs map[string]*ingest.Document, bytes int, took time.Duration) {
	t.Helper()
	root, err := lib.AddRoot(t.Context(), t.TempDir(), "")
	must(t, err)
	lib.reader.PDFium() // compiled before the clock starts
	start := time.Now()
	read := make([]*ingest.Document, len(names))
	sizes := make([]int, len(names))
	reading, ctx := errgroup.WithContext(t.Context())
	reading.SetLimit(runtime.NumCPU())
	for i, name := range names {
		reading.Go(func() error {
			data, err := os.ReadFile(name)
			if err == nil {
				sizes[i] = len(data)
				read[i], err = readAs(ctx, lib, root, filepath.Base(name), data)
			}
			return err
		})
	}
	must(t, reading.Wait())
	docs = make(map[string]*ingest.Document)
	for i, doc := range read {
		docs[doc.Path] = doc
		bytes += sizes[i]
	}
	return docs, bytes, time.Since(start)
}

func readAs(ctx context.Context, lib *openedLibrary, root ingest.Root, name string, data []byte) (*ingest.Document, error) {
	doc, err := lib.reader.Read(ctx, name, data)
	if err != nil {
		return nil, err
	}
	doc.Root, doc.ID = root.Name, root.Name+"/"+name
	return doc, lib.Replace(ctx, doc, ingest.Split(doc))
}
