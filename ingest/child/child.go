// Package child runs parsers in processes of this binary with limits on memory, time and files, so
// that a parser that hangs, crashes or exhausts memory affects only one file.
//
// A [Pool] keeps such processes between requests; [Run] is their main function. A [Task] is another
// program with similar limits.
package child

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Variable is the environment variable that makes the binary a child. Its value is the role of its
// [Pool].
const Variable = "IBID_CHILD"

const (
	Seconds   = 30        // of processor time per request
	MaxOutput = 256 << 20 // bytes per reply

	maxErrors = 64 << 10 // bytes kept of a child's standard error
	maxStack  = 64 << 20
	// maxRequests limits the accumulated leaks of parsers: the child is replaced after that many
	// requests.
	maxRequests = 256
	maxIdle     = 10 * time.Second
	// maxDying limits the wait for the exit of a child whose output has ended, and then for its
	// standard error.
	maxDying = 2 * time.Second
)

// A Pool keeps children between requests. Idle children exit after a while.
type Pool struct {
	role   string
	slots  chan struct{} // one per process that may work
	deaths atomic.Int64

	mu   sync.Mutex
	idle []*process
}

// NewPool returns a pool with one working child per processor. The binary chooses the children's
// [Handler] by role.
func NewPool(role string) *Pool {
	return &Pool{role: role, slots: make(chan struct{}, runtime.NumCPU())}
}

// Acquire waits until another process may work. The caller must call release afterwards.
func (p *Pool) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ask sends a request with its data to a child, decodes the reply, and returns the text of the
// reply. reader names the parser in errors. A child that was killed by the system, as happens when
// memory is short, or that exceeded its processor time is replaced once.
func (p *Pool) Ask(ctx context.Context, reader string, request any, data []byte, reply any) (text string, err error) {
	release, err := p.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	for range 2 {
		if text, err = p.ask(ctx, reader, request, data, reply, wallTime); !errors.Is(err, errKilled) && !errors.Is(err, errTimeUp) {
			break
		}
	}
	return text, err
}

func (p *Pool) ask(ctx context.Context, reader string, request any, data []byte, reply any, limit time.Duration) (string, error) {
	for {
		c, err := p.acquire()
		if err != nil {
			return "", err
		}
		f, err := c.ask(ctx, reader, request, data, limit)
		switch {
		case errors.Is(err, errIdleEnd):
			continue
		case err != nil:
			if ctx.Err() == nil {
				p.deaths.Add(1)
			}
			return "", err
		case f.last:
			c.end(true)
		default:
			p.mu.Lock()
			p.idle = append(p.idle, c)
			p.mu.Unlock()
		}
		return string(f.data), json.Unmarshal(f.object, reply)
	}
}

// Deaths returns the number of children that died during a request.
func (p *Pool) Deaths() int64 { return p.deaths.Load() }

// acquire returns an idle child, or starts one.
func (p *Pool) acquire() (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		c := p.idle[last]
		p.idle = p.idle[:last]
		c.used = true
		return c, nil
	}
	return startProcess(p.role)
}

// Close ends the idle children. The pool remains usable.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.end(true)
	}
}

// A process is the parent's side of a child. It answers one request at a time.
type process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	replies *bufio.Reader // of its standard output
	words   *capped       // its standard error during a request
	used    bool          // it has answered an earlier request
}

var (
	errIdleEnd = errors.New("the child process ended before it received the request")
	errNoReply = errors.New("no reply")
	errKilled  = errors.New("the system killed the process that read it")
	errTimeUp  = fmt.Errorf("reading it took more than %d s of processor time", Seconds)
)

func startProcess(role string) (*process, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's file: %w", err)
	}
	// The argument prevents a test binary that forgot to call Run from running its tests, which
	// would start children endlessly.
	c := &process{cmd: exec.Command(self, "-test.run=^$"), words: &capped{limit: maxErrors}}
	// Do not pass on the environment, which holds keys.
	c.cmd.Env = []string{Variable + "=" + role, "GOTRACEBACK=single"}
	setGroup(c.cmd)
	stdin, err1 := c.cmd.StdinPipe()
	stdout, err2 := c.cmd.StdoutPipe()
	c.cmd.Stderr, c.cmd.WaitDelay = c.words, maxDying
	if err = cmp.Or(err1, err2); err == nil {
		err = c.cmd.Start() // closes the pipes if it fails
	}
	if err != nil {
		return nil, fmt.Errorf("starting a process to read it: %w", err)
	}
	c.stdin, c.replies = stdin, bufio.NewReader(stdout)
	return c, nil
}

// ask sends a request and receives the reply. After an error, the process has ended.
func (c *process) ask(ctx context.Context, reader string, request any, data []byte, limit time.Duration) (frame, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	killed := make(chan struct{})
	stop := context.AfterFunc(timed, func() { killGroup(c.cmd); close(killed) })
	c.words.takeAll() // of the previous request
	reply, err := c.exchange(request, data)
	if !stop() { // perhaps right after it replied
		<-killed
		err = cmp.Or(err, timed.Err())
	}
	if err == nil {
		return reply, nil
	}
	timeout := timed.Err() != nil
	c.end(!errors.Is(err, errNoReply))
	words := c.words.takeAll()
	switch {
	case ctx.Err() != nil:
		return frame{}, ctx.Err()
	case errors.Is(err, errTooMuch):
		return frame{}, fmt.Errorf("it holds more than %d MB of text", MaxOutput>>20)
	case timeout:
		return frame{}, fmt.Errorf("reading it took more than %d s", int(limit.Seconds()))
	case wasEndedBy(c.cmd.ProcessState, timeUp):
		return frame{}, errTimeUp
	case words == "" && wasEndedBy(c.cmd.ProcessState, syscall.SIGKILL):
		return frame{}, errKilled
	case c.used && words == "" && errors.Is(err, errNoReply) && c.cmd.ProcessState.Success():
		return frame{}, errIdleEnd
	case isOutOfMemory(words):
		return frame{}, fmt.Errorf("reading it needed more than %d MB of memory", Memory>>20)
	}
	if words = FirstLine(words, 200); words == "" {
		words = c.cmd.ProcessState.String()
	}
	return frame{}, fmt.Errorf("the %s reader crashed on it: %s", reader, words)
}

// isOutOfMemory recognises the messages of Go, its race detector and the C library.
func isOutOfMemory(words string) bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "failed to allocate", "pthread_create failed"} {
		if strings.Contains(words, sign) {
			return true
		}
	}
	// Go's collector follows a null pointer when it gets no memory for itself. In other Go code
	// that would be a panic.
	trace, ok := strings.CutPrefix(words, "SIGSEGV: segmentation violation\nPC=")
	if !ok {
		return false
	}
	_, frames, _ := strings.Cut(trace, "\ngoroutine ")
	_, first, _ := strings.Cut(frames, "\n")
	return strings.HasPrefix(first, "runtime.")
}

// exchange sends a request and receives the reply. A child reads the whole request before it
// writes.
func (c *process) exchange(request any, data []byte) (frame, error) {
	encoded, err := json.Marshal(request)
	if err != nil {
		return frame{}, err
	}
	// If the pipe breaks, standard error says why the child died.
	sent := sendFrame(c.stdin, frame{object: encoded, data: data})
	reply, err := receiveFrame(c.replies, MaxOutput)
	if errors.Is(err, io.EOF) {
		return reply, errNoReply
	}
	return reply, cmp.Or(err, sent)
}

// end waits for the exit of a child. It kills a child that is alive, with all its descendants, and
// a dying child that needs too long.
func (c *process) end(lives bool) {
	if lives {
		killGroup(c.cmd)
	} else {
		late := time.AfterFunc(maxDying, func() {
			// The only possible error is that the process has ended.
			_ = c.cmd.Process.Kill()
		})
		defer late.Stop()
	}
	// The error reports the kill, or a descendant that is still running.
	_ = c.cmd.Wait()
}

// FirstLine returns the first line of a text, truncated to n bytes.
func FirstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
