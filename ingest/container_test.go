package ingest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"ibid/data/datatest"
)

// members returns files from pairs of names and texts.
func members(pairs ...string) (files []txtar.File) {
	for pair := range slices.Chunk(pairs, 2) {
		files = append(files, txtar.File{Name: pair[0], Data: []byte(pair[1])})
	}
	return files
}

func zipped(t testing.TB, pairs ...string) *fstest.MapFile {
	return file1(string(zipOf(t, members(pairs...)...)))
}

func tarOf(t testing.TB, files ...txtar.File) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		must(t, w.WriteHeader(&tar.Header{Name: f.Name, Size: int64(len(f.Data)), Mode: 0o644}))
		_, err := w.Write(f.Data)
		must(t, err)
	}
	must(t, errors.Join(w.Close(), z.Close()))
	return out.Bytes()
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write([]byte(text))
	must(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// TestSyncOfLargeArchive syncs archives with more files than are extracted at a time, not
// in order.
func TestSyncOfLargeArchive(t *testing.T) {
	var pairs []string
	const files = batchFiles + batchFiles/2
	for i := range files {
		pairs = append(pairs, strings.Repeat("x", i%7)+string(rune('a'+i%26))+"/"+strings.Repeat("y", i%11)+string(rune('0'+i%10))+"-"+
			strings.Repeat("z", i/70)+".txt")
		pairs = append(pairs, "Text of "+pairs[len(pairs)-1])
	}
	names := make(map[string]bool)
	for i := 0; i < len(pairs); i += 2 {
		names[pairs[i]] = true
	}
	for name, f := range map[string]*fstest.MapFile{"a.zip": zipped(t, pairs...), "a.tgz": file1(string(tarOf(t, members(pairs...)...)))} {
		sink := newMemory()
		got, err := syncAll(t, &Syncer{Sink: sink}, fstest.MapFS{name: f})
		if err != nil || len(got) != len(names) || len(sink.docs) != len(names) {
			t.Errorf("%s: %d lines, %d of %d documents, %v", name, len(got), len(sink.docs), len(names), err)
		}
		for id, doc := range sink.docs {
			if want := "Text of " + strings.TrimPrefix(id, "harbour/"+name+"/"); doc.Text != want {
				t.Errorf("text of %s = %q, want %q", id, doc.Text, want)
			}
		}
	}
}

// TestArchiveThatChanges changes an archive between listing and reading it.
func TestArchiveThatChanges(t *testing.T) {
	fsys := changing{fstest.MapFS{"a.zip": zipped(t, "a.md", "One.")}, zipped(t, "a.md", "Two."), new(int)}
	got, err := syncAll(t, &Syncer{Sink: newMemory()}, fsys)
	must(t, err)
	wantLines(t, got, "failed a.zip/a.md: its archive changed while it was being read: ingest the folder again")
}

type changing struct {
	fstest.MapFS
	then   *fstest.MapFile
	opened *int
}

func (c changing) Open(name string) (fs.File, error) {
	if name == "a.zip" {
		if *c.opened++; *c.opened == 2 {
			c.MapFS[name] = c.then
		}
	}
	return c.MapFS.Open(name)
}

// TestContainerMutants checks that every file in a damaged archive or mail has an action
// and, if it is not read, a reason, and that none crashes a reader.
func TestContainerMutants(t *testing.T) {
	rng := datatest.Rand(t)
	mail := "From: a@example.org\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText.\n--b\nContent-Disposition: " +
		"attachment; filename=\"a.md\"\n\n# In\n\nText.\n--b--\n"
	inner := string(zipped(t, "deep.md", "# Deep\n\nText.").Data)
	whole := map[string][]byte{
		"a.zip":    zipped(t, "one.md", strings.Repeat("One. ", 200), "sub/two.txt", "Two.", "in.zip", inner, "m.eml", mail).Data,
		"b.tar.gz": tarOf(t, members("four.md", "Four.", "five/five.md", strings.Repeat("Five. ", 200), "in.zip", inner)...),
		"c.txt.gz": gzipped(t, strings.Repeat("Six. ", 200)),
		"d.eml":    []byte(mail),
		"e.mbox":   []byte("From a@b Mon Jun 01 10:00:00 2009\n" + mail + "\nFrom a@b Mon Jun 01 10:00:00 2009\n" + mail),
	}
	names := slices.Sorted(maps.Keys(whole))
	s := &Syncer{Sink: newMemory(), Reader: new(Reader)}
	defer s.Reader.Close()
	counts := make(map[Action]int)
	rounds := datatest.Cases(t, 60)
	for range rounds {
		fsys := fstest.MapFS{}
		for _, name := range names {
			fsys[name] = file1(string(mutant(rng, whole[name], whole[names[rng.IntN(len(names))]])))
		}
		for c, err := range s.Sync(t.Context(), harbour, fsys) {
			must(t, err)
			counts[c.Action]++
			if (c.Action == Failed || c.Action == Skipped) && c.Reason == "" || strings.Contains(c.Reason, "crashed") ||
				strings.Contains(c.Reason, "took more than") || strings.Contains(c.Reason, "needed more than") {
				t.Errorf("%s is %s: %s", c.Path, c.Action, c.Reason)
			}
		}
	}
	t.Logf("figure: %d mutants of archives and mails: %v", len(names)*rounds, counts)
}
