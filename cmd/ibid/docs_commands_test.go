package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shownKinds are those of blocks that are not typed, but those that TestPrograms
// runs: nothing in them is a command.
var shownKinds = regexp.MustCompile("^(|text|json|yaml|ini|nginx|python|js|go)$")

// commandLine is one that somebody would type.
var commandLine = regexp.MustCompile(`^(\$|(sudo|ibid|cd|go|git|curl|docker|npm|pip|sh|bash|python3?|node|\./[a-z]+|[A-Z_]+=\S*) )`)

// untyped finds the commands of a page that stand where no test looks for them:
// in a block that is not called sh or console, or in an indented one.
func untyped(page string) (faults []string) {
	kind, inside := "", false
	for i, line := range strings.Split(page, "\n") {
		if fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			kind, inside = fence, !inside
			if inside && kind != "sh" && kind != "console" && !shownKinds.MatchString(kind) {
				faults = append(faults, fmt.Sprintf("%d: nobody knows blocks of the kind %q: say sh, console or text", i+1, kind))
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
			faults = append(faults, fmt.Sprintf("%d: this is a command, and nobody types it: put it in a block called sh, or console", i+1))
		}
	}
	return faults
}

func TestUntyped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ page, fault string }{
		{"```sh\ngo run .\n```", ""},
		{"```console\n$ go run .\nx\n```", ""},
		{"```\nibid ask\n```", "2: "},
		{"```\na ──▶ b\n```", ""},
		{"```\n\ngo test ./...\n```", "3: "},
		{"```\n$ ibid ask\n```", "2: "},
		{"```text\nOPENAI_API_KEY=… ibid serve\n```", "2: "},
		{"```text\nibid: permission denied\n```", ""},
		{"```bash\nls\n```", "1: "},
		{"```shell\nls\n```", "1: "},
		{"so:\n\n    go test ./cite\n", "3: "},
		{"so:\n\n\tibid ask\n", "3: "},
		{"go on as before.\n", ""},
		{"```go\nfunc main() {\n\tgo run()\n}\n```", ""},
	} {
		faults := untyped(test.page)
		if test.fault == "" && len(faults) > 0 || test.fault != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], test.fault)) {
			t.Errorf("%q: %q, want %q", test.page, faults, test.fault)
		}
	}
}

// What no test types stands on a page still.
func TestNotRunIsThere(t *testing.T) {
	t.Parallel()
	there := make(map[string]bool)
	for _, page := range pages {
		for _, b := range blocksOf(t, page) {
			for line := range strings.SplitSeq(b.text, "\n") {
				command, _, _ := strings.Cut(line, " #")
				there[strings.TrimSpace(command)] = true
			}
		}
	}
	for command := range notRun {
		if !there[command] {
			t.Errorf("no page has the command %s, which is said not to be run", command)
		}
	}
}

// longMeasure is a command that measures for minutes or hours, on sets or a library
// that one has or has not: no test types it. .ci/full has them all, or their like.
var longMeasure = regexp.MustCompile(`^(?:cd (\S+) && )?(?:IBID_[A-Z_]+=(?:"[^"]*"|\S+) )+go test (?:\./(\S+) )?(.*)`)

// TestPagesMeasures: the measures that the pages tell how to repeat are there.
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
					names = w[2] // -bench stands behind -run
				}
				top, _, _ := strings.Cut(names, "/")
				for name := range strings.SplitSeq(top, "|") {
					found++
					if !declares(t, m[1]+m[2], regexp.MustCompile(`(?m)^func `+kind+`\w*`+regexp.QuoteMeta(name))) {
						t.Errorf("%s:%d: %s has no %s of %q", page, b.line+i, m[1]+m[2], kind, name)
					}
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d were looked for: the search for them is broken", found)
	}
}

// declares says whether the tests of a package have what is looked for.
func declares(t *testing.T, pkg string, what *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleRoot(t), filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if what.Match(data) {
			return true
		}
	}
	return false
}
