package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// turns are phrases that STYLE.md replaces. Each pattern also matches some good
// English ("behind a proxy"), for which the limit leaves room.
// A turn is searched for only in texts that have one of its words.
var turns = []struct {
	words   []string
	pattern *regexp.Regexp
}{
	{[]string{"who "}, regexp.MustCompile(`(?i)(^|[.;:,(] ?|\b(to|for|of|by|with|from|than|that|and|or|but|when|while|where|if|as|let|lets|tell|tells|gives|says|is) )who (has|is|was|asks?|asked|reads?|wants?|calls?|came|comes|goes|opens?|writes?|stores?|holds?|waits?|may|can|does|knows?|says|said|sends?|ranges|works?|follows?|uses?|runs?|needs?)\b`)},
	{[]string{"stand", "stood"}, regexp.MustCompile(`(?i)\b(stands?|stood)\b`)},
	{[]string{"what "}, regexp.MustCompile(`(?i)\bwhat (came|comes|became|becomes|has become|is to come) of\b`)},
	{[]string{"told", "tell"}, regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being) told\b|\btells? (of|whether|how|what|who|which)\b`)},
	{[]string{"beside"}, regexp.MustCompile(`(?i)\bbesides?\b`)},
	{[]string{"behind"}, regexp.MustCompile(`(?i)\bbehind\b`)},
	{[]string{"so that "}, regexp.MustCompile(`(?i)\bso that (who|what|there)\b`)},
	{[]string{" away"}, regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|stays?) away\b`)},
	{[]string{" there "}, regexp.MustCompile(`(?i)\bthat there (is|are|was|were|be)\b|\b(those|all|what|as|than) there (is|are|was|were)\b`)},
	{[]string{" own", " itself"}, regexp.MustCompile(`(?i)\bof (its|their|one's) own accord\b|\bof itself\b|\bby its own\b`)},
	{[]string{"take"}, regexp.MustCompile(`(?i)\btakes? (it|them|that|this|these|those) (up|in|over|for|off|away)\b|\btakes? (up|in|part|whoever|its|their|one|nothing)\b|\btaken (in|up|for|off)\b`)},
	{[]string{"take"}, regexp.MustCompile(`(?i)\btakes an? (key|model|password|name|flag|setting|browser)\b`)},
	{[]string{"anew", "but for"}, regexp.MustCompile(`(?i)\banew\b|\bbut for\b`)},
	{[]string{" to be ", " for good", "gone on with", "nothing is had"},
		regexp.MustCompile(`(?i)\b(is|are) to be (done|made|read|kept|sent|written)\b|\bfor good\b|\bgone on with\b|\bnothing is had\b`)},
}

// apart are folders that are counted separately from their room.
var apart = []string{"retrieve/state", "retrieve/index", "cmd/ibid/eval", "ingest/pdf", "ingest/office", "answer/extract"}

const turnsPer10000 = 5

// prose finds the comments and texts of files other than Go; every line of a page is prose.
var prose = map[string]*regexp.Regexp{".md": regexp.MustCompile(`[^\n]+`)}

func init() {
	scripts := regexp.MustCompile("(?s)/\\*.*?\\*/|// [^\n]*|# [^\n]*|\"[^\"\n]* [^\"\n]*\"|'[^'\n]* [^'\n]*'|`[^`]* [^`]*`")
	for _, ext := range []string{".js", ".mjs", ".css", ".py", ".sh", ".service"} {
		prose[ext] = scripts
	}
	between := regexp.MustCompile(`>[^<>]+|(?:title|label|placeholder)="[^"]*"`) // text between tags, and attributes
	prose[".html"], prose[".tmpl"] = between, between
}

// TestPlainEnglish counts the phrases in comments and messages of the Go files,
// and in the pages, scripts, templates and styles.
func TestPlainEnglish(t *testing.T) {
	t.Parallel()
	words, hits := map[string]int{}, map[string][]string{}
	eachText(t, func(room, where, text string) {
		words[room] += len(strings.Fields(text))
		lower := strings.ToLower(text)
		for _, turn := range turns {
			if !slices.ContainsFunc(turn.words, func(word string) bool { return strings.Contains(lower, word) }) {
				continue
			}
			for _, hit := range turn.pattern.FindAllString(text, -1) {
				hits[room] = append(hits[room], where+": "+strings.TrimSpace(hit))
			}
		}
	})
	checkRates(t, words, hits, turnsPer10000)
}

// checkRates fails if a room has more than most hits in 10,000 words.
func checkRates(t *testing.T, words map[string]int, hits map[string][]string, most int) {
	t.Helper()
	for room, n := range words {
		rate := float64(len(hits[room])) * 10000 / float64(n)
		t.Logf("figure: %s: %d phrases in %d words, %.1f per 10,000", room, len(hits[room]), n, rate)
		if rate > float64(most) {
			slices.Sort(hits[room])
			t.Errorf("%s has %.1f phrases per 10,000 words that STYLE.md replaces, want at most %d:\n%s", room, rate, most,
				strings.Join(hits[room][:min(len(hits[room]), 40)], "\n"))
		}
	}
}

// riddles are phrases of comments and pages in which a reader must find the noun; net/http has about
// ten in 10,000 words. STYLE.md has examples.
var riddles = []*regexp.Regexp{
	regexp.MustCompile(`(?m)(^|[.;:] )Of (a|an|the|each|these|those|all|two|several|both|some|such|\d[\d,.]*|[a-z]+s)\b[^.;:]{0,60},`),
	regexp.MustCompile(`\b(is|are|was|were|from|with|by|than|as|to|in|and|or|of|for|be|like|on) (that|those) of\b`),
	regexp.MustCompile(`\b(also|even) (where|when|if)\b`),
	regexp.MustCompile(`(^|[.;:,] ?|\b(of|to|in|and|or|is|are|with|from|by|as|than|for|that) )what (is|are|was|were|it|they|a|an|the|has|have|had|can|cannot|may|must|only|no|follows|comes|remains)\b`),
	regexp.MustCompile(`\bwhere (there|it|that|they|no|its|only|nothing|none|one|those|this)\b`),
	regexp.MustCompile(`\bso (many|much|few|large|long|near) `),
	regexp.MustCompile(`\bof (a|the|this|that|its|one) (name|id|kind|path|number|address|language|place|digest)\b`),
	regexp.MustCompile(`\bthere (is|are) none\b|\b(has|have|had|gives?|finds?) (none|nothing)\b`),
	regexp.MustCompile(`\b[Ww]ithout (one|it|them|any)\b`),
	regexp.MustCompile(`\b(as (it is|they are|they come|it comes)|all the same|and so (is|are|do|does|has|have))\b`),
	regexp.MustCompile(`\b(the others|the rest|those (that|with|in|whose|who))\b`),
}

const riddlesPer10000 = 20

// TestPlainComments counts the riddles in the pages, and in the comments of Go files outside
// their tests.
func TestPlainComments(t *testing.T) {
	t.Parallel()
	words, hits := map[string]int{}, map[string][]string{}
	count := func(room, where, text string) {
		words[room] += len(strings.Fields(text))
		for _, riddle := range riddles {
			for _, hit := range riddle.FindAllString(text, -1) {
				hits[room] = append(hits[room], where+": "+strings.TrimSpace(hit))
			}
		}
	}
	fset := token.NewFileSet()
	forEachFile(t, fset, func(_ string, file *ast.File, name string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, comment := range file.Comments {
			count(englishRoom(name), fset.Position(comment.Pos()).String(), strings.ReplaceAll(comment.Text(), "\n", " "))
		}
	})
	eachText(t, func(_, where, text string) {
		if strings.Contains(where, ".md:") {
			count("pages", where, text)
		}
	})
	checkRates(t, words, hits, riddlesPer10000)
}

// eachText calls check with the prose of each file of the module: each comment of a Go
// file, and outside its tests each string with a space in it.
func eachText(t *testing.T, check func(room, where, text string)) {
	t.Helper()
	root := os.DirFS(moduleRoot(t))
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".ci/out", "data/library", "data/pdf-sources", "cmd/ibid/eval/peers/out"}, p) ||
				d.Name() == "testdata" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if p == "cmd/ibid/STYLE.md" || p == "cmd/ibid/english_test.go" {
			return nil // the tables of STYLE.md and of this file have the phrases
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		room, ext := englishRoom(p), path.Ext(p)
		if strings.HasPrefix(string(src), "#!") {
			ext = ".sh"
		}
		if ext == ".go" {
			eachGoText(t, p, src, func(where, text string) { check(room, where, text) })
		} else if prose[ext] != nil {
			for _, at := range prose[ext].FindAllIndex(src, -1) {
				check(room, p+":"+strconv.Itoa(1+bytes.Count(src[:at[0]], []byte("\n"))), string(src[at[0]:at[1]]))
			}
		}
		return nil
	})
	must(t, err)
}

// eachGoText calls check with each comment of a Go file, its lines joined, and outside
// tests with each string that has a space in it.
func eachGoText(t *testing.T, name string, src []byte, check func(where, text string)) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	must(t, err)
	for _, comment := range file.Comments {
		check(fset.Position(comment.Pos()).String(), comment.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && strings.Contains(s.Value, " ") && !strings.HasSuffix(name, "_test.go") {
			check(fset.Position(s.Pos()).String(), s.Value)
		}
		return true
	})
}

// englishRoom returns the folder by which phrases are counted: a top-level folder, or one
// of apart.
func englishRoom(p string) string {
	for _, room := range apart {
		if strings.HasPrefix(p, room+"/") {
			return room
		}
	}
	return roomOf(path.Dir(p))
}

// maxColumns is the longest line, in characters; a tab is one.
const maxColumns = 139

// TestColumns looks for lines of 140 or more columns in Go, JavaScript, CSS, Python and shell
// scripts. Raw strings in tests are data, and may be longer.
func TestColumns(t *testing.T) {
	t.Parallel()
	check := func(name string, src []byte) {
		for i, line := range bytes.Split(src, []byte("\n")) {
			if n := utf8.RuneCount(bytes.ReplaceAll(line, []byte{0}, nil)); n > maxColumns {
				t.Errorf("%s:%d has %d columns, want at most %d", name, i+1, n, maxColumns)
			}
		}
	}
	root := os.DirFS(moduleRoot(t))
	fset := token.NewFileSet()
	forEachFile(t, fset, func(pkg string, file *ast.File, name string) {
		src, err := fs.ReadFile(root, name)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if n, ok := n.(*ast.BasicLit); ok && n.Value[0] == '`' && strings.HasSuffix(name, "_test.go") {
				from := fset.Position(n.Pos()).Offset
				for i := range len(n.Value) {
					if src[from+i] != '\n' {
						src[from+i] = 0
					}
				}
			}
			return true
		})
		check(name, src)
	})
	for _, dir := range []string{".ci", "cmd/ibid/eval", "retrieve/embed/train", "web/clients", "web/static"} {
		must(t, fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || name == ".ci/out" {
				return cmp.Or(err, fs.SkipDir)
			}
			if d.IsDir() || dir != ".ci" && !slices.Contains([]string{".css", ".js", ".py", ".ts"}, path.Ext(name)) {
				return nil
			}
			src, err := fs.ReadFile(root, name)
			check(name, src)
			return err
		}))
	}
}

// The limits of a function: lines and cyclomatic complexity.
const (
	mostLines    = 60
	mostBranches = 25
)

// TestFunctions looks for functions outside tests that are too long or have too many branches.
func TestFunctions(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	forEachFile(t, fset, func(pkg string, file *ast.File, name string) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || strings.HasSuffix(name, "_test.go") {
				continue
			}
			branches := 1
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
					branches++
				case *ast.CaseClause:
					branches += min(1, len(n.List)) // not default
				case *ast.CommClause:
					branches++
				case *ast.BinaryExpr:
					if n.Op == token.LAND || n.Op == token.LOR {
						branches++
					}
				}
				return true
			})
			if lines := 1 + fset.Position(f.End()).Line - fset.Position(f.Pos()).Line; lines > mostLines || branches > mostBranches {
				t.Errorf("%s: %s has %d lines and a complexity of %d, want at most %d and %d", fset.Position(f.Pos()), f.Name.Name, lines, branches,
					mostLines, mostBranches)
			}
		}
	})
}
