package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
)

// ibid runs the program as a person would, in a process of its own, and gives
// what it said.
func ibid(t *testing.T, data string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t.Context(), data, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("starting ibid: %v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// command is the program with a clean environment. TestMain has put it on the PATH.
func command(ctx context.Context, data string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ibid", args...)
	cmd.Env = append(os.Environ(), "IBID_DATA="+data, "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "IBID_MODEL=", "IBID_STORE=", "IBID_STORE_PASSWORD=", "IBID_PDF=go")
	return cmd
}

// serve starts a server and gives its address. It is stopped, and its exit
// checked, when the test ends.
func serve(t *testing.T, data string, args ...string) (url string) {
	t.Helper()
	return start(t, data, args...).url
}

// A running server is one in a process of its own.
type running struct {
	url  string
	pid  int
	stop func() // tells it to stop, waits until it has, and checks its exit
}

// start starts a server. It is stopped when the test ends, if not before.
func start(t *testing.T, data string, args ...string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := command(ctx, data, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("the server's first line: %v\n%s", err, errs.String())
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if !ok {
		t.Errorf("the server's first line is %q", first)
	}
	stop := sync.OnceFunc(func() {
		cancel()
		_, rerr := io.Copy(io.Discard, lines)
		if err := cmd.Wait(); rerr != nil || cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("the server ended with %v (%v)\n%s", err, rerr, errs.String())
		}
	})
	t.Cleanup(stop)
	return running{url, cmd.Process.Pid, stop}
}

// ready waits until the first sync is done.
func ready(t *testing.T, url string) {
	t.Helper()
	eventually(t, "the first sync", func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// eventually asks again until the answer is yes, for a minute: another
// process's time cannot be faked.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func ask(t *testing.T, url, question string) cite.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"question": question})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/api/ask", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s (%v)", resp.Status, reply, err)
	}
	var a cite.Answer
	if err := json.Unmarshal(reply, &a); err != nil {
		t.Fatalf("%v in %s", err, reply)
	}
	return a
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

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

// documents gives the ids of what a server has.
func documents(t *testing.T, url string) map[string]bool {
	t.Helper()
	resp, err := http.Get(url + "/api/documents")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Documents []struct {
			Document string `json:"document"`
		} `json:"documents"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, d := range list.Documents {
		ids[d.Document] = true
	}
	return ids
}
