package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest"
)

// A measured is a run of the program over a folder.
type measured struct {
	changes []ingest.Change
	total   tally
	code    int
	stderr  string
	peak    int64         // memory of the program itself, in bytes; 0 if unknown
	busy    time.Duration // CPU time, with its child processes
}

// measure ingests a folder in a process of its own.
func measure(t testing.TB, folder string, flags ...string) (m measured) {
	t.Helper()
	cmd := command(t.Context(), t.TempDir(), append([]string{"ingest", "--json", "--ocr=off", folder}, flags...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// The peak never falls: at the last line it is that of the run.
		m.peak = max(m.peak, peakOf(cmd.Process.Pid))
		var c struct {
			ingest.Change
			Total *tally `json:"total"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if c.Total != nil {
			m.total = *c.Total
			continue
		}
		m.changes = append(m.changes, c.Change)
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	m.code, m.stderr = cmd.ProcessState.ExitCode(), errs.String()
	m.busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return m
}

// peakOf reads the high water mark of a process's memory, on Linux.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kB, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kB << 10
}

// raced reports whether the race detector is on, which needs ten times the
// memory.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// Files of every kind are ingested in one run. Each is accounted for, also in an
// archive, and none stops the program.
func TestEveryFileIsAccountedFor(t *testing.T) {
	t.Parallel()
	folder, files := someFiles(t, datatest.Sets(t, "files"))
	m := measure(t, folder)
	if m.code != exitPartial && m.code != exitDone { // some of the files are broken
		t.Fatalf("exit code %d: %s", m.code, m.stderr)
	}
	byPath := make(map[string]ingest.Change)
	counts := make(map[ingest.Action]int)
	for _, c := range m.changes {
		if byPath[c.Path].Action != "" {
			t.Errorf("%s is listed twice", c.Path)
		}
		byPath[c.Path] = c
		counts[c.Action]++
		if (c.Action == ingest.Failed || c.Action == ingest.Skipped) && c.Reason == "" {
			t.Errorf("%s is %s without a reason", c.Path, c.Action)
		}
		for _, sign := range []string{"crashed", "took more than", "panic"} {
			if strings.Contains(c.Reason, sign) {
				t.Errorf("%s: %s", c.Path, c.Reason)
			}
		}
	}
	below := func(p string) bool { // a file of an archive is the archive's account
		for other := range byPath {
			if strings.HasPrefix(other, p+"/") {
				return true
			}
		}
		return false
	}
	for _, p := range files {
		if byPath[p].Action == "" && !below(p) {
			t.Errorf("%s is not accounted for", p)
		}
	}
	total := m.total
	if total.Seen != len(m.changes) || total.Added+total.Updated+total.Unchanged+total.Renamed+total.Skipped+total.Failed != total.Seen {
		t.Errorf("%d lines, and the totals say %s", len(m.changes), total)
	}
	for action, want := range map[ingest.Action]int{ingest.Added: total.Added, ingest.Skipped: total.Skipped, ingest.Failed: total.Failed} {
		if counts[action] != want {
			t.Errorf("%d lines say %s, and the total says %d", counts[action], action, want)
		}
	}
	t.Logf("figure: %d files in the folder, %s; %d chunks, %.0f s of CPU, peak memory %d MB",
		len(files), total, total.Chunks, m.busy.Seconds(), m.peak>>20)
	if m.peak > 512<<20 && !raced() {
		t.Errorf("the program used %d MB", m.peak>>20)
	}
}

// someFiles links a twentieth of the files below a folder into a folder of their
// own, and returns it with their paths; in a campaign it is the folder itself.
func someFiles(t *testing.T, from string) (folder string, files []string) {
	t.Helper()
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			p, err = filepath.Rel(from, p)
			files = append(files, filepath.ToSlash(p))
		}
		return err
	})
	must(t, err)
	if datatest.Campaign() {
		return from, files
	}
	folder, files = t.TempDir(), datatest.Pick(t, files)
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(from, name))
		must(t, err)
		writeFiles(t, folder, map[string]string{name: string(data)})
	}
	return folder, files
}
