package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"ibid/data/datatest"
)

var must = datatest.Must

func TestMain(m *testing.M) {
	if code, ran := Run(os.Getenv, os.Stdin, os.Stdout, os.Stderr, misbehave); ran {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// A wish tells a child process of these tests what to do.
type wish struct{ Do, Path string }

// A result is a child's reply.
type result struct{ PID string }

// misbehave is a [Handler] that grants wishes.
func misbehave(message json.RawMessage, data []byte) (any, string) {
	var request wish
	if err := json.Unmarshal(message, &request); err != nil {
		panic(err)
	}
	switch request.Do {
	case "pid": // reads a file as it should
		return result{strconv.Itoa(os.Getpid())}, string(data)
	case "environment":
		return result{}, strings.Join(os.Environ(), "\n")
	case "hang":
		<-time.After(time.Hour) // an empty select is reported as a deadlock without C code
	case "spin":
		for i := 0; ; i++ {
			runtime.KeepAlive(i)
		}
	case "burn": // most of the time limit of a file
		for begun := cpuTime(); cpuTime()-begun < 350*time.Millisecond; {
		}
	case "spin once": // it may create a file, but not write to it
		if _, err := os.OpenFile(request.Path, os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return result{strconv.Itoa(os.Getpid())}, string(data)
		}
		fallthrough
	case "spin to the limit":
		if err := allowSeconds(0); err != nil {
			panic(err)
		}
		for i := 0; ; i++ {
			runtime.KeepAlive(i)
		}
	case "panic":
		panic("boom in the parser\nsecond line")
	case "exit":
		os.Exit(0)
	case "memory":
		var held [][]byte
		for {
			held = append(held, fill(16<<20))
			runtime.KeepAlive(held)
		}
	case "much memory":
		runtime.KeepAlive(fill(Memory/2 + 16<<20))
		return result{strconv.Itoa(os.Getpid())}, ""
	case "stack":
		var deep func(n int) int
		deep = func(n int) int { return deep(n+1) + 1 }
		fmt.Fprintln(os.Stderr, deep(0))
	case "chatter":
		line := bytes.Repeat([]byte("x"), 1<<20)
		for {
			if _, err := os.Stdout.Write(line); err != nil {
				os.Exit(1)
			}
		}
	case "grumble": // more than a pipe holds, which is harmless
		fmt.Fprint(os.Stderr, strings.Repeat("a warning of a library\n", 1<<15))
	case "write":
		if err := os.WriteFile(request.Path, []byte("written"), 0o600); err != nil {
			panic(err)
		}
	case "grandchild":
		// It outlives the child unless the process group is killed; its output is ours.
		c := exec.Command("/bin/sleep", "60")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		<-time.After(time.Hour)
	}
	return result{}, ""
}

// fill returns memory with all pages in use.
func fill(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	return b
}

// do has a child of the pool do something.
func (p *Pool) do(t *testing.T, what string) (result, string, error) {
	t.Helper()
	var reply result
	text, err := p.ask(t.Context(), what, wish{Do: what}, []byte("a file"), &reply, time.Minute)
	return reply, text, err
}

// pid returns the process id of the child that replies next.
func (p *Pool) pid(t *testing.T) string {
	t.Helper()
	reply, text, err := p.do(t, "pid")
	if err != nil || text != "a file" {
		t.Fatalf("reply = %q, %v; want the file", text, err)
	}
	return reply.PID
}

func testPool(t *testing.T) *Pool {
	p := NewPool("reader")
	t.Cleanup(p.Close)
	return p
}

// TestChildDeathsAreNamed checks that the death of a child is an error of its request only.
func TestChildDeathsAreNamed(t *testing.T) {
	t.Parallel()
	tests := []struct{ format, reason string }{
		{"hang", "took more than"},
		{"spin", "took more than"},
		{"grandchild", "took more than"},
		{"panic", "the panic reader crashed on it: panic: boom in the parser"},
		{"exit", "the exit reader crashed on it: exit status 0"},
		{"stack", "the stack reader crashed on it: runtime: goroutine stack exceeds"},
		{"memory", fmt.Sprintf("needed more than %d MB of memory", Memory>>20)},
		{"chatter", "it holds more than 256 MB of text"},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			t.Parallel()
			pool := testPool(t)
			first := pool.pid(t)
			limit := time.Minute
			if slices.Contains([]string{"hang", "spin", "grandchild"}, tt.format) {
				limit = time.Second
			}
			_, err := pool.ask(t.Context(), tt.format, wish{Do: tt.format}, []byte("x"), new(result), limit)
			if err == nil {
				t.Fatal("the child survived")
			}
			if !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("err = %v, want %q", err, tt.reason)
			}
			if next := pool.pid(t); next == first {
				t.Errorf("process %s still replies", first)
			}
		})
	}
}

func TestIsOutOfMemory(t *testing.T) {
	for words, want := range map[string]bool{
		"fatal error: runtime: cannot allocate memory": true,
		"panic: boom in the parser":                    false,
		"SIGSEGV: segmentation violation\nPC=0x43957d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x31 m=3 mp=0x31 " +
			"[idle]:\nruntime.(*spanQueue).tryDrain(0x5)\n": true,
		"SIGSEGV: segmentation violation\nPC=0x43957d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x31 m=3 mp=0x31 " +
			"[idle]:\nwasm.function[7](0x5)\n": false,
		"SIGSEGV: segmentation violation\nPC=0x43957d": false,
	} {
		if got := isOutOfMemory(words); got != want {
			t.Errorf("isOutOfMemory(%q) = %t, want %t", words, got, want)
		}
	}
}

func TestChildIsUsedAgain(t *testing.T) {
	pool := testPool(t)
	first := pool.pid(t)
	if _, _, err := pool.do(t, "grumble"); err != nil {
		t.Error(err)
	}
	for range 5 {
		if pid := pool.pid(t); pid != first {
			t.Errorf("process %s, then %s, want the same", first, pid)
		}
	}
	pool.Close()
	if pid := pool.pid(t); pid == first {
		t.Errorf("process %s replies after it was closed", pid)
	}
}

// TestChildTimePerRequest checks that every request has the full time limit.
func TestChildTimePerRequest(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	first := pool.pid(t)
	for range 3 {
		if _, _, err := pool.do(t, "burn"); err != nil {
			t.Fatal(err)
		}
	}
	// Its limit is rounded up to whole seconds.
	if _, _, err := pool.do(t, "spin to the limit"); err == nil {
		t.Error("the child exceeded its limit without an error")
	}
	if pid := pool.pid(t); pid == first {
		t.Errorf("process %s replies after its limit", pid)
	}
}

// TestTimeoutRetried checks that a file that exceeds the processor time is read once
// more, by another child.
func TestTimeoutRetried(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	first := pool.pid(t)
	var reply result
	text, err := pool.Ask(t.Context(), "spin", wish{"spin once", filepath.Join(t.TempDir(), "spun")}, []byte("a file"), &reply)
	if err != nil || text != "a file" || reply.PID == first || pool.Deaths() != 1 {
		t.Errorf("%q, %v, by process %s after %s, %d died", text, err, reply.PID, first, pool.Deaths())
	}
	if _, err := pool.Ask(t.Context(), "spin", wish{Do: "spin to the limit"}, nil, &reply); !errors.Is(err, errTimeUp) || pool.Deaths() != 3 {
		t.Errorf("%v, %d died", err, pool.Deaths())
	}
}

func TestChildIsReplaced(t *testing.T) {
	pool := testPool(t)
	first := pool.pid(t)
	for n := 1; n < maxRequests; n++ {
		if pid := pool.pid(t); pid != first {
			t.Fatalf("process %s read only %d files", first, n)
		}
	}
	second := pool.pid(t)
	if second == first {
		t.Errorf("process %s read more than %d files", first, maxRequests)
	}
	if Memory != 512<<20 {
		return // the race detector's own memory would be too much
	}
	if reply, _, err := pool.do(t, "much memory"); err != nil || reply.PID != second {
		t.Errorf("using much memory: %+v, %v; want a reply of the same child", reply, err)
	}
	if third := pool.pid(t); third == second {
		t.Errorf("process %s is used again although it has little memory left", second)
	}
}

// TestIdleChildReplaced checks that a child that ended while it was idle is replaced.
func TestIdleChildReplaced(t *testing.T) {
	pool := testPool(t)
	first := pool.pid(t)
	must(t, pool.idle[0].stdin.Close()) // it ends as if its time were up
	if second := pool.pid(t); second == first {
		t.Errorf("process %s replies after it ended", second)
	}
}

// TestChildEnvironment checks that a child has no environment, which a crash could reveal.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	_, text, err := testPool(t).do(t, "environment")
	if err != nil || strings.Contains(text, "secret") || !strings.Contains(text, Variable) {
		t.Errorf("environment = %q, %v; want only %s", text, err, Variable)
	}
}

func TestChildMayNotWriteFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "written")
	if _, err := testPool(t).ask(t.Context(), "write", wish{"write", name}, nil, new(result), time.Minute); err == nil {
		t.Error("a child could write to a file")
	}
	if data, err := os.ReadFile(name); err == nil && len(data) > 0 {
		t.Errorf("a child wrote %q", data)
	}
}

// TestChildEndsAsItReplies checks that a request whose context ends while the reply arrives
// ends too.
func TestChildEndsAsItReplies(t *testing.T) {
	pool := testPool(t)
	for i := range 60 {
		pool.pid(t) // a child that is ready
		begun := time.Now()
		pool.pid(t)
		took := time.Since(begun)
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(70+i)/100)
		if _, err := pool.ask(ctx, "pid", wish{Do: "pid"}, nil, new(result), time.Minute); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
	}
}

// TestChildEndsWithItsParent checks that a child ends with its parent, even while it works.
func TestChildEndsWithItsParent(t *testing.T) {
	for _, doing := range []string{"nothing", "hang"} {
		c, err := startProcess("reader")
		must(t, err)
		if doing != "nothing" {
			must(t, sendFrame(c.stdin, frame{object: []byte(`{"Do":"` + doing + `"}`)}))
		}
		must(t, c.stdin.Close()) // as if the process had died
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("child that does %s: %v, want exit code 0", doing, err)
		}
	}
}

// TestReceiveFrame checks that the lengths in a frame are not trusted.
func TestReceiveFrame(t *testing.T) {
	var sent bytes.Buffer
	must(t, sendFrame(&sent, frame{last: true, object: []byte("{}"), text: "text"}))
	f, err := receiveFrame(bytes.NewReader(sent.Bytes()), 1<<20)
	if err != nil || string(f.data) != "text" || string(f.object) != "{}" || !f.last {
		t.Errorf("frame = %+v, %v; want the one sent", f, err)
	}
	if _, err := receiveFrame(bytes.NewReader(sent.Bytes()), 5); err != errTooMuch {
		t.Errorf("frame above the limit: err = %v, want %v", err, errTooMuch)
	}
	for cut := range sent.Len() {
		if _, err := receiveFrame(bytes.NewReader(sent.Bytes()[:cut]), 1<<20); err == nil || (cut > 0) == (err == io.EOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// cpuTime returns the processor time of this process.
func cpuTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestTaskIsBounded checks that other programs are limited like children.
func TestTaskIsBounded(t *testing.T) {
	t.Parallel()
	sh := Program("sh")
	if sh == "" {
		t.Skip("sh is not installed")
	}
	do := func(script string, limit time.Duration, most int) ([]byte, error) {
		return Task{Name: "the script", Args: []string{sh, "-c", script}, Limit: limit, MaxOutput: most}.Run(t.Context())
	}
	if out, err := do("echo one; echo two >&2", time.Minute, 100); err != nil || string(out) != "one\n" {
		t.Errorf("output = %q, %v; want only stdout", out, err)
	}
	if _, err := do("echo broken >&2; exit 3", time.Minute, 100); err == nil || err.Error() != "the script: broken" {
		t.Errorf("script that fails: err = %v, want its last words", err)
	}
	if _, err := do("while :; do :; done", time.Second, 100); err == nil || !strings.Contains(err.Error(), "took more than 1 s") {
		t.Errorf("endless script: err = %v, want the time limit", err)
	}
	// The program's own children are killed too.
	if _, err := do("sleep 300 & sleep 300", time.Second, 100); err == nil || !strings.Contains(err.Error(), "took more than 1 s") {
		t.Errorf("script with a child: err = %v, want the time limit", err)
	}
	if _, err := do("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done", time.Minute, 1000); err == nil ||
		!strings.Contains(err.Error(), "exceeds") {
		t.Errorf("script with endless output: err = %v, want the limit of output", err)
	}
	if _, err := do("echo x >"+filepath.Join(t.TempDir(), "f"), time.Minute, 100); err == nil {
		t.Error("the program wrote to a file")
	}
	if out, err := do("env", time.Minute, 4000); err != nil || strings.Contains(string(out), "HOME=") ||
		strings.Contains(string(out), "IBID_") {
		t.Errorf("the program has the environment %q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Task{Name: "the script", Args: []string{sh, "-c", "sleep 300"}, Limit: time.Minute, MaxOutput: 1}).Run(ctx); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled script: err = %v, want %v", err, context.Canceled)
	}
}
