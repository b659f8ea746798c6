package answer

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"ibid/data/datatest"
)

// What the questions of work.jsonl must reach without a model: a little below what
// was measured.
const (
	usefulFloor  = .65
	answersFloor = .5
	wrongCeiling = .35
)

// workFolder is the documents of the questions in work.jsonl: product documentation
// and mail of the evaluation sets, and source code of Go's standard library.
func workFolder(t *testing.T) fs.FS {
	t.Helper()
	files := datatest.Sets(t, "files")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("finding the source code of Go's standard library by go env GOROOT: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	folder := fstest.MapFS{}
	add := func(dir, under, pattern string) {
		fsys := os.DirFS(dir)
		err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if matches, _ := path.Match(pattern, path.Base(name)); err != nil || e.IsDir() || !matches {
				return err
			}
			b, err := fs.ReadFile(fsys, name)
			if strings.Contains(name, "testdata/") || bytes.Contains(b, []byte("// Code generated ")) || name == "testRFC822-multipart" {
				return err // these are not read, or in part
			}
			folder[path.Join(under, name)] = &fstest.MapFile{Data: b}
			return err
		})
		if err != nil {
			t.Skipf("reading the documents that the questions are about: %v", err)
		}
	}
	add(filepath.Join(files, "docs-ollama-md"), "docs-ollama-md", "*.md*")
	add(filepath.Join(files, "docs-restic-rst"), "docs-restic-rst", "*.rst")
	add(filepath.Join(files, "mixed-tika"), "mail", "*.mbox")
	add(filepath.Join(files, "mixed-tika"), "mail", "testRFC822*")
	add(filepath.Join(files, "mixed-r2r"), "mail", "eml.eml")
	for _, name := range []string{"bufio", "context", "flag", "sync", "time", "net/url", "os/exec", "encoding/json"} {
		add(filepath.Join(source, name), "go/"+name, "*.go")
	}
	return folder
}

// Questions as they are asked at work, about product documentation, code and mail,
// get words that hold the answer. Those named held were written with the others, and their
// answers were read for the first time while the rule for sections was chosen.
func TestWorkWithoutModel(t *testing.T) {
	index, model := openFolder(t, "/work", workFolder(t))
	a := &Answerer{Retriever: index, Embedder: model}
	type tally struct{ all, useful, answers, wrong int }
	counts := map[string]*tally{}
	for _, q := range readQuestions(t, filepath.Join("testdata", "work.jsonl")) {
		got := read(a.Ask(t.Context(), Question{Text: q.Question}))
		if got.err != nil {
			t.Fatalf("%s: %v", q.ID, got.err)
		}
		shown := got.text
		for _, c := range got.closest {
			shown += "\n--- " + c.Document + " " + c.Heading + "\n" + c.Text
		}
		holds := slices.ContainsFunc(q.Answers, func(s string) bool { return strings.Contains(squeeze(shown), squeeze(s)) })
		set, _, _ := strings.Cut(q.ID, "-")
		verdict := "not useful"
		for _, name := range []string{set, set + " " + q.Kind} {
			if counts[name] == nil {
				counts[name] = &tally{}
			}
			n := counts[name]
			n.all++
			switch {
			case holds && got.text != "":
				n.useful, n.answers, verdict = n.useful+1, n.answers+1, "ANSWER"
			case holds:
				n.useful, verdict = n.useful+1, "CLOSEST"
			case got.text != "":
				n.wrong, verdict = n.wrong+1, "WRONG"
			}
		}
		if set == "work" || datatest.Campaign() {
			t.Logf("%s %s %s\n%s", verdict, q.ID, q.Question, shown)
		}
	}
	for name, n := range counts {
		t.Logf("%s: useful %d of %d, %d of them as answers; %d answers without the words", name, n.useful, n.all, n.answers, n.wrong)
		share := func(n, of int) float64 { return float64(n) / float64(of) }
		if strings.Contains(name, " ") {
			continue
		}
		if share(n.useful, n.all) < usefulFloor || share(n.answers, n.all) < answersFloor || share(n.wrong, n.all) > wrongCeiling {
			t.Errorf("%s: want useful %.2f, as answers %.2f, and at most %.2f wrong", name, usefulFloor, answersFloor, wrongCeiling)
		}
	}
}
