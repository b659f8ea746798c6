package main

import (
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
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
	testscript.Main(m, map[string]func(){
		"ibid": func() { os.Exit(realMain(os.Args[1:])) },
	})
}

// TestScripts runs the stories in testdata/script, each in an empty folder of
// its own that is also the data directory's parent. $SCRIPTED is the address of
// a model that keeps every passage and answers with the line that tells the
// first one's author, if its prompt shows one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("IBID_DATA", env.WorkDir+"/.data")
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
			return nil
		},
	})
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
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
