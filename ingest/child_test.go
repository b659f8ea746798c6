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
	"strings"
	"testing"
	"time"
)

// misbehave is what a child does in the tests of its limits; ok is false for
// every other name.
func misbehave(name string) (ok bool) {
	if !strings.HasPrefix(name, "test-") {
		return false
	}
	if err := limitChild(); err != nil {
		panic(err)
	}
	switch name {
	case "test-hang":
		<-time.After(time.Hour) // a bare select is called a deadlock where no C code is linked in
	case "test-spin":
		for i := 0; ; i++ {
			runtime.KeepAlive(i)
		}
	case "test-panic":
		panic("boom in the parser\nsecond line")
	case "test-memory":
		var held [][]byte
		for {
			b := make([]byte, 16<<20)
			for i := range b {
				b[i] = 1
			}
			held = append(held, b)
			runtime.KeepAlive(held)
		}
	case "test-stack":
		var deep func(n int) int
		deep = func(n int) int { return deep(n+1) + 1 }
		fmt.Println(deep(0))
	case "test-chatter":
		line := bytes.Repeat([]byte("x"), 1<<20)
		for {
			if _, err := os.Stdout.Write(line); err != nil {
				os.Exit(1)
			}
		}
	case "test-write":
		name, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(string(name), []byte("written"), 0o600); err != nil {
			panic(err)
		}
	case "test-grandchild":
		// It outlives the child unless the group is killed; its output is ours.
		c := exec.Command("/bin/sleep", "60")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		<-time.After(time.Hour) // a bare select is called a deadlock where no C code is linked in
	}
	return true
}

func TestChildDeathsAreNamed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits are set on Linux only")
	}
	tests := []struct{ name, reason string }{
		{"test-hang", "took more than"},
		{"test-spin", "took more than"},
		{"test-grandchild", "took more than"},
		{"test-panic", "reader crashed on it: panic: boom in the parser"},
		{"test-memory", "needed more than 512 MB of memory"},
		{"test-chatter", "more than 256 MB of text came out of it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			limit := 1 * time.Second
			if tt.name == "test-memory" || tt.name == "test-chatter" {
				limit = 20 * time.Second
			}
			begun := time.Now()
			out, err := runChild(t.Context(), tt.name, strings.NewReader("x"), limit)
			if err == nil {
				t.Fatalf("it lived and said %.100q", out)
			}
			if childMemory != 512<<20 { // the race detector's limit
				tt.reason = strings.Replace(tt.reason, "512 MB", fmt.Sprintf("%d MB", childMemory>>20), 1)
			}
			if !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v; want %q", err, tt.reason)
			}
			if took := time.Since(begun); took > limit+5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestChildMayNotWriteFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits are set on Linux only")
	}
	name := filepath.Join(t.TempDir(), "written")
	if _, err := runChild(t.Context(), "test-write", strings.NewReader(name), 5*time.Second); err == nil {
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
	if _, err := runChild(ctx, "test-hang", nil, time.Minute); err != context.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestReadPDFSaysWhatIsWrong(t *testing.T) {
	tests := []struct{ data, reason string }{
		{"not a PDF at all", "it is no PDF"},
		{"%PDF-1.7\n" + strings.Repeat("x", 500), "it is damaged"},
		{"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n3 0 obj\n<</Type/Page/Parent 2 0 R>>\nendobj\n", "there is no text in it: a scan?"},
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
	data := "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n" +
		"3 0 obj\n<</Type/Page/Parent 2 0 R/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>\nendobj\n" +
		"4 0 obj\n<</Length 58>>\nstream\nBT /F 12 Tf 72 700 Td (The ferry leaves at nine.) Tj ET   \nendstream\nendobj\n" +
		"5 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\nstartxref\n99999\n%%EOF"
	doc, err := new(Reader).Read(t.Context(), "a.pdf", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	if doc.Text != "The ferry leaves at nine." || len(doc.Pages) != 1 || doc.PageAt(0) != 1 {
		t.Errorf("%q, pages %v", doc.Text, doc.Pages)
	}
}
