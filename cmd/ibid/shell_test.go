package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// A shellCommand is a command line for a shell, and a shellReply its outcome.
type (
	shellCommand struct {
		Dir  string
		Args []string
		Env  map[string]string
	}
	shellReply struct {
		Stdout, Stderr string
		Code           int
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
		var stdout, stderr bytes.Buffer
		getenv := func(name string) string { return c.Env[name] }
		code := exitCode(run(context.Background(), c.Args, getenv, strings.NewReader(""), &stdout, &stderr), &stderr)
		if err := errors.Join(os.Chdir(os.TempDir()), replies.Encode(shellReply{stdout.String(), stderr.String(), code})); err != nil {
			return exitFailed
		}
	}
}

// runIn runs a command line of a script in an idle shell, and returns the exit code.
func runIn(ts *testscript.TestScript, args []string) int {
	c := shellCommand{Dir: ts.MkAbs("."), Args: args, Env: map[string]string{}}
	for _, name := range []string{
		"HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "IBID_DATA", "IBID_STORE", "IBID_STORE_PASSWORD", "IBID_STORE_WAIT", "OPENAI_BASE_URL",
	} {
		c.Env[name] = ts.Getenv(name)
	}
	sh := <-shells
	defer func() { shells <- sh }()
	if sh == nil {
		var err error
		sh, err = startShell()
		ts.Check(err)
	}
	var reply shellReply
	ts.Check(errors.Join(sh.in.Encode(c), sh.out.Decode(&reply)))
	fmt.Fprint(ts.Stdout(), reply.Stdout)
	fmt.Fprint(ts.Stderr(), reply.Stderr)
	return reply.Code
}
