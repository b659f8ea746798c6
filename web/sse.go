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

// An eventStream writes server-sent events. The status goes out with the first
// event, so that an earlier error can still have a status of its own. Without
// events a comment is sent every [heartbeat], so that proxies keep the connection
// and a client that has gone is noticed.
type eventStream struct {
	close    func()      // ends the heartbeat
	page     *pageStream // nil unless the answer is sent as HTML too
	markdown bool        // the answer is sent as Markdown too, before its end
	points   *codePoints // nil unless offsets are sent in code points too

	mu     sync.Mutex // guards what follows
	w      *echo.Response
	failed error // of the first write that failed; the last one
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

// keepAlive calls write every [heartbeat] until stop is called, or until it fails,
// which it reports to failed. Its goroutine has ended when stop returns.
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

// render adds the blocks of the answer as HTML.
func (s *eventStream) render(m *markdown) {
	s.page = &pageStream{markdown: m, answer: newRendering(m, 0), write: s.writeEvent}
}

// revisionKind is the kind of the events that only the page reads, whose blocks it draws.
var revisionKind = cite.Revised{}.Kind()

// writeEvent sends an event without an id: what is sent only to those who ask for it.
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

// writeWithBlocks writes an event, with the blocks before and after it.
func (s *eventStream) writeWithBlocks(e event, write func(event) error) (err error) {
	if s.page == nil && e.kind == revisionKind {
		return nil // others read what lasts
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

// sendBlocks sends the blocks of events that the reader already has: blocks have no
// ids of their own, and the last ones may not have arrived.
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

// writeOne writes an event. Its bytes are copied on their way, so that all events use one buffer.
func (s *eventStream) writeOne(e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer = e.append(s.buffer[:0])
	return s.flush(s.buffer)
}

// flush writes and flushes. s.mu is held.
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
	h.Set("X-Accel-Buffering", "no") // or nginx buffers events
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

// failure is the error of the first write that failed, nil if none did.
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
	id   string // empty in an answer that cannot be followed
	kind string // empty in the OpenAI API
	data []byte // one line of JSON
}

// size is at least the length of the event.
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

// eventID names the nth event, from 1, of an attempt: a resumed answer begins a new log.
func eventID(started time.Time, n int) string {
	return strconv.FormatInt(started.UnixMilli(), 36) + "-" + strconv.Itoa(n)
}

// A packer packs the events of records, one record after the other.
type packer struct {
	gzip *gzip.Writer // for all records: each takes more than a megabyte
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
	// None of these fails on a buffer.
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
