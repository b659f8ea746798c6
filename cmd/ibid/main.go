// Command ibid answers questions from a folder of documents, with citations
// that open the exact passage they came from.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"ibid/answer"
	"ibid/ingest/site"
)

func main() {
	// Dangerous formats are read by another process of this binary, under limits.
	if code, child := site.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); child {
		os.Exit(code)
	}
	os.Exit(realMain(os.Args[1:]))
}

// realMain runs the command line and returns the exit code.
func realMain(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
	}()
	return exitCode(run(ctx, args, os.Getenv, os.Stdin, os.Stdout, os.Stderr), os.Stderr)
}

// The exit codes.
const (
	exitDone    = 0 // done, or no answer found
	exitFailed  = 1
	exitUsage   = 2 // wrong use
	exitPartial = 3 // some documents failed
	exitDamage  = 4 // damage found, or a threshold missed
)

type exitError struct {
	code int
	err  error // nil if everything was printed already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError returns an error for wrong usage, with exit code 2.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// exitCode prints what went wrong, if anything, and returns the exit code.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	code, text := exitFailed, err.Error()
	var coded *exitError
	var wrong *answer.QuestionError
	switch {
	case errors.As(err, &coded) && coded.err == nil:
		return coded.code
	case coded != nil:
		code = coded.code
	case errors.As(err, &wrong):
		code = exitUsage
	case errors.Is(err, context.Canceled):
		text = "interrupted"
	}
	fmt.Fprintf(stderr, "ibid: %s\n", printable(text))
	return code
}

// version returns the version of this build as the go command names it: the tag of a release,
// or the time and revision.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return "ibid " + info.Main.Version
	}
	return "ibid development"
}

// buildInfo returns the version of Go, the system and the build tags.
func buildInfo() string {
	v := fmt.Sprintf("%s, %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				v += ", tags " + s.Value
			}
		}
	}
	return v
}
