//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ibid/answer/openai/openaitest"
)

// TestServersShareRuns kills a server while it answers: another server must resume the
// answer and repeat no completed call. While the first one runs, only it works on the
// answer.
func TestServersShareRuns(t *testing.T) {
	for name, fresh := range everyStore(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, store := t.TempDir(), []string(nil)
			if place := fresh(t); placeOf(t, place).remote() {
				store = at(t, place)
			}
			ingestVoyage(t, data, store...)
			shareRuns(t, data, store...)
		})
	}
}

// shareRuns kills one of two servers in the middle of an answer. The library of [voyage] is
// in the data directory, or in the store that the arguments name.
func shareRuns(t *testing.T, data string, store ...string) {
	const question = `{"question":"How many miles did the crew make on day 7?","strategy":"refine"}`
	const events, object = "text/event-stream", "application/json"
	calls := [2]*killer{{at: -1, answer: replyAsCrew}, {at: -1, answer: replyAsCrew}}
	args := func(i int) []string {
		return append([]string{"--gate", "score", "--unproved", "off", "--step-tokens", "1", "--model", "scripted", "--base-url",
			openaitest.Start(t, &openaitest.Handler{Reply: calls[i].reply})}, store...)
	}
	second := startProcess(t, data, args(1)...).url
	whole := decoded[shownRun](t, fetch(t, "POST", second+"/api/runs", object, question, 202)).ID
	fetch(t, "GET", second+"/api/runs/"+whole, events, "", 200)
	want := decoded[shownRun](t, fetch(t, "GET", second+"/api/runs/"+whole, object, "", 200)).Answer.Text
	prompts := calls[1].stopKilling()
	const at = 3

	k := calls[0]
	k.at = at
	cmd := command(context.Background(), data, append([]string{"serve", "--addr", "127.0.0.1:0"}, args(0)...)...)
	hurt := k.startKilling()
	first := listening(t, cmd)
	ended := endOf(t, cmd)
	id := decoded[shownRun](t, fetch(t, "POST", first+"/api/runs", object, question, 202)).ID
	run := "/api/runs/" + id
	if r := decoded[shownRun](t, fetch(t, "GET", second+run, object, "", 200)); r.State != "running" || r.Resumable {
		t.Errorf("run on the second server = %+v, want running and not resumable", r)
	}
	resume := `{"run":"` + id + `"}`
	if b := fetch(t, "POST", second+"/api/runs", object, resume, 409); !bytes.Contains(b, []byte("run_running")) {
		t.Errorf("resuming a run of the other server = %s, want run_running", b)
	}
	if b := fetch(t, "GET", second+run, events, "", 409); !bytes.Contains(b, []byte("run_elsewhere")) {
		t.Errorf("events of a run of the other server = %s, want run_elsewhere", b)
	}
	hurt <- func() error {
		ended() // wait, so that the system knows that the process has ended
		return nil
	}
	eventually(t, "the run to be interrupted", func() bool {
		return decoded[shownRun](t, fetch(t, "GET", second+run, object, "", 200)).State == "interrupted"
	})
	if again := calls[1].stopKilling(); len(again) > 0 {
		t.Errorf("both servers work on the run: %q", again)
	}
	if r := decoded[shownRun](t, fetch(t, "GET", second+run, object, "", 200)); !r.Resumable {
		t.Errorf("run after its server was killed = %+v, want resumable", r)
	}

	before := k.stopKilling()
	fetch(t, "POST", second+"/api/runs", object, resume, 202)
	fetch(t, "GET", second+run, events, "", 200)
	if r := decoded[shownRun](t, fetch(t, "GET", second+run, object, "", 200)); r.State != "done" || r.Answer.Text != want || want == "" {
		t.Errorf("resumed run = %+v, want %q", r, want)
	}
	after := calls[1].stopKilling()
	if len(before) != at+1 || len(after) != len(prompts)-at {
		t.Errorf("%d calls: %d before the kill and %d after it", len(prompts), len(before), len(after))
	}
}

// endOf returns a function that kills a process; the cleanup of the test calls it too.
func endOf(t *testing.T, cmd *exec.Cmd) func() {
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		}
	}
	t.Cleanup(end)
	return end
}

// TestInterruptedUploads checks that a server that starts removes the partial uploads of a
// dead server and keeps those of a live one, which then complete.
func TestInterruptedUploads(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	receiving := func() (names []string) {
		names, err := filepath.Glob(filepath.Join(data, "uploads", ".upload-*"))
		must(t, err)
		return names
	}
	type client struct {
		body  *io.PipeWriter
		reply chan int
		end   func() // the reply of its server
	}
	begin := func(name string) client {
		cmd := command(context.Background(), data, "serve", "--addr", "127.0.0.1:0")
		url := listening(t, cmd)
		c := client{reply: make(chan int, 1), end: endOf(t, cmd)}
		ready(t, url)
		var body io.Reader
		body, c.body = io.Pipe()
		go func() {
			resp, err := http.Post(url+"/api/documents?name="+name, "application/octet-stream", body)
			if err != nil {
				c.reply <- 0
				return
			}
			defer resp.Body.Close()
			c.reply <- resp.StatusCode
		}()
		before := len(receiving())
		_, err := c.body.Write([]byte("Half of it. "))
		must(t, err)
		eventually(t, "the upload to begin", func() bool { return len(receiving()) > before })
		return c
	}
	living, dying := begin("lives.md"), begin("dies.md")
	dying.end()
	must(t, dying.body.CloseWithError(errors.New("the server died")))
	<-dying.reply
	if n := len(receiving()); n != 2 {
		t.Fatalf("%d partial uploads, want 2", n)
	}
	startProcess(t, data)
	eventually(t, "the upload to be removed", func() bool { return len(receiving()) == 1 })
	_, err := living.body.Write([]byte("The rest."))
	must(t, errors.Join(err, living.body.Close()))
	if status := <-living.reply; status != http.StatusCreated || len(receiving()) != 0 {
		t.Errorf("upload: status = %d, partial uploads left: %q", status, receiving())
	}
}

// TestOneReaderOfAFolder ingests one folder with two processes. The second names the first
// and waits. Then it has nothing left to read, or everything if the first was killed.
func TestOneReaderOfAFolder(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"the first ends": false, "the first dies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, data := t.TempDir()+"/notes", t.TempDir()
			writeFiles(t, folder, map[string]string{"a.md": "# Lantern\n\nIt burns green.", "b.md": "# Tide\n\nIt is out at noon."})
			called, goOn := make(chan struct{}, 100), make(chan struct{})
			var calls [2]atomic.Int32
			ingest := func(i int) (*exec.Cmd, *bufio.Reader) {
				reply := func(openaitest.Request) openaitest.Reply {
					// The first call tests the model.
					if n := calls[i].Add(1); i == 0 && n > 1 {
						called <- struct{}{}
						<-goOn
					}
					return openaitest.Reply{}
				}
				cmd := command(t.Context(), data, append([]string{"ingest", folder}, embedder(t, reply)...)...)
				// Both outputs go to one pipe, to keep their order.
				out, err := cmd.StdoutPipe()
				must(t, err)
				cmd.Stderr = cmd.Stdout
				must(t, cmd.Start())
				return cmd, bufio.NewReader(out)
			}
			first, _ := ingest(0)
			<-called
			second, said := ingest(1)
			line, err := said.ReadString('\n')
			if want := fmt.Sprintf("ibid: process %d of ", first.Process.Pid); err != nil || !strings.HasPrefix(line, want) {
				t.Errorf("second process prints %q, %v; want %q", line, err, want)
			}
			if n := calls[1].Load(); n != 1 {
				t.Errorf("second process made %d calls while it waited, want 1", n)
			}
			if dies {
				must(t, first.Process.Kill())
			} else {
				close(goOn)
			}
			if err := first.Wait(); (err != nil) != dies {
				t.Errorf("first process: %v", err)
			}
			if dies {
				close(goOn)
			}
			rest, err := io.ReadAll(said)
			if err := errors.Join(err, second.Wait()); err != nil {
				t.Errorf("second process: %v", err)
			}
			want, most := "2 files: 0 added, 0 updated, 2 unchanged", int32(1)
			if dies {
				want, most = "2 files: 2 added, 0 updated, 0 unchanged", 3
			}
			if n := calls[1].Load(); !strings.Contains(string(rest), want) || n > most || dies && n == 1 {
				t.Errorf("second process made %d calls and printed %s", n, rest)
			}
		})
	}
}
