package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

var hours = map[string]string{
	"hours.md": "# Opening hours\n\nThe chart room opens at nine and closes at five.\n",
	"boats.md": "# Boats\n\nThe dinghies stand on the slipway. A keelboat needs two hands.\n",
}

// A server answers over HTTP, and at once from documents that the command line
// ingests meanwhile.
func TestServerSeesWhatTheCommandLineIngests(t *testing.T) {
	t.Parallel()
	data, folder, second := t.TempDir(), t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	url := serve(t, data, folder)
	ready(t, url)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	for _, host := range []string{"127.0.0.1:", "0.0.0.0:", ":"} {
		if out := mustRun(t, data, "health", "--ready", "--addr", host+port); out != "ok\n" {
			t.Errorf("health at %s%s: %q", host, port, out)
		}
	}

	a := ask(t, url, "When does the chart room open?")
	if !a.Answered || len(a.Sources) != 1 || !strings.HasSuffix(a.Sources[0].Document, "/hours.md") {
		t.Errorf("answered from %+v: %s", a.Sources, a.Text)
	}
	if !strings.HasPrefix(a.Sources[0].Link, url+"/documents/") {
		t.Errorf("link %s", a.Sources[0].Link)
	}

	writeFiles(t, second, map[string]string{"keys.txt": "The spare key of the boathouse hangs behind the kitchen door.\n"})
	mustRun(t, data, "ingest", second)
	a = ask(t, url, "Where does the spare key of the boathouse hang?")
	if !a.Answered || len(a.Sources) != 1 || !strings.HasSuffix(a.Sources[0].Document, "/keys.txt") {
		t.Errorf("answered %q from %+v", a.Text, a.Sources)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, errs, code := ibid(t, t.TempDir(), "serve", "--addr", l.Addr().String())
	if code != exitFailed || !strings.Contains(errs, "listening on "+l.Addr().String()+": the port is in use") ||
		!strings.Contains(errs, "--addr") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	l.Close()
	_, errs, code = ibid(t, t.TempDir(), "health", "--addr", l.Addr().String())
	if code != exitFailed || !strings.Contains(errs, "refused") {
		t.Errorf("health without a server: exit code %d: %s", code, errs)
	}
}

// A file that may not be read is named; the rest goes in.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	base, err := os.MkdirTemp("", "ibid-unreadable-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	folder, data := filepath.Join(base, "docs"), filepath.Join(base, "data")
	writeFiles(t, folder, hours)
	must(t, os.Chmod(filepath.Join(folder, "boats.md"), 0))
	program, err := os.Executable()
	must(t, err)
	cmd := command(t.Context(), data, "ingest", folder)
	if os.Getuid() == 0 { // root may read everything: go as somebody else
		const nobody = 65534
		for path, mode := range map[string]os.FileMode{base: 0o777} {
			must(t, os.Chmod(path, mode))
		}
		// The test binary itself may lie where nobody may look.
		copied := filepath.Join(base, "ibid")
		binary, err := os.ReadFile(program)
		must(t, err)
		must(t, os.WriteFile(copied, binary, 0o755))
		cmd.Path, cmd.Err = copied, nil
		cmd.SysProcAttr = asUser(nobody)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says it
	if code := cmd.ProcessState.ExitCode(); code != exitPartial {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if s := out.String(); !strings.Contains(s, "failed    docs/boats.md: ") || !strings.Contains(s, "permission") ||
		!strings.Contains(s, "added     docs/hours.md") {
		t.Errorf("said:\n%s", s)
	}
}

// A data directory made with one embedding model is refused with another, and
// reembed is the way out that the refusal names.
func TestAnotherEmbedder(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	upstream := openaitest.Start(t, &openaitest.Handler{})
	remote := []string{"--embed-model", "test-embedding", "--embed-base-url", upstream}

	mustRun(t, data, append([]string{"ingest", folder}, remote...)...)
	for _, args := range [][]string{{"ask", "When does the chart room open?"}, {"ingest", folder}, {"serve", "--addr", "127.0.0.1:0"}} {
		_, errs, code := ibid(t, data, args...)
		if code != exitFailed || !strings.Contains(errs, "test-embedding") || !strings.Contains(errs, "ibid reembed") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	if out, errs, code := ibid(t, data, "reembed"); code != 0 || !strings.Contains(out, "is embedded with") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code := ibid(t, data, "ask", "When does the chart room open?")
	if code != 0 || !strings.Contains(out, "opens at nine") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Two processes write and one reads the same data directory, without errors or
// lost documents.
func TestTwoWritersOneReader(t *testing.T) {
	t.Parallel()
	rounds := datatest.Cases(t, 60)
	data := t.TempDir()
	folders := []string{filepath.Join(t.TempDir(), "left"), filepath.Join(t.TempDir(), "right")}
	for i, folder := range folders {
		writeFiles(t, folder, map[string]string{"fixed.md": fmt.Sprintf("# Lantern %d\n\nThe lantern of pier %d burns green.\n", i, i)})
		mustRun(t, data, "ingest", folder)
	}
	url := serve(t, data)

	var writing sync.WaitGroup
	var ended atomic.Int32
	for i, folder := range folders {
		writing.Go(func() {
			defer ended.Add(1)
			for n := range rounds {
				// Each round adds a document, changes one, and removes one.
				files := map[string]string{
					fmt.Sprintf("new-%d.md", n): fmt.Sprintf("# Log %d\n\nEntry %d of the log of pier %d.\n", n, n, i),
					"changing.md":               fmt.Sprintf("# Tide\n\nRound %d of pier %d.\n", n, i),
				}
				writeFiles(t, folder, files)
				if n >= 2 {
					if err := os.Remove(filepath.Join(folder, fmt.Sprintf("new-%d.md", n-2))); err != nil {
						t.Error(err)
					}
				}
				out, err := command(t.Context(), data, "ingest", folder).CombinedOutput()
				if err != nil || bytes.Contains(out, []byte("locked")) {
					t.Errorf("round %d of %s: %v: %s", n, folder, err, out)
					return
				}
			}
		})
	}
	questions := 0
	for int(ended.Load()) < len(folders) {
		for i := range folders {
			a := ask(t, url, fmt.Sprintf("Which colour does the lantern of pier %d burn?", i))
			if !a.Answered || !strings.Contains(a.Text, "green") {
				t.Errorf("question %d: %q", questions, a.Text)
			}
			questions++
			time.Sleep(100 * time.Millisecond) // the writers need the processor too
		}
	}
	writing.Wait()
	t.Logf("figure: %d ingests in each of two processes, and %d questions meanwhile, without an error", rounds, questions)

	// The store has the documents of the folders, to the last one.
	want := map[string]bool{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		must(t, err)
		for _, e := range entries {
			want[filepath.Base(folder)+"/"+e.Name()] = true
		}
	}
	got := documents(t, url)
	for id := range want {
		if !got[id] {
			t.Errorf("%s is lost", id)
		}
	}
	for id := range got {
		if !want[id] {
			t.Errorf("%s is still there", id)
		}
	}
}
