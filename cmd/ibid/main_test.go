package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ibid/answer/openai/openaitest"
	"ibid/ingest"
)

// TestMain lets the test binary be the program: as a reader of a dangerous
// format, and as the command "ibid" of the scripts.
func TestMain(m *testing.M) {
	if code, child := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); child {
		os.Exit(code)
	}
	testscript.Main(waitingTests{m}, map[string]func(){
		"ibid":       func() { os.Exit(realMain(os.Args[1:])) },
		"ibid-shell": func() { os.Exit(runShell(os.Stdin, os.Stdout)) },
	})
}

// waitingTests runs more tests in parallel than the machine has processors: most
// of them wait for servers and processes.
type waitingTests struct{ *testing.M }

func (m waitingTests) Run() int {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}

// TestScripts runs the scripts in testdata/script, each in an empty folder with
// the data directory in it. $SCRIPTED is the address of a model that keeps every
// passage and answers with the line of the first author in its prompt, if any.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, scripts, nil)
}

// TestScriptsOnServers runs the scripts that are not about the files of a data
// directory on each kind of store on a server.
func TestScriptsOnServers(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, name := range []string{"ask", "ingest", "keys", "original", "prompts", "resume", "sections", "summarize"} {
		scripts = append(scripts, "testdata/script/"+name+".txtar")
	}
	stores := servedStores(t)
	if len(stores) == 0 {
		t.Skip("there is no server to test with")
	}
	for name, fresh := range stores {
		t.Run(name, func(t *testing.T) { runScripts(t, scripts, fresh) })
	}
}

func runScripts(t *testing.T, scripts []string, fresh func(t testing.TB) string) {
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "runs": runs},
		Condition: func(what string) (bool, error) {
			if what != "served" { // by a store on a server
				return false, fmt.Errorf("unknown condition %q", what)
			}
			return fresh != nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("IBID_DATA", env.WorkDir+"/.data")
			if fresh != nil {
				env.Setenv("IBID_STORE", fresh(env.T().(testing.TB)))
			}
			env.Setenv("IBID_PDF", "go") // the same on every machine
			env.Setenv("LIBRARY", moduleRoot(t)+"/data/library")
			author := regexp.MustCompile(`(?m)^Author: .*`)
			server := httptest.NewServer(&openaitest.Handler{Reply: openaitest.Rules(
				openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
				openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
					return openaitest.Reply{Text: author.FindString(r.User) + " [1]"}
				}},
			)})
			env.Defer(server.Close)
			env.Setenv("SCRIPTED", server.URL+"/v1")
			return startShell(env)
		},
	})
}

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

// A shell is a process that runs the command lines of a script one after the
// other, in the script's folder: a process for each would be slow.
type shell struct {
	in  *json.Encoder
	out *json.Decoder
}

type shellKey struct{}

func startShell(env *testscript.Env) error {
	cmd := exec.Command("ibid-shell")
	cmd.Env = append(env.Vars, "PATH="+os.Getenv("PATH"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	env.Values[shellKey{}] = &shell{json.NewEncoder(in), json.NewDecoder(out)}
	env.Defer(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd.Start()
}

// runShell is the process of a shell.
func runShell(in io.Reader, out io.Writer) int {
	commands, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var c shellCommand
		if err := commands.Decode(&c); err != nil {
			return exitDone // the script has ended
		}
		if err := errors.Join(os.Chdir(c.Dir), os.Setenv("HOME", c.Env["HOME"])); err != nil {
			return exitFailed
		}
		var stdout, stderr lockedBuffer
		getenv := func(name string) string { return c.Env[name] }
		err := run(context.Background(), c.Args, getenv, strings.NewReader(""), &stdout, &stderr)
		code := exitCode(err, &stderr)
		if replies.Encode(shellReply{stdout.String(), stderr.String(), code}) != nil {
			return exitFailed
		}
	}
}

// runIn runs a command line of a script in its shell, and returns the exit code.
func runIn(ts *testscript.TestScript, args []string) int {
	c := shellCommand{Dir: ts.MkAbs("."), Args: args, Env: map[string]string{}}
	for _, name := range []string{
		"HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "IBID_DATA", "IBID_PDF", "IBID_STORE", "IBID_STORE_PASSWORD", "OPENAI_BASE_URL",
	} {
		c.Env[name] = ts.Getenv(name)
	}
	var reply shellReply
	sh := ts.Value(shellKey{}).(*shell)
	ts.Check(errors.Join(sh.in.Encode(c), sh.out.Decode(&reply)))
	fmt.Fprint(ts.Stdout(), reply.Stdout)
	fmt.Fprint(ts.Stderr(), reply.Stderr)
	return reply.Code
}

// runs runs a command line that must succeed, or with ! must fail: runs ibid ARG…
func runs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || args[0] != "ibid" {
		ts.Fatalf("usage: runs ibid ARG…")
	}
	if code := runIn(ts, args[1:]); (code == exitDone) == neg {
		ts.Fatalf("exit code %d", code)
	}
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	code := 0
	if args[1] == "ibid" {
		code = runIn(ts, args[2:])
	} else if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}
