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
)

// childVariable is the environment variable that makes the binary a reader of
// one file. Its value names the format, for people who look at processes.
const childVariable = "IBID_CHILD"

// Limits of a child process.
const (
	childSeconds   = 30
	maxChildOutput = 256 << 20 // bytes of its reply
	maxChildErrors = 64 << 10  // bytes of what it says when it dies
	maxChildStack  = 64 << 20
)

// A childRequest is the first line of what a child is sent, as JSON; the file's
// bytes follow.
type childRequest struct {
	Format string
	Path   string // [Document.Path]: its ending may tell of what kind a file is
}

// A childReply is what a child writes to its standard output, as JSON: the
// document as its reader left it, or why there is none.
type childReply struct {
	Title, Text, Partial string
	Sections             []Section
	Pages                []Page
	Meta                 map[string]string
	Error                string
	Skip                 bool // Error is the reason of a [SkipError]
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
	if getenv(childVariable) == "" {
		return 0, false
	}
	if err := childWork(stdin, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1, true
	}
	return 0, true
}

func childWork(stdin io.Reader, stdout io.Writer) error {
	if err := limitChild(); err != nil {
		return fmt.Errorf("limiting the reader: %w", err)
	}
	debug.SetMemoryLimit(childMemory / 4 * 3)
	debug.SetMaxStack(maxChildStack)
	data, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	line, data, _ := bytes.Cut(data, []byte("\n"))
	var request childRequest
	if err := json.Unmarshal(line, &request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	f, ok := formatNamed(request.Format)
	if !ok {
		return fmt.Errorf("no reader is named %q", request.Format)
	}
	doc := &Document{Path: request.Path}
	reply := childReply{}
	if err := f.into(doc, data); err != nil {
		var skip *SkipError
		reply.Error, reply.Skip = err.Error(), errors.As(err, &skip)
	} else {
		reply = childReply{Title: doc.Title, Text: doc.Text, Partial: doc.Partial, Sections: doc.Sections, Pages: doc.Pages, Meta: doc.Meta}
	}
	if err := json.NewEncoder(stdout).Encode(reply); err != nil {
		return fmt.Errorf("replying: %w", err)
	}
	return nil
}

// inChild has a child process read one file into the document.
func (r *Reader) inChild(ctx context.Context, f format, doc *Document, data []byte) error {
	release, err := r.slot(ctx)
	if err != nil {
		return err
	}
	defer release()
	request, err := json.Marshal(childRequest{Format: f.name, Path: doc.Path})
	if err != nil {
		return fmt.Errorf("asking its reader: %w", err)
	}
	request = append(request, '\n')
	out, err := runChild(ctx, f.name, io.MultiReader(bytes.NewReader(request), bytes.NewReader(data)), childSeconds*time.Second)
	if err != nil {
		return err
	}
	var reply childReply
	if err := json.Unmarshal(out, &reply); err != nil {
		return fmt.Errorf("its reader gave no proper reply: %w", err)
	}
	switch {
	case reply.Skip:
		return &SkipError{reply.Error}
	case reply.Error != "":
		return errors.New(reply.Error)
	}
	doc.Title, doc.Text, doc.Partial = reply.Title, reply.Text, reply.Partial
	doc.Sections, doc.Pages, doc.Meta = reply.Sections, reply.Pages, reply.Meta
	return nil
}

// runChild starts this binary as a child and gives what it wrote. A death is
// told in words that name its cause.
func runChild(ctx context.Context, name string, stdin io.Reader, limit time.Duration) ([]byte, error) {
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
	cmd.Stdin = stdin
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
