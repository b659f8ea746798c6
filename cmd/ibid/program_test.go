package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ibid/cite"
)

// ibid runs one command line in this process.
func ibid(t testing.TB, data string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	var errs lockedBuffer
	code = exitCode(run(t.Context(), args, variables(data), strings.NewReader(""), &out, &errs), &errs)
	return out.String(), errs.String(), code
}

// mustRun is ibid for a command that has to succeed.
func mustRun(t testing.TB, data string, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := ibid(t, data, args...)
	if code != exitDone {
		t.Fatalf("ibid %q: exit code %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// variables returns the environment of a command in this process.
func variables(data string) func(string) string {
	return func(name string) string {
		switch name {
		case "IBID_DATA":
			return data
		case "IBID_NO_SELF_TEST":
			return "true" // a test counts the calls to its model
		}
		return ""
	}
}

// command returns the program in a process of its own, with a clean environment.
// TestMain has put it on the PATH.
func command(ctx context.Context, data string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ibid", args...)
	cmd.Env = append(os.Environ(), "IBID_DATA="+data, "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "IBID_MODEL=",
		"IBID_STORE=", "IBID_STORE_PASSWORD=", "IBID_NO_SELF_TEST=true")
	return cmd
}

// A lockedBuffer may be written and read by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A running server.
type running struct {
	url  string
	pid  int           // 0 in this process
	log  *lockedBuffer // its standard error
	stop func()        // stops it, waits for it, and checks its exit code
}

// serve starts a server and returns its address. It stops when the test ends.
func serve(t *testing.T, data string, args ...string) (url string) {
	t.Helper()
	return start(t, data, args...).url
}

// start starts a server in this process. It stops when the test ends.
func start(t *testing.T, data string, args ...string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	log := &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		err := run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), variables(data), strings.NewReader(""), in, log)
		if ctx.Err() == nil {
			_ = in.CloseWithError(err)
		}
		_ = in.Close()
		ended <- exitCode(err, log)
	}()
	server := running{log: log, stop: sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != exitDone {
			t.Errorf("the server's exit code is %d\n%s", code, log)
		}
	})}
	t.Cleanup(server.stop)
	server.url = addressIn(t, bufio.NewReader(out))
	return server
}

// startProcess starts a server in a process of its own. It stops when the test ends.
func startProcess(t *testing.T, data string, args ...string) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := command(ctx, data, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	log := &lockedBuffer{}
	cmd.Stderr = log
	url := listening(t, cmd)
	server := running{url: url, pid: cmd.Process.Pid, log: log, stop: sync.OnceFunc(func() {
		cancel()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitDone {
			t.Errorf("the server ended with %v\n%s", err, log)
		}
	})}
	t.Cleanup(server.stop)
	return server
}

// listening starts a server process, which the caller stops, and returns its address.
func listening(t *testing.T, cmd *exec.Cmd) (url string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return addressIn(t, bufio.NewReader(out))
}

// addressIn reads the address from the first line of a server.
func addressIn(t *testing.T, out *bufio.Reader) (url string) {
	t.Helper()
	line, err := out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the server's first line is %q: %v", line, err)
	}
	return url
}

// ready waits until the first sync is done.
func ready(t *testing.T, url string) {
	t.Helper()
	eventually(t, "the first sync", func() bool {
		resp, err := http.Get(url + "/readyz")
		must(t, err)
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// eventually repeats a check until it succeeds. It gives up after minutes, only
// so that a test cannot hang.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !check() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited five minutes for %s", what)
		}
	}
}

func ask(t *testing.T, url, question string) cite.Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"question": question})
	must(t, err)
	resp, err := http.Post(url+"/api/ask", "application/json", bytes.NewReader(body))
	must(t, err)
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
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// documents returns the ids of a server's documents.
func documents(t *testing.T, url string) map[string]bool {
	t.Helper()
	resp, err := http.Get(url + "/api/documents")
	must(t, err)
	defer resp.Body.Close()
	var list struct {
		Documents []struct {
			Document string `json:"document"`
		} `json:"documents"`
	}
	must(t, json.NewDecoder(resp.Body).Decode(&list))
	ids := map[string]bool{}
	for _, d := range list.Documents {
		ids[d.Document] = true
	}
	return ids
}
