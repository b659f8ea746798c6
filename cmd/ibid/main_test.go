package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
	"ibid/ingest/site"
)

var must = datatest.Must

// TestMain lets the test binary be the program: as a reader of a dangerous
// format, and as the command "ibid" of the scripts.
func TestMain(m *testing.M) {
	if code, child := site.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); child {
		os.Exit(code)
	}
	testscript.Main(waitingTests{m}, map[string]func(){
		"ibid":       func() { os.Exit(realMain(os.Args[1:])) },
		"ibid-relay": func() { os.Exit(runRelay(os.Args[1], os.Stdout)) },
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
	defer closeShells()
	defer func() {
		if chromiumProcess.close != nil {
			chromiumProcess.close()
		}
	}()
	return m.M.Run()
}

// TestScripts runs the scripts in testdata/script, each in an empty folder with
// the data directory in it. $SCRIPTED is the address of a model that keeps every
// passage and answers with the line of the first author in its prompt, if any.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	must(t, err)
	runScripts(t, scripts, nil)
}

// TestScriptsOnServers runs the scripts that are not about the files of a data
// directory on each kind of store on a server.
func TestScriptsOnServers(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, name := range []string{"ask", "ingest", "keys", "original", "prompts", "sections", "summarize"} {
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
			env.Setenv("IBID_NO_SELF_TEST", "true")
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
			return nil
		},
	})
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
