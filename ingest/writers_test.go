package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// A distant sink needs a second for each document, and stores several at a time.
type distant struct {
	*memory
	mu         sync.Mutex
	busy, most int
	began      func(id string) // when storing a document begins
}

func (d *distant) Replace(ctx context.Context, doc *Document, chunks []Chunk) error {
	d.mu.Lock()
	d.busy++
	d.most = max(d.most, d.busy)
	if d.began != nil {
		d.began(doc.ID)
	}
	d.mu.Unlock()
	// Store later documents first.
	time.Sleep(time.Second - time.Duration(doc.Path[2]-'0')*time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	return d.memory.Replace(ctx, doc, chunks)
}

func (d *distant) Rename(ctx context.Context, from string, to *Document) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memory.Rename(ctx, from, to)
}

func (d *distant) Delete(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.memory.Delete(ctx, id)
}

// TestSyncWithSeveralWriters checks that several documents are stored at a time, within the
// limit, and yielded in path order.
func TestSyncWithSeveralWriters(t *testing.T) {
	for writers, seconds := range map[int]int{0: 50, 1: 50, 7: 8, 50: 1} {
		synctest.Test(t, func(t *testing.T) {
			sink := &distant{memory: newMemory()}
			begun := time.Now()
			got, err := syncAll(t, &Syncer{Sink: sink, Writers: writers}, manyFiles(50))
			if err != nil || len(got) != 50 || !slices.IsSorted(got) || len(sink.docs) != 50 {
				t.Errorf("%d writers: %d changes (%v), %d stored: %q", writers, len(got), err, len(sink.docs), got)
			}
			if took := time.Since(begun); took > time.Duration(seconds)*time.Second || sink.most != max(1, writers) {
				t.Errorf("%d writers: %d at a time, in %v", writers, sink.most, took)
			}
		})
	}
}

// TestSeveralWritersAgree checks that renames and failures do not depend on the
// number of writers.
func TestSeveralWritersAgree(t *testing.T) {
	before := fstest.MapFS{"a.md": file1("A."), "b.md": file1("B."), "e.md": file1("E."), "g.md": file1("G.")}
	after := fstest.MapFS{
		"a.md": file1("A."), "c.md": file1("B."), "d.md": file1("B."), "e.md": file1("New."), "f.md": file1("F."), "h.bin": file1("\x00\x01"),
		"i.md": file1("G."), "j.md": file1("J."),
	}
	run := func(writers int) (lines []string) {
		synctest.Test(t, func(t *testing.T) {
			sink := &distant{memory: newMemory()}
			s := &Syncer{Sink: sink, Writers: writers}
			_, err := syncAll(t, s, before)
			must(t, err)
			sink.fail = func(id string) error {
				if id == "harbour/f.md" {
					return errors.New("no space left")
				}
				return nil
			}
			lines, err = syncAll(t, s, after)
			must(t, err)
			lines = append(lines, fmt.Sprint(len(sink.docs)))
		})
		return lines
	}
	wantLines(t, run(8), run(1)...)
}

// TestSyncStopsAfterCurrentDocuments checks that a canceled sync stores and yields the
// documents in progress, and starts no more.
func TestSyncStopsAfterCurrentDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sink := &distant{memory: newMemory()}
		var begun atomic.Int32
		sink.began = func(string) {
			if begun.Add(1) == 14 {
				cancel()
			}
		}
		var told []string
		var last error
		for c, err := range (&Syncer{Sink: sink, Writers: 4}).Sync(ctx, harbour, manyFiles(50)) {
			if err != nil {
				last = err
				continue
			}
			if c.Action != Added {
				t.Errorf("change = %+v, want an added file", c)
			}
			told = append(told, c.Document)
		}
		slices.Sort(sink.replaced)
		if diff := slices.Compare(told, sink.replaced); diff != 0 || len(told) < 8 || len(told) > 40 {
			t.Errorf("yielded %q, stored %q", told, sink.replaced)
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("err = %v, want context.Canceled", last)
		}
	})
}
