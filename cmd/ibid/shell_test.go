package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// A shellCommand is a command line for a shell, and a shellReply its outcome.
type (
	shellCommand struct {
		Dir, Stdin string
		Args       []string
		Env        map[string]string
	}
	shellReply struct {
		Output []shellOutput // in the order of the writes
		Code   int
	}
	shellOutput struct {
		Error bool // to the standard error
		Text  string
	}
)

// A shell is a process that runs command lines one after the other, each in its
// own folder and environment: a process for each would be slow.
type shell struct {
	in  *json.Encoder
	out *json.Decoder
	end func()
}

// shells has the idle shells. There are as many as processors, started when they
// are first needed.
var shells = make(chan *shell, runtime.NumCPU())

func init() {
	for range cap(shells) {
		shells <- nil
	}
}

// closeShells ends all shells.
func closeShells() {
	for range cap(shells) {
		if sh := <-shells; sh != nil {
			sh.end()
		}
	}
}

func startShell() (*shell, error) {
	cmd := exec.Command("ibid-shell")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "IBID_") || strings.HasPrefix(v, "OPENAI_") })
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	end := func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	return &shell{json.NewEncoder(in), json.NewDecoder(out), end}, cmd.Start()
}

// inShell runs a command line in an idle shell.
func inShell(c shellCommand) (reply shellReply, err error) {
	sh := <-shells
	defer func() { shells <- sh }()
	if sh == nil {
		if sh, err = startShell(); err != nil {
			sh = nil
			return reply, err
		}
	}
	if err = errors.Join(sh.in.Encode(c), sh.out.Decode(&reply)); err != nil {
		sh.end()
		sh = nil
	}
	return reply, err
}

// outputs collects the output of a command.
type outputs struct {
	mu  sync.Mutex
	all []shellOutput
}

type outputWriter struct {
	to    *outputs
	error bool
}

func (w outputWriter) Write(p []byte) (int, error) {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	w.to.all = append(w.to.all, shellOutput{w.error, string(p)})
	return len(p), nil
}

// runShell is the process of a shell.
func runShell(in io.Reader, out io.Writer) int {
	commands, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c shellCommand
		if err := commands.Decode(&c); err != nil {
			return exitDone // the tests have ended
		}
		if err := errors.Join(os.Chdir(c.Dir), os.Setenv("HOME", c.Env["HOME"])); err != nil {
			return exitFailed
		}
		var written outputs
		stderr := outputWriter{&written, true}
		getenv := func(name string) string { return c.Env[name] }
		err := run(context.Background(), c.Args, getenv, strings.NewReader(c.Stdin), outputWriter{&written, false}, stderr)
		code := exitCode(err, stderr)
		if err := errors.Join(os.Chdir(os.TempDir()), replies.Encode(shellReply{written.all, code})); err != nil {
			return exitFailed
		}
	}
}

// runIn runs a command line of a script in a shell, and returns the exit code.
func runIn(ts *testscript.TestScript, args []string) int {
	c := shellCommand{Dir: ts.MkAbs("."), Args: args, Env: map[string]string{}}
	for _, name := range []string{
		"HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "IBID_DATA", "IBID_STORE", "IBID_STORE_PASSWORD", "IBID_STORE_WAIT", "OPENAI_BASE_URL",
	} {
		c.Env[name] = ts.Getenv(name)
	}
	reply, err := inShell(c)
	ts.Check(err)
	reply.print(ts.Stdout(), ts.Stderr())
	return reply.Code
}

func (r shellReply) print(stdout, stderr io.Writer) {
	for _, o := range r.Output {
		if o.Error {
			fmt.Fprint(stderr, o.Text)
		} else {
			fmt.Fprint(stdout, o.Text)
		}
	}
}

// program is the command "ibid" of scripts and pages. Where SHELLS is the address
// of [serveShells], a shell runs all but servers.
func program() int {
	address := os.Getenv("SHELLS")
	if address == "" || slices.Contains(os.Args[1:], "serve") {
		return realMain(os.Args[1:])
	}
	reply, err := requestShell(address, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "asking for a shell:", err)
		return exitFailed
	}
	reply.print(os.Stdout, os.Stderr)
	return reply.Code
}

func requestShell(address string, args []string) (reply shellReply, err error) {
	c := shellCommand{Args: args, Env: map[string]string{}}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		c.Env[name] = value
	}
	if c.Dir, err = os.Getwd(); err != nil {
		return reply, err
	}
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return reply, err
	}
	c.Stdin = string(stdin)
	body, err := json.Marshal(c)
	if err != nil {
		return reply, err
	}
	resp, err := http.Post(address, "application/json", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	return reply, json.NewDecoder(resp.Body).Decode(&reply)
}

// serveShells runs the command line of a request in a shell.
func serveShells(w http.ResponseWriter, r *http.Request) {
	var c shellCommand
	err := json.NewDecoder(r.Body).Decode(&c)
	if err == nil {
		var reply shellReply
		if reply, err = inShell(c); err == nil {
			err = json.NewEncoder(w).Encode(reply)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
