// Package datatest has functions for tests: they read the evaluation sets and choose how many cases
// to run.
//
// A long test is a campaign: if IBID_CAMPAIGN is set, it runs all its cases. By default it runs a
// twentieth of them, chosen by a seed that it logs:
//
//	mutants := datatest.Cases(t, 2000) // 100 by default, 2000 in a campaign
//	random := datatest.Rand(t)
package datatest

import (
	"encoding/json"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails the test if two values differ, and shows the difference.
func Same[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Update is the flag -update, which makes tests write their golden files.
var Update = flag.Bool("update", false, "rewrite the golden files")

// Golden fails the test if a text differs from a file, or writes the file with [Update].
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if *Update {
		Must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	Must(t, err)
	Same(t, file+", which -update writes", string(want), got)
}

// Campaign reports whether tests run at full size, that is, whether IBID_CAMPAIGN is set.
func Campaign() bool { return os.Getenv("IBID_CAMPAIGN") != "" }

// Cases returns the number of cases to run: full in a campaign, otherwise a twentieth, at least
// one.
func Cases(t testing.TB, full int) int {
	t.Helper()
	if Campaign() {
		return full
	}
	n := max(1, full/20)
	t.Logf("%d of %d cases; set IBID_CAMPAIGN=1 to run all", n, full)
	return n
}

// Linear fails the test unless the processor time of do, measured by clock, is proportional to
// size. Four times the size must take about four times as long; a quadratic step would take
// sixteen times as long.
func Linear(t testing.TB, clock func() time.Duration, name string, do func(size int)) {
	t.Helper()
	size := 6 << 10
	if Campaign() {
		size *= 8
	}
	cost := func(size int) time.Duration {
		best := time.Hour
		for range 2 {
			begun := clock()
			do(size)
			best = min(best, clock()-begun)
		}
		return best
	}
	once, more := cost(size), cost(4*size)
	if more > 8*once+400*time.Millisecond {
		t.Errorf("%q: %v for %d KB, and %v for four times as much", name, once, size>>10, more)
	}
}

// CampaignOnly skips the test unless tests run at full size. The reason says why not even a
// twentieth of it runs by default: that would show nothing, or take more than a second.
func CampaignOnly(t testing.TB, reason string) {
	t.Helper()
	if !Campaign() {
		t.Skipf("a campaign, because %s: set IBID_CAMPAIGN=1 to run it", reason)
	}
}

// Chromium returns the path of the browser, which IBID_CHROMIUM can set. Browser tests run in
// campaigns, and if -run selects tests, as a step of the gate does.
func Chromium(t testing.TB) string {
	t.Helper()
	if run := flag.Lookup("test.run"); !Campaign() && run.Value.String() == "" {
		t.Skip("in a browser: choose it with -run, or set IBID_CAMPAIGN=1")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if named := os.Getenv("IBID_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("no Chromium on the PATH (looked for %s): install one, or name it in IBID_CHROMIUM", strings.Join(names, ", "))
	return ""
}

// Rand returns a source of random numbers. Its seed is IBID_SEED, or by
// default a hash of the test's name, so that a run can be repeated. The seed
// is logged, which go test prints when the test fails.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	seed := h.Sum64()
	if text := os.Getenv("IBID_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("IBID_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("IBID_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// Pick returns a twentieth of the items, at least one, in order and chosen with [Rand].
// In a campaign it returns all.
func Pick[T any](t testing.TB, items []T) []T {
	t.Helper()
	if Campaign() || len(items) == 0 {
		return items
	}
	n := Cases(t, len(items))
	random := Rand(t)
	var picked []T
	for i, item := range items {
		if random.IntN(len(items)-i) < n-len(picked) {
			picked = append(picked, item)
		}
	}
	return picked
}

// Sets returns the path of a file or folder of the evaluation sets. They are in the folder
// IBID_DATASETS, by default ../shared/data relative to go.mod. It skips the test if the path
// does not exist.
func Sets(t testing.TB, elem ...string) string {
	t.Helper()
	base := os.Getenv("IBID_DATASETS")
	if base == "" {
		base = filepath.Join(moduleRoot(t), "..", "shared", "data")
	}
	path := filepath.Join(append([]string{base}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no evaluation sets: %v; set IBID_DATASETS to the folder that holds them", err)
	}
	return path
}

// Lines returns the values of a file with one JSON value per line.
func Lines[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	Must(t, err)
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var v T
		Must(t, d.Decode(&v))
		all = append(all, v)
	}
	return all
}

// A Hostile is a text that must have no effect wherever it is shown.
type Hostile struct{ Name, Text string }

var codePoint = regexp.MustCompile(`\{U\+([0-9A-F]{4,6})\}`)

// HostileTexts returns the sections of web/testdata/injection.
func HostileTexts(t testing.TB) (texts []Hostile) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleRoot(t), "web", "testdata", "injection", "*.txt"))
	Must(t, err)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		Must(t, err)
		for _, section := range a.Files {
			text := codePoint.ReplaceAllStringFunc(strings.TrimSuffix(string(section.Data), "\n"), func(s string) string {
				r, err := strconv.ParseInt(codePoint.FindStringSubmatch(s)[1], 16, 32)
				Must(t, err)
				return string(rune(r))
			})
			texts = append(texts, Hostile{filepath.Base(file) + ", " + section.Name, text})
		}
	}
	if len(texts) < 120 {
		t.Fatalf("only %d hostile texts, want at least 120", len(texts))
	}
	return texts
}

// Rows returns the rows of a section of a text file with section names as in txtar. " ⇒ "
// separates the cells of a row, and a \ begins an escape as in Go. Lines without ⇒ are
// comments.
func Rows(t testing.TB, file, section string) (rows [][]string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	Must(t, err)
	for _, f := range archive.Files {
		for line := range strings.Lines(string(f.Data)) {
			cells := strings.Split(strings.TrimSuffix(line, "\n")+" ", " ⇒ ")
			if f.Name != section || len(cells) == 1 {
				continue
			}
			cells[len(cells)-1] = strings.TrimSuffix(cells[len(cells)-1], " ")
			for i, cell := range cells {
				cells[i], err = strconv.Unquote(`"` + cell + `"`)
				Must(t, err)
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows of %s", file, section)
	}
	return rows
}

// Table returns the rows of a section as structs, with a cell for each field: strings as
// written, lists of strings separated by " ¦ ", and other values in JSON.
func Table[T any](t testing.TB, file, section string) (all []T) {
	t.Helper()
	for _, row := range Rows(t, file, section) {
		var v T
		fields := reflect.ValueOf(&v).Elem()
		if len(row) != fields.NumField() {
			t.Fatalf("%s: %q has %d cells, want %d", file, row, len(row), fields.NumField())
		}
		for i, cell := range row {
			switch f := fields.Field(i).Addr().Interface().(type) {
			case *[]string:
				if cell != "" {
					*f = strings.Split(cell, " ¦ ")
				}
			default:
				if v := fields.Field(i); v.Kind() == reflect.String {
					v.SetString(cell)
				} else if err := json.Unmarshal([]byte(cell), f); err != nil {
					t.Fatalf("%s: %q: %v", file, row, err)
				}
			}
		}
		all = append(all, v)
	}
	return all
}

// Stories runs the stories in testdata/stories: each line that begins with "$ " is a command of
// words and Go strings, followed by its expected output. story returns the function that runs
// the commands of a file. With -update, the output is written.
func Stories(t *testing.T, story func(t *testing.T) (run func(args []string) string)) {
	names, err := filepath.Glob("testdata/stories/*.txt")
	Must(t, err)
	if len(names) == 0 {
		t.Fatal("there are no stories")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			Must(t, err)
			run := story(t)
			var out strings.Builder
			for line := range strings.Lines(string(text)) {
				command, ok := strings.CutPrefix(line, "$ ")
				if ok || strings.TrimSpace(line) == "" || line[0] == '#' {
					out.WriteString(line)
				}
				if ok {
					out.WriteString(run(arguments(t, command)))
				}
			}
			Golden(t, name, out.String())
		})
	}
}

// arguments splits a line at spaces outside Go strings.
func arguments(t testing.TB, line string) (out []string) {
	t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, err := strconv.QuotedPrefix(line)
		if err != nil {
			word, _, _ = strings.Cut(line, " ")
		}
		line = line[len(word):]
		if err == nil {
			word, err = strconv.Unquote(word)
			Must(t, err)
		}
		out = append(out, word)
	}
	return out
}

// moduleRoot returns the folder of go.mod. Tests run in the folder of their package.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}
