package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve/state/statetest"
)

// pages are the pages that have commands.
var pages = []string{
	"README.md",
	"cmd/ibid/ROUGH_EDGES.md",
	"cmd/ibid/SIZE.md",
	"cmd/ibid/STYLE.md",
	"cmd/ibid/README.md",
	"cmd/ibid/DEPLOYING.md",
	"cmd/ibid/WALK.md",
	"cmd/ibid/eval/README.md",
	"web/API.md",
	"answer/EXAMPLES.md",
	"web/SECURITY.md",
	"answer/README.md",
	"answer/prompt/README.md",
	"ingest/README.md",
	"retrieve/README.md",
	"retrieve/SCALE.md",
}

// A block is a fenced block of a page.
type block struct {
	page, kind string
	line       int // line number of its first line, from 1
	text       string
}

func blocksOf(t *testing.T, page string) (blocks []block) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)))
	must(t, err)
	var b *block
	for i, line := range strings.SplitAfter(string(data), "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && b == nil:
			b = &block{page: page, kind: fence, line: i + 2}
		case isFence:
			blocks = append(blocks, *b)
			b = nil
		case b != nil:
			b.text += line
		}
	}
	if b != nil {
		t.Fatalf("%s:%d: block has no closing fence", page, b.line)
	}
	for _, fault := range untyped(string(data)) {
		t.Errorf("%s:%s", page, fault)
	}
	return blocks
}

// TestPages runs every command of the pages: those in "sh" blocks must exit with 0, and
// those after a "$ " in "console" blocks must print the text that follows ('go test
// ./cmd/ibid -run Pages -update' rewrites it). Only a campaign runs every page.
func TestPages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	typing := append(datatest.Pick(t, pages[1:]), pages[0])
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			blocks := blocksOf(t, page)
			script, wanted := typed(t, blocks)
			if script == "" || !*datatest.Update && !slices.Contains(typing, page) {
				return
			}
			if _, err := exec.LookPath("python3"); err != nil && strings.Contains(script, "python3") {
				t.Skip("python3 is not installed: this page formats replies with it")
			}
			out := typeInto(t, script)
			sections := strings.Split(out, "\x01")[1:]
			if len(sections) != len(wanted)+1 || strings.TrimSpace(sections[len(sections)-1]) != "done" {
				t.Fatalf("%s: the script stopped after:\n%s", page, strings.Join(sections[max(0, len(sections)-2):], "\n"))
			}
			text, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)))
			must(t, err)
			written := string(text)
			for i, want := range wanted {
				_, got, _ := strings.Cut(sections[i], "\n")
				got = strings.TrimSuffix(got, "\n")
				if !want.compared || got == want.output {
					continue
				}
				if *datatest.Update {
					written = strings.Replace(written, want.shown(want.output), want.shown(got), 1)
					continue
				}
				t.Errorf("%s: output of %s =\n%s\nwant, as the page has it,\n%s", want.at, want.command, got, want.output)
			}
			if *datatest.Update && written != string(text) {
				must(t, os.WriteFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)), []byte(written), 0o644))
			}
		})
	}
}

// An expectation is the expected result of a command or a block of commands.
type expectation struct {
	at, command, output string
	compared            bool
}

// shown splits the console blocks of a page into commands with their output.
func (e expectation) shown(output string) string {
	if output != "" {
		output += "\n"
	}
	return "$ " + e.command + "\n" + output
}

// typed returns the commands of a page as one script.
func typed(t *testing.T, blocks []block) (script string, wanted []expectation) {
	t.Helper()
	var b strings.Builder
	add := func(e expectation) {
		fmt.Fprintf(&b, "printf '\\001%%s\\n' '%s'\n%s\n", e.at, e.command)
		wanted = append(wanted, e)
	}
	for _, block := range blocks {
		at := fmt.Sprintf("%s:%d", block.page, block.line)
		switch block.kind {
		case "sh":
			if kept := runnable(t, block.text); kept != "" {
				add(expectation{at: at, command: kept})
			}
		case "console":
			for part := range strings.SplitSeq("\n"+strings.TrimSuffix(block.text, "\n"), "\n$ ") {
				if part == "" {
					continue
				}
				command, output, _ := strings.Cut(part, "\n")
				for strings.HasSuffix(command, `\`) {
					more, rest, _ := strings.Cut(output, "\n")
					command, output = command+"\n"+more, rest
				}
				add(expectation{at, command, output, true})
			}
		}
	}
	if len(wanted) > 0 {
		b.WriteString("printf '\\001done\\n'\n")
	}
	return b.String(), wanted
}

// runnable removes the commands that are not run, with their continuation lines. Text
// between "<<'END'" and "END" is unchanged.
func runnable(t *testing.T, text string) string {
	t.Helper()
	var kept, notRun []string
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "not run") {
		notRun = append(notRun, row[0])
	}
	skipping, given := false, false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if given {
			kept, given = append(kept, line), line != "END"
			continue
		}
		given = strings.HasSuffix(line, "<<'END'")
		if !skipping {
			command, _, _ := strings.Cut(line, " #")
			skipping = slices.Contains(notRun, strings.TrimSpace(command))
			// TestPagesStores runs it, TestPagesMeasures checks it
			skipping = skipping || strings.Contains(command, storeServer) || longMeasure.MatchString(line)
		}
		if !skipping && line != "" && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
		skipping = skipping && strings.HasSuffix(line, `\`)
	}
	return strings.Join(kept, "\n")
}

// typeInto runs a script in a new home folder, and returns its output.
func typeInto(t *testing.T, script string, env ...string) string {
	t.Helper()
	home := t.TempDir()
	library := filepath.Join(moduleRoot(t), "data")
	for name, to := range map[string]string{"data": library, "handbooks": filepath.Join(library, "library", "handbook")} {
		must(t, os.Symlink(to, filepath.Join(home, name)))
	}
	for name, text := range map[string]string{
		"notes/fees.md":   "# Moorings\n\nA swinging mooring costs 412 euros in 2025. The mooring fee is due in April.\n",
		"minutes.pdf":     "",
		"report.pdf":      "",
		"answer.txt":      "Boats lie ashore in winter [3].\n",
		"docs.json":       `[{"id":1,"source":"a.html","title":"A"},{"id":3,"source":"b.html","title":"B"}]`,
		"questions.jsonl": `{"question":"What does a swinging mooring cost in 2025?","answers":["412"]}` + "\n",
	} {
		data := []byte(text)
		if filepath.Ext(name) == ".pdf" {
			data = samplePDF
		}
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(home, name), data, 0o644))
	}
	model := httptest.NewServer(scriptedModel())
	defer model.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	prelude, err := os.ReadFile("testdata/pages.sh")
	must(t, err)
	shell := exec.CommandContext(ctx, "bash", "-c", string(prelude)+script)
	shell.Dir = home
	shell.WaitDelay = 10 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "IBID_") && !strings.HasPrefix(v, "XDG_") && !strings.HasPrefix(v, "OPENAI_") &&
			!strings.HasPrefix(v, "HOME=") {
			shell.Env = append(shell.Env, v)
		}
	}
	shell.Env = append(shell.Env, "HOME="+home, "SCRIPTED="+model.URL+"/v1",
		"OPENAI_BASE_URL="+model.URL+"/v1", "IBID_OCR=off", "IBID_SAMPLE=20", "IBID_NO_SELF_TEST=true")
	shell.Env = append(shell.Env, env...)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v, after:\n%s", err, last(string(out), 4000))
	}
	return sameEveryTime(strings.ReplaceAll(string(out), home, "/home/you"))
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// TestPagesNameExistingCode checks that the code and files that the pages name exist:
// `package.Name`, `Type.Method`, paths.
func TestPagesNameExistingCode(t *testing.T) {
	t.Parallel()
	declared := make(map[string]bool) // identifiers
	forEachFile(t, token.NewFileSet(), func(_ string, file *ast.File, _ string) {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				declared[id.Name] = true
			}
			return true
		})
	})
	name := regexp.MustCompile("`(?:ibid/)?([a-z]+\\.[A-Z][A-Za-z]+|[A-Z][a-z]+[A-Z][A-Za-z]+|[A-Z][A-Za-z]+\\.[A-Z][A-Za-z]+|" +
		"[a-z]+[A-Z][A-Za-z]+|(?:run|format)\\.[a-z]+)(?:\\(\\))?`")
	file := regexp.MustCompile("`((?:[a-z]+/)+[A-Za-z_.]+\\.(?:go|md|tmpl|mjs|py|txt))`")
	fence := regexp.MustCompile("(?ms)^```.*?^```")
	checked := 0
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)))
		must(t, err)
		text := fence.ReplaceAllString(string(data), "")
		if strings.HasPrefix(page, "answer/") || strings.HasPrefix(page, "ingest/") || strings.HasPrefix(page, "retrieve/") {
			for _, m := range name.FindAllStringSubmatch(text, -1) {
				checked++
				for part := range strings.SplitSeq(m[1], ".") {
					if !declared[part] {
						t.Errorf("%s names %s, which is not declared", page, m[1])
					}
				}
			}
		}
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			_, here := os.Stat(filepath.Join(moduleRoot(t), filepath.Dir(page), m[1]))
			if _, err := os.Stat(filepath.Join(moduleRoot(t), m[1])); err != nil && here != nil {
				t.Errorf("%s names the file %s, which doesn't exist", page, m[1])
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names were checked: the search for them is broken", checked)
	}
}

// storeServer is the host name of stores on the pages.
const storeServer = "db.example.org"

// TestPagesStores runs the commands of the pages about stores on servers in order, with the
// sample library. testdata/pages.sh substitutes the servers of the tests. A served or
// copied library must answer, with citations.
func TestPagesStores(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(statetest.Database(t, "library"))
	must(t, err)
	const question, answer = "Where can I leave my car and what does it cost?", "costs 4 euros a day for everybody else.[1]"
	script := &strings.Builder{}
	type check struct{ at, command string }
	var checks []check
	fmt.Fprintln(script, "ibid ingest data/library")
	kinds := make(map[string]bool)
	for _, page := range pages {
		for _, b := range blocksOf(t, page) {
			for i, line := range strings.Split(b.text, "\n") {
				if b.kind != "sh" || !strings.Contains(line, storeServer) {
					continue
				}
				ask := "ibid ask '" + question + "'"
				command, _, _ := strings.Cut(line, " #")
				switch words := strings.Fields(command); words[1] {
				case "serve":
					ask = `curl -s http://127.0.0.1:8080/api/ask -d '{"question":"` + question + `"}'`
					kinds["serve "+strings.SplitN(words[3], ":", 2)[0]] = true
				case "copy":
					to := words[5]
					if strings.Contains(to, "://") {
						ask += " --store " + to
					} else {
						ask += " --data " + to
					}
					kinds["copy "+strings.SplitN(to, ":", 2)[0]] = true
				default:
					t.Fatalf("%s:%d: this test can't check %s", page, b.line+i, command)
				}
				fmt.Fprintf(script, "%s\nprintf '\\001'\n%s\nprintf '\\001'\n", line, ask)
				checks = append(checks, check{fmt.Sprintf("%s:%d", page, b.line+i), command})
			}
		}
	}
	for _, kind := range []string{"serve postgres", "copy postgres", "copy ~/ibid-copy"} {
		if !kinds[kind] {
			t.Errorf("no page shows the block of kind %s; the pages have %v", kind, kinds)
		}
	}
	out := typeInto(t, script.String(), "POSTGRES="+address.User.String()+"@"+address.Host)
	sections := strings.Split(out, "\x01")
	if len(sections) != 2*len(checks)+1 {
		t.Fatalf("%d of %d commands ran:\n%s", len(sections)/2, len(checks), last(out, 4000))
	}
	for i, c := range checks {
		if !strings.Contains(sections[2*i+1], answer) {
			t.Errorf("%s: after\n%s\n%s\nanswer =\n%s", c.at, c.command, sections[2*i], sections[2*i+1])
		}
	}
}

// shownKinds are the kinds of blocks without commands. TestPrograms runs the programs.
var shownKinds = regexp.MustCompile("^(|text|json|yaml|ini|nginx|python|js|go)$")

// commandLine matches a line that a reader would type.
var commandLine = regexp.MustCompile(`^(\$|(sudo|ibid|cd|go|git|curl|docker|npm|pip|sh|bash|python3?|node|\./[a-z]+|[A-Z_]+=\S*) )`)

// untyped finds the commands of a page that no test runs: those in indented blocks, and in
// fenced blocks other than sh and console.
func untyped(page string) (faults []string) {
	kind, inside := "", false
	for i, line := range strings.Split(page, "\n") {
		if fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			kind, inside = fence, !inside
			if inside && kind != "sh" && kind != "console" && !shownKinds.MatchString(kind) {
				faults = append(faults, fmt.Sprintf("%d: the kind of block %q is unknown: use sh, console or text", i+1, kind))
			}
			continue
		}
		code, indented := strings.CutPrefix(strings.Replace(line, "\t", "    ", 1), "    ")
		if inside && shownKinds.MatchString(kind) {
			code, indented = line, true
		} else if inside {
			continue
		}
		if indented && commandLine.MatchString(code) {
			faults = append(faults, fmt.Sprintf("%d: no test runs this command: put it in a block of the kind sh or console", i+1))
		}
	}
	return faults
}

// longMeasure matches a command that measures for minutes or hours, on sets that may be
// missing. No test runs it; .ci/full runs it or a similar one.
var longMeasure = regexp.MustCompile(`^(?:cd (\S+) && )?(?:IBID_[A-Z_]+=(?:"[^"]*"|\S+) )+go test (?:\./(\S+) )?(.*)`)

// TestPagesMeasures checks that the tests that the pages tell readers to run exist.
func TestPagesMeasures(t *testing.T) {
	t.Parallel()
	wanted := regexp.MustCompile(`-(run|bench) '?([^' ]+)'?`)
	found := 0
	for _, page := range pages {
		for _, b := range blocksOf(t, page) {
			for i, line := range strings.Split(b.text, "\n") {
				m := longMeasure.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				kind, names := "Test", ""
				for _, w := range wanted.FindAllStringSubmatch(m[3], -1) {
					if w[1] == "bench" {
						kind = "Benchmark"
					}
					names = w[2] // -bench comes after -run
				}
				top, _, _ := strings.Cut(names, "/")
				for name := range strings.SplitSeq(top, "|") {
					found++
					if !declares(t, m[1]+m[2], regexp.MustCompile(`(?m)^func `+kind+`\w*`+regexp.QuoteMeta(name))) {
						t.Errorf("%s:%d: %s has no func %s matching %q", page, b.line+i, m[1]+m[2], kind, name)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d commands were checked: the search for them is broken", found)
	}
}

// declares reports whether the tests of a package match a pattern.
func declares(t *testing.T, pkg string, what *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleRoot(t), filepath.FromSlash(pkg), "*_test.go"))
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		if what.Match(data) {
			return true
		}
	}
	return false
}
