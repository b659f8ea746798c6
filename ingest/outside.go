package ingest

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
	"strings"
	"time"
)

// Roles of a child process other than that of a reader, as values of
// childVariable.
const (
	roleTool     = "tool"     // it limits itself and becomes another program
	roleCompiler = "compiler" // it compiles PDFium, once for all children
)

// toolVariable holds the arguments of the program that a child becomes, as a
// JSON array, and folderVariable the folders of the compiler.
const (
	toolVariable   = "IBID_TOOL"
	folderVariable = "IBID_FOLDERS"
)

// Limits of programs that are not Ibid.
const (
	toolMemory = 1 << 30
	toolFiles  = 64
)

// A task is what a process is started for that ends with it: a program of this
// machine, or this one in another role.
type task struct {
	name  string    // for messages
	args  []string  // of a program, its path first; nil for this one
	role  string    // of this one
	env   []string  // beside the role
	stdin io.Reader // nil for none
	limit time.Duration
	most  int // bytes of its output
}

// run gives what the process wrote to its standard output. When it fails, the
// error is made of its own first words.
func (t task) run(ctx context.Context) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	cmd, err := t.command(timed)
	if err != nil {
		return nil, err
	}
	stdout, stderr := &capped{limit: t.most, full: cancel}, &capped{limit: maxChildErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, stdout, stderr
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
		return nil, fmt.Errorf("more than %d MB came out of %s", t.most>>20, t.name)
	case timed.Err() != nil || outOfTime(cmd.ProcessState):
		return nil, fmt.Errorf("%s took more than %d s", t.name, int(t.limit.Seconds()))
	}
	if said := firstLine(stderr.kept.String(), 200); said != "" {
		return nil, fmt.Errorf("%s: %s", t.name, said)
	}
	return nil, fmt.Errorf("%s: %w", t.name, err)
}

// command prepares the process. Where this system can, the program limits
// itself before it is the program.
func (t task) command(ctx context.Context) (*exec.Cmd, error) {
	// Nothing of our environment: there are keys in it.
	env := append([]string{"LC_ALL=C.UTF-8", "OMP_THREAD_LIMIT=1"}, t.env...)
	if t.args != nil && !canBecome {
		cmd := exec.CommandContext(ctx, t.args[0], t.args[1:]...)
		cmd.Env = env
		return cmd, nil
	}
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	role := t.role
	if t.args != nil {
		encoded, err := json.Marshal(append([]string{fmt.Sprint(int(t.limit.Seconds()))}, t.args...))
		if err != nil {
			return nil, fmt.Errorf("preparing %s: %w", t.name, err)
		}
		role, env = roleTool, append(env, toolVariable+"="+string(encoded))
	}
	cmd := exec.CommandContext(ctx, self, "-test.run=^$") // see startChild
	cmd.Env = append(env, childVariable+"="+role, "GOTRACEBACK=single")
	return cmd, nil
}

// capped keeps at most limit bytes of what is written to it. The buffer is
// not embedded: its ReadFrom would go round the limit.
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

// inFile gives a program a file that holds data, and no one else: its name for
// the program's arguments, and what its standard input must be.
func inFile(data []byte) (name string, stdin *os.File, done func() error, err error) {
	f, err := os.CreateTemp("", "ibid-*")
	if err != nil {
		return "", nil, nil, fmt.Errorf("making a file for another program: %w", err)
	}
	done = func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	name = f.Name()
	if runtime.GOOS == "linux" {
		// It has no name from here on, and is gone with the last who has it open.
		if err := os.Remove(f.Name()); err != nil {
			return "", nil, nil, errors.Join(fmt.Errorf("making a file for another program: %w", err), f.Close())
		}
		name, done = "/dev/stdin", f.Close
	}
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", nil, nil, errors.Join(fmt.Errorf("making a file for another program: %w", err), done())
	}
	return name, f, done, nil
}

// runOn runs a program on a file that holds data, when its turn has come. args
// are its arguments for the file's name.
func (r *Reader) runOn(ctx context.Context, data []byte, t task, args func(name string) []string) (out []byte, err error) {
	_, release, err := r.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	name, stdin, done, err := inFile(data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	t.args, t.stdin = args(name), stdin
	return t.run(ctx)
}

// program finds a program of this machine; empty when it is not there.
func program(name string) string {
	path, err := exec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// becomeTool does the work of a child whose role is that of another program.
func becomeTool(getenv func(string) string) error {
	var args []string
	if err := json.Unmarshal([]byte(getenv(toolVariable)), &args); err != nil || len(args) < 2 {
		return fmt.Errorf("the name of a program is missing: %w", err)
	}
	var seconds uint64
	if _, err := fmt.Sscan(args[0], &seconds); err != nil {
		return fmt.Errorf("reading its limit of time: %w", err)
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
