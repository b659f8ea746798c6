package child

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// limited is a script for a shell, which limits itself and then executes the program: no file
// writes, and limits of data (KB), open files and processor time (seconds). The signal at the soft
// limit shows why the program ended.
const limited = `ulimit -c 0 && ulimit -f 0 && ulimit -d 1048576 && ulimit -n 64 && ulimit -S -t $1 && ulimit -H -t $2 &&
	shift 2 && exec "$@"`

// A Task is another program that is started for one piece of work.
type Task struct {
	Name      string    // for messages
	Args      []string  // path of the program first
	Stdin     io.Reader // may be nil
	Limit     time.Duration
	MaxOutput int // in bytes
}

// Run returns the standard output of the process. If the process fails, the error is the first line
// of its standard error.
func (t Task) Run(ctx context.Context) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	cmd := t.command(timed)
	stdout, stderr := &capped{limit: t.MaxOutput, full: cancel}, &capped{limit: maxErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Stdin, stdout, stderr
	cmd.WaitDelay = maxDying
	setGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	err := cmd.Run()
	switch {
	case err == nil && !stdout.over:
		return stdout.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case stdout.over:
		return nil, fmt.Errorf("the output of %s exceeds %d MB", t.Name, t.MaxOutput>>20)
	case timed.Err() != nil || wasEndedBy(cmd.ProcessState, timeUp):
		return nil, fmt.Errorf("%s took more than %d s", t.Name, int(t.Limit.Seconds()))
	}
	if said := FirstLine(stderr.takeAll(), 200); said != "" {
		return nil, fmt.Errorf("%s: %s", t.Name, said)
	}
	return nil, fmt.Errorf("%s: %w", t.Name, err)
}

// programEnv is the environment of other programs. It omits ours, which holds keys.
var programEnv = []string{"LC_ALL=C.UTF-8", "OMP_THREAD_LIMIT=1"}

// command prepares the process.
func (t Task) command(ctx context.Context) *exec.Cmd {
	args := t.Args
	if runtime.GOOS != "windows" {
		seconds := int(t.Limit.Seconds())
		args = append([]string{"/bin/sh", "-c", limited, "sh", strconv.Itoa(seconds), strconv.Itoa(seconds + 1)}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = programEnv
	return cmd
}

// capped keeps the first limit bytes written to it. The buffer's ReadFrom would bypass the limit.
type capped struct {
	limit int
	full  func() // called when the limit is exceeded; may be nil

	mu   sync.Mutex
	kept bytes.Buffer
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if room := c.limit - c.kept.Len(); len(p) > room {
		p, c.over = p[:room], true
		if c.full != nil {
			c.full()
		}
	}
	c.kept.Write(p)
	return n, nil
}

// takeAll removes and returns the stored bytes.
func (c *capped) takeAll() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.kept.Reset()
	return c.kept.String()
}

// Program returns the path of an installed program, or "".
func Program(name string) string {
	path, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}
