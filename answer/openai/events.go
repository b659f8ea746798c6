package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Bounds on what a server may send, in bytes. A chunk with one token has about
// 300 bytes; a whole reply in one piece has a few kilobytes.
const (
	maxEvent = 1 << 20
	maxReply = 1 << 20 // text and thoughts of one reply
)

// events reads a stream of server-sent events as model servers send it: a line of
// JSON for each, with or without blank lines between them; or one JSON object in
// place of a stream. An error in any form ends it as an [*Error].
type events struct {
	*request
	ctx     context.Context
	body    io.Closer
	in      *bufio.Reader
	lines   *bufio.Scanner // nil before the first event
	failing bool           // the next event is an error
	ended   bool           // the stream has ended, with or without [DONE]
	done    bool           // [DONE] was read
}

func newEvents(ctx context.Context, r *request, body io.ReadCloser) *events {
	return &events{request: r, ctx: ctx, body: body, in: bufio.NewReader(body)}
}

// Close closes the body. After the end mark it first reads the little that may
// follow, so that the connection can be reused.
func (s *events) Close() error {
	if s.done {
		_, _ = io.CopyN(io.Discard, s.in, 4<<10) // a failure only costs the connection
	}
	return s.body.Close()
}

// next returns the JSON value of the next event, or io.EOF after the last. It is
// valid until the next call.
func (s *events) next() ([]byte, error) {
	if s.lines == nil {
		s.lines = bufio.NewScanner(s.in)
		s.lines.Buffer(nil, maxEvent)
		if object, err := s.begin(); object != nil || err != nil {
			s.ended = true
			return object, err
		}
	}
	for !s.ended && s.lines.Scan() {
		if value, err := s.readLine(bytes.TrimSpace(s.lines.Bytes())); value != nil || err != nil {
			return value, err
		}
	}
	s.ended = true
	switch err := s.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, s.badReply("one of its lines is too long")
	case err != nil:
		return nil, s.bodyError(s.ctx, err)
	}
	return nil, io.EOF
}

// begin distinguishes a stream from a page and an object by the first character,
// and reads an object.
func (s *events) begin() ([]byte, error) {
	for {
		c, err := s.in.Peek(1)
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, s.bodyError(s.ctx, err)
		case c[0] == '<' || c[0] == '{':
			return valueOrError(s.readObject(s.ctx, s.in, maxEvent))
		case !bytes.Contains([]byte(" \t\r\n\xef\xbb\xbf"), c): // space, or a byte order mark
			return nil, nil
		}
		_, _ = s.in.Discard(1) // cannot fail after Peek
	}
}

// readLine returns the value of a line that is an event, and nil for any other
// line.
func (s *events) readLine(line []byte) ([]byte, error) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case string(field) == "event":
		s.failing = string(value) == "error"
	case len(line) > 0 && line[0] == '{':
		// Some servers send an error as a bare object.
		if said := readServerMessage(line); said != (serverMessage{}) {
			return nil, s.objectError(said, s.secrets...)
		}
	case string(field) != "data" || len(value) == 0:
	case s.failing:
		said := readServerMessage(value)
		if said == (serverMessage{}) {
			said.message = "it sent an error without a message"
		}
		return nil, s.objectError(said, s.secrets...)
	case string(value) == "[DONE]":
		s.ended, s.done = true, true
	case json.Valid(value):
		return valueOrError(value, s.findError(value))
	case s.lines.Scan():
		return nil, s.badReply("one of its events is not JSON")
	case s.lines.Err() == nil:
		return nil, s.cutError()
	}
	return nil, nil
}

// valueOrError returns a value unless there is an error.
func valueOrError(value []byte, failed *Error) ([]byte, error) {
	if failed != nil {
		return nil, failed
	}
	return value, nil
}
