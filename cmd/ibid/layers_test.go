package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The house, from the door inwards. A room may import the rooms to the right
// of its own and nothing else of ours. This table is the documentation.
var staircase = []string{"cmd/ibid", "web", "cite", "answer", "retrieve", "ingest"}

// besideTheStairs import nothing of ours and may be imported from the rooms named.
var besideTheStairs = map[string][]string{
	"cite/marker": {"cite", "answer"}, // the grammar of labels: read in drafts, numbered in answers
	"data":        nil,
}

// homes says in which room a third-party module may be imported directly.
var homes = map[string][]string{
	"github.com/philippgille/chromem-go":   {"retrieve"},
	"modernc.org/sqlite":                   {"retrieve"},
	"github.com/blevesearch/snowballstem":  {"retrieve"},
	"github.com/sashabaranov/go-openai":    {"answer"},
	"github.com/labstack/echo/v4":          {"web"},
	"github.com/pkoukk/tiktoken-go":        {"ingest"},
	"github.com/pkoukk/tiktoken-go-loader": {"ingest"},
	"github.com/ledongthuc/pdf":            {"ingest"},
	"github.com/gogs/chardet":              {"ingest"},
	"github.com/clipperhouse/uax29/v2":     {"ingest", "retrieve"},
	"github.com/yuin/goldmark":             {"ingest", "web"},
	"github.com/bmatcuk/doublestar/v4":     {"ingest"},
	"go.yaml.in/yaml/v3":                   {"ingest"},
	"github.com/microcosm-cc/bluemonday":   {"web"},
	"github.com/alecthomas/kong":           {"cmd/ibid"},
	"github.com/vbauerster/mpb/v8":         {"cmd/ibid"},
	"golang.org/x":                         {"cmd/ibid", "web", "cite", "answer", "retrieve", "ingest"},
}

// testHomes are modules that only tests may import, in any room.
var testHomes = []string{
	"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.uber.org/goleak",
	"pgregory.net/rapid", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto",
}

// neverIn are imports of the standard library that a room must not have.
var neverIn = map[string][]string{
	"cite":        {"net/http", "database/sql", "net", "os"}, // pure: no model, no store, no network
	"cite/marker": {"net/http", "database/sql", "net", "os"},
	"ingest":      {"net/http", "log/slog", "flag", "log"},
	"retrieve":    {"net/http", "log/slog", "flag", "log"},
	"answer":      {"log/slog", "flag", "log"},
	"web":         {"flag", "log"},
}

func TestImportsRunOneWay(t *testing.T) {
	forEachFile(t, func(pkg string, file *ast.File, name string) {
		room := roomOf(pkg)
		test := strings.HasSuffix(name, "_test.go")
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			switch ours, isOurs := strings.CutPrefix(imported, "ibid/"); {
			case isOurs:
				checkArrow(t, name, pkg, room, ours)
			case !strings.Contains(strings.Split(imported, "/")[0], "."): // standard library
				if !test && slices.Contains(neverIn[roomKey(pkg, room)], imported) {
					t.Errorf("%s: %s must not import %s", name, pkg, imported)
				}
			default:
				checkHome(t, name, room, imported, test)
			}
		}
	})
}

func checkArrow(t *testing.T, name, pkg, room, ours string) {
	t.Helper()
	if importers, beside := besideTheStairs[ours]; beside {
		if !slices.Contains(importers, room) {
			t.Errorf("%s: %s must not import %s; only %v may", name, pkg, ours, importers)
		}
		return
	}
	if _, beside := besideTheStairs[pkg]; beside {
		t.Errorf("%s: %s imports nothing of ours, yet imports %s", name, pkg, ours)
		return
	}
	from, to := slices.Index(staircase, room), slices.Index(staircase, roomOf(ours))
	if to < 0 {
		t.Errorf("%s: imports %s, a room that the house does not have", name, ours)
	} else if to < from {
		t.Errorf("%s: an arrow up: %s imports %s", name, pkg, ours)
	}
}

func checkHome(t *testing.T, name, room, imported string, test bool) {
	t.Helper()
	for module, rooms := range homes {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			if !slices.Contains(rooms, room) {
				t.Errorf("%s: %s lives in %v, not in %s", name, module, rooms, room)
			}
			return
		}
	}
	for _, module := range testHomes {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			if !test {
				t.Errorf("%s: %s is for tests only", name, module)
			}
			return
		}
	}
	t.Errorf("%s: %s has no home: add it to the table with its room, or do without it", name, imported)
}

// Only the command line touches the process and its environment.
func TestOnlyTheCommandTouchesTheProcess(t *testing.T) {
	forbidden := map[string]bool{"os.Getenv": true, "os.LookupEnv": true, "os.Environ": true, "os.Exit": true, "log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true, "os.Args": true}
	forEachFile(t, func(pkg string, file *ast.File, name string) {
		if roomOf(pkg) == "cmd/ibid" || strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && forbidden[x.Name+"."+sel.Sel.Name] {
					t.Errorf("%s: %s.%s belongs in cmd", name, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	})
}

// The top level is fixed; what is no room is a dot file or one of these.
func TestTopLevel(t *testing.T) {
	allowed := []string{"go.mod", "go.sum", "cmd", "ingest", "retrieve", "answer", "cite", "web", "data", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "Dockerfile"}
	entries, err := os.ReadDir(moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		built := e.Name() == "ibid" || e.Name() == "dist" || e.Name() == "ibid.exe" // git-ignored
		if !strings.HasPrefix(e.Name(), ".") && !built && !slices.Contains(allowed, e.Name()) {
			t.Errorf("%s stands at the top level, where it has no place", e.Name())
		}
	}
	for _, room := range []string{"cmd", "ingest", "retrieve", "answer", "cite", "web", "data", "go.mod", "README.md", "LICENSE"} {
		if _, err := os.Stat(filepath.Join(moduleRoot(t), room)); err != nil {
			t.Errorf("missing at the top level: %v", err)
		}
	}
}

func roomOf(pkg string) string {
	if strings.HasPrefix(pkg, "cmd/") {
		parts := strings.SplitN(pkg, "/", 3)
		return path.Join(parts[0], parts[1])
	}
	return strings.Split(pkg, "/")[0]
}

func roomKey(pkg, room string) string {
	if _, ok := neverIn[pkg]; ok {
		return pkg
	}
	return room
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func forEachFile(t *testing.T, check func(pkg string, file *ast.File, name string)) {
	t.Helper()
	root := os.DirFS(moduleRoot(t))
	files := 0
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(p) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		check(path.Dir(p), file, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d Go files found: the walk is broken", files)
	}
}
