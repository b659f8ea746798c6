package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Bounds on what a server may send, in bytes. A chunk with one token has some 300
// bytes; a whole reply in one piece has a few kilobytes.
const (
	maxEvent = 1 << 20
	maxReply = 1 << 20 // text and thoughts of one reply
)

// events reads a stream of server-sent events as servers really send it, and
// returns one line "data: {…}" for each event: the only form that the library
// reads reliably. It drops comments, other fields and blank lines; an error in
// any form ends it as an [*Error]; a whole JSON reply in place of a stream becomes
// a stream of one event.
type events struct {
	*request
	ctx   context.Context
	body  io.Closer
	in    *bufio.Reader
	begun bool
	skip  bool   // a LF now belongs to the CR before it
	kind  string // of the current event
	data  []byte // its payload so far
	line  []byte
	out   []byte // not yet read by the library
	err   error  // to return after out
	done  bool   // [DONE] has come
}

func newEvents(ctx context.Context, r *request, body io.ReadCloser) (io.ReadCloser, error) {
	return &events{request: r, ctx: ctx, body: body, in: bufio.NewReader(body)}, nil
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
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.err = s.next()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// next reads until something is in out, or returns the error that ends the
// stream.
func (s *events) next() error {
	if !s.begun {
		s.begun = true
		whole, err := s.begin()
		if whole || err != nil {
			return err
		}
	}
	for len(s.out) == 0 {
		line, err := s.readLine()
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			if err := s.readField(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return s.flush(io.EOF)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin distinguishes a stream from a page and an object by the first character,
// and reads an object.
func (s *events) begin() (whole bool, err error) {
	if bom, err := s.in.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = s.in.Discard(3) // they have been peeked at
	}
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return true, s.readError(err)
		}
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		if err := s.in.UnreadByte(); err != nil {
			return true, s.fail(BadReply, nil, "")
		}
		switch c {
		case '<':
			return true, s.fail(BadReply, nil, "it is a web page")
		case '{':
			return true, s.object()
		}
		return false, nil
	}
}

// object reads a reply that is one JSON object.
func (s *events) object() error {
	body, err := io.ReadAll(io.LimitReader(s.in, maxEvent+1))
	if err != nil {
		return s.readError(err)
	}
	if len(body) > maxEvent {
		return s.fail(BadReply, nil, "it is too long")
	}
	var object json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(body))
	switch err := decoder.Decode(&object); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return s.cut()
	case err != nil, decoder.More():
		return s.fail(BadReply, nil, "it is neither a stream of events nor one JSON object")
	}
	return s.emit(object)
}

// readLine returns the next line without its end, which may be LF, CR LF or CR.
// At the end of the stream it returns the rest with io.EOF.
func (s *events) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return s.line, s.readError(err)
		}
		after := s.skip
		s.skip = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			return s.line, nil
		}
		if len(s.line) == maxEvent {
			return nil, s.fail(BadReply, nil, "a line of it is too long")
		}
		s.line = append(s.line, c)
	}
}

func (s *events) readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return s.brokeOff(s.ctx, err)
}

// readField reads one line.
func (s *events) readField(line []byte) error {
	if len(line) == 0 {
		return s.flush(nil)
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case string(field) == "event":
		s.kind = string(bytes.TrimSpace(value))
	case string(field) == "data":
		value = bytes.TrimPrefix(value, []byte(" "))
		if len(s.data)+len(value) > maxEvent {
			return s.fail(BadReply, nil, "an event of it is too long")
		}
		if len(s.data) > 0 {
			s.data = append(append(s.data, ' '), value...)
			break
		}
		s.data = append(s.data, value...)
		// Some servers do not end events with a blank line. Checking only the first
		// line keeps the work linear.
		if data := bytes.TrimSpace(s.data); string(data) == "[DONE]" || json.Valid(data) {
			return s.flush(nil)
		}
	case line[0] == '{':
		// Some servers send an error as a bare object.
		if said := readComplaint(line); said != (complaint{}) {
			return s.objectError(said, s.secrets...)
		}
	}
	return nil
}

// flush ends the current event; it returns end unless that is an error.
func (s *events) flush(end error) error {
	data, kind := bytes.TrimSpace(s.data), s.kind
	s.data, s.kind = s.data[:0], ""
	switch {
	case len(data) == 0:
		return end
	case kind == "error":
		said := readComplaint(data)
		if said == (complaint{}) {
			said = complaint{message: "it sent an error without a message"}
		}
		return s.objectError(said, s.secrets...)
	case string(data) == "[DONE]":
		s.out, s.done = append(s.out[:0], "data: [DONE]\n"...), true
		return end
	case !json.Valid(data) && end == io.EOF:
		return s.cut()
	case !json.Valid(data):
		return s.fail(BadReply, nil, "an event of it is not JSON")
	}
	if err := s.emit(data); err != nil {
		return err
	}
	return end
}

// emit passes one JSON value to the library, unless it is an error.
func (s *events) emit(data []byte) error {
	if bytes.Contains(data, []byte(`"error"`)) {
		var object struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &object) == nil && len(object.Error) > 0 && string(object.Error) != "null" {
			return s.objectError(readComplaint(data), s.secrets...)
		}
	}
	s.out = append(s.out[:0], "data: "...)
	if data[0] == '{' {
		// The space keeps the library from reading {"error":null,…} as an error.
		s.out = append(s.out, '{', ' ')
		data = data[1:]
	}
	for _, c := range data {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		s.out = append(s.out, c)
	}
	s.out = append(s.out, '\n')
	return nil
}

func (s *events) cut() error {
	e := s.fail(Cut, io.ErrUnexpectedEOF, "")
	e.transient = true
	return e
}
