package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/cite"
)

// A served is a store with several servers, each with its own data directory, and
// a key with write access.
type served struct {
	t       *testing.T
	store   []string // the flag that names it
	index   []string // that of its search index, if it is in a cluster
	key     string
	servers []running
}

// serveTogether starts n servers on one store that sync the same folder.
func serveTogether(t *testing.T, store string, n int, args ...string) *served {
	t.Helper()
	s := &served{t: t, store: at(t, store)}
	s.key = s.makeKey("first", "--scope", "write")
	var started sync.WaitGroup
	s.servers = make([]running, n)
	for i := range s.servers {
		started.Go(func() {
			s.servers[i] = start(t, t.TempDir(), append(append([]string{"--auth", "on", "--uploads", "on"}, s.store...), args...)...)
		})
	}
	started.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, server := range s.servers {
		ready(t, server.url)
	}
	return s
}

func (s *served) makeKey(name string, args ...string) string {
	s.t.Helper()
	return makeKey(s.t, "", slices.Concat([]string{name}, args, s.store)...)
}

// do sends a request to a server and returns the status and the body.
func (s *served) do(server int, method, path, key string, body []byte) (status int, reply string) {
	s.t.Helper()
	resp := asked(s.t, method, s.servers[server].url+path, key, string(body), "Content-Type: application/json")
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return resp.StatusCode, string(b)
}

// found returns the documents of the passages that a server finds.
func (s *served) found(server int, question string) (documents []string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"question": question})
	must(s.t, err)
	status, reply := s.do(server, "POST", "/api/search", s.key, body)
	var result struct {
		Passages []struct{ Document string }
	}
	if err := json.Unmarshal([]byte(reply), &result); err != nil || status != http.StatusOK {
		s.t.Fatalf("searching: %d, %v: %s", status, err, reply)
	}
	for _, p := range result.Passages {
		documents = append(documents, p.Document)
	}
	return documents
}

// ids returns the documents that a server lists.
func (s *served) ids(server int) (ids []string) {
	s.t.Helper()
	status, reply := s.do(server, "GET", "/api/documents?limit=1000", s.key, nil)
	var list struct {
		Documents []struct{ Document string }
	}
	if err := json.Unmarshal([]byte(reply), &list); err != nil || status != http.StatusOK {
		s.t.Fatalf("listing: %d, %v: %s", status, err, reply)
	}
	for _, d := range list.Documents {
		ids = append(ids, d.Document)
	}
	return ids
}

func (s *served) each(do func(server int)) {
	for i := range s.servers {
		do(i)
	}
}

// TestServersTogether: several servers on one store are one library.
func TestServersTogether(t *testing.T) {
	t.Parallel()
	stores := servedStores(t)
	if len(stores) == 0 {
		t.Skip("there is no server to test with")
	}
	indexes := map[string][]string{"": nil}
	if cluster := os.Getenv("IBID_TEST_WEAVIATE"); cluster != "" {
		indexes[" and Weaviate"] = []string{"--index", cluster}
	}
	for name, fresh := range stores {
		for with, index := range indexes {
			t.Run(name+with, func(t *testing.T) { testServersTogether(t, fresh(t), index) })
		}
	}
}

func testServersTogether(t *testing.T, store string, index []string) {
	folder := filepath.Join(t.TempDir(), "logs")
	const documents = 12
	writeDocuments(t, folder, documents)
	s := serveTogether(t, store, 3, append(index, folder)...)
	s.index = index
	t.Run("one folder", func(t *testing.T) { s.testFolder(t, folder, documents) })
	t.Run("ingest", s.testIngest)
	t.Run("uploads", s.testUploads)
	t.Run("collections", s.testCollections)
}

// testFolder: a folder that all servers sync is in the store once, and stays up to
// date.
func (s *served) testFolder(t *testing.T, folder string, documents int) {
	s.t = t
	s.each(func(i int) {
		if got := s.ids(i); len(got) != documents {
			t.Errorf("server %d lists %d documents, want %d", i, len(got), documents)
		}
	})
	must(t, os.WriteFile(filepath.Join(folder, "new.md"), []byte("# New\n\nThe wherry Petrel was bought in May."), 0o600))
	must(t, os.Rename(filepath.Join(folder, "day-001.md"), filepath.Join(folder, "moved.md")))
	must(t, os.Remove(filepath.Join(folder, "day-002.md")))
	s.each(func(i int) {
		eventually(t, "the folder to be read again", func() bool {
			ids := s.ids(i)
			return len(ids) == documents && slices.Contains(ids, "logs/new.md") && slices.Contains(ids, "logs/moved.md") &&
				!slices.Contains(ids, "logs/day-001.md") && !slices.Contains(ids, "logs/day-002.md")
		})
		if got := s.found(i, "Which wherry was bought in May?"); len(got) == 0 || got[0] != "logs/new.md" {
			t.Errorf("server %d finds %q", i, got)
		}
		eventually(t, "each server to be done with the folder", func() bool {
			_, metrics := s.do(i, "GET", "/metrics", s.key, nil)
			return strings.Contains(metrics, "ibid_sync_failed_files 0\n")
		})
	})
}

// testIngest: at their next question all servers find documents that were
// ingested, and none that were forgotten.
func (s *served) testIngest(t *testing.T) {
	s.t = t
	for n := range 3 {
		folder := filepath.Join(t.TempDir(), fmt.Sprintf("extra%d", n))
		must(t, os.MkdirAll(folder, 0o700))
		must(t, os.WriteFile(filepath.Join(folder, "a.md"), []byte(fmt.Sprintf("# Extra\n\nThe zeppelin number %d moored at noon.", n)), 0o600))
		mustRun(t, "", slices.Concat([]string{"ingest", folder}, s.store, s.index)...)
		s.each(func(i int) {
			if got := s.found(i, "When did the zeppelin moor?"); !slices.Contains(got, fmt.Sprintf("extra%d/a.md", n)) {
				t.Errorf("server %d finds %q", i, got)
			}
		})
		mustRun(t, "", slices.Concat([]string{"forget", fmt.Sprintf("extra%d", n)}, s.store, s.index)...)
		s.each(func(i int) {
			if got := s.found(i, "When did the zeppelin moor?"); slices.Contains(got, fmt.Sprintf("extra%d/a.md", n)) {
				t.Errorf("server %d still finds %q", i, got)
			}
		})
	}
}

// testUploads: a file that one server received is a document of all: found, shown
// and cited. Its file is only on that server, or in PostgreSQL, where it outlives the server.
func (s *served) testUploads(t *testing.T) {
	s.t = t
	const text = "# Dredging\n\nThe dredger Walrus clears the fairway every second winter."
	if status, reply := s.do(0, "POST", "/api/documents?name="+url.QueryEscape("dredging.md"), s.key,
		[]byte(text)); status != http.StatusCreated {
		t.Fatalf("%d: %s", status, reply)
	}
	s.each(func(i int) {
		if got := s.found(i, "How often does the dredger clear the fairway?"); len(got) == 0 || got[0] != "uploads/dredging.md" {
			t.Errorf("server %d finds %q", i, got)
		}
		status, reply := s.do(i, "POST", "/api/ask", s.key, []byte(`{"question":"How often does the dredger Walrus clear the fairway?"}`))
		var a cite.Answer
		if err := json.Unmarshal([]byte(reply), &a); err != nil || status != http.StatusOK || len(a.Citations) == 0 ||
			a.Sources[0].Document != "uploads/dredging.md" || !strings.Contains(text, a.Citations[0].Quote) || a.Citations[0].Quote == "" {
			t.Errorf("server %d answers %d, %v: %s", i, status, err, reply)
		}
		if status, reply := s.do(i, "GET", "/documents/uploads/dredging.md?original=1", s.key, nil); status != http.StatusOK ||
			!strings.Contains(reply, text) {
			t.Errorf("server %d gives the original with %d: %s", i, status, reply)
		}
		status, page := s.do(i, "GET", "/documents/uploads/dredging.md", s.key, nil)
		if status != http.StatusOK || !strings.Contains(page, "every second winter") ||
			strings.Contains(page, "the file is on another server") {
			t.Errorf("server %d shows %d: %s", i, status, page)
		}
	})

	if status, reply := s.do(2, "DELETE", "/api/documents/uploads/dredging.md", s.key, nil); status != http.StatusNoContent {
		t.Errorf("deleting through another: %d: %s", status, reply)
	}
	s.each(func(i int) {
		if status, _ := s.do(i, "GET", "/documents/uploads/dredging.md?original=1", s.key, nil); status != http.StatusNotFound {
			t.Errorf("server %d gives the deleted file with %d", i, status)
		}
		if got := s.ids(i); slices.Contains(got, "uploads/dredging.md") {
			t.Errorf("server %d still lists %q", i, got)
		}
		if status, _ := s.do(i, "GET", "/documents/uploads/dredging.md", s.key, nil); status != http.StatusNotFound {
			t.Errorf("server %d shows it with %d", i, status)
		}
	})
}

// testCollections: a collection that one server made for uploads is one of all, whatever
// its name is now, and without files too.
func (s *served) testCollections(t *testing.T) {
	s.t = t
	for _, step := range []struct {
		server             int
		method, path, body string
		status             int
	}{
		{0, "POST", "collections", `{"collection":"law"}`, http.StatusCreated},
		{1, "PATCH", "collections/law", `{"collection":"statutes"}`, http.StatusOK},
		{1, "POST", "collections", `{"collection":"law"}`, http.StatusCreated},
		{1, "DELETE", "collections/law", "", http.StatusNoContent},
		{1, "POST", "documents?name=a.md&collection=statutes", "The first statute.", http.StatusCreated},
		{2, "GET", "documents/law/a.md", "", http.StatusOK},
		{0, "DELETE", "documents/law/a.md", "", http.StatusNoContent},
		{2, "DELETE", "collections/statutes", "", http.StatusNoContent},
		{0, "POST", "documents?name=b.md&collection=law", "The second statute.", http.StatusCreated},
		{1, "GET", "documents/law/b.md", "", http.StatusOK},
		{1, "DELETE", "documents/law/b.md", "", http.StatusNoContent},
		{2, "DELETE", "collections/law", "", http.StatusNoContent},
		{0, "DELETE", "collections/law", "", http.StatusNotFound},
	} {
		if status, reply := s.do(step.server, step.method, "/api/"+step.path, s.key, []byte(step.body)); status != step.status {
			t.Errorf("server %d: %s %s: %d: %s", step.server, step.method, step.path, status, reply)
		}
	}
}
