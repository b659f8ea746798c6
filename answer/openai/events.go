package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode"
)

// Bounds on what a server may send, in bytes. A chunk with one token has some 300
// bytes; a whole reply in one piece has a few kilobytes.
const (
	maxEvent = 1 << 20
	maxReply = 1 << 20 // text and thoughts of one reply
)

// events reads a stream of server-sent events as servers really send it: with any
// line ends, without blank lines between events, or as one JSON object in place of
// a stream. To the library it gives one line "data: {…}" for each event, the only
// form that the library reads reliably. An error in any form ends it as an
// [*Error].
type events struct {
	*request
	ctx   context.Context
	body  io.Closer
	in    *bufio.Reader
	begun bool
	skip  bool   // a LF now belongs to the CR before it
	kind  string // of the current event
	data  []byte // its payload so far
	valid bool   // it is known to be JSON
	line  []byte
	out   bytes.Buffer // not yet read by the library
	ended bool         // the stream, with or without [DONE]
	done  bool         // [DONE] has come
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

func (s *events) Read(p []byte) (int, error) {
	if s.out.Len() == 0 {
		value, err := s.next()
		if err != nil {
			return 0, err
		}
		// The library takes every {"error": for an error, even null.
		if bytes.HasPrefix(value, []byte(`{"error":`)) {
			value = append([]byte("{ "), value[1:]...)
		}
		s.out.WriteString("data: ")
		if bytes.IndexByte(value, '\n') >= 0 {
			value = bytes.ReplaceAll(value, []byte("\n"), []byte(" "))
		}
		s.out.Write(value)
		s.out.WriteByte('\n')
	}
	return s.out.Read(p)
}

// next returns the JSON value of the next event, or io.EOF after the last. It is
// valid until the next call.
func (s *events) next() ([]byte, error) {
	if !s.begun {
		s.begun = true
		if object, err := s.begin(); object != nil || err != nil {
			s.ended = true
			return object, err
		}
	}
	for !s.ended {
		line, err := s.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		s.ended = err != nil
		ends, err := s.readField(line)
		if err != nil {
			return nil, err
		}
		if ends || s.ended {
			if value, err := s.flush(); value != nil || err != nil {
				return value, err
			}
		}
	}
	return nil, io.EOF
}

// begin distinguishes a stream from a page and an object by the first character,
// and reads an object.
func (s *events) begin() (object []byte, err error) {
	if bom, err := s.in.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = s.in.Discard(3) // they have been peeked at
	}
	for {
		c, err := s.in.Peek(1)
		switch {
		case err != nil:
			return nil, s.readError(err)
		case c[0] == '<':
			return nil, s.fail(BadReply, nil, "it is a web page")
		case c[0] == '{':
			return s.object()
		case !unicode.IsSpace(rune(c[0])):
			return nil, nil
		}
		_, _ = s.in.Discard(1)
	}
}

// object reads a reply that is one JSON object.
func (s *events) object() ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(s.in, maxEvent+1))
	if err != nil {
		return nil, s.readError(err)
	}
	if len(body) > maxEvent {
		return nil, s.fail(BadReply, nil, "it is too long")
	}
	var object json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(body))
	switch err := decoder.Decode(&object); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, s.cut()
	case err != nil, decoder.More():
		return nil, s.fail(BadReply, nil, "it is neither a stream of events nor one JSON object")
	}
	return s.checked(object)
}

// readLine returns the next line without its end, which may be LF, CR LF or CR.
// At the end of the stream it returns the rest with io.EOF.
func (s *events) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		if _, err := s.in.Peek(1); err != nil {
			return s.line, s.readError(err)
		}
		some, _ := s.in.Peek(s.in.Buffered()) // what has come
		if s.skip && some[0] == '\n' {
			s.skip = false
			_, _ = s.in.Discard(1)
			continue
		}
		end := bytes.IndexAny(some, "\r\n")
		part := some
		if end >= 0 {
			part = some[:end]
		}
		if len(s.line)+len(part) > maxEvent {
			return nil, s.fail(BadReply, nil, "a line of it is too long")
		}
		s.line = append(s.line, part...)
		s.skip = end >= 0 && some[end] == '\r'
		_, _ = s.in.Discard(len(part) + min(1, end+1))
		if end >= 0 {
			return s.line, nil
		}
	}
}

func (s *events) readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return s.brokeOff(s.ctx, err)
}

// readField reads one line, and reports whether it ends an event.
func (s *events) readField(line []byte) (ends bool, err error) {
	if len(line) == 0 {
		return true, nil
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case string(field) == "event":
		s.kind = string(bytes.TrimSpace(value))
	case string(field) == "data":
		value = bytes.TrimPrefix(value, []byte(" "))
		if len(s.data)+len(value) > maxEvent {
			return false, s.fail(BadReply, nil, "an event of it is too long")
		}
		if len(s.data) > 0 {
			s.data, s.valid = append(append(s.data, ' '), value...), false
			break
		}
		s.data = append(s.data, value...)
		// Some servers do not end events with a blank line. Checking only the first
		// line keeps the work linear.
		data := bytes.TrimSpace(s.data)
		s.valid = json.Valid(data)
		return s.valid || string(data) == "[DONE]", nil
	case line[0] == '{':
		// Some servers send an error as a bare object.
		if said := readComplaint(line); said != (complaint{}) {
			return false, s.objectError(said, s.secrets...)
		}
	}
	return false, nil
}

// flush ends the current event and returns its value, or nothing for an empty
// event and for the end mark.
func (s *events) flush() ([]byte, error) {
	data, kind := bytes.TrimSpace(s.data), s.kind
	valid := s.valid || json.Valid(data)
	s.data, s.kind, s.valid = s.data[:0], "", false
	switch {
	case len(data) == 0:
		return nil, nil
	case kind == "error":
		said := readComplaint(data)
		if said == (complaint{}) {
			said = complaint{message: "it sent an error without a message"}
		}
		return nil, s.objectError(said, s.secrets...)
	case string(data) == "[DONE]":
		s.ended, s.done = true, true
		return nil, nil
	case !valid && s.ended:
		return nil, s.cut()
	case !valid:
		return nil, s.fail(BadReply, nil, "an event of it is not JSON")
	}
	return s.checked(data)
}

// checked returns a JSON value unless it is an error.
func (s *events) checked(value []byte) ([]byte, error) {
	if bytes.Contains(value, []byte(`"error"`)) {
		if e := s.errorIn(value); e != nil {
			return nil, e
		}
	}
	return value, nil
}

func (s *events) cut() error {
	e := s.fail(Cut, io.ErrUnexpectedEOF, "")
	e.transient = true
	return e
}
