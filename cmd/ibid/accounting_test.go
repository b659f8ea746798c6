package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"ibid/ingest"
)

// A measured run is one of the real program over a folder.
type measured struct {
	changes []ingest.Change
	total   tally
	code    int
	stderr  string
	peak    int64         // of the memory of the program itself, in bytes; 0 where it cannot be measured
	busy    time.Duration // of processors, its readers included
	took    time.Duration
	pause   time.Duration // the longest between two lines
}

// measure ingests a folder and watches the program as it goes.
func measure(t testing.TB, folder string, flags ...string) (m measured) {
	t.Helper()
	cmd := command(t.Context(), t.TempDir(), append([]string{"ingest", "--json", "--ocr=off", folder}, flags...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	begun := time.Now()
	for last := time.Now(); lines.Scan(); last = time.Now() {
		m.pause = max(m.pause, time.Since(last))
		// The peak never falls, so that of the last line is that of the run.
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
	m.took = time.Since(begun)
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

// raced reports whether this is built with the race detector, which takes ten
// times the time and memory.
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

// Every file of every kind that there is, in one run: each is accounted for,
// in its archive too, none of them ends or holds up the program.
func TestEveryFileIsAccountedFor(t *testing.T) {
	folder := datasets(t, "files")
	if raced() {
		t.Skip("the same without the race detector is enough: it takes minutes")
	}
	m := measure(t, folder)
	if m.code != exitPartial { // some of the files are broken
		t.Fatalf("exit code %d: %s", m.code, m.stderr)
	}
	byPath := make(map[string]ingest.Change)
	counts := make(map[ingest.Action]int)
	for _, c := range m.changes {
		if byPath[c.Path].Action != "" {
			t.Errorf("%s is told twice", c.Path)
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
	files := 0
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		rel, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); byPath[rel].Action == "" && !below(rel) {
			t.Errorf("%s is not accounted for", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
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
	t.Logf("figure: %d files in the folder, %s; %d chunks, %.0f s of processors, at most %.1f s without a line, peak memory %d MB",
		files, total, total.Chunks, m.busy.Seconds(), m.pause.Seconds(), m.peak>>20)
	const bound = 512 << 20
	if m.peak > bound {
		t.Errorf("the program took %d MB of memory", m.peak>>20)
	}
}

// What would be a thousand times its size, never end or be more than memory is
// refused at once, with the reason.
func TestBombs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory and time are measured on Linux only")
	}
	harmless := t.TempDir()
	write(t, filepath.Join(harmless, "a.md"), []byte("The ferry leaves at nine.\n"))
	base := measure(t, harmless)
	if base.total.Added != 1 || base.code != exitDone {
		t.Fatalf("%s, exit code %d: %s", base.total, base.code, base.stderr)
	}
	for _, b := range bombs(t) {
		t.Run(b.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, b.name), b.data)
			m := measure(t, folder)
			refused := false
			for _, c := range m.changes {
				refused = refused || c.Action == b.action && strings.Contains(c.Reason, b.reason)
			}
			if !refused || m.total.Added > 0 {
				t.Errorf("%+v, want %s: %s", m.changes, b.action, b.reason)
			}
			busy, peak := m.busy-base.busy, max(0, m.peak-base.peak)
			t.Logf("figure: bomb %s of %d kB: refused %.1f s after the start, %.2f s of processors, with %d MB of memory over that for a small text",
				b.name, len(b.data)>>10, m.took.Seconds(), m.busy.Seconds(), peak>>20)
			if raced() {
				return
			}
			if busy > 2*time.Second {
				t.Errorf("it took %v", busy)
			}
			if peak > 128<<20 {
				t.Errorf("it took %d MB of memory", peak>>20)
			}
		})
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
