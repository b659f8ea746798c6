package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
	"ibid/ingest"
)

// A readingProgram is a running 'ibid ingest --json', which prints an object per line.
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

// A line is either a change or the total.
type line struct {
	ingest.Change
	Total *tally `json:"total"`
}

// next reads a line; ok is false at the end of the output.
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
		t.Fatalf("reading a line: %v: %q\n%s", err, text, p.stderr.String())
	}
	return l, true
}

// end waits for the program and returns its exit code.
func (p *readingProgram) end(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// writeManyFiles writes a folder of n files of many kinds and three berths, and returns the expected
// outcome of each file. Before each berth there are more files than are read at a time.
func writeManyFiles(t *testing.T, n int) (folder string, want map[string]ingest.Action) {
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
	for i := range 3 {
		name := fmt.Sprintf("%d/berth.md", 32*(i+1))
		files[name], want[name] = "# Berth\n\n"+berthText(i), ingest.Added
	}
	writeFiles(t, folder, files)
	return folder, want
}

func berthText(i int) string { return fmt.Sprintf("Berth %d of the inner basin is taken.", i) }

// TestInterruptedIngestResumes checks that every file of a large folder is listed once. A
// run that is interrupted while a file waits for its vectors can be resumed: exactly the
// files that it listed are stored, except that after a kill one more may be.
func TestInterruptedIngestResumes(t *testing.T) {
	t.Parallel()
	n := datatest.Cases(t, 5_000)
	folder, want := writeManyFiles(t, n)
	data, stored, unlisted := t.TempDir(), map[string]bool{}, false
	for round, by := range []os.Signal{os.Interrupt, syscall.SIGKILL, os.Interrupt, nil} {
		p := startInterrupted(t, data, folder, berthText(round), by)
		seen, added := map[string]bool{}, 0
		var total *tally
		for l, ok := p.next(t); ok; l, ok = p.next(t) {
			if total = l.Total; total != nil {
				break
			}
			if seen[l.Path] {
				t.Errorf("%s is listed twice", l.Path)
			}
			seen[l.Path] = true
			action := want[l.Path]
			switch {
			case stored[l.Path]:
				action = ingest.Unchanged
			case round == 2 && l.Action == ingest.Unchanged && !unlisted:
				action, unlisted = ingest.Unchanged, true // killed before it listed the file
			case l.Action == ingest.Added:
				added++
			}
			if l.Action != action {
				t.Errorf("round %d: %s is %s, want %s; reason %q", round, l.Path, l.Action, action, l.Reason)
			}
			stored[l.Path] = l.Action == ingest.Added || l.Action == ingest.Unchanged
		}
		code := p.end(t)
		switch {
		case added == 0:
			t.Errorf("round %d: no file was added; %d files listed\n%s", round, len(seen), p.stderr.String())
		case by == nil:
			if code != exitPartial || total == nil || len(seen) != len(want) || total.Seen != len(want) ||
				total.Added+total.Updated+total.Unchanged+total.Renamed+total.Skipped+total.Failed != len(want) || total.Removed != 0 {
				t.Errorf("exit code = %d, %d of %d files listed, total = %+v\n%s", code, len(seen), len(want), total, p.stderr.String())
			}
		case total != nil:
			t.Errorf("round %d: the run finished before it was interrupted: %+v", round, total)
		case by == os.Interrupt && (code != exitFailed || !strings.Contains(p.stderr.String(), "the next run resumes there")):
			t.Errorf("round %d: exit code = %d\n%s", round, code, p.stderr.String())
		}
	}
	maps.DeleteFunc(stored, func(_ string, is bool) bool { return !is })
	if n := len(documents(t, serve(t, data, embedder(t, nil)...))); n != len(stored) {
		t.Errorf("%d documents are stored, but %d were listed", n, len(stored))
	}
}

// startInterrupted starts a program that receives the signal when it requests the vector of
// the text, and never gets that vector. Without a signal it gets all vectors.
func startInterrupted(t *testing.T, data, folder, text string, by os.Signal) *readingProgram {
	t.Helper()
	started, ended := make(chan *os.Process, 1), make(chan struct{})
	args := embedder(t, func(r openaitest.Request) openaitest.Reply {
		if by != nil && strings.Contains(strings.Join(r.Inputs, "\n"), text) {
			if err := (<-started).Signal(by); err != nil {
				t.Error(err)
			}
			<-ended
		}
		return openaitest.Reply{}
	})
	t.Cleanup(func() { close(ended) })
	p := startReading(t, data, append(args, folder)...)
	started <- p.cmd.Process
	return p
}

// embedder starts an embeddings server and returns the flags for it.
func embedder(t *testing.T, reply func(openaitest.Request) openaitest.Reply) []string {
	t.Helper()
	return []string{"--embed-model", "test-embedding", "--embed-base-url", openaitest.Start(t, &openaitest.Handler{Embed: reply})}
}
