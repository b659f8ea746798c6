package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shownKinds are the kinds of blocks without commands. TestPrograms runs the programs.
var shownKinds = regexp.MustCompile("^(|text|json|yaml|ini|nginx|python|js|go)$")

// commandLine matches a line that somebody would type.
var commandLine = regexp.MustCompile(`^(\$|(sudo|ibid|cd|go|git|curl|docker|npm|pip|sh|bash|python3?|node|\./[a-z]+|[A-Z_]+=\S*) )`)

// untyped finds the commands of a page that no test runs: in a block of another
// kind than sh and console, or in an indented one.
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

// The commands in notRun are on a page.
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
			t.Errorf("no page has the command %s of notRun", command)
		}
	}
}

// longMeasure matches a command that measures for minutes or hours, on sets that
// may be missing. No test runs it; .ci/full has them or their like.
var longMeasure = regexp.MustCompile(`^(?:cd (\S+) && )?(?:IBID_[A-Z_]+=(?:"[^"]*"|\S+) )+go test (?:\./(\S+) )?(.*)`)

// TestPagesMeasures: the tests that the pages tell readers to run exist.
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
						t.Errorf("%s:%d: %s has no %s of %q", page, b.line+i, m[1]+m[2], kind, name)
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d were looked for: the search for them is broken", found)
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
