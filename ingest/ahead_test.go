package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// A preparing sink prepares documents ahead, each for a given time.
type preparing struct {
	*memory
	now, most, prepared atomic.Int64  // documents being prepared
	delay               time.Duration // the largest number of each
	mu                  sync.Mutex
	fail                map[string]error
}

func (p *preparing) Prepare(ctx context.Context, doc *Document, chunks []Chunk) (func(context.Context) error, error) {
	p.prepared.Add(1)
	now := p.now.Add(1)
	defer p.now.Add(-1)
	for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
	}
	select {
	case <-time.After(time.Duration(rand.Float64() * float64(p.delay))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fail[doc.Path]; err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return p.Replace(ctx, doc, chunks) }, nil
}

func newPreparing() *preparing { return &preparing{memory: newMemory(), delay: time.Second} }

func manyFiles(n int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range n {
		fsys[fmt.Sprintf("%03d.md", i)] = file1(fmt.Sprintf("# Document %d\n\nText.", i))
	}
	return fsys
}

// TestSyncPreparesAhead checks that several documents are prepared at a time and stored in
// order.
func TestSyncPreparesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newPreparing()
		sink.fail = map[string]error{"007.md": errors.New("no vectors for it")}
		got, err := syncAll(t, &Syncer{Sink: sink}, manyFiles(200))
		if err != nil || len(got) != 200 || got[7] != "failed 007.md: storing it: no vectors for it" {
			t.Fatalf("%d changes, err = %v; want 200", len(got), err)
		}
		for i, id := range sink.replaced {
			if i >= 7 {
				i++
			}
			if id != fmt.Sprintf("harbour/%03d.md", i) {
				t.Fatalf("document %d stored is %s", i, id)
			}
		}
		if most := sink.most.Load(); most < maxAhead/2 || most > maxAhead+2 {
			t.Errorf("%d documents were prepared at a time, want about %d", most, maxAhead)
		}
	})
}

// TestSyncAbandonsPreparedDocuments checks that work on later documents is abandoned when the sync
// ends.
func TestSyncAbandonsPreparedDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(cancel func()) bool{
			"break":  func(func()) bool { return false },
			"cancel": func(cancel func()) bool { cancel(); return true },
		} {
			sink := newPreparing()
			ctx, cancel := context.WithCancel(t.Context())
			begun, n := time.Now(), 0
			for _, err := range (&Syncer{Sink: sink}).Sync(ctx, harbour, manyFiles(200)) {
				if err != nil {
					if !errors.Is(err, context.Canceled) || name == "break" {
						t.Errorf("%s: err = %v, want only a cancellation", name, err)
					}
					break
				}
				if n++; n == 3 && !end(cancel) {
					break
				}
			}
			cancel()
			if n != 3 || len(sink.replaced) != 3 || sink.now.Load() != 0 {
				t.Errorf("%s: %d changes, %d stored, %d in progress; want 3, 3, 0", name, n, len(sink.replaced), sink.now.Load())
			}
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("%s: the sync took %v", name, took)
			}
		}
	})
}

func TestCheckGlob(t *testing.T) {
	for pattern, good := range map[string]bool{"*.md": true, "docs/": true, "[a-": false, "": false, "!a": false,
		"# a": false, "a\nb": false} {
		if err := CheckGlob(pattern); (err == nil) != good {
			t.Errorf("CheckGlob(%q) = %v", pattern, err)
		}
	}
}

// TestCopiesAreReadOnce checks that a child reads the copies of a file once.
func TestCopiesAreReadOnce(t *testing.T) {
	r := new(Reader)
	defer r.Close()
	data := pdfWith("a.txt", "x")
	for i := range 20 {
		doc, err := r.Read(t.Context(), fmt.Sprintf("%d.pdf", i%4), []byte(data))
		must(t, err)
		if want := fmt.Sprint(i % 4); doc.Title != want || len(r.cached) != 1 {
			t.Errorf("%q: title = %q, %d files cached; want 1", want, doc.Title, len(r.cached))
		}
		doc.Meta["tags"] = "changed"
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, "b.pdf", []byte(data+"\n")); !errors.Is(err, context.Canceled) || len(r.cached) != 1 {
		t.Errorf("err = %v, %d files cached; want canceled, 1", err, len(r.cached))
	}
}
