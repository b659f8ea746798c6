package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"time"
)

// An event is one server-sent event of an answer.
type event struct {
	id   string // empty in an answer that cannot be followed
	kind string
	data []byte // one line of JSON
}

// append writes the event in the form of server-sent events.
func (e event) append(b []byte) []byte {
	if e.id != "" {
		b = fmt.Appendf(b, "id: %s\n", e.id)
	}
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", e.kind, e.data)
}

// parseEvents reads what append wrote.
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

// eventsSeen returns how many events of a log a reader has that names the last one;
// 0 if the log does not have it.
func eventsSeen(log []event, last string) int {
	for i := len(log); last != "" && i > 0; i-- {
		if log[i-1].id == last {
			return i
		}
	}
	return 0
}

// packEvents compresses events for a record.
func packEvents(log []event) []byte {
	var plain []byte
	for _, e := range log {
		plain = e.append(plain)
	}
	var b bytes.Buffer
	// None of these fails on a buffer.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = w.Write(plain)
	_ = w.Close()
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
