package ingest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
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

// zipped packs pairs of names and texts.
func zipped(t testing.TB, pairs ...string) *fstest.MapFile {
	t.Helper()
	var files []txtar.File
	for pair := range slices.Chunk(pairs, 2) {
		files = append(files, txtar.File{Name: pair[0], Data: []byte(pair[1])})
	}
	return file1(string(zipOf(t, files...)))
}

func tarred(t testing.TB, pairs ...string) *fstest.MapFile {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := 0; i < len(pairs); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: pairs[i], Size: int64(len(pairs[i+1])), Mode: 0o644})
		if err == nil {
			_, err = w.Write([]byte(pairs[i+1]))
		}
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return file1(out.String())
}

// An archive is a folder: its files are added, unchanged, updated, renamed and
// removed one by one.
func TestSyncOfArchives(t *testing.T) {
	sink := newMemory()
	s := &Syncer{Sink: sink}
	inner := zipped(t, "deep.md", "# Deep\n\nText.", "../../up.txt", "Cleaned.")
	fsys := fstest.MapFS{
		".gitignore": file1("*.log\nbuild/\n"),
		"a.md":       file1("First."),
		"b.zip": zipped(t, "one.md", "One.", "sub/two.txt", "Two.", "sub/song.mp3", "\xff\xd8", ".hidden/x.md", "hidden",
			"__MACOSX/._one.md", "fork",
			"run.log", "ignored", "build/out.md", "ignored", "empty.md", "", `c:\win\three.txt`, "Three.", "in.zip", string(inner.Data),
			"torn.zip", "PK\x03\x04"),
		"c.tar.gz":   tarred(t, "four.md", "Four.", "five/five.md", "Five."),
		"d.txt.gz":   gzipped(t, "Six."),
		"empty.zip":  zipped(t, ".hidden", "x"),
		"broken.zip": file1("PK\x03\x04 and no more"),
		"e.7z":       file1("7z\xbc\xaf\x27\x1c"),
	}
	got, err := syncAll(t, s, fsys)
	must(t, err)
	goldenLines(t, "archives", got)
	if doc := sink.docs["harbour/b.zip/in.zip/deep.md"]; doc == nil || doc.Title != "Deep" || doc.Path != "b.zip/in.zip/deep.md" ||
		doc.Text != "Deep\n\nText." {
		t.Errorf("stored %+v", doc)
	}

	sink.replaced = nil
	fsys["b.zip"] = zipped(t, "one.md", "One, changed.", "moved/two.txt", "Two.", "in.zip", "PK torn")
	fsys["c.tar.gz"] = file1("\x1f\x8b torn, from the start")
	delete(fsys, "d.txt.gz")
	delete(fsys, "broken.zip")
	delete(fsys, "e.7z")
	delete(fsys, "empty.zip")
	if got, err = syncAll(t, s, fsys); err != nil {
		t.Fatal(err)
	}
	goldenLines(t, "archives2", got)
	wantLines(t, slices.Sorted(maps.Keys(sink.docs)), "harbour/a.md", "harbour/b.zip/in.zip/deep.md", "harbour/b.zip/in.zip/up.txt",
		"harbour/b.zip/moved/two.txt", "harbour/b.zip/one.md", "harbour/c.tar.gz/five/five.md", "harbour/c.tar.gz/four.md")
	wantLines(t, sink.replaced, "harbour/b.zip/one.md")
}

func gzipped(t testing.TB, text string) *fstest.MapFile {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
	return file1(out.String())
}

// An archive holds more files than are extracted at a time, not in order.
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
	for name, f := range map[string]*fstest.MapFile{"a.zip": zipped(t, pairs...), "a.tgz": tarred(t, pairs...)} {
		sink := newMemory()
		got, err := syncAll(t, &Syncer{Sink: sink}, fstest.MapFS{name: f})
		if err != nil || len(got) != len(names) || len(sink.docs) != len(names) {
			t.Errorf("%s: %d lines, %d of %d documents, %v", name, len(got), len(sink.docs), len(names), err)
		}
		for id, doc := range sink.docs {
			if want := "Text of " + strings.TrimPrefix(id, "harbour/"+name+"/"); doc.Text != want {
				t.Errorf("%s: %q", id, doc.Text)
			}
		}
	}
}

// An archive changes between being listed and read.
func TestArchiveThatChanges(t *testing.T) {
	fsys := changing{fstest.MapFS{"a.zip": zipped(t, "a.md", "One.")}, zipped(t, "a.md", "Two."), new(int)}
	got, err := syncAll(t, &Syncer{Sink: newMemory()}, fsys)
	must(t, err)
	wantLines(t, got, "failed a.zip/a.md: its archive changed meanwhile: ingest the folder again")
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

// One archive or mail is synced with the files in it.
func TestSyncFileOfContainers(t *testing.T) {
	sink := newMemory()
	s := &Syncer{Sink: sink}
	fsys := fstest.MapFS{"other.md": file1("Other."), "a.zip": zipped(t, "one.md", "One.", "two.md", "Two.", "x.mp3", "sound"),
		"none.zip": zipped(t, "x.mp3", "sound")}
	for _, step := range []struct {
		path   string
		action Action
		reason string
		docs   []string
	}{
		{"other.md", Added, "", []string{"harbour/other.md"}},
		{"a.zip", Added, "x.mp3: .mp3 files are not read", []string{"harbour/a.zip/one.md", "harbour/a.zip/two.md", "harbour/other.md"}},
		{"a.zip", Unchanged, "x.mp3: .mp3 files are not read", []string{"harbour/a.zip/one.md", "harbour/a.zip/two.md", "harbour/other.md"}},
		{"none.zip", Skipped, "x.mp3: .mp3 files are not read", []string{"harbour/a.zip/one.md", "harbour/a.zip/two.md", "harbour/other.md"}},
	} {
		c, err := s.SyncFile(t.Context(), harbour, fsys, step.path)
		if err != nil || c.Action != step.action || c.Reason != step.reason || c.Path != step.path {
			t.Errorf("%s: %+v, %v; want %s: %s", step.path, c, err, step.action, step.reason)
		}
		wantLines(t, slices.Sorted(maps.Keys(sink.docs)), step.docs...)
	}
	fsys["a.zip"] = zipped(t, "one.md", "One, changed.")
	if c, err := s.SyncFile(t.Context(), harbour, fsys, "a.zip"); err != nil || c.Action != Updated || c.Chunks != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	wantLines(t, slices.Sorted(maps.Keys(sink.docs)), "harbour/a.zip/one.md", "harbour/other.md")
	fsys["a.zip"] = file1("torn, though it is long enough")
	if c, err := s.SyncFile(t.Context(), harbour, fsys, "a.zip"); err != nil || c.Action != Failed || len(sink.docs) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Every file in a mutant of an archive or mail has an action and, if it is not
// read, a reason; none crashes a reader.
func TestContainerMutants(t *testing.T) {
	rng := datatest.Rand(t)
	mail := "From: a@example.org\nSubject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText.\n--b\nContent-Disposition: " +
		"attachment; filename=\"a.md\"\n\n# In\n\nText.\n--b--\n"
	inner := string(zipped(t, "deep.md", "# Deep\n\nText.").Data)
	whole := map[string][]byte{
		"a.zip":    zipped(t, "one.md", strings.Repeat("One. ", 200), "sub/two.txt", "Two.", "in.zip", inner, "m.eml", mail).Data,
		"b.tar.gz": tarred(t, "four.md", "Four.", "five/five.md", strings.Repeat("Five. ", 200), "in.zip", inner).Data,
		"c.txt.gz": gzipped(t, strings.Repeat("Six. ", 200)).Data,
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

// An archive or a mail can be uploaded, and is removed with the files in it.
func TestUploadsOfContainers(t *testing.T) {
	u, sink, files := newUploads(t)
	add := func(name string, f *fstest.MapFile) (Change, error) {
		return u.Add(t.Context(), name, bytes.NewReader(f.Data), nil)
	}
	if c, err := add("a.zip", zipped(t, "one.md", "One.", "sub/two.md", "Two.")); err != nil || c.Action != Added || c.Chunks != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := add("a.zip", zipped(t, "one.md", "One.", "three.md", "Three.")); err != nil || c.Action != Updated {
		t.Errorf("%+v, %v", c, err)
	}
	wantLines(t, slices.Sorted(maps.Keys(sink.docs)), "uploads/a.zip/one.md", "uploads/a.zip/three.md")
	var unreadable *UnreadableError
	if c, err := add("a.zip", file1("PK torn")); !errors.As(err, &unreadable) {
		t.Errorf("%+v, %v", c, err)
	}
	wantLines(t, files(), "a.zip")
	if c, err := u.Reread(t.Context(), "a.zip", nil); err != nil || c.Action != Updated {
		t.Errorf("%+v, %v", c, err)
	}
	if err := u.Remove(t.Context(), "a.zip/one.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing a file of an archive: %v", err)
	}
	if _, err := u.Reread(t.Context(), "a.zip/one.md", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a file of an archive anew: %v", err)
	}
	if err := u.Remove(t.Context(), "a.zip"); err != nil || len(sink.docs) != 0 || len(files()) != 0 {
		t.Errorf("%v; %d documents, files %q", err, len(sink.docs), files())
	}
}

// A mail is a document, and a folder of its attachments.
func TestSyncOfMails(t *testing.T) {
	encoded := func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }
	message := func(subject, text string, attached ...string) string {
		out := "From: Ada <ada@example.org>\nSubject: " + subject + "\nDate: Fri, 8 Mar 2024 09:00:00 +0100\nContent-Type: multipart/mixed; " +
			"boundary=b\n\n--b\n\n" + text + "\n"
		for i := 0; i < len(attached); i += 2 {
			out += "--b\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"" + attached[i] +
				"\"\nContent-Transfer-Encoding: base64\n\n" + encoded(attached[i+1]) + "\n"
		}
		return out + "--b--\n"
	}
	const from = "From ada@example.org Fri Mar  8 09:00:00 2024\n"
	zip := string(zipped(t, "in.md", "# In\n\nPacked.").Data)
	long := strings.Repeat("Two messages of more than a few words share no chunk. ", 5)
	fsys := fstest.MapFS{
		"a.eml": file1(message("Fares", "Cabins cost more.", "fares.csv", "class,fare\ndeck,4\n", "fares.csv", "class,fare\ncabin,9\n",
			"song.mp3", "\xff\xd8", "old.zip", zip)),
		"box.mbox": file1(from + message("First", long) + "\n" + from + message("Second", long, "note.txt", "Noted.") + "\n" +
			from + "\nNo header at all.\n"),
		"plain.eml": file1("Subject: Plain\n\nText\n"),
		"none.eml":  file1("\n\n\n\x01"),
		"old.msg":   file1("\xd0\xcf\x11\xe0"),
		"post.zip":  zipped(t, "in.eml", message("Inner", "Deep.", "deep.txt", "Deeper.")),
	}
	sink := newMemory()
	got, err := syncAll(t, &Syncer{Sink: sink}, fsys)
	must(t, err)
	goldenLines(t, "mails", got)
	doc := sink.docs["harbour/a.eml"]
	checkDocument(t, doc)
	if want := "Fares\n\nFrom: Ada <ada@example.org>\nDate: Fri, 8 Mar 2024 09:00:00 +0100\n\nCabins cost more.\n\nAttached: fares.csv, " +
		"fares.csv, song.mp3, old.zip"; doc.Text != want || doc.Title != "Fares" ||
		doc.Meta["date"] != "2024-03-08T09:00:00+01:00" || doc.Meta["author"] != "Ada <ada@example.org>" {
		t.Errorf("%q, %q", doc.Text, doc.Meta)
	}
	box := sink.docs["harbour/box.mbox"]
	checkDocument(t, box)
	var anchors []string
	for _, c := range sink.chunks[box.ID] {
		anchors = append(anchors, c.Anchor+" "+c.Heading)
	}
	wantLines(t, anchors, "message=1 First", "message=2 Second", "message=3 Message 3")

	// Attachments are removed with the mail; a mail without them stays.
	delete(fsys, "post.zip")
	delete(fsys, "none.eml")
	delete(fsys, "old.msg")
	fsys["a.eml"] = file1(message("Fares", "Cabins cost more.", "fares.csv", "class,fare\ndeck,4\n"))
	if got, err = syncAll(t, &Syncer{Sink: sink}, fsys); err != nil {
		t.Fatal(err)
	}
	goldenLines(t, "mails2", got)
}
