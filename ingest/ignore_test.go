package ingest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestIgnoreLikeGit compares the rules with those of git.
func TestIgnoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		must(t, os.WriteFile(p, []byte(text), 0o600))
	}
	write(".gitignore", "# comment\n*.log\n!keep.log\n/top.md\nbuild/\ndocs/*.txt\n**/deep/x.md\na[bc].md\n\\#odd.md\nspace.md "+
		"\nfoo/**\n!foo/keep\n{brace}.md\nq?.md\n")
	write("docs/.gitignore", "local.md\n/anchored.md\n!keep.txt\n")
	files := []string{
		"a.log", "keep.log", "docs/b.log", "top.md", "docs/top.md", "build/x.md", "docs/build/y.md", "docs/a.txt", "docs/keep.txt",
		"docs/sub/a.txt", "deep/x.md", "docs/deep/x.md", "ab.md", "ad.md", "#odd.md", "space.md", "docs/local.md", "docs/sub/local.md",
		"local.md", "docs/anchored.md", "docs/sub/anchored.md", "foo/keep", "foo/other.md", "{brace}.md", "brace.md", "q1.md", "q12.md",
	}
	for _, f := range files {
		write(f, "Text.")
	}
	if out, err := exec.CommandContext(t.Context(), git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("git init: %v %s", err, out)
	}
	seen := map[string]bool{}
	for c, err := range (&Syncer{Sink: newMemory()}).Sync(t.Context(), harbour, os.DirFS(dir)) {
		must(t, err)
		seen[c.Path] = true
	}
	for _, f := range files {
		err := exec.CommandContext(t.Context(), git, "-C", dir, "check-ignore", "-q", "--no-index", f).Run()
		if ignored := err == nil; ignored == seen[f] {
			t.Errorf("%s: git leaves it out: %v; seen: %v", f, ignored, seen[f])
		}
	}
}
