package ingest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"ibid/data/datatest"
)

var must = datatest.Must

func TestMain(m *testing.M) {
	if code, ran := RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "ibid-test-")
	if err == nil {
		err = os.Setenv(compiledVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
