package weaviate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

// numbered is the document of a number: two chunks, with a word that no other has.
func numbered(t *testing.T, e *Engine, n int) error {
	doc, chunks := enginetest.Document("a", fmt.Sprintf("%06d.md", n), fmt.Sprintf("the boat unique%d lies in the harbour", n), fmt.Sprintf("its crew unique%d sleeps", n))
	return e.Replace(t.Context(), doc, chunks, [][]float32{enginetest.Vector(float64(n % 360)), enginetest.Vector(float64(n%360) + 0.5)})
}

// whole checks that a document is there with both of its chunks.
func whole(ctx context.Context, e *Engine, n int) error {
	id := fmt.Sprintf("a/%06d.md", n)
	doc, err := e.Document(ctx, id)
	if err != nil {
		return err
	}
	if !strings.Contains(doc.Text, fmt.Sprintf("unique%d lies", n)) {
		return fmt.Errorf("the text of %s is %q", id, doc.Text)
	}
	found, err := e.Candidates(ctx, []string{id + "#1", id + "#2"})
	if err == nil && len(found) != 2 {
		err = fmt.Errorf("%d of 2 chunks of %s are there", len(found), id)
	}
	return err
}

// A phase counts what happens while a cluster is in one state.
type phase struct {
	mu             sync.Mutex
	name           string
	began          time.Time
	stored, failed int
	read, unread   int
	slowest        time.Duration // of the reads
	longest        time.Duration // of the writes
	errors         []string
}

func (p *phase) String() string {
	s := fmt.Sprintf("%s, %.1f s: %d documents acknowledged (the slowest after %d ms), %d refused; %d searches answered (the slowest in %d ms), %d not",
		p.name, time.Since(p.began).Seconds(), p.stored, p.longest.Milliseconds(), p.failed, p.read, p.slowest.Milliseconds(), p.unread)
	return s
}

// TestNodeLost kills a node of three, with three shards of two replicas, while
// documents are stored and searched: searches go on, documents are stored again
// when it is back, and everything acknowledged is there in the end.
func TestNodeLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	c := weaviatetest.Start(t, 3)
	began := time.Now()
	say := func(format string, args ...any) {
		t.Helper()
		t.Logf("figure: %6.2f s: %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	others := make([]string, 2)
	for i, n := range c.Nodes[1:] {
		_, port, _ := strings.Cut(n.GRPC, ":")
		others[i] = n.HTTP + "/" + port
	}
	open := func(node int) *Engine {
		t.Helper()
		q := url.Values{"shards": {"3"}, "replicas": {"2"}}
		if node == 0 {
			q.Set("nodes", strings.Join(others, ","))
		}
		e, err := Open(t.Context(), c.Nodes[node].URL(q), Options{Wait: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	e := open(0)
	ctx := t.Context()
	if err := e.SetSpace(ctx, "enginetest/4"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(ctx, "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var acknowledged []int
	var now atomic.Pointer[phase]
	next := func(name string) *phase {
		last := now.Swap(&phase{name: name, began: time.Now()})
		if last != nil {
			last.mu.Lock()
			defer last.mu.Unlock()
			say("%s", last)
			for _, text := range slices.Compact(slices.Sorted(slices.Values(last.errors))) {
				say("  a refusal said: %s", text)
			}
		}
		return last
	}
	next("all three nodes are there")
	stop := make(chan struct{})
	var working sync.WaitGroup
	var counter atomic.Int64
	for range 2 {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-ctx.Done():
					return
				default:
				}
				n := int(counter.Add(1))
				start := time.Now()
				err := numbered(t, e, n)
				p := now.Load()
				p.mu.Lock()
				if err == nil {
					p.stored++
					p.longest = max(p.longest, time.Since(start))
					mu.Lock()
					acknowledged = append(acknowledged, n)
					mu.Unlock()
				} else {
					p.failed++
					if !errors.Is(err, ErrAway) {
						t.Errorf("a refusal that does not say that a node is away: %v", err)
					}
					if len(p.errors) < 3 {
						text := err.Error()
						_, text, _ = strings.Cut(text, ": ")
						p.errors = append(p.errors, text)
					}
				}
				p.mu.Unlock()
			}
		})
	}
	working.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			mu.Lock()
			known := len(acknowledged)
			n := 0
			if known > 0 {
				n = acknowledged[i*7919%known]
			}
			mu.Unlock()
			if known == 0 {
				continue
			}
			start := time.Now()
			err := func() error {
				want := []string{fmt.Sprintf("a/%06d.md#1", n), fmt.Sprintf("a/%06d.md#2", n)}
				got, err := e.Lexical(ctx, retrieve.Terms(fmt.Sprintf("unique%d", n)), 2, retrieve.Filter{})
				slices.Sort(got)
				if err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("the words of document %d find %q", n, got)
				}
				if err != nil {
					return err
				}
				near, err := e.Dense(ctx, enginetest.Vector(float64(n%360)), 5, retrieve.Filter{})
				if err == nil && len(near) == 0 {
					err = errors.New("the vector finds nothing")
				}
				if err != nil {
					return err
				}
				return whole(ctx, e, n)
			}()
			p := now.Load()
			p.mu.Lock()
			if p.slowest = max(p.slowest, time.Since(start)); err == nil {
				p.read++
			} else {
				p.unread++
				t.Errorf("%s: a search failed: %v", p.name, err)
			}
			p.mu.Unlock()
		}
	})
	wait := func(what string, most time.Duration, enough func(*phase) bool) {
		t.Helper()
		deadline := time.After(most)
		for {
			p := now.Load()
			p.mu.Lock()
			ok := enough(p)
			p.mu.Unlock()
			if ok {
				return
			}
			select {
			case <-deadline:
				t.Errorf("not within %s: %s", most, what)
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	wait("documents are stored", time.Minute, func(p *phase) bool { return p.stored >= 50 && p.read >= 20 })

	lost := c.Nodes[2]
	say("kill -9 %s", lost.Name())
	lost.Kill()
	next("one of three nodes is away")
	wait("searches go on and documents are refused", time.Minute, func(p *phase) bool { return p.read >= 30 && p.failed >= 2 && time.Since(p.began) > 12*time.Second })

	if traits, err := e.Inspect(ctx); err != nil || !slices.ContainsFunc(traits, func(t retrieve.Trait) bool { return t.Name == "nodes" && t.Next != "" }) {
		t.Errorf("whoever looks after it is told %+v, %v", traits, err)
	}

	say("%s is started again", lost.Name())
	next("it is starting")
	lost.Start()
	lost.Ready()
	say("%s says that it is ready", lost.Name())
	next("it is back")
	wait("documents are stored again", 2*time.Minute, func(p *phase) bool { return p.stored >= 50 && p.read >= 20 })

	say("kill -9 %s, which the engine is connected to", c.Nodes[0].Name())
	c.Nodes[0].Kill()
	next("the engine's own node is away")
	wait("searches go on by the others", time.Minute, func(p *phase) bool { return p.read >= 30 })
	c.Nodes[0].Start()
	c.Nodes[0].Ready()
	say("%s is back", c.Nodes[0].Name())
	next("all three nodes are there again")
	wait("documents are stored again", 2*time.Minute, func(p *phase) bool { return p.stored >= 20 && p.read >= 20 })
	close(stop)
	working.Wait()
	next("")

	for i := range c.Nodes {
		e := open(i)
		list, err := e.Documents(ctx, retrieve.Filter{Root: "a"})
		if err != nil {
			t.Fatal(err)
		}
		missing := 0
		for _, n := range acknowledged {
			if err := whole(ctx, e, n); err != nil {
				missing++
				t.Errorf("document %d was acknowledged, and asked of %s: %v", n, c.Nodes[i].Name(), err)
			}
		}
		say("asked of %s, %d of %d acknowledged documents are there whole; it lists %d", c.Nodes[i].Name(), len(acknowledged)-missing, len(acknowledged), len(list))
	}
}
