package library_test

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/embed"
	"ibid/retrieve/library"
	"ibid/retrieve/state/statetest"
)

var must = datatest.Must

// The environment of a child process: this test binary again.
const (
	childData = "IBID_TEST_DATA"
	childURL  = "IBID_TEST_URL"
)

func TestMain(m *testing.M) {
	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	if data := os.Getenv(childData); data != "" {
		if err := runCommands(library.Place{Data: data, URL: os.Getenv(childURL)}, os.Stdin, os.Stdout); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runCommands opens a library and carries out the commands that it reads, one per line: "store PATH WORD",
// "delete PATH" and "search WORD". It replies with one line; the reply to a search has the paths of
// the passages with the word.
func runCommands(place library.Place, in io.Reader, out io.Writer) (err error) {
	ctx := context.Background()
	model, err := embed.New()
	if err != nil {
		return err
	}
	lib, err := library.Open(ctx, place, model, library.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.Close()) }()
	if _, err := lib.AddRoot(ctx, "/srv/a", ""); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var paths []string
		switch words := strings.Fields(lines.Text()); words[0] {
		case "store":
			err = storeWord(ctx, lib, words[1], words[2])
		case "delete":
			err = lib.Delete(ctx, "a/"+words[1])
		case "search":
			paths, err = pathsOf(ctx, lib, words[1])
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, strings.Join(paths, " ")); err != nil {
			return err
		}
	}
	return nil
}

// storeWord stores a document with a word.
func storeWord(ctx context.Context, lib *library.Library, path, word string) error {
	doc := &ingest.Document{ID: "a/" + path, Root: "a", Path: path, Format: "text", Digest: word,
		Text: "The word of this text is " + word + "."}
	return lib.Replace(ctx, doc, ingest.Split(doc))
}

// pathsOf returns the paths of the documents with a word.
func pathsOf(ctx context.Context, lib *library.Library, word string) (paths []string, err error) {
	found, err := lib.Search(ctx, retrieve.Query{Text: "Which text has the word " + word + "?", K: 50})
	for _, p := range found {
		if strings.Contains(p.Text, word+".") {
			paths = append(paths, p.Path)
		}
	}
	return paths, err
}

// start runs obey in another process and returns a function that sends it a command.
func start(t *testing.T, place library.Place) func(format string, args ...any) string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childData+"="+place.Data, childURL+"="+place.URL)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	must(t, err)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() {
		must(t, errors.Join(in.Close(), child.Wait()))
	})
	replies := bufio.NewScanner(out)
	return func(format string, args ...any) string {
		t.Helper()
		_, err := fmt.Fprintf(in, format+"\n", args...)
		must(t, err)
		if !replies.Scan() || strings.HasPrefix(replies.Text(), "ERROR") {
			t.Fatalf("reply of the process = %q", replies.Text())
		}
		return replies.Text()
	}
}

// newPlace returns a place without a library.
func newPlace(t *testing.T, kind string) library.Place {
	t.Helper()
	place := library.Place{Data: t.TempDir()}
	if kind == "PostgreSQL" {
		place.URL = statetest.Schema(t)
	}
	return place
}

// TestFirstStarts starts three processes at once with a new library.
func TestFirstStarts(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			for range datatest.Cases(t, 60) {
				place := newPlace(t, kind)
				sides := []func(string, ...any) string{start(t, place), start(t, place), start(t, place)}
				for i, side := range sides {
					side("store %d zyx%dq", i, i)
				}
				for i := range sides {
					if found := sides[0]("search zyx%dq", i); found != fmt.Sprint(i) {
						t.Errorf("the document of process %d is found in %q", i, found)
					}
				}
			}
		})
	}
}

// TestStoreAndSearchInTwoProcesses changes a document in one process and immediately searches in another:
// the new word must be found, and the old one must not.
func TestStoreAndSearchInTwoProcesses(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind, func(t *testing.T) {
			place := newPlace(t, kind)
			other := place // one data directory, with one index
			if place.URL != "" {
				other.Data = t.TempDir()
			}
			sides := []func(string, ...any) string{start(t, place), start(t, other)}
			r := datatest.Rand(t)
			words := make(map[string]string) // by path
			rounds, stale := datatest.Cases(t, 60), 0
			for n := range rounds {
				here := r.IntN(2)
				path, word := fmt.Sprint(r.IntN(10)), fmt.Sprintf("zyx%dq", n)
				old := words[path]
				if words[path] = word; old != "" && r.IntN(3) == 0 {
					words[path] = ""
					sides[here]("delete %s", path)
				} else {
					sides[here]("store %s %s", path, word)
				}
				for path, word := range words {
					if word != "" && sides[1-here]("search %s", word) != path {
						t.Errorf("round %d: %s is not found by its word %s", n+1, path, word)
						stale++
					}
				}
				if old != "" && sides[1-here]("search %s", old) != "" {
					t.Errorf("round %d: the old word %s of %s is found", n+1, old, path)
					stale++
				}
			}
			t.Logf("%d rounds, %d stale", rounds, stale)
		})
	}
}

// uploadServers are two servers with uploads on one PostgreSQL.
type uploadServers struct {
	*testing.T
	reader  *ingest.Reader
	libs    []*library.Library
	servers []*ingest.Uploads
}

func newUploadServers(t *testing.T) *uploadServers {
	s := &uploadServers{T: t, reader: new(ingest.Reader)}
	place := newPlace(t, "PostgreSQL")
	model, err := embed.New()
	must(t, err)
	t.Cleanup(s.reader.Close)
	for range 2 {
		place.Data = t.TempDir()
		lib, err := library.Open(t.Context(), place, model, library.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, lib.Close()) })
		root, err := lib.AddRoot(t.Context(), "", "")
		must(t, err)
		dir, err := os.OpenRoot(t.TempDir())
		must(t, err)
		t.Cleanup(func() { must(t, dir.Close()) })
		s.libs = append(s.libs, lib)
		s.servers = append(s.servers, &ingest.Uploads{Dir: dir, Root: root, Syncer: &ingest.Syncer{Sink: lib.Index, Reader: s.reader},
			Files: lib.State.Originals(), Lock: disk.Lock, All: func() []*ingest.Uploads { return nil }})
	}
	return s
}

// add uploads a text, or an archive with a name ending in ".zip": each of its three files is a document.
func (s *uploadServers) add(server int, name, text string) error {
	var b strings.Builder
	if w := zip.NewWriter(&b); strings.HasSuffix(name, ".zip") {
		for n := range 3 {
			f, err := w.Create(fmt.Sprintf("%d.md", n+server))
			must(s, err)
			fmt.Fprint(f, text)
		}
		must(s, w.Close())
	} else {
		b.WriteString(text)
	}
	_, err := s.servers[server].Add(s.Context(), name, strings.NewReader(b.String()), map[string]string{"tags": "sea"})
	return err
}

// check checks the number of documents, and that they were read from the stored files or, failing
// that, from the received ones.
func (s *uploadServers) check(what string, count int, received bool) (texts string) {
	s.Helper()
	docs, err := s.libs[0].Documents(s.Context(), retrieve.Filter{})
	must(s, err)
	if len(docs) != count {
		s.Errorf("%s: %d documents, want %d", what, len(docs), count)
	}
	files := s.libs[1].State.Originals()
	for _, info := range docs {
		doc, err := s.libs[0].Document(s.Context(), info.ID)
		must(s, err)
		name, _, _ := strings.Cut(doc.Path, "/")
		from := func(received bool) error {
			data, err := files.Read(s.Context(), "uploads/"+name, received)
			if err == nil {
				_, err = s.reader.Original(s.Context(), ingest.OneFile(name, data), doc)
			}
			return err
		}
		if err := from(false); err != nil && (!received || from(true) != nil) || doc.Meta["tags"] != "sea" {
			s.Errorf("%s: %s has the text %q, metadata %v: %v", what, doc.ID, doc.Text, doc.Meta, err)
		}
		texts += doc.Text + "\n"
	}
	return texts
}

// TestUploadsTogether uploads different files with one name through two servers at once: the
// documents must come from the file that is stored.
func TestUploadsTogether(t *testing.T) {
	s := newUploadServers(t)
	for round := range 10 {
		var all errgroup.Group
		for i := range s.servers {
			for _, name := range []string{"a.md", "b.zip"} {
				all.Go(func() error { return s.add(i, name, fmt.Sprintf("Server %d sends text %d.", i, round)) })
			}
		}
		must(t, all.Wait())
		s.check(fmt.Sprint("round ", round), 4, false)
	}
	ledger := s.libs[0].State.Ledger()
	if err := ledger.Claim(t.Context(), "upload uploads/a.md", "other", time.Second); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("claim on an upload remains: %v", err)
	}
	must(t, s.add(0, "folder/a.md", "A."))
	for _, name := range []string{"folder", "folder/a.md/b.md"} { // the other server has no file of this name
		if err := s.add(1, name, "B."); !errors.Is(err, ingest.ErrUploadPath) {
			t.Errorf("uploading %s: err = %v, want %v", name, err, ingest.ErrUploadPath)
		}
	}
}

// A killed server ends an upload after a step.
type killed struct {
	ingest.Files
	put error
}

var errKilled = errors.New("the server was killed")

func (k *killed) Put(ctx context.Context, id string, content io.ReadSeeker) error {
	return cmp.Or(k.Files.Put(ctx, id, content), k.put)
}

func (k *killed) FinishPut(context.Context, string, bool) error { return errKilled }

// TestUploadKilled ends uploads between their steps. Each document must then have its file and its
// tags; the next start of a server finishes the uploads whose documents are stored, and discards
// all others.
func TestUploadKilled(t *testing.T) {
	s := newUploadServers(t)
	first, second := s.servers[0], s.servers[1]
	for round, tt := range []struct {
		put              error // after the file, otherwise after the documents
		documents, texts int
	}{
		{errKilled, 0, 0},
		{nil, 5, 5},
		{errKilled, 5, 3}, // the archive has older documents with the same tags
		{nil, 6, 5},
	} {
		text := fmt.Sprintf("Text %d.", round)
		first.Files = &killed{second.Files, tt.put}
		for _, name := range []string{"a.md", "b.zip", fmt.Sprint("new", round, ".md")} {
			if err := s.add(0, name, text); !errors.Is(err, errKilled) {
				t.Errorf("round %d: %s: %v", round, name, err)
			}
		}
		s.check(fmt.Sprint("killed in round ", round), tt.documents, true)
		_, err := second.Sync(t.Context())
		must(t, err)
		if texts := s.check("finished", tt.documents, false); strings.Count(texts, text) != tt.texts {
			t.Errorf("round %d: texts = %q", round, texts)
		}
		if left, err := second.Files.IDs(t.Context(), true); err != nil || len(left) > 0 {
			t.Errorf("unsettled uploads: %q, %v", left, err)
		}
	}
	first.Files = second.Files
	if err := s.add(0, "a.md", "\x7fELF"); err == nil {
		t.Error("an executable was accepted")
	}
	s.check("unreadable", 6, false)
}
