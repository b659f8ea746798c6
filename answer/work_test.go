package answer

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
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

// A tally counts questions. With an answer: all, those for which words shown have it, those
// for which the words are shown as an answer, and answers without such words. Without an
// answer: all, and those that are answered.
type tally struct{ all, useful, answers, wrong, none, answered int }

// workAims are the measured figures with a margin of 2.
var workAims = map[string]tally{
	"work":   {all: 40, useful: 30, answers: 21, wrong: 4},
	"held":   {all: 20, useful: 16, answers: 10, wrong: 3},
	"unseen": {all: 40, useful: 28, answers: 23, wrong: 8, none: 20, answered: 9},
}

// workFolder returns the documents of the questions in work.jsonl: product documentation
// and mail of the evaluation sets, and source code of Go's standard library.
func workFolder(t *testing.T) fs.FS {
	t.Helper()
	files := datatest.Sets(t, "files")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("finding Go's standard library with go env GOROOT: %v", err)
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
				return err // read only in part, or not
			}
			folder[path.Join(under, name)] = &fstest.MapFile{Data: b}
			return err
		})
		if err != nil {
			t.Skipf("reading the documents of the questions: %v", err)
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

// unseenFolder returns the documents of the questions in unseen.jsonl: files of Debian's
// packages, source code and READMEs of modules, and files of the evaluation sets.
func unseenFolder(t *testing.T) fs.FS {
	t.Helper()
	files := datatest.Sets(t, "files")
	folder := fstest.MapFS{}
	add := func(under string, names ...string) {
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Skipf("reading the documents of the questions: %v", err)
			}
			if zipped := strings.TrimSuffix(name, ".gz"); zipped != name {
				r, err := gzip.NewReader(bytes.NewReader(b))
				must(t, err)
				b, err = io.ReadAll(r)
				must(t, err)
				name = strings.TrimSuffix(zipped, path.Ext(path.Base(zipped))) +
					cmp.Or(strings.Replace(path.Ext(zipped), ".Debian", ".txt", 1), ".txt")
			}
			folder[path.Join(under, path.Base(name))] = &fstest.MapFile{Data: b}
		}
	}
	for _, name := range []string{"procps/FAQ", "zlib1g-dev/FAQ", "postgresql-common/README.Debian", "base-passwd/users-and-groups.txt",
		"python3-pip/html/topics/caching.md", "python3-pip/html/topics/configuration.md", "python3-pip/html/topics/secure-installs.md"} {
		add("debian/"+name[:strings.IndexByte(name, '/')], "/usr/share/doc/"+name+".gz")
	}
	for module, names := range map[string][]string{
		"github.com/fsnotify/fsnotify@v1.10.1":  {"README.md", "fsnotify.go"},
		"github.com/google/uuid@v1.6.0":         {"README.md", "dce.go", "uuid.go", "node.go"},
		"github.com/klauspost/compress@v1.20.1": {"README.md"},
	} {
		out, err := exec.Command("go", "mod", "download", "-json", module).Output()
		var at struct{ Dir string }
		if err = cmp.Or(err, json.Unmarshal(out, &at)); err != nil {
			t.Skipf("finding the module %s: %v", module, err)
		}
		under, _, _ := strings.Cut(path.Base(module), "@")
		for _, name := range names {
			add("go/"+under, filepath.Join(at.Dir, name))
		}
	}
	for _, name := range []string{"mixed-markitdown/movie-theater-booking-2024.pdf",
		"mixed-markitdown/RECEIPT-2024-TXN-98765_retail_purchase.pdf",
		"mixed-markitdown/REPAIR-2022-INV-001_multipage.pdf", "pdf-real/NCT06154122_Prot_000.pdf"} {
		add("files", filepath.Join(files, name))
	}
	for name, dir := range map[string]string{"heise": "heise", "lemonde": "lemonde-1"} {
		add("files/"+name, filepath.Join(files, "html-readability", dir, "source.html"))
	}
	add("vim", "/usr/share/vim/vim90/tutor/tutor.de.utf-8", "/usr/share/vim/vim90/tutor/tutor.fr.utf-8")
	for _, language := range []string{"de", "fr"} {
		folder["vim/tutor."+language+".txt"] = folder["vim/tutor."+language+".utf-8"]
		delete(folder, "vim/tutor."+language+".utf-8")
	}
	return folder
}

// TestWorkWithoutModel checks that questions as they are asked at work, about product
// documentation, code, mail and other papers, get words with the answer. The questions
// named held were written with the other ones of work.jsonl, and their answers were first
// read while the rule for sections was chosen. The answers of unseen.jsonl were never read;
// a third of its questions have no answer.
func TestWorkWithoutModel(t *testing.T) {
	t.Parallel()
	for file, folder := range map[string]func(*testing.T) fs.FS{"work": workFolder, "unseen": unseenFolder} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			index, model := openFolder(t, "/"+file, folder(t))
			checkWork(t, &Answerer{Retriever: index, Embedder: model}, datatest.Lines[libraryQuestion](t, filepath.Join("testdata", file+".jsonl")))
		})
	}
}

func checkWork(t *testing.T, a *Answerer, questions []libraryQuestion) {
	t.Helper()
	counts := map[string]*tally{}
	for _, q := range questions {
		got := read(a.Ask(t.Context(), Question{Text: q.Question}))
		if got.err != nil {
			t.Fatalf("asking question %s: %v", q.ID, got.err)
		}
		shown := got.text
		for _, c := range got.closest {
			shown += "\n--- " + c.Document + " " + c.Heading + "\n" + c.Text
		}
		holds := slices.ContainsFunc(q.Answers, func(s string) bool { return strings.Contains(squeezeSpace(shown), squeezeSpace(s)) })
		set, _, _ := strings.Cut(q.ID, "-")
		verdict := "not useful"
		for _, name := range []string{set, set + " " + q.Kind} {
			if counts[name] == nil {
				counts[name] = &tally{}
			}
			n := counts[name]
			if len(q.Answers) == 0 {
				n.none++
				if got.text != "" {
					n.answered++
				}
				continue
			}
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
		if set == "work" || set == "held" && datatest.Campaign() {
			t.Logf("%s %s %s\n%s", verdict, q.ID, q.Question, shown)
		}
	}
	for name, n := range counts {
		t.Logf("%s: useful %d of %d, %d of them as answers; %d answers without the words; of %d without an answer, %d answered",
			name, n.useful, n.all, n.answers, n.wrong, n.none, n.answered)
		aim, ok := workAims[name]
		if ok && (n.all != aim.all || n.none != aim.none || n.useful < aim.useful || n.answers < aim.answers ||
			n.wrong > aim.wrong || n.answered > aim.answered) {
			t.Errorf("%s: %+v; want at least as many useful and as answers, and at most as many wrong and answered, as %+v", name, *n, aim)
		}
	}
}
