package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A Handler answers one request. The reply is sent as JSON, followed by the text.
type Handler func(request json.RawMessage, data []byte) (reply any, text string)

// Run does the work of a child if getenv shows that this process is one: it limits the process,
// then answers requests from stdin on stdout until stdin ends or the child has been idle for a
// while. In any other process, ran is false.
func Run(getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer, handle Handler) (code int, ran bool) {
	if getenv(Variable) == "" {
		return 0, false
	}
	if err := serve(stdin, stdout, handle); err != nil {
		fmt.Fprintln(stderr, err)
		return 1, true
	}
	return 0, true
}

// serve limits this process, then answers requests.
func serve(stdin io.Reader, stdout io.Writer, handle Handler) error {
	if err := limitProcess(); err != nil {
		return fmt.Errorf("limiting the reader: %w", err)
	}
	debug.SetMemoryLimit(Memory / 4 * 3)
	debug.SetMaxStack(maxStack)
	requests, gone := make(chan frame), make(chan error, 1)
	// Reading continues during a request, so that the exit of the parent ends the work.
	go func() {
		in := bufio.NewReader(stdin)
		for {
			f, err := receiveFrame(in, 1<<62)
			if err != nil {
				gone <- err
				return
			}
			requests <- f
		}
	}()
	for n := 1; ; n++ {
		idle := time.NewTimer(maxIdle)
		var request frame
		select {
		case request = <-requests:
			idle.Stop()
		case err := <-gone:
			return endOfInput(err)
		case <-idle.C:
			return nil
		}
		if err := allowSeconds(Seconds); err != nil {
			return fmt.Errorf("limiting the time for a file: %w", err)
		}
		done := make(chan frame, 1)
		go func() { done <- handle.answer(request) }()
		var reply frame
		select {
		case reply = <-done:
		case err := <-gone:
			return endOfInput(err)
		}
		reply.last = n >= maxRequests || memoryInUse() > Memory/2
		if err := sendFrame(stdout, reply); err != nil {
			return fmt.Errorf("replying: %w", err)
		}
		if reply.last {
			return nil
		}
	}
}

// memoryInUse returns the memory that the Go runtime holds, in bytes.
func memoryInUse() uint64 {
	figures := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(figures)
	return figures[0].Value.Uint64() - figures[1].Value.Uint64()
}

func (handle Handler) answer(request frame) frame {
	reply, text := handle(request.object, request.data)
	encoded, err := json.Marshal(reply)
	if err != nil {
		panic(fmt.Sprintf("unreachable: a reply is plain data: %v", err))
	}
	return frame{object: encoded, text: text}
}

func endOfInput(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("receiving a file: %w", err)
}
