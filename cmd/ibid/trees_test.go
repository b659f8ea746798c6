package main

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest"
)

// Real documentation trees are ingested and asked: every file is accounted for,
// and nothing fails silently.
func TestDocumentationTrees(t *testing.T) {
	t.Parallel()
	type tree struct {
		folder   string
		question string
		document string // that answers it
	}
	for _, tree := range datatest.Pick(t, []tree{
		{"docs-go-html", "When does the Go memory model guarantee that a receive from an unbuffered channel happens?", "go_mem.html"},
		{"docs-ollama-md", "Which environment variable sets the context length?", ""},
		{"docs-restic-rst", "How do I prepare a new repository in a local directory?", "030_preparing_a_new_repo.rst"},
	}) {
		t.Run(tree.folder, func(t *testing.T) {
			folder, data := datatest.Sets(t, "files", tree.folder), t.TempDir()
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
