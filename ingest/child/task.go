package child

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// roleProgram is the role of a child that limits itself and becomes another
// program; programVariable holds the program's limit in seconds and its
// arguments, as a JSON array.
const (
	roleProgram     = "tool"
	programVariable = "IBID_TOOL"
)

// Limits of other programs.
const (
	programMemory = 1 << 30
	programFiles  = 64
)

// A Task is a process that is started for one piece of work: another program,
// or this one in a role.
type Task struct {
	Name      string    // for messages
	Args      []string  // of another program, its path first; nil for this one
	Role      string    // of this one
	Env       []string  // in addition to the role
	Stdin     io.Reader // nil for none
	Limit     time.Duration
	MaxOutput int // in bytes
}

// Run returns the standard output of the process. The error of one that fails
// is the first line of its standard error.
func (t Task) Run(ctx context.Context) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	cmd, err := t.command(timed)
	if err != nil {
		return nil, err
	}
	stdout, stderr := &capped{limit: t.MaxOutput, full: cancel}, &capped{limit: maxErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Stdin, stdout, stderr
	cmd.WaitDelay = maxDying
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	err = cmd.Run()
	switch {
	case err == nil && !stdout.over:
		return stdout.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case stdout.over:
		return nil, fmt.Errorf("the output of %s exceeds %d MB", t.Name, t.MaxOutput>>20)
	case timed.Err() != nil || endedBy(cmd.ProcessState, timeUp):
		return nil, fmt.Errorf("%s took more than %d s", t.Name, int(t.Limit.Seconds()))
	}
	if said := FirstLine(stderr.kept.String(), 200); said != "" {
		return nil, fmt.Errorf("%s: %s", t.Name, said)
	}
	return nil, fmt.Errorf("%s: %w", t.Name, err)
}

// command prepares the process. Where the system allows it, this binary limits
// itself before it becomes the program.
func (t Task) command(ctx context.Context) (*exec.Cmd, error) {
	// Nothing of our environment, which holds keys.
	env := append([]string{"LC_ALL=C.UTF-8", "OMP_THREAD_LIMIT=1"}, t.Env...)
	if t.Args != nil && !canBecome {
		cmd := exec.CommandContext(ctx, t.Args[0], t.Args[1:]...)
		cmd.Env = env
		return cmd, nil
	}
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	role := t.Role
	if t.Args != nil {
		encoded, err := json.Marshal(append([]string{fmt.Sprint(int(t.Limit.Seconds()))}, t.Args...))
		if err != nil {
			return nil, fmt.Errorf("preparing %s: %w", t.Name, err)
		}
		role, env = roleProgram, append(env, programVariable+"="+string(encoded))
	}
	cmd := exec.CommandContext(ctx, self, "-test.run=^$") // see startProcess
	cmd.Env = append(env, Variable+"="+role, "GOTRACEBACK=single")
	return cmd, nil
}

// capped keeps the first limit bytes that are written to it. The buffer is not
// embedded, because its ReadFrom would bypass the limit.
type capped struct {
	kept  bytes.Buffer
	limit int
	over  bool
	full  func() // called when more comes; may be nil
}

func (c *capped) Write(p []byte) (int, error) {
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

// Program returns the path of a program of this machine; empty when there is
// none.
func Program(name string) string {
	path, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// becomeProgram is the work of a child in the role of another program.
func becomeProgram(getenv func(string) string) error {
	var args []string
	if err := json.Unmarshal([]byte(getenv(programVariable)), &args); err != nil || len(args) < 2 {
		return fmt.Errorf("the name of a program is missing: %w", err)
	}
	var seconds uint64
	if _, err := fmt.Sscan(args[0], &seconds); err != nil {
		return fmt.Errorf("reading its time limit: %w", err)
	}
	var env []string
	for _, name := range []string{"LC_ALL", "OMP_THREAD_LIMIT"} {
		env = append(env, name+"="+getenv(name))
	}
	if err := become(args[1:], env, seconds); err != nil {
		return fmt.Errorf("starting %s: %w", strings.Join(args[1:2], ""), err)
	}
	return nil
}
