package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

var hours = map[string]string{
	"hours.md": "# Opening hours\n\nThe chart room opens at nine and closes at five.\n",
	"boats.md": "# Boats\n\nThe dinghies stand on the slipway. A keelboat needs two hands.\n",
}

// A server answers over HTTP, and what the command line ingests meanwhile is
// answered from at once.
func TestServerSeesWhatTheCommandLineIngests(t *testing.T) {
	data, folder, second := t.TempDir(), t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	url := serve(t, data, folder)
	ready(t, url)

	a := ask(t, url, "When does the chart room open?")
	if !a.Answered || len(a.Sources) != 1 || !strings.HasSuffix(a.Sources[0].Document, "/hours.md") {
		t.Errorf("answered from %+v: %s", a.Sources, a.Text)
	}
	if !strings.HasPrefix(a.Sources[0].Link, url+"/documents/") {
		t.Errorf("link %s", a.Sources[0].Link)
	}

	writeFiles(t, second, map[string]string{"keys.txt": "The spare key of the boathouse hangs behind the kitchen door.\n"})
	if out, errs, code := ibid(t, data, "ingest", second); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	a = ask(t, url, "Where does the spare key of the boathouse hang?")
	if !a.Answered || len(a.Sources) != 1 || !strings.HasSuffix(a.Sources[0].Document, "/keys.txt") {
		t.Errorf("answered %q from %+v", a.Text, a.Sources)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, errs, code := ibid(t, t.TempDir(), "serve", "--addr", l.Addr().String())
	if code != exitFailed || !strings.Contains(errs, "listening on "+l.Addr().String()+": the port is in use") || !strings.Contains(errs, "--addr") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestOpenAddressIsRefused(t *testing.T) {
	_, errs, code := ibid(t, t.TempDir(), "serve", "--addr", "0.0.0.0:0")
	if code != exitUsage || !strings.Contains(errs, "--no-auth") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A file that may not be read is named; the rest goes in.
func TestUnreadableFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	base, err := os.MkdirTemp("", "ibid-unreadable-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	folder, data := filepath.Join(base, "docs"), filepath.Join(base, "data")
	writeFiles(t, folder, hours)
	if err := os.Chmod(filepath.Join(folder, "boats.md"), 0); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t.Context(), data, "ingest", folder)
	if os.Getuid() == 0 { // root may read everything: go as somebody else
		const nobody = 65534
		for path, mode := range map[string]os.FileMode{base: 0o777} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		// The test binary itself may lie where nobody may look.
		copied := filepath.Join(base, "ibid")
		binary, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, binary, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Err = copied, nil
		cmd.SysProcAttr = asUser(nobody)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says it
	if code := cmd.ProcessState.ExitCode(); code != exitPartial {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if s := out.String(); !strings.Contains(s, "failed    docs/boats.md: ") || !strings.Contains(s, "permission") || !strings.Contains(s, "added     docs/hours.md") {
		t.Errorf("said:\n%s", s)
	}
}

// A data directory made with one embedding model is refused with another, and
// reembed is the way out that the refusal names.
func TestAnotherEmbedder(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	upstream := openaitest.Start(t, &openaitest.Handler{})
	remote := []string{"--embed-model", "test-embedding", "--embed-base-url", upstream}

	if out, errs, code := ibid(t, data, append([]string{"ingest", folder}, remote...)...); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
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

// Two processes write and one reads the same data directory: no error, no
// lost document. IBID_CAMPAIGN makes it last a minute.
func TestTwoWritersOneReader(t *testing.T) {
	duration := 4 * time.Second
	if os.Getenv("IBID_CAMPAIGN") != "" {
		duration = time.Minute
	}
	data := t.TempDir()
	folders := []string{filepath.Join(t.TempDir(), "left"), filepath.Join(t.TempDir(), "right")}
	for i, folder := range folders {
		writeFiles(t, folder, map[string]string{"fixed.md": fmt.Sprintf("# Lantern %d\n\nThe lantern of pier %d burns green.\n", i, i)})
		if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
	}
	url := serve(t, data)

	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var wg sync.WaitGroup
	runs := make([]int, len(folders))
	for i, folder := range folders {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Each round adds a document, changes one, and removes one.
				files := map[string]string{
					fmt.Sprintf("new-%d.md", n): fmt.Sprintf("# Log %d\n\nEntry %d of the log of pier %d.\n", n, n, i),
					"changing.md":               fmt.Sprintf("# Tide\n\nRound %d of pier %d.\n", n, i),
				}
				writeFiles(t, folder, files)
				if n >= 5 {
					if err := os.Remove(filepath.Join(folder, fmt.Sprintf("new-%d.md", n-5))); err != nil {
						t.Error(err)
					}
				}
				out, errs, code := ibid(t, data, "ingest", folder)
				if code != 0 || strings.Contains(errs, "locked") {
					t.Errorf("round %d of %s: exit code %d: %s%s", n, folder, code, out, errs)
					return
				}
				runs[i] = n + 1
			}
		})
	}
	questions := 0
	for ctx.Err() == nil {
		for i := range folders {
			a := ask(t, url, fmt.Sprintf("Which colour does the lantern of pier %d burn?", i))
			if !a.Answered || !strings.Contains(a.Text, "green") {
				t.Errorf("question %d: %q", questions, a.Text)
			}
			questions++
		}
	}
	wg.Wait()
	t.Logf("figure: %d and %d ingests beside %d questions in %s, every one without error", runs[0], runs[1], questions, duration)

	// What is in the store is what is in the folders, to the last document.
	want := map[string]bool{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
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
