package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/cite"
	"ibid/ingest"
)

// datasets is the folder of the evaluation sets; the test skips without it.
func datasets(t testing.TB, below string) string {
	t.Helper()
	dir := os.Getenv("IBID_DATASETS")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared", "data")
	}
	dir = filepath.Join(dir, filepath.FromSlash(below))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the evaluation sets are not here: %v (set IBID_DATASETS)", err)
	}
	return dir
}

// Documentation trees as they are found in the world, ingested as folders and
// questioned: every file is accounted for, nothing fails silently.
func TestDocumentationTrees(t *testing.T) {
	t.Parallel()
	trees := []struct {
		folder   string
		question string
		document string // one that answers it
	}{
		{"docs-go-html", "When does the Go memory model guarantee that a receive from an unbuffered channel happens?", "go_mem.html"},
		{"docs-ollama-md", "Which environment variable sets the context length?", ""},
		{"docs-restic-rst", "How do I prepare a new repository in a local directory?", "030_preparing_a_new_repo.rst"},
	}
	for _, tree := range trees {
		t.Run(tree.folder, func(t *testing.T) {
			folder, data := datasets(t, "files/"+tree.folder), t.TempDir()
			out, errs, code := ibid(t, data, "ingest", "--json", folder)
			if code != exitDone && code != exitPartial {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			actions := map[string]ingest.Action{}
			var total tally
			for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
				var c struct {
					ingest.Change
					Total *tally `json:"total"`
				}
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if c.Total != nil {
					total = *c.Total
					continue
				}
				actions[c.Path] = c.Action
				if (c.Action == ingest.Failed || c.Action == ingest.Skipped) == (c.Reason == "") {
					t.Errorf("%s is %s for the reason %q", c.Path, c.Action, c.Reason)
				}
			}
			files := 0
			err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				files++
				rel, err := filepath.Rel(folder, path)
				if err != nil {
					return err
				}
				if actions[filepath.ToSlash(rel)] == "" {
					t.Errorf("%s is not accounted for", rel)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if total.Seen != files || total.Added+total.Skipped+total.Failed != files {
				t.Errorf("%d files, and the totals say %s", files, total)
			}
			t.Logf("figure: %s: %s", tree.folder, total)

			out, errs, code = ibid(t, data, "ask", "--json", tree.question)
			var a cite.Answer
			if err := json.Unmarshal([]byte(out), &a); err != nil || code != exitDone {
				t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
			}
			if !a.Answered || len(a.Sources) == 0 {
				t.Fatalf("%s is not answered", tree.question)
			}
			t.Logf("%s\n%s", tree.question, a.Text)
			if !strings.HasSuffix(a.Sources[0].Document, tree.document) {
				t.Errorf("answered from %s, not from %s", a.Sources[0].Document, tree.document)
			}
		})
	}
}
