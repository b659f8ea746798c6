package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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
// its own that is also the data directory's parent.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("IBID_DATA", env.WorkDir+"/.data")
			env.Setenv("LIBRARY", moduleRoot(t)+"/data/library")
			return nil
		},
	})
}
