package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
)

// RunChild does the work of a child process when getenv says that this is one:
// it limits itself, reads the files that come through stdin and writes what it
// read to stdout, until stdin ends or nothing has come for a while. ran is
// false in every other process. Call it before anything else, in main and in
// the TestMain of every package that reads documents:
//
//	if code, ran := ingest.RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
//		os.Exit(code)
//	}
func RunChild(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (code int, ran bool) {
	if getenv(childVariable) == "" {
		return 0, false
	}
	var err error
	switch getenv(childVariable) {
	case roleTool:
		err = becomeTool(getenv)
	case roleCompiler:
		err = workAsCompiler(getenv)
	default:
		err = childWork(stdin, stdout, stderr, new(workshop).read)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1, true
	}
	return 0, true
}

// childWork limits this process, then reads file after file.
func childWork(stdin io.Reader, stdout, stderr io.Writer, read func(childRequest, []byte) childReply) error {
	if err := limitChild(); err != nil {
		return fmt.Errorf("limiting the reader: %w", err)
	}
	debug.SetMemoryLimit(childMemory / 4 * 3)
	debug.SetMaxStack(maxChildStack)

	type file struct {
		childRequest
		data []byte
	}
	files, gone := make(chan file), make(chan error, 1)
	// It goes on reading while a file is in hand: when the parent is gone, so
	// is who wants the reply.
	go func() {
		in := bufio.NewReader(stdin)
		for {
			var f file
			var err error
			if f.data, err = receiveFrame(in, &f.childRequest, 1<<62); err != nil {
				gone <- err
				return
			}
			files <- f
		}
	}()
	ended := func(err error) error {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("receiving a file: %w", err)
	}
	for n := 1; ; n++ {
		idle := time.NewTimer(childIdle)
		var f file
		select {
		case f = <-files:
			idle.Stop()
		case err := <-gone:
			return ended(err)
		case <-idle.C:
			return nil
		}
		if err := allowSeconds(childSeconds); err != nil {
			return fmt.Errorf("limiting the time for a file: %w", err)
		}
		done := make(chan childReply, 1)
		go func() { done <- read(f.childRequest, f.data) }()
		var reply childReply
		select {
		case reply = <-done:
		case err := <-gone:
			return ended(err)
		}
		f.data = nil
		reply.Last = n >= childFiles || childGrown()
		if err := sendFrame(stdout, reply, strings.NewReader(reply.text)); err != nil {
			return fmt.Errorf("replying: %w", err)
		}
		if _, err := stderr.Write([]byte{endOfErrors}); err != nil {
			return err
		}
		if reply.Last {
			return nil
		}
	}
}
