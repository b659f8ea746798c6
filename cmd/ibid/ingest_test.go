package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

// TestMeterEnds checks that a meter clears its line when the task ends, before the first
// item and before the last.
func TestMeterEnds(t *testing.T) {
	t.Parallel()
	for done := range 4 {
		var shown bytes.Buffer
		m := newMeter(&shown, "files", 0)
		m.columns = 40
		for i := range done {
			m.update(i+1, 3)
			_, err := io.WriteString(m, "skipped notes/a: empty\n")
			must(t, err)
		}
		m.clear()
		if lines := strings.Split(shown.String(), "\r"); done > 0 && (!strings.HasPrefix(lines[1], "1 of 3 files, ") ||
			strings.Count(shown.String(), "\rskipped notes/a: empty\n") != done || strings.TrimSpace(lines[len(lines)-2]) != "") {
			t.Errorf("after %d of 3 files the terminal shows %q", done, shown.String())
		}
		var out bytes.Buffer
		m.out = &out
		m.end()
		if said := out.String(); strings.HasPrefix(said, "3 files in ") != (done == 3) {
			t.Errorf("after %d of 3 files the output is %q", done, said)
		}
	}
}

// peakOf returns the peak memory of a process, on Linux.
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

// raced reports whether the race detector is on, which needs ten times the memory.
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

// TestEveryFileIsAccountedFor ingests files of every kind in one run. Each file is
// reported, including those in archives, and none stops the program.
func TestEveryFileIsAccountedFor(t *testing.T) {
	t.Parallel()
	folder, files := someFiles(t, datatest.Sets(t, "files"))
	p := startReading(t, t.TempDir(), "--ocr=off", folder)
	byPath := make(map[string]ingest.Change)
	counts := make(map[ingest.Action]int)
	var total tally
	var peak int64 // the peak never falls, so that the last value is the run's
	for c, ok := p.next(t); ok; c, ok = p.next(t) {
		peak = max(peak, peakOf(p.cmd.Process.Pid))
		if c.Total != nil {
			total = *c.Total
			continue
		}
		if byPath[c.Path].Action != "" {
			t.Errorf("%s is listed twice", c.Path)
		}
		byPath[c.Path] = c.Change
		counts[c.Action]++
		if (c.Action == ingest.Failed || c.Action == ingest.Skipped) && c.Reason == "" {
			t.Errorf("%s is %s, but has no reason", c.Path, c.Action)
		}
		for _, sign := range []string{"crashed", "took more than", "panic"} {
			if strings.Contains(c.Reason, sign) {
				t.Errorf("%s: reason shows an internal fault: %s", c.Path, c.Reason)
			}
		}
	}
	if code := p.end(t); code != exitPartial && code != exitDone { // some of the files are broken
		t.Fatalf("exit code = %d: %s", code, p.stderr.String())
	}
	below := func(p string) bool { // a file in an archive is reported with the archive
		for other := range byPath {
			if strings.HasPrefix(other, p+"/") {
				return true
			}
		}
		return false
	}
	for _, p := range files {
		if byPath[p].Action == "" && !below(p) {
			t.Errorf("%s is not reported", p)
		}
	}
	if total.Seen != len(byPath) || total.Added+total.Updated+total.Unchanged+total.Renamed+total.Skipped+total.Failed != total.Seen {
		t.Errorf("%d files listed, but the totals are %s", len(byPath), total)
	}
	for action, want := range map[ingest.Action]int{ingest.Added: total.Added, ingest.Skipped: total.Skipped, ingest.Failed: total.Failed} {
		if counts[action] != want {
			t.Errorf("%d lines have the action %s, but the total is %d", counts[action], action, want)
		}
	}
	t.Logf("figure: %d files in the folder, %s; %d chunks, %.0f s of CPU, peak memory %d MB", len(files), total, total.Chunks,
		(p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds(), peak>>20)
	if peak > 512<<20 && !raced() {
		t.Errorf("peak memory = %d MB, want at most 512", peak>>20)
	}
}

// someFiles links a twentieth of the files below a folder into a new folder, and returns it
// with their paths; in a campaign it returns the folder itself.
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
