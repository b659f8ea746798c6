package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"ibid/ingest/pdf"
)

// childVariable is the environment variable that makes the binary a reader of
// one file. Its value names the format.
const childVariable = "IBID_CHILD"

// Limits of a child process.
const (
	childSeconds   = 30
	maxChildOutput = 256 << 20 // bytes of its reply
	maxChildErrors = 64 << 10  // bytes of what it says when it dies
	maxChildStack  = 64 << 20
)

// A childReply is what a child writes to its standard output, as JSON.
type childReply struct {
	File  *pdf.File `json:",omitempty"`
	Error string    `json:",omitempty"`
}

// RunChild does the work of a child process when getenv says that this is
// one: it limits itself, reads one file from stdin and writes what it read to
// stdout. ran is false in every other process. Call it before anything else,
// in main and in the TestMain of every package that reads documents:
//
//	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
//		os.Exit(code)
//	}
func RunChild(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int, ran bool) {
	name := getenv(childVariable)
	if name == "" {
		return 0, false
	}
	if err := limitChild(); err != nil {
		fmt.Fprintf(stderr, "limiting the reader: %v\n", err)
		return 1, true
	}
	debug.SetMemoryLimit(childMemory / 4 * 3)
	debug.SetMaxStack(maxChildStack)
	data, err := io.ReadAll(stdin)
	if err != nil {
		fmt.Fprintf(stderr, "reading the file: %v\n", err)
		return 1, true
	}
	var reply childReply
	switch name {
	case "pdf":
		reply.File, err = pdf.Read(data)
	default:
		err = fmt.Errorf("no reader is named %q", name)
	}
	if err != nil {
		reply = childReply{Error: err.Error()}
	}
	if err := json.NewEncoder(stdout).Encode(reply); err != nil {
		fmt.Fprintf(stderr, "replying: %v\n", err)
		return 1, true
	}
	return 0, true
}

// inChild has a child process read one file.
func (r *Reader) inChild(ctx context.Context, name string, data []byte) (*pdf.File, error) {
	release, err := r.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	out, err := runChild(ctx, name, data, childSeconds*time.Second)
	if err != nil {
		return nil, err
	}
	var reply childReply
	if err := json.Unmarshal(out, &reply); err != nil {
		return nil, fmt.Errorf("its reader gave no proper reply: %w", err)
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	if reply.File == nil {
		return nil, errors.New("its reader gave an empty reply")
	}
	return reply.File, nil
}

// runChild starts this binary as a child and gives what it wrote. A death is
// told in words that name its cause.
func runChild(ctx context.Context, name string, data []byte, limit time.Duration) ([]byte, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program to read it with: %w", err)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// The argument keeps a test binary that forgot to call RunChild from
	// running its tests, and so from starting children without end.
	cmd := exec.CommandContext(timed, self, "-test.run=^$")
	cmd.Env = []string{childVariable + "=" + name, "GOTRACEBACK=single"}
	cmd.Stdin = bytes.NewReader(data)
	stdout, stderr := &capped{limit: maxChildOutput, full: cancel}, &capped{limit: maxChildErrors}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 2 * time.Second
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case err == nil && !stdout.over:
		return stdout.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case stdout.over:
		return nil, fmt.Errorf("more than %d MB of text came out of it", maxChildOutput>>20)
	case timed.Err() != nil || outOfTime(cmd.ProcessState):
		return nil, fmt.Errorf("reading it took more than %d s", int(limit.Seconds()))
	}
	said := stderr.kept.String()
	// The last is how the race detector says it.
	if strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") || strings.Contains(said, "failed to allocate") {
		return nil, fmt.Errorf("reading it needed more than %d MB of memory", childMemory>>20)
	}
	if said = firstLine(said, 200); said == "" {
		said = err.Error()
	}
	return nil, fmt.Errorf("the %s reader crashed on it: %s", name, said)
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
