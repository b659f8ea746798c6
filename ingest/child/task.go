package child

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// roleProgram is the role of a child that limits itself and becomes another
// program, which programVariable holds as JSON.
const (
	roleProgram     = "tool"
	programVariable = "IBID_TOOL"
)

type program struct {
	Args    []string
	Seconds uint64 // of processor time
}

// Limits of other programs.
const (
	programMemory = 1 << 30
	programFiles  = 64
)

// A Task is another program that is started for one piece of work.
type Task struct {
	Name      string    // for messages
	Args      []string  // the path of the program first
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

// programEnv is the environment of other programs: nothing of ours, which has keys.
var programEnv = []string{"LC_ALL=C.UTF-8", "OMP_THREAD_LIMIT=1"}

// command prepares the process. Where the system allows it, this binary limits
// itself before it becomes the program.
func (t Task) command(ctx context.Context) (*exec.Cmd, error) {
	if !canBecome {
		cmd := exec.CommandContext(ctx, t.Args[0], t.Args[1:]...)
		cmd.Env = programEnv
		return cmd, nil
	}
	self, err1 := executable()
	encoded, err2 := json.Marshal(program{t.Args, uint64(t.Limit.Seconds())})
	if err := cmp.Or(err1, err2); err != nil {
		return nil, fmt.Errorf("preparing %s: %w", t.Name, err)
	}
	cmd := exec.CommandContext(ctx, self, "-test.run=^$") // see startProcess
	cmd.Env = []string{Variable + "=" + roleProgram, programVariable + "=" + string(encoded), "GOTRACEBACK=single"}
	return cmd, nil
}

// capped keeps the first limit bytes. The buffer's ReadFrom would bypass the limit.
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
	var p program
	if err := json.Unmarshal([]byte(getenv(programVariable)), &p); err != nil || len(p.Args) == 0 {
		return fmt.Errorf("the name of a program is missing: %w", err)
	}
	if err := become(p.Args, programEnv, p.Seconds); err != nil {
		return fmt.Errorf("starting %s: %w", p.Args[0], err)
	}
	return nil
}
