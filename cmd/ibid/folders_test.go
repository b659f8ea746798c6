package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
)

// A readingProgram prints a JSON object per line.
type readingProgram struct {
	cmd    *exec.Cmd
	lines  *bufio.Reader
	stderr bytes.Buffer
}

func startReading(t *testing.T, data string, args ...string) *readingProgram {
	t.Helper()
	p := &readingProgram{cmd: command(t.Context(), data, append([]string{"ingest", "--json"}, args...)...)}
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	must(t, err)
	p.lines = bufio.NewReader(out)
	return p
}

// A line is a change, or the total.
type line struct {
	ingest.Change
	Total *tally `json:"total"`
}

// next reads a line; ok is false at the end.
func (p *readingProgram) next(t *testing.T) (l line, ok bool) {
	t.Helper()
	text, err := p.lines.ReadBytes('\n')
	if err == io.EOF && len(text) == 0 {
		return l, false
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		t.Fatalf("%v: %q\n%s", err, text, p.stderr.String())
	}
	return l, true
}

// end waits for the program and gives its exit code.
func (p *readingProgram) end(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// crowd makes a folder of n files of many kinds, and returns the expected outcome
// of each.
func crowd(t *testing.T, n int) (folder string, want map[string]ingest.Action) {
	t.Helper()
	folder = t.TempDir()
	files := make(map[string]string, n)
	want = make(map[string]ingest.Action, n)
	for i := range n {
		name, action := fmt.Sprintf("%02d/%d/", i%97, i%7), ingest.Added
		text := fmt.Sprintf("# Note %d\n\nOn day %d the harbour master counted %d boats.\n", i, i, i%31)
		switch i % 20 {
		case 13:
			name, text, action = name+fmt.Sprintf("empty%d.md", i), "", ingest.Skipped
		case 14:
			name, action = name+fmt.Sprintf("unread%d.xyz", i), ingest.Skipped
		case 15:
			name, text, action = name+fmt.Sprintf("lying%d.txt", i), "%PDF-1.7 not a text", ingest.Failed
		case 16:
			name, text = name+fmt.Sprintf("table%d.csv", i), fmt.Sprintf("Boat,Berth\nFulmar %d,A%d\n", i, i)
		case 17:
			name = name + fmt.Sprintf("ünïcödé 図 %d.txt", i)
		case 18:
			name = name + strings.Repeat("long", 55) + fmt.Sprintf("%d.txt", i)
		case 19:
			name, text = name+fmt.Sprintf("page%d.html", i), "<h1>Page</h1><p>"+text
		default:
			name += fmt.Sprintf("note%d.md", i)
		}
		files[name], want[name] = text, action
	}
	writeFiles(t, folder, files)
	return folder, want
}

// Every file of a large folder is listed once. An interrupted run resumes: the
// files it listed are stored.
func TestInterruptedIngestGoesOn(t *testing.T) {
	t.Parallel()
	n := datatest.Cases(t, 5_000)
	folder, want := crowd(t, n)
	data := t.TempDir()
	stored := map[string]bool{}
	for round, by := range []os.Signal{os.Interrupt, syscall.SIGKILL, os.Interrupt, nil} {
		p := startReading(t, data, folder)
		seen, added := map[string]ingest.Action{}, 0
		var total *tally
		for {
			l, ok := p.next(t)
			if !ok {
				break
			}
			if total = l.Total; total != nil {
				break
			}
			if seen[l.Path] != "" {
				t.Errorf("%s is listed twice", l.Path)
			}
			seen[l.Path] = l.Action
			action := want[l.Path]
			if stored[l.Path] {
				action = ingest.Unchanged
			}
			if l.Action != action && !(round == 2 && l.Action == ingest.Unchanged && action == ingest.Added) {
				t.Errorf("round %d: %s is %s, want %s: %s", round, l.Path, l.Action, action, l.Reason)
			}
			if l.Action == ingest.Unchanged {
				stored[l.Path] = true // it was killed before it listed it
			}
			if l.Action == ingest.Added {
				stored[l.Path] = true
				if added++; by != nil && added == n/20 {
					must(t, p.cmd.Process.Signal(by))
				}
			}
		}
		code := p.end(t)
		switch {
		case by == nil:
			if code != exitPartial || total == nil || len(seen) != len(want) || total.Seen != n ||
				total.Added+total.Updated+total.Unchanged+total.Renamed+total.Skipped+total.Failed != n || total.Removed != 0 {
				t.Errorf("exit code %d, %d of %d files told of, %+v\n%s", code, len(seen), n, total, p.stderr.String())
			}
		case total != nil:
			t.Errorf("round %d: it was done before it was interrupted: %+v", round, total)
		case by == os.Interrupt && (code != exitFailed || !strings.Contains(p.stderr.String(), "the next run resumes there")):
			t.Errorf("round %d: exit code %d\n%s", round, code, p.stderr.String())
		}
	}
	if n := len(documentsIn(t, data)); n != len(stored) && n != len(stored)+1 {
		t.Errorf("%d documents are stored, %d were told of", n, len(stored))
	}
}

// documentsIn returns the ids of the stored documents.
func documentsIn(t *testing.T, data string) map[string]bool {
	t.Helper()
	return documents(t, serve(t, data))
}
