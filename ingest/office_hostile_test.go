package ingest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"hash/crc32"
	"ibid/data/datatest"
	"ibid/ingest/child"
	"ibid/ingest/format"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/txtar"
	"sync/atomic"
)

// officeRels names the main part of an Office Open XML file.
func officeRels(main string) txtar.File {
	return txtar.File{Name: "_rels/.rels", Data: []byte(`<Relationships><Relationship Id="r" Type="x/officeDocument" Target="` + main +
		`"/></Relationships>`)}
}

// docxOf returns a text document with the given body.
func docxOf(t testing.TB, body string) []byte {
	return zipOf(t, officeRels("word/document.xml"),
		txtar.File{Name: "word/document.xml", Data: []byte(`<w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`)})
}

// deflated compresses a beginning, megabytes of empty paragraphs, and an end, without holding them
// in memory.
func deflated(t testing.TB, begin string, megabytes int, end string) []byte {
	t.Helper()
	pack := func(s string) []byte {
		var out bytes.Buffer
		w, err := flate.NewWriter(&out, flate.BestCompression)
		if err == nil {
			_, err = io.WriteString(w, s)
		}
		if err == nil {
			err = w.Flush()
		}
		must(t, err)
		return out.Bytes()
	}
	out := slices.Concat(pack(begin), bytes.Repeat(pack(strings.Repeat("<w:p></w:p>     ", 1<<16)), megabytes), pack(end))
	return append(out, 3, 0) // an empty last block
}

// bombOf returns a text document whose main part decompresses to the given number of megabytes and
// declares the given size.
func bombOf(t testing.TB, megabytes int, declared uint64) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range []struct {
		name string
		data []byte
	}{
		{"_rels/.rels", deflated(t, string(officeRels("word/document.xml").Data), 0, "")},
		{"word/document.xml", deflated(t, `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>boom</w:t></w:r></w:p>`, megabytes,
			`</w:body></w:document>`)},
	} {
		head := &zip.FileHeader{Name: part.name, Method: zip.Deflate, CompressedSize64: uint64(len(part.data)), UncompressedSize64: declared,
			CRC32: 1}
		if part.name == "_rels/.rels" {
			rels := officeRels("word/document.xml").Data
			head.UncompressedSize64, head.CRC32 = uint64(len(rels)), crc32.ChecksumIEEE(rels)
		}
		in, err := w.CreateRaw(head)
		if err == nil {
			_, err = in.Write(part.data)
		}
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// TestOfficeBombs checks that small files that decompress to large ones are refused with a
// reason, quickly and with little memory.
func TestOfficeBombs(t *testing.T) {
	cut := func(data []byte) []byte { return data[:bytes.LastIndex(data, []byte("PK\x01\x02"))-200] }
	many := make([]txtar.File, 20_100)
	for i := range many {
		many[i].Name = strconv.Itoa(i)
	}
	sheet := func(rows, shared string) []byte {
		return zipOf(t, officeRels("xl/workbook.xml"),
			txtar.File{Name: "xl/workbook.xml",
				Data: []byte(`<workbook xmlns:r="x/relationships"><sheets><sheet name="S" r:id="s"/></sheets></workbook>`)},
			txtar.File{Name: "xl/_rels/workbook.xml.rels",
				Data: []byte(`<R><Relationship Id="s" Type="worksheet" Target="s.xml"/><Relationship Id="t" Type="sharedStrings" Target="t.xml"/></R>`)},
			txtar.File{Name: "xl/t.xml", Data: []byte(`<sst><si><t>` + shared + `</t></si></sst>`)},
			txtar.File{Name: "xl/s.xml", Data: []byte(`<worksheet><sheetData>` + rows + `</sheetData></worksheet>`)})
	}
	ods := func(rows string) []byte {
		return zipOf(t, txtar.File{Name: "mimetype", Data: []byte("application/vnd.oasis.opendocument.spreadsheet")},
			txtar.File{Name: "content.xml", Data: []byte(`<d><body><spreadsheet>` + rows + `</spreadsheet></body></d>`)})
	}
	type bomb struct {
		name, file string
		data       func() []byte
		reason     string // "" if the file is read
	}
	tests := []bomb{
		{"1 GB", "a.docx", func() []byte { return bombOf(t, 1<<10, 1<<30) }, "unpacks to 1024 MB"},
		{"1 GB that says 1 KB", "a.docx", func() []byte { return bombOf(t, 1<<10, 1<<10) }, "larger than the archive says"},
		{"1 GB that says 200 MB", "a.docx", func() []byte { return bombOf(t, 1<<10, 200<<20) }, "over 200 times its size"},
		{"1 GB without a directory", "a.docx", func() []byte { return cut(bombOf(t, 1<<10, 1<<30)) },
			"the directory of its zip archive is missing"},
		{"many files", "a.docx", func() []byte { return zipOf(t, many...) }, "more than 20000 files"},
		{"deep", "a.docx", func() []byte { return docxOf(t, strings.Repeat("<w:sdt>", 100_000)) }, "nested more than 300 deep"},
		{"deep tables", "a.docx", func() []byte { return docxOf(t, strings.Repeat("<w:tbl><w:tr><w:tc>", 101)) }, "nested more than 300 deep"},
		{"one long text", "a.docx", func() []byte { return docxOf(t, "<w:p><w:r><w:t>"+strings.Repeat("ab ", 3<<20)) }, "single tag or text"},
		{"one long comment", "a.docx", func() []byte { return docxOf(t, "<!-- "+strings.Repeat("<a> ", 2<<20)) }, "single tag or text"},
		{"many attributes", "a.docx", func() []byte { return docxOf(t, "<w:p "+strings.Repeat(`a="" `, 1<<20)) }, "single tag or text"},
		{"wide cells", "a.docx", func() []byte {
			return docxOf(t, "<w:tbl>"+strings.Repeat(`<w:tr><w:tc><w:tcPr><w:gridSpan w:val="1000"/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc></w:tr>`, 50_000))
		}, ""},
		{"many cells", "a.docx", func() []byte { return docxOf(t, "<w:tbl><w:tr>"+strings.Repeat("<w:tc/>", 300_000)) },
			"more than 200000 cells"},
		{"shared text", "a.xlsx", func() []byte {
			return sheet(strings.Repeat(`<row><c t="s"><v>0</v></c></row>`, 100_000), strings.Repeat("word ", 6000))
		}, "because of repetition"},
		{"names in every row", "a.xlsx", func() []byte {
			return sheet(`<row><c t="inlineStr"><is><t>`+strings.Repeat("a", 199)+`</t></is></c><c t="inlineStr"><is><t>b</t></is></c></row>`+
				strings.Repeat(`<row><c><v>1</v></c><c><v>2</v></c></row>`, 200_000), "")
		}, "because of repetition"},
		{"repeated rows and cells", "a.ods", func() []byte {
			return ods(strings.Repeat(`<table><table-row number-rows-repeated="1048576"><table-cell number-columns-repeated="16384"><p>many words in one cell</p></table-cell></table-row></table>`, 9))
		}, ""},
		{"repeated blanks", "a.ods", func() []byte {
			return ods(strings.Repeat(`<table name="S"><table-row number-rows-repeated="1048576"><table-cell number-columns-repeated="16384"/></table-row><table-row><table-cell><p>x</p></table-cell></table-row></table>`, 500))
		}, ""},
		{"entities", "a.docx", func() []byte {
			return zipOf(t, officeRels("d.xml"), txtar.File{Name: "d.xml", Data: []byte(`<!DOCTYPE d [<!ENTITY a "` + strings.Repeat("a", 40) +
				`"><!ENTITY b "` + strings.Repeat("&a;", 10) + `"><!ENTITY c "` + strings.Repeat("&b;", 10) +
				`">]><document><body><p><r><t>so &c; it is</t></r></p></body></document>`)})
		}, ""},
	}
	for _, tt := range datatest.Pick(t, tests) {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.data()
			factor := child.Memory / (512 << 20) // for the race detector
			bound, memory := 10*time.Second*time.Duration(factor*factor), uint64(128<<20*factor)
			var took time.Duration
			var grown uint64
			for try := range 2 {
				took, grown = measured(func() {
					doc := &Document{Path: tt.file}
					err := format.Office(doc, data)
					switch {
					case tt.reason == "" && err != nil, tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)):
						t.Errorf("err = %v, want %q", err, tt.reason)
					case len(doc.Text) > 8<<20:
						t.Errorf("%d bytes of text", len(doc.Text))
					}
				})
				if took <= bound && grown <= memory || t.Failed() {
					break
				}
				t.Logf("try %d: %v and %d MB", try, took, grown>>20)
			}
			if took > bound || grown > memory {
				t.Errorf("a file of %d KB needed %v and %d MB", len(data)>>10, took, grown>>20)
			}
			t.Logf("%d KB: %v, %d MB", len(data)>>10, took.Round(time.Millisecond), grown>>20)
		})
	}
}

// measured returns the processor time of do, and how much the program's memory grew.
func measured(do func()) (took time.Duration, grown uint64) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, peak := m.HeapSys-m.HeapReleased, uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapSys-m.HeapReleased)
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	begun := child.ProcessorTime()
	do()
	took = child.ProcessorTime() - begun
	close(done)
	<-stopped
	return took, peak - min(base, peak)
}

// mutant damages a file: bits are flipped, the end is cut off, or a piece of it or
// of another is inserted elsewhere.
func mutant(rng *rand.Rand, whole, other []byte) []byte {
	data := bytes.Clone(whole)
	switch rng.IntN(4) {
	case 0:
		for range 1 + rng.IntN(20) {
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		}
	case 1:
		data = data[:rng.IntN(len(data))]
	case 2:
		at, from := rng.IntN(len(data)), rng.IntN(len(data))
		data = slices.Insert(data, at, whole[from:min(len(whole), from+rng.IntN(2000))]...)
	case 3:
		at, from := rng.IntN(len(data)), rng.IntN(len(other))
		copy(data[at:], other[from:min(len(other), from+rng.IntN(2000))])
	}
	return data
}

// mutantOf damages the parts of an archive instead of the archive, whose checksums would catch most
// damage before a reader sees it.
func mutantOf(t testing.TB, rng *rand.Rand, whole, other []byte) []byte {
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil || rng.IntN(2) == 0 {
		return mutant(rng, whole, other)
	}
	files := make([]txtar.File, len(r.File))
	for i, f := range r.File {
		in, err := f.Open()
		must(t, err)
		data, err := io.ReadAll(in)
		must(t, err)
		files[i] = txtar.File{Name: f.Name, Data: data}
	}
	for range 1 + rng.IntN(3) {
		f := &files[rng.IntN(len(files))]
		if len(f.Data) > 0 {
			f.Data = mutant(rng, f.Data, files[rng.IntN(len(files))].Data[:1])
		}
	}
	return zipOf(t, files...)
}

// A mutation is a damaged file.
type mutation struct {
	name string
	data []byte
}

// checkMutants reads damaged files. Each must yield text or a reason in time, and must not
// end its reader, unless it may crash.
func checkMutants(t *testing.T, r *Reader, mutants []mutation, mayCrash bool) {
	t.Helper()
	var read, partial, refused, crashed atomic.Int64
	begun := time.Now()
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, m := range mutants {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*child.Seconds*time.Second)
			defer cancel()
			doc, err := r.Read(ctx, m.name, m.data)
			if err == nil {
				if read.Add(1); doc.Partial != "" {
					partial.Add(1)
				}
				checkDocument(t, doc)
				doc.ID = "x"
				checkChunks(t, doc, Split(doc), maxTokens)
				return nil
			}
			refused.Add(1)
			reason := err.Error()
			if died := strings.Contains(reason, "crashed") || strings.Contains(reason, "took more than") ||
				strings.Contains(reason, "needed more than"); died {
				crashed.Add(1)
				if !mayCrash {
					t.Errorf("reading %s ended its child: %v", m.name, err)
				}
			}
			if reason == "" || ctx.Err() != nil {
				t.Errorf("%s: reason = %q, %v", m.name, reason, ctx.Err())
			}
			return nil
		})
	}
	must(t, group.Wait())
	t.Logf("figure: %d mutants in %v: %d read, %d of them in part, %d refused with a reason, of these %d by the end of a child",
		len(mutants), time.Since(begun).Round(time.Second), read.Load(), partial.Load(), refused.Load(), crashed.Load())
}

// TestMutants damages files of the evaluation sets.
func TestMutants(t *testing.T) {
	for _, set := range []struct {
		folders, endings string
		cases            int
		mayCrash         bool
	}{
		{"mixed-*", ".doc .xls .ppt .rtf .msg .ics", 2000, false},
		{"pdf-*", ".pdf", 260, true},
	} {
		t.Run(set.endings, func(t *testing.T) {
			names, err := filepath.Glob(filepath.Join(datatest.Sets(t, "files"), set.folders, "*"))
			must(t, err)
			var files []mutation
			for _, name := range names {
				if info, err := os.Stat(name); err != nil || info.Size() > 300_000 ||
					!slices.Contains(strings.Fields(set.endings), filepath.Ext(name)) {
					continue
				}
				data, err := os.ReadFile(name)
				must(t, err)
				files = append(files, mutation{filepath.Base(name), data})
			}
			if len(files) < 50 {
				t.Fatalf("only %d files, want at least 50", len(files))
			}
			rng := datatest.Rand(t)
			r := new(Reader)
			t.Cleanup(r.Close)
			var mutants []mutation
			for range datatest.Cases(t, set.cases) {
				f := files[rng.IntN(len(files))]
				mutants = append(mutants, mutation{f.name, mutant(rng, f.data, files[rng.IntN(len(files))].data)})
			}
			checkMutants(t, r, mutants, set.mayCrash)
		})
	}
}

// TestMutantSamples damages the samples of formats that are read in a child process.
func TestMutantSamples(t *testing.T) {
	rng := datatest.Rand(t)
	files := officeFiles(t)
	maps.Copy(files, samples(t, func(f fileFormat) bool { return f.isolated && f.name != "pdf" }))
	names := slices.Sorted(maps.Keys(files))
	var mutants []mutation
	for _, name := range names {
		for range datatest.Cases(t, 40) {
			mutants = append(mutants, mutation{name, mutantOf(t, rng, files[name], files[names[rng.IntN(len(names))]])})
		}
	}
	checkMutants(t, new(Reader), mutants, false)
}
