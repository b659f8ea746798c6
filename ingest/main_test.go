package ingest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if misbehave(os.Getenv(childVariable)) {
		os.Exit(0)
	}
	if code, ran := RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
