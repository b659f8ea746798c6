package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/cmd/ibid/eval"
)

// layers are the top-level packages, outermost first. A package may import only packages to
// the right of its own layer.
var layers = []string{"cmd/ibid", "web", "cite", "answer", "retrieve", "ingest"}

// leaves are packages below all layers: they import no layer, and only the layers and
// leaves listed here may import them.
var leaves = map[string][]string{
	// The grammar of labels: drafts are read with it, answers numbered, and 'ibid cite'
	// finds labels with it.
	"cite/marker":   {"cite", "cite/rewrite", "cite/sentence", "cite/support", "answer", "cmd/ibid", "cmd/ibid/eval"},
	"cite/rewrite":  {"cite", "cite/sentence", "web", "cmd/ibid"},                        // numbers in a text: pure
	"cite/sentence": {"cite", "answer", "web", "ingest"},                                 // the sentences of a growing text: pure
	"cite/support":  {"cite", "answer", "cmd/ibid", "cmd/ibid/eval"},                     // whether passages support a sentence: pure
	"data":          {"cmd/ibid"},                                                        // the sample library
	"data/datatest": {"cmd/ibid", "web", "cite", "answer", "retrieve", "ingest", "data"}, // for tests: sets and campaigns
	"cmd/ibid/eval": {"cmd/ibid"},                                                        // the metrics: pure
}

// testImporters are further layers whose tests import a package.
var testImporters = map[string][]string{
	"ingest":        {"cite"},                       // sentences for the measures of cite/support
	"ingest/child":  {"cite"},                       // processor time
	"retrieve":      {"cite"},                       // stemmer
	"answer":        {"cmd/ibid"},                   // sentences and stemmer, for the measures of support
	"cmd/ibid/eval": {"retrieve", "answer", "data"}, // the metrics
}

// homes are the layers that import a third-party module directly.
var homes = map[string][]string{
	"github.com/philippgille/chromem-go":  {"retrieve"},
	"github.com/sashabaranov/go-openai":   {"answer"},
	"modernc.org/sqlite":                  {"retrieve"},
	"github.com/blevesearch/snowballstem": {"retrieve"},
	"github.com/jackc/pgx/v5":             {"retrieve"},
	"github.com/labstack/echo/v4":         {"web"},
	"github.com/pkoukk/tiktoken-go":       {"ingest"},
	"github.com/tiktoken-go/tokenizer":    {"ingest"},
	"github.com/ledongthuc/pdf":           {"ingest"},
	"github.com/tetratelabs/wazero":       {"ingest"},
	"github.com/clipperhouse/uax29/v2":    {"ingest", "retrieve"},
	"codeberg.org/readeck/go-readability": {"ingest"},
	"github.com/temoto/robotstxt":         {"ingest"},
	"github.com/yuin/goldmark":            {"ingest", "web"},
	"github.com/bmatcuk/doublestar/v4":    {"ingest"},
	"github.com/richardlehane/mscfb":      {"ingest"},
	"go.yaml.in/yaml/v3":                  {"ingest"},
	"github.com/microcosm-cc/bluemonday":  {"web"},
	"github.com/alecthomas/kong":          {"cmd/ibid"},
	"golang.org/x":                        {"cmd/ibid", "web", "answer", "retrieve", "ingest", "data"},

	"github.com/modelcontextprotocol/go-sdk": {"web"},
	"github.com/prometheus/client_golang":    {"web"},
	"google.golang.org/protobuf":             {"retrieve", "web", "cmd/ibid"}, // outside retrieve in tests

	"github.com/google/jsonschema-go": {"web"},
}

// testModules are third-party modules for tests, in any layer.
var testModules = []string{
	"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "go.uber.org/goleak",
	"pgregory.net/rapid", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto",
	"github.com/santhosh-tekuri/jsonschema/v6",
}

// forbidden are the imports that a layer or package must not have outside its tests, as
// patterns of the go command. Only ingest and the command may start processes.
var forbidden = map[string][]string{
	// Pure: no model, no store, no network.
	"cite": {"net/...", "database/sql/...", "os/...", "syscall/...", "golang.org/x/net/...",
		"ibid/answer/openai/...", "ibid/retrieve/state/...", "ibid/retrieve/index/...", "ibid/retrieve/library", "ibid/retrieve/embed/..."},
	"cite/marker":   {"net/...", "database/sql/...", "os/...", "syscall/..."},
	"cite/rewrite":  {"net/...", "database/sql/...", "os/...", "syscall/..."},
	"cite/sentence": {"net/...", "database/sql/...", "os/...", "syscall/..."},
	"cite/support":  {"net/...", "database/sql/...", "os/...", "syscall/..."},
	"ingest":        {"net/http/...", "log/...", "flag"},
	"ingest/site":   {"log/...", "flag", "os/exec"}, // the only package that fetches
	// Readers get bytes: they must not open files or start processes.
	"ingest/format": {"net/http/...", "log/...", "flag", "os/...", "ibid/ingest/child/..."},
	"retrieve":      {"net/http/...", "log/...", "flag", "os/exec"},
	// the only package that sends requests
	"retrieve/weaviate": {"log/...", "flag", "os/exec"},
	"answer":            {"log/...", "flag", "os/exec"},
	// Pure, and they cannot call up.
	"answer/extract": {"ibid/answer", "net/...", "database/sql/...", "os/...", "log/...", "flag"},
	"answer/prompt":  {"ibid/answer", "net/...", "database/sql/...", "os/...", "log/...", "flag"},
	"answer/replay":  {"ibid/answer", "net/...", "database/sql/...", "os/...", "log/...", "flag"},
	"answer/replies": {"ibid/answer", "net/...", "database/sql/...", "os/...", "log/...", "flag"},
	"web":            {"log", "flag", "os/exec"},
	"data":           {"net/...", "log/...", "flag", "os/exec"},
	"data/datatest":  {"net/...", "log/..."}, // it finds the browser
	"cmd/ibid/eval":  {"net/...", "log/...", "flag", "os", "os/..."},
}

// harmless are exempt from these patterns: they parse addresses and dates but open nothing.
var harmless = []string{"net/url", "net/mail"}

// modulePath is the path in go.mod.
var modulePath = strings.TrimSuffix(reflect.TypeFor[eval.Metric]().PkgPath(), "/cmd/ibid/eval")

func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	forEachFile(t, token.NewFileSet(), func(pkg string, file *ast.File, name string) {
		for _, fault := range importFaults(pkg, file, name) {
			t.Error(fault)
		}
	})
}

// importFaults returns the faults of the imports of a file.
func importFaults(pkg string, file *ast.File, name string) (faults []string) {
	room := roomOf(pkg)
	test := strings.HasSuffix(name, "_test.go")
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return append(faults, fmt.Sprintf("%s: the import %s: %v", name, spec.Path.Value, err))
		}
		// .ci/rename changes the module path, but not the tables of this file.
		if ours, isOurs := strings.CutPrefix(imported, modulePath+"/"); isOurs {
			imported = "ibid/" + ours
		}
		fault := ""
		if ours, isOurs := strings.CutPrefix(imported, "ibid/"); isOurs {
			fault = layerFault(pkg, room, ours, test)
			if fault == "" && isForTests(ours) && !test && !isForTests(pkg) {
				fault = ours + " is for tests only"
			}
		} else if strings.Contains(strings.Split(imported, "/")[0], ".") { // not in the standard library
			fault = homeFault(room, imported, test || isForTests(pkg))
		}
		matching := func(pattern string) bool { return matches(pattern, imported) }
		if fault == "" && !test && slices.ContainsFunc(forbidden[roomKey(pkg, room)], matching) && !slices.Contains(harmless, imported) {
			fault = fmt.Sprintf("%s must not import %s", pkg, imported)
		}
		if fault != "" {
			faults = append(faults, name+": "+fault)
		}
	}
	return faults
}

// isForTests reports whether a package is test support, by its name.
func isForTests(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// matches reports whether an import path matches a pattern of the go command.
func matches(pattern, imported string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return imported == base || below && strings.HasPrefix(imported, base+"/")
}

func layerFault(pkg, room, ours string, test bool) string {
	if test && slices.Contains(testImporters[ours], room) {
		return ""
	}
	if importers, leaf := leaves[ours]; leaf {
		if _, leaf := leaves[pkg]; leaf && !test {
			room = pkg
		}
		if !slices.Contains(importers, room) {
			return fmt.Sprintf("%s must not import %s; only %v may", pkg, ours, importers)
		}
		return ""
	}
	if _, leaf := leaves[pkg]; leaf {
		return fmt.Sprintf("%s must import no layer, and imports %s", pkg, ours)
	}
	from, to := slices.Index(layers, room), slices.Index(layers, roomOf(ours))
	switch {
	case to < 0:
		return fmt.Sprintf("imports %s, which is in no layer", ours)
	case to < from:
		return fmt.Sprintf("%s imports %s, which is in a layer above", pkg, ours)
	}
	return ""
}

func homeFault(room, imported string, test bool) string {
	for module, rooms := range homes {
		if matches(module+"/...", imported) {
			// The tests of the command and of web use these clients, as users do.
			if outside := test && slices.Contains(layers[:2], room); !slices.Contains(rooms, room) && !outside {
				return fmt.Sprintf("%s belongs in %v, not in %s", module, rooms, room)
			}
			return ""
		}
	}
	for _, module := range testModules {
		if matches(module+"/...", imported) {
			if !test {
				return module + " is for tests only"
			}
			return ""
		}
	}
	return imported + " is not in the table: add it with its layers, or do without it"
}

// TestOnlyTheCommandTouchesTheProcess checks that only the command uses the process and its
// environment.
func TestOnlyTheCommandTouchesTheProcess(t *testing.T) {
	t.Parallel()
	forbidden := map[string]bool{"os.Getenv": true, "os.LookupEnv": true, "os.Environ": true, "os.Exit": true, "log.Fatal": true,
		"log.Fatalf": true, "log.Fatalln": true, "os.Args": true}
	forEachFile(t, token.NewFileSet(), func(pkg string, file *ast.File, name string) {
		if roomOf(pkg) == "cmd/ibid" || isForTests(pkg) || strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && forbidden[x.Name+"."+sel.Sel.Name] {
					t.Errorf("%s: %s.%s may be used only in cmd", name, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestTopLevel checks that the top level has only layers, dot files and these names.
func TestTopLevel(t *testing.T) {
	t.Parallel()
	allowed := []string{"go.mod", "go.sum", "cmd", "ingest", "retrieve", "answer", "cite", "web", "data", "README.md", "LICENSE", "NOTICE",
		"CHANGELOG.md", "Dockerfile"}
	entries, err := os.ReadDir(moduleRoot(t))
	must(t, err)
	for _, e := range entries {
		built := e.Name() == "ibid" || e.Name() == "dist" || e.Name() == "ibid.exe" // git-ignored
		if !strings.HasPrefix(e.Name(), ".") && !built && !slices.Contains(allowed, e.Name()) {
			t.Errorf("unexpected file at the top level: %s", e.Name())
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
	if _, ok := forbidden[pkg]; ok {
		return pkg
	}
	return room
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	return dir
}

func forEachFile(t *testing.T, fset *token.FileSet, check func(pkg string, file *ast.File, name string)) {
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
		if _, err := fs.Stat(root, path.Join(p, "go.mod")); d.IsDir() && p != "." && err == nil {
			return fs.SkipDir // another module, with its own homes
		}
		if d.IsDir() || path.Ext(p) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		check(path.Dir(p), file, p)
		return nil
	})
	must(t, err)
	if files < 20 {
		t.Fatalf("only %d Go files found: the walk is broken", files)
	}
}
