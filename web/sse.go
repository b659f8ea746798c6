package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/cite"
)

// An eventStream writes server-sent events. The status is sent with the first event, so that
// an earlier error can have its own status. Without events a comment is sent every
// [heartbeat], so that proxies keep the connection and a disconnected client is noticed.
type eventStream struct {
	close    func()      // ends the heartbeat
	page     *pageStream // nil unless the answer is also sent as HTML
	markdown bool        // also send the answer as Markdown before the end
	points   *codePoints // nil unless offsets are also sent in code points

	mu     sync.Mutex // guards the fields below
	w      *echo.Response
	failed error // error of the first failed write; nothing is written after it
	buffer []byte
}

// newEventStream starts the heartbeat, which calls cancel when its write fails.
func newEventStream(w *echo.Response, cancel context.CancelCauseFunc) *eventStream {
	s := &eventStream{w: w}
	s.close = keepAlive(func() error { return s.write([]byte(keepAliveComment)) }, cancel)
	return s
}

// keepAliveComment is a comment in a stream of events.
const keepAliveComment = ": still here\n\n"

// keepAlive calls write every [heartbeat] until stop is called, or until write fails; then it
// calls failed. Its goroutine has ended when stop returns.
func keepAlive(write func() error, failed func(error)) (stop func()) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if err := write(); err != nil {
					failed(err)
					return
				}
			}
		}
	})
	return func() {
		close(done)
		beating.Wait()
	}
}

// revisionKind is the kind of events that only the page uses.
var revisionKind = cite.Revised{}.Kind()

// writeEvent sends an event without an id, for clients that asked for it.
func (s *eventStream) writeEvent(kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a %s event: %w", kind, err)
	}
	return s.writeOne(event{kind: kind, data: data})
}

// A markdownEvent is the answer as Markdown, with links: the event "markdown".
type markdownEvent struct {
	Markdown string `json:"markdown"`
}

func (s *eventStream) send(e event) error {
	if s.markdown && e.kind == "done" {
		whole, err := decodeStored[cite.Answer](e.data)
		if err == nil {
			err = s.writeEvent("markdown", markdownEvent{asMarkdown(whole, true)})
		}
		if err != nil {
			return err
		}
	}
	return s.writeWithBlocks(e, s.writeOne)
}

// writeWithBlocks writes an event, with the blocks of HTML before and after it.
func (s *eventStream) writeWithBlocks(e event, write func(event) error) (err error) {
	if s.page == nil && e.kind == revisionKind {
		return nil // only the page shows revisions
	}
	if s.points != nil && e.kind != revisionKind {
		if e.data, err = s.points.addTo(e); err != nil {
			return err
		}
	}
	if s.page == nil {
		return write(e)
	}
	if err = s.page.beforeEvent(e.kind, e.data); err == nil {
		err = write(e)
	}
	if err == nil {
		err = s.page.afterEvent(e.kind, e.data)
	}
	return err
}

// sendBlocks sends the blocks of events that the reader already has. Blocks have no ids, so
// the last ones may not have arrived.
func (s *eventStream) sendBlocks(had []event) error {
	writing := slices.ContainsFunc(had, func(e event) bool { return e.kind == "text" })
	for _, e := range had {
		if (e.kind == "draft" || e.kind == revisionKind) && writing {
			continue
		}
		if err := s.writeWithBlocks(e, func(event) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (s *eventStream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush(b)
}

// writeOne writes an event.
func (s *eventStream) writeOne(e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer = e.append(s.buffer[:0])
	return s.flush(s.buffer)
}

// flush writes and flushes b. s.mu is held.
func (s *eventStream) flush(b []byte) error {
	if s.failed != nil {
		return s.failed
	}
	if !s.w.Committed {
		if h := s.w.Header(); h.Get(echo.HeaderContentType) == "" {
			h.Set(echo.HeaderContentType, "text/event-stream; charset=utf-8")
		}
		s.begin(http.StatusOK)
	}
	_, err := s.w.Write(b)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	if err != nil {
		s.failed = fmt.Errorf("sending an event: %w", err)
	}
	return s.failed
}

// begin sends the status and the header. s.mu is held.
func (s *eventStream) begin(status int) {
	h := s.w.Header()
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx buffers events
	s.w.WriteHeader(status)
}

func (s *eventStream) hasBegun() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Committed
}

// failure returns the error of the first failed write, or nil.
func (s *eventStream) failure() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// An event is one server-sent event of an answer.
type event struct {
	id   string // empty if the answer cannot be followed
	kind string // empty in the OpenAI API
	data []byte // one line of JSON
}

// size returns an upper bound of the encoded length.
func (e event) size() int {
	return len("id: \nevent: \ndata: \n\n") + len(e.id) + len(e.kind) + len(e.data)
}

func (e event) append(b []byte) []byte {
	b = slices.Grow(b, e.size())
	if e.id != "" {
		b = append(append(append(b, "id: "...), e.id...), '\n')
	}
	if e.kind != "" {
		b = append(append(append(b, "event: "...), e.kind...), '\n')
	}
	return append(append(append(b, "data: "...), e.data...), "\n\n"...)
}

func parseEvents(b []byte) ([]event, error) {
	var events []event
	for len(b) > 0 {
		one, rest, whole := bytes.Cut(b, []byte("\n\n"))
		var e event
		for line := range bytes.Lines(one) {
			name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
			switch string(name) {
			case "id":
				e.id = string(value)
			case "event":
				e.kind = string(value)
			case "data":
				e.data = value
			}
		}
		if !whole || e.kind == "" || e.data == nil {
			return nil, fmt.Errorf("event %d of a record is damaged", len(events)+1)
		}
		events = append(events, e)
		b = rest
	}
	return events, nil
}

// eventID returns the id of event n, from 1, of an attempt. A resumed answer begins a new
// log.
func eventID(started time.Time, n int) string {
	return strconv.FormatInt(started.UnixMilli(), 36) + "-" + strconv.Itoa(n)
}

// A packer compresses the events of records, one record at a time.
type packer struct {
	gzip *gzip.Writer // reused, since each needs more than a megabyte
}

func (p *packer) pack(log []event) []byte {
	size := 0
	for _, e := range log {
		size += e.size()
	}
	plain := make([]byte, 0, size)
	for _, e := range log {
		plain = e.append(plain)
	}
	var b bytes.Buffer
	// Writes to a buffer never fail.
	if p.gzip == nil {
		p.gzip, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed)
	}
	p.gzip.Reset(&b)
	_, _ = p.gzip.Write(plain)
	_ = p.gzip.Close()
	return b.Bytes()
}

func unpackEvents(b []byte) ([]event, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpacking a record: %w", err)
	}
	events, err := io.ReadAll(io.LimitReader(r, 2*maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("unpacking a record: %w", err)
	}
	return parseEvents(events)
}
