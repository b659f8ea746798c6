package ingest

import (
	"bytes"
	"context"
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

	"golang.org/x/sync/errgroup"
)

// misbehaving is the role of children that do what the format of a file says.
const misbehaving = "test"

func misbehave(request childRequest, data []byte) childReply {
	switch request.Format {
	case "pid": // well behaved
		return childReply{Title: strconv.Itoa(os.Getpid()), text: string(data)}
	case "environment":
		return childReply{text: strings.Join(os.Environ(), "\n")}
	case "hang":
		<-time.After(time.Hour) // a bare select is called a deadlock where no C code is linked in
	case "spin":
		for i := 0; ; i++ {
			runtime.KeepAlive(i)
		}
	case "burn": // most of the time that a file may take
		for begun := processorTime(); processorTime()-begun < 700*time.Millisecond; {
		}
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
		runtime.KeepAlive(fill(childMemory/2 + 16<<20))
		return childReply{Title: strconv.Itoa(os.Getpid())}
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
	case "grumble": // more than a pipe holds, of no harm
		fmt.Fprint(os.Stderr, strings.Repeat("a warning of a library\n", 1<<15))
	case "long":
		return childReply{text: string(bytes.Repeat([]byte("x"), maxChildOutput))}
	case "write":
		if err := os.WriteFile(request.Path, []byte("written"), 0o600); err != nil {
			panic(err)
		}
	case "grandchild":
		// It outlives the child unless the group is killed; its output is ours.
		c := exec.Command("/bin/sleep", "60")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		<-time.After(time.Hour)
	}
	return childReply{}
}

func fill(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = 1
	}
	return b
}

// ask has a child of the pool do something.
func (p *childPool) ask(t *testing.T, format string) (childReply, error) {
	t.Helper()
	return p.read(t.Context(), childRequest{Format: format}, []byte("a file"), 20*time.Second)
}

// pid gives the process that reads next.
func (p *childPool) pid(t *testing.T) string {
	t.Helper()
	reply, err := p.ask(t, "pid")
	if err != nil || reply.text != "a file" {
		t.Fatalf("%q, %v", reply.text, err)
	}
	return reply.Title
}

func testPool(t *testing.T) *childPool {
	p := &childPool{role: misbehaving}
	t.Cleanup(p.close)
	return p
}

func onlyLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits are set on Linux only")
	}
}

// A death costs the file in hand and nothing else.
func TestChildDeathsAreNamed(t *testing.T) {
	onlyLinux(t)
	tests := []struct{ format, reason string }{
		{"hang", "took more than"},
		{"spin", "took more than"},
		{"spin to the limit", "took more than"},
		{"grandchild", "took more than"},
		{"panic", "the panic reader crashed on it: panic: boom in the parser"},
		{"exit", "the exit reader crashed on it: exit status 0"},
		{"stack", "the stack reader crashed on it: runtime: goroutine stack exceeds"},
		{"memory", fmt.Sprintf("needed more than %d MB of memory", childMemory>>20)},
		{"chatter", "more than 256 MB of text came out of it"},
	}
	for _, tt := range tests {
		t.Run(tt.format, func(t *testing.T) {
			pool := testPool(t)
			first := pool.pid(t)
			limit := 20 * time.Second
			if slices.Contains([]string{"hang", "spin", "grandchild"}, tt.format) {
				limit = time.Second
			}
			begun := time.Now()
			_, err := pool.read(t.Context(), childRequest{Format: tt.format}, []byte("x"), limit)
			if err == nil {
				t.Fatal("it lived")
			}
			if !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v; want %q", err, tt.reason)
			}
			if took := time.Since(begun); took > limit+5*time.Second {
				t.Errorf("it took %v", took)
			}
			if next := pool.pid(t); next == first {
				t.Errorf("the process %s is still there", first)
			}
		})
	}
}

// A reply of more than is taken is refused before it is received.
func TestChildReplyTooLong(t *testing.T) {
	onlyLinux(t)
	if childMemory != 512<<20 {
		t.Skip("the race detector takes too long to copy a reply of this size")
	}
	if _, err := testPool(t).ask(t, "long"); err == nil || !strings.Contains(err.Error(), "of memory") && !strings.Contains(err.Error(), "of text") {
		t.Errorf("%v", err)
	}
}

func TestSaysOutOfMemory(t *testing.T) {
	for words, want := range map[string]bool{
		"fatal error: runtime: cannot allocate memory": true,
		"panic: boom in the parser":                    false,
		"SIGSEGV: segmentation violation\nPC=0x43957d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x31 m=3 mp=0x31 [idle]:\nruntime.(*spanQueue).tryDrain(0x5)\n": true,
		"SIGSEGV: segmentation violation\nPC=0x43957d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x31 m=3 mp=0x31 [idle]:\nwasm.function[7](0x5)\n":              false,
		"SIGSEGV: segmentation violation\nPC=0x43957d": false,
	} {
		if got := saysOutOfMemory(words); got != want {
			t.Errorf("%q: %t", words, got)
		}
	}
}

func TestChildIsUsedAgain(t *testing.T) {
	pool := testPool(t)
	first := pool.pid(t)
	if _, err := pool.ask(t, "grumble"); err != nil {
		t.Error(err)
	}
	for range 5 {
		if pid := pool.pid(t); pid != first {
			t.Errorf("process %s, then %s", first, pid)
		}
	}
	pool.close()
	if pid := pool.pid(t); pid == first {
		t.Errorf("process %s again after it was closed", pid)
	}
}

// Every file has the whole time of a child.
func TestChildTimeIsThatOfAFile(t *testing.T) {
	onlyLinux(t)
	pool := testPool(t)
	first := pool.pid(t)
	for range 3 {
		if _, err := pool.ask(t, "burn"); err != nil {
			t.Fatal(err)
		}
	}
	// Its own second, and the one that the used ones are rounded up to.
	begun := time.Now()
	if _, err := pool.ask(t, "spin to the limit"); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	if pid := pool.pid(t); pid == first {
		t.Errorf("process %s again", pid)
	}
}

func TestChildIsReplaced(t *testing.T) {
	onlyLinux(t)
	pool := testPool(t)
	first := pool.pid(t)
	for n := 1; n < childFiles; n++ {
		if pid := pool.pid(t); pid != first {
			t.Fatalf("process %s read %d files", first, n)
		}
	}
	second := pool.pid(t)
	if second == first {
		t.Errorf("process %s read more than %d files", first, childFiles)
	}
	if childMemory != 512<<20 {
		return // the race detector's own memory would be too much
	}
	if reply, err := pool.ask(t, "much memory"); err != nil || reply.Title != second {
		t.Errorf("%+v, %v", reply, err)
	}
	if third := pool.pid(t); third == second {
		t.Errorf("process %s goes on with little memory left", second)
	}
}

// A child that left while it waited costs nothing.
func TestChildThatLeft(t *testing.T) {
	onlyLinux(t)
	pool := testPool(t)
	first := pool.pid(t)
	if err := pool.idle[0].stdin.Close(); err != nil { // as when its time is up, it ends
		t.Fatal(err)
	}
	if second := pool.pid(t); second == first {
		t.Errorf("process %s again", second)
	}
}

// Nothing of the environment reaches a child, where a crash could tell it.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	reply, err := testPool(t).ask(t, "environment")
	if err != nil || strings.Contains(reply.text, "secret") || !strings.Contains(reply.text, childVariable) {
		t.Errorf("%q, %v", reply.text, err)
	}
}

func TestChildMayNotWriteFiles(t *testing.T) {
	onlyLinux(t)
	name := filepath.Join(t.TempDir(), "written")
	if _, err := testPool(t).read(t.Context(), childRequest{Format: "write", Path: name}, nil, 5*time.Second); err == nil {
		t.Error("a child could write to a file")
	}
	if data, err := os.ReadFile(name); err == nil && len(data) > 0 {
		t.Errorf("a child wrote %q", data)
	}
}

func TestChildEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := testPool(t).read(ctx, childRequest{Format: "hang"}, nil, time.Minute); err != context.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A parent that is gone takes its children along, whatever they are doing.
func TestChildEndsWithItsParent(t *testing.T) {
	onlyLinux(t)
	for _, doing := range []string{"nothing", "hang"} {
		c, err := startChild(misbehaving)
		if err != nil {
			t.Fatal(err)
		}
		if doing != "nothing" {
			if err := sendFrame(c.stdin, childRequest{Format: doing}, new(bytes.Reader)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.stdin.Close(); err != nil { // what a death does
			t.Fatal(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
}

// Many files at a time, some of which kill their reader.
func TestReaderInParallel(t *testing.T) {
	var r Reader
	defer r.Close()
	var g errgroup.Group
	for i := range 40 {
		g.Go(func() error {
			data := minimalPDF("Ferry " + strconv.Itoa(i) + " leaves at nine.")
			doc, err := r.Read(t.Context(), "a.pdf", []byte(data))
			if err != nil {
				return err
			}
			if !strings.Contains(doc.Text, "Ferry "+strconv.Itoa(i)+" leaves") {
				return fmt.Errorf("file %d was read as %q", i, doc.Text)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if n := len(r.children.idle); n == 0 || n > runtime.NumCPU() {
		t.Errorf("%d children", n)
	}
}

// minimalPDF is a page with one line.
func minimalPDF(line string) string {
	stream := "BT /F 12 Tf 72 700 Td (" + line + ") Tj ET"
	return "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n" +
		"3 0 obj\n<</Type/Page/Parent 2 0 R/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>\nendobj\n" +
		fmt.Sprintf("4 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n", len(stream), stream) +
		"5 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\nstartxref\n99999\n%%EOF"
}

// What a frame says of its length is not believed.
func TestReceiveFrame(t *testing.T) {
	var frame bytes.Buffer
	if err := sendFrame(&frame, childReply{Title: "A"}, strings.NewReader("text")); err != nil {
		t.Fatal(err)
	}
	var reply childReply
	text, err := receiveFrame(bytes.NewReader(frame.Bytes()), &reply, 1<<20)
	if err != nil || string(text) != "text" || reply.Title != "A" {
		t.Errorf("%q, %+v, %v", text, reply, err)
	}
	if _, err := receiveFrame(bytes.NewReader(frame.Bytes()), &reply, 5); err != errTooMuch {
		t.Errorf("%v", err)
	}
	for cut := range frame.Len() {
		if _, err := receiveFrame(bytes.NewReader(frame.Bytes()[:cut]), &reply, 1<<20); err == nil || (cut > 0) == (err == io.EOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestReadPDFSaysWhatIsWrong(t *testing.T) {
	tests := []struct{ data, reason string }{
		{"not a PDF at all", "it is no PDF"},
		{"%PDF-1.7\n" + strings.Repeat("x", 500), "it is damaged"},
		{"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n3 0 obj\n<</Type/Page/Parent 2 0 R>>\nendobj\n", "no text, install tesseract to read scans"},
	}
	for _, tt := range tests {
		_, err := new(Reader).Read(t.Context(), "a.pdf", []byte(tt.data))
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%.20q: %v, want %q", tt.data, err, tt.reason)
		}
	}
}

// A file whose table of objects is lost is read all the same.
func TestReadPDFRebuilds(t *testing.T) {
	data := minimalPDF("The ferry leaves at nine.")
	doc, err := new(Reader).Read(t.Context(), "a.pdf", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	if doc.Text != "The ferry leaves at nine." || len(doc.Pages) != 1 || doc.PageAt(0) != 1 {
		t.Errorf("%q, pages %v", doc.Text, doc.Pages)
	}
}
