package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// childVariable is the environment variable that makes the binary a reader of
// files for another process. Its value says so to people who look at processes.
const childVariable = "IBID_CHILD"

// Limits of a child process.
const (
	childSeconds   = 30        // of processor time and of the clock, for a file
	maxChildOutput = 256 << 20 // bytes of its reply
	maxChildErrors = 64 << 10  // bytes of what it says when it dies
	maxChildStack  = 64 << 20
	// childFiles is how many files a child reads before it is replaced, so
	// that what a parser keeps or spoils does not add up for ever.
	childFiles = 256
	// childIdle is how long a child waits for a file before it leaves.
	childIdle = 10 * time.Second
)

// A childRequest says what to do with the bytes that follow it.
type childRequest struct {
	Format string
	Path   string  // [Document.Path]: its ending may tell of what kind a file is
	Size   int64   // of the file, in bytes
	PDF    *pdfJob `json:",omitempty"` // how to go about a PDF file
}

// A childReply is what a child makes of one file: the document as its reader
// left it, or why there is none. The text travels behind it.
type childReply struct {
	Title, Partial string
	Sections       []Section
	Pages          []Page
	Lines          []Line `json:",omitempty"` // of a text file
	Meta           map[string]string
	Error          string
	Skip           bool  // Error is the reason of a [SkipError]
	Last           bool  // the child ends after this reply
	Scan           int   // pages of a PDF file in which there is no text
	Scanned        []int // pages of a PDF file that have a picture and no text
	text           string
}

// What goes through the pipes, both ways: the length of a JSON object and that
// of the bytes behind it, in eight bytes each, then the two. On standard error
// a child ends what it says about one file with endOfErrors.
const (
	frameHead   = 16
	endOfErrors = 0
)

// A body is a [*bytes.Reader] or a [*strings.Reader], which write without a copy.
type body interface {
	io.WriterTo
	Len() int
}

// sendFrame writes an object and the bytes that belong to it.
func sendFrame(out io.Writer, object any, b body) error {
	encoded, err := json.Marshal(object)
	if err != nil {
		return err
	}
	head := make([]byte, frameHead, frameHead+len(encoded))
	binary.BigEndian.PutUint64(head, uint64(len(encoded)))
	binary.BigEndian.PutUint64(head[8:], uint64(b.Len()))
	if _, err := out.Write(append(head, encoded...)); err != nil {
		return err
	}
	_, err = b.WriteTo(out)
	return err
}

// errTooMuch says that a frame is longer than its reader takes.
var errTooMuch = errors.New("the message is too long")

// receiveFrame reads what sendFrame wrote. The error is io.EOF when nothing came.
func receiveFrame(in io.Reader, object any, most uint64) (body []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	length, size := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint64(head[8:])
	if length > most || size > most-length {
		return nil, errTooMuch
	}
	for _, part := range []struct {
		size uint64
		take func([]byte) error
	}{
		{length, func(b []byte) error { return json.Unmarshal(b, object) }},
		{size, func(b []byte) error { body = b; return nil }},
	} {
		// Read as it comes: a length that lies takes no memory.
		b, err := io.ReadAll(io.LimitReader(in, int64(part.size)))
		if err == nil && uint64(len(b)) < part.size {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = part.take(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// inChild has a child process read one file into the document.
func (r *Reader) inChild(ctx context.Context, f format, doc *Document, data []byte) error {
	reply, err := r.askChild(ctx, childRequest{Format: f.name, Path: doc.Path}, data)
	if err != nil {
		return err
	}
	return reply.into(doc)
}

// askChild has a child process do what the request says with some bytes.
func (r *Reader) askChild(ctx context.Context, request childRequest, data []byte) (childReply, error) {
	pool, release, err := r.slot(ctx)
	if err != nil {
		return childReply{}, err
	}
	defer release()
	request.Size = int64(len(data))
	return pool.read(ctx, request, data, childSeconds*time.Second)
}

// into fills in a document from what a child made of its file.
func (reply childReply) into(doc *Document) error {
	switch {
	case reply.Skip:
		return &SkipError{reply.Error}
	case reply.Error != "":
		return errors.New(reply.Error)
	}
	doc.Title, doc.Text, doc.Partial = reply.Title, reply.text, reply.Partial
	doc.Sections, doc.Pages, doc.Lines, doc.Meta = reply.Sections, reply.Pages, reply.Lines, reply.Meta
	return nil
}

// A childPool keeps child processes from one file to the next. Children that
// wait for work cost no goroutine, and leave by themselves.
type childPool struct {
	role string // value of childVariable

	died atomic.Int64 // children that did not come back from a file

	mu   sync.Mutex
	idle []*child
}

// read has a child read one file: one that waits, or a new one.
func (p *childPool) read(ctx context.Context, request childRequest, data []byte, limit time.Duration) (childReply, error) {
	for {
		c, err := p.take()
		if err != nil {
			return childReply{}, err
		}
		reply, err := c.read(ctx, request, data, limit)
		switch {
		case errors.Is(err, errLeft):
			continue // it had waited for too long
		case err != nil:
			if ctx.Err() == nil {
				p.died.Add(1)
			}
			return childReply{}, err
		case reply.Last:
			c.end()
		default:
			p.put(c)
		}
		return reply, nil
	}
}

func (p *childPool) take() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		c := p.idle[last]
		p.idle = p.idle[:last]
		c.used = true
		return c, nil
	}
	return startChild(p.role)
}

func (p *childPool) put(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// close ends the children that wait for work.
func (p *childPool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.end()
	}
}

// A child is a process of this binary that reads files, one at a time.
type child struct {
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr io.ReadCloser
	replies        *bufio.Reader // of stdout
	complaints     *bufio.Reader // of stderr
	used           bool          // it has read a file before
}

// errLeft says that a child ended of its own will before it took the file.
var errLeft = errors.New("the reader had left")

func startChild(role string) (*child, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("finding the program to read it with: %w", err)
	}
	// The argument keeps a test binary that forgot to call RunChild from
	// running its tests, and so from starting children without end.
	c := &child{cmd: exec.Command(self, "-test.run=^$")}
	// Nothing else of our environment: there are keys in it.
	c.cmd.Env = []string{childVariable + "=" + role, "GOTRACEBACK=single"}
	ownGroup(c.cmd)
	if c.stdin, err = c.cmd.StdinPipe(); err == nil {
		if c.stdout, err = c.cmd.StdoutPipe(); err == nil {
			c.stderr, err = c.cmd.StderrPipe()
		}
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		for _, pipe := range []io.Closer{c.stdin, c.stdout, c.stderr} {
			if pipe != nil {
				err = errors.Join(err, pipe.Close())
			}
		}
		return nil, fmt.Errorf("starting a process to read it: %w", err)
	}
	c.replies, c.complaints = bufio.NewReader(c.stdout), bufio.NewReaderSize(c.stderr, 4<<10)
	return c, nil
}

// read sends the child a file and gives its reply. After an error the child is
// no more; its death is told in words that name the cause.
func (c *child) read(ctx context.Context, request childRequest, data []byte, limit time.Duration) (childReply, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	killed := make(chan struct{})
	stop := context.AfterFunc(timed, func() { killGroup(c.cmd); close(killed) })
	said := make(chan string, 1)
	go func() { said <- c.complain() }()

	reply, err := c.exchange(request, data)
	if err == nil {
		<-said
		if stop() {
			return reply, nil
		}
		err = timed.Err() // killed when it had just replied
	} else if !stop() {
		<-killed
	}
	// Nothing kills it any more by a number that may be another's soon.
	timeout := timed.Err() != nil
	words := c.bury(said, !errors.Is(err, errNoReply))
	switch {
	case ctx.Err() != nil:
		return childReply{}, ctx.Err()
	case errors.Is(err, errTooMuch):
		return childReply{}, fmt.Errorf("more than %d MB of text came out of it", maxChildOutput>>20)
	case timeout || outOfTime(c.cmd.ProcessState):
		return childReply{}, fmt.Errorf("reading it took more than %d s", int(limit.Seconds()))
	case c.used && words == "" && errors.Is(err, errNoReply) && c.cmd.ProcessState.Success():
		return childReply{}, errLeft
	case saysOutOfMemory(words):
		return childReply{}, fmt.Errorf("reading it needed more than %d MB of memory", childMemory>>20)
	}
	if words = firstLine(words, 200); words == "" {
		words = c.cmd.ProcessState.String()
	}
	return childReply{}, fmt.Errorf("the %s reader crashed on it: %s", request.Format, words)
}

// saysOutOfMemory knows how Go, its race detector and the C library say it.
func saysOutOfMemory(words string) bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "failed to allocate", "pthread_create failed"} {
		if strings.Contains(words, sign) {
			return true
		}
	}
	// Go's collector follows a null pointer where it got no memory for its own
	// needs. No other code of Go ends so: elsewhere that is a panic.
	trace, ok := strings.CutPrefix(words, "SIGSEGV: segmentation violation\nPC=")
	if !ok {
		return false
	}
	_, frames, _ := strings.Cut(trace, "\ngoroutine ")
	_, first, _ := strings.Cut(frames, "\n")
	return strings.HasPrefix(first, "runtime.")
}

// errNoReply says that a child ended before the first byte of its reply.
var errNoReply = errors.New("no reply")

// exchange sends a file and receives the reply. A child reads the whole of its
// request before it writes.
func (c *child) exchange(request childRequest, data []byte) (reply childReply, err error) {
	// Where the pipe is broken, what the child says as it dies tells why.
	sent := sendFrame(c.stdin, request, bytes.NewReader(data))
	text, err := receiveFrame(c.replies, &reply, maxChildOutput)
	switch {
	case errors.Is(err, io.EOF):
		return reply, errNoReply
	case err != nil:
		return reply, fmt.Errorf("receiving its reply: %w", err)
	case sent != nil:
		return reply, fmt.Errorf("sending it: %w", sent)
	}
	reply.text = string(text)
	return reply, nil
}

// complain reads what the child says on standard error about one file, and
// keeps the first of it.
func (c *child) complain() string {
	var words strings.Builder
	for {
		part, err := c.complaints.ReadSlice(endOfErrors)
		words.Write(part[:min(len(part), maxChildErrors-words.Len())])
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return words.String()
		}
		if err == nil {
			return strings.TrimSuffix(words.String(), string(rune(endOfErrors)))
		}
	}
}

// bury ends a child that died, or has to, and gives its last words.
func (c *child) bury(said <-chan string, lives bool) (words string) {
	if lives {
		killGroup(c.cmd)
	}
	select {
	case words = <-said: // the end of its standard error comes with its own
		c.end()
	case <-time.After(maxDying):
		c.end()
		words = <-said
	}
	return words
}

// maxDying bounds the wait for the last words of a child whose output has ended.
const maxDying = 2 * time.Second

// end kills the child with all that it started, and waits for it.
func (c *child) end() {
	killGroup(c.cmd)
	// Its state says what there is to know; an error is what a kill gives.
	_ = c.cmd.Wait()
}
