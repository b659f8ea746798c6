package index

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// The environment of a child process: this test binary again.
const (
	childRole = "IBID_TEST_CHILD"
	childDir  = "IBID_TEST_DIR"
	childSeed = "IBID_TEST_SEED"
)

func TestMain(m *testing.M) {
	roles := map[string]func(dir string) error{"write": childWrite}
	if role, ok := roles[os.Getenv(childRole)]; ok {
		if err := role(os.Getenv(childDir)); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childFlush is small, so that a process often writes and merges files.
const childFlush = 40

// A history is an endless list of random changes, determined by a seed.
type history struct {
	maker   *Maker // a separate one for searches
	source  Maker
	changes []retrieve.Change
	model   *Model // of some of them
}

func newHistory(seed uint64) *history {
	h := &history{source: Maker{Rand: rand.New(rand.NewPCG(seed, 0)), Dims: 8, Documents: 60, Chunks: 4}}
	searches := h.source
	searches.Rand = rand.New(rand.NewPCG(seed, 1))
	h.maker = &searches
	return h
}

// after returns n changes after a revision.
func (h *history) after(revision int64, n int) []retrieve.Change {
	first := slices.IndexFunc(h.changes, func(c retrieve.Change) bool { return c.Revision > revision })
	for first < 0 || len(h.changes) < first+n {
		h.changes = append(h.changes, h.source.Changes(1)...)
		if first < 0 && h.changes[len(h.changes)-1].Revision > revision {
			first = len(h.changes) - 1
		}
	}
	return h.changes[first : first+n]
}

// until returns the model with the changes up to a revision, which must be the revision of a
// change.
func (h *history) until(t *testing.T, revision int64) *Model {
	t.Helper()
	if h.model == nil || h.model.Revision() > revision {
		h.model = NewModel()
	}
	m := h.model
	for len(h.changes) == 0 || h.changes[len(h.changes)-1].Revision < revision {
		h.changes = append(h.changes, h.source.Changes(1)...)
	}
	for _, c := range h.changes {
		if c.Revision <= revision {
			m.Apply(c)
		}
	}
	if m.Revision() != revision {
		t.Fatalf("no change has the revision %d", revision)
	}
	return m
}

// childWrite applies the changes of a history to an index, one after another, and prints
// the revision after each. It reopens the index from time to time.
func childWrite(dir string) error {
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	h := newHistory(seed)
	for {
		x := Open(dir, Options{Library: "library", Space: "test/8", Flush: childFlush})
		for range 1 + rand.IntN(100) {
			revision, _, err := x.Revision(ctx)
			if err != nil {
				return err
			}
			changes := h.after(revision, 1+rand.IntN(4))
			if err := x.Apply(ctx, changes); err != nil {
				return err
			}
			if err := x.err(); err != nil {
				return err
			}
			fmt.Println(changes[len(changes)-1].Revision)
		}
		if err := x.Close(); err != nil {
			return err
		}
	}
}

// A child is a running process.
type child struct {
	cmd      *exec.Cmd
	revision atomic.Int64 // the last revision that it printed
	failed   atomic.Value
	ended    chan struct{}
}

func start(t *testing.T, role, dir string, seed uint64) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir, fmt.Sprint(childSeed, "=", seed))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	must(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			if n, err := strconv.ParseInt(s.Text(), 10, 64); err == nil {
				c.revision.Store(n)
			} else {
				c.failed.Store(s.Text())
			}
		}
	}()
	return c
}

// wait waits until the child has applied a revision.
func (c *child) wait(t *testing.T, revision int64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); c.revision.Load() < revision; time.Sleep(time.Millisecond) {
		if c.failed.Load() != nil || time.Now().After(deadline) {
			c.kill(t)
			t.Fatalf("the child does not reach revision %d: %v", revision, c.failed.Load())
		}
	}
}

func (c *child) kill(t *testing.T) {
	t.Helper()
	must(t, c.cmd.Process.Kill())
	<-c.ended
	_ = c.cmd.Wait() // killed
	if failed := c.failed.Load(); failed != nil {
		t.Fatalf("the child failed: %v", failed)
	}
}

// TestKill kills a process at random moments while it applies changes and writes and merges files,
// always in the same directory. The directory must then have exactly the history up to its
// revision, and the next process must continue.
func TestKill(t *testing.T) {
	kills := datatest.Cases(t, 400)
	r := datatest.Rand(t)
	dir, seed := t.TempDir(), r.Uint64()
	h := newHistory(seed)
	last, moved := int64(0), 0
	for n := range kills {
		c := start(t, "write", dir, seed)
		c.wait(t, last+1+r.Int64N(200))
		time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		c.kill(t)
		x := open(t, dir, 1<<20)
		at, _, err := x.Revision(t.Context())
		if err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		if at < last {
			t.Fatalf("after kill %d: revision %d, before it %d", n+1, at, last)
		}
		if at > last {
			moved++
		}
		last = at
		if err := h.maker.Check(t.Context(), h.until(t, at), x, 5); err != nil {
			t.Fatalf("after kill %d, revision %d: %v", n+1, at, err)
		}
		must(t, x.Close())
	}
	t.Logf("%d kills up to revision %d; after %d of them the directory had changed", kills, last, moved)
	if moved < kills/4 {
		t.Errorf("the directory changed after only %d of %d kills", moved, kills)
	}
}

// TestTogether lets another process write to the directory in which this one searches, and kills
// it. Both apply the same history; this one must find everything up to its revision at any time,
// and must write after the other process has ended.
func TestTogether(t *testing.T) {
	r := datatest.Rand(t)
	dir, seed := t.TempDir(), r.Uint64()
	h := newHistory(seed)
	ctx := t.Context()
	x := open(t, dir, 100)
	at := func() int64 {
		t.Helper()
		revision, _, err := x.Revision(ctx)
		must(t, err)
		return revision
	}
	check := func() {
		t.Helper()
		revision := at()
		if err := h.maker.Check(ctx, h.until(t, revision), x, 3); err != nil && at() == revision { // no newer manifest meanwhile
			t.Fatalf("revision %d: %v", revision, err)
		}
	}
	apply := func(until int64) {
		t.Helper()
		for at() < until {
			must(t, x.Apply(ctx, h.after(at(), 1+r.IntN(20))))
		}
	}
	adopted := 0
	for range datatest.Cases(t, 40) {
		x.mu.Lock()
		if x.lock != nil { // the other process must write files
			x.lock.Close()
			x.lock = nil
		}
		x.mu.Unlock()
		c := start(t, "write", dir, seed)
		for range 5 {
			c.wait(t, at()+1)
			before := x.base.Revision
			check()
			apply(c.revision.Load())
			check()
			if x.base.Revision > before {
				adopted++
			}
		}
		c.kill(t)
		apply(at() + 300)
		x.waitUntilIdle()
		check()
		if x.lock == nil {
			t.Error("this process does not write after the other has ended")
		}
		if n := x.countUnwritten(); n > 400 {
			t.Errorf("%d chunks and deleted documents are in memory", n)
		}
	}
	t.Logf("adopted %d manifests of the other process", adopted)
}
