package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

// BenchmarkIngest runs the real program over a folder, and over one with four
// times as much in it, in equal parts: MB and chunks in a second, and how many
// times as long as the smaller one the larger took, by the clock and in the time
// of processors. An ingest that is linear takes 4 times as long, or a little
// less, since the start of the program counts too.
func BenchmarkIngest(b *testing.B) {
	b.Run("markdown", func(b *testing.B) {
		benchmarkIngest(b, filesOf(b, filepath.Join(moduleRoot(b), "data", "library"), ".md"), 12)
	})
	for _, tier := range []string{ingest.PDFGo, ingest.PDFToText, ingest.PDFium} {
		options := ingest.PDFOptions{Tier: tier, Folder: b.TempDir()}
		if options.Check() != nil {
			continue // it is not here
		}
		b.Run("pdf-"+tier, func(b *testing.B) {
			benchmarkIngest(b, filesOf(b, datatest.Sets(b, "kgrag-10q-a", "pdfs"), ".pdf"), 1, "--pdf", tier)
		})
	}
}

// filesOf reads the files below a folder whose names end so.
func filesOf(b *testing.B, dir, ending string) map[string][]byte {
	b.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		files[filepath.Base(path)], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(files) == 0 {
		b.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	return files
}

// benchmarkIngest ingests so many copies of the files, and four times as many.
func benchmarkIngest(b *testing.B, files map[string][]byte, copies int, flags ...string) {
	once, more := b.TempDir(), b.TempDir()
	size := 0
	for i := range 4 * copies {
		for name, data := range files {
			// A last line makes each copy a different file.
			data = fmt.Appendf(data[:len(data):len(data)], "\n%% copy %d\n", i)
			for _, folder := range []string{once, more} {
				if folder == once && i >= copies {
					continue
				}
				path := filepath.Join(folder, fmt.Sprint(i), name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o644); err != nil {
					b.Fatal(err)
				}
			}
			size += len(data)
		}
	}
	b.ResetTimer()
	var small, large measured
	for b.Loop() {
		small, large = measure(b, once, flags...), measure(b, more, flags...)
		if large.total.Added != 4*copies*len(files) || large.total.Chunks < 4*small.total.Chunks {
			b.Fatalf("exit code %d, %s, after %s: %s", large.code, large.total, small.total, large.stderr)
		}
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(size)/1e6/large.took.Seconds(), "MB/s")
	b.ReportMetric(float64(large.total.Chunks)/large.took.Seconds(), "chunks/s")
	b.ReportMetric(large.took.Seconds()/small.took.Seconds(), "clock-4x/1x")
	b.ReportMetric(large.busy.Seconds()/small.busy.Seconds(), "processors-4x/1x")
	b.ReportMetric(float64(large.peak)/1e6, "peak-MB")
	b.ReportMetric(0, "ns/op")
}
