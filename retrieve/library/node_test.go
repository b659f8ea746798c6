//go:build unix

package library_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/library"
)

// nodeOf returns the folder of a node of the tests' Weaviate cluster.
func nodeOf(t *testing.T, number int) clusterNode {
	node := filepath.Join(os.Getenv(clusterEnv+"_DIR"), "node"+strconv.Itoa(number))
	if pid, err := os.ReadFile(node + "/pid"); err != nil || len(pid) == 0 {
		t.Skipf("%s_DIR names no cluster of three nodes: '.ci/weaviate DIR 3' starts one", clusterEnv)
	}
	return clusterNode(node)
}

type clusterNode string

func (n clusterNode) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	pid, err := os.ReadFile(string(n) + "/pid")
	must(t, err)
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	must(t, errors.Join(err, syscall.Kill(number, s)))
}

func (n clusterNode) start(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(string(n) + "/start").CombinedOutput(); err != nil {
		t.Fatalf("starting %s: %v: %s", n, err, out)
	}
}

// TestNodeLost stops a node of a Weaviate cluster for a while, and then kills one with -9 and
// starts it again, while one server stores and another searches, both on one PostgreSQL. Both must
// continue, searches must not show replaced or deleted chunks, and in the end the index must have
// every document.
func TestNodeLost(t *testing.T) {
	third := nodeOf(t, 3)
	place := newPlace(t, "PostgreSQL")
	place.Cluster = cluster(t)
	open := func() *library.Library {
		model, err := embed.New()
		must(t, err)
		lib, err := library.Open(t.Context(), library.Place{Data: t.TempDir(), URL: place.URL, Cluster: place.Cluster}, model, library.Options{})
		must(t, err)
		t.Cleanup(func() { lib.Close() })
		return lib
	}
	n := &nodeStory{T: t, writer: open(), reader: open(), words: make(map[string][]string)}
	_, err := n.writer.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	var working sync.WaitGroup
	working.Go(n.store)
	working.Go(n.search)
	phase := time.Duration(datatest.Cases(t, 20)) * time.Second
	n.during("with all nodes", phase)
	t.Cleanup(func() { third.signal(t, syscall.SIGCONT) })
	for _, node := range []clusterNode{nodeOf(t, 1), third} { // that the servers ask first, and another
		node.signal(t, syscall.SIGSTOP)
		n.during("with a node that hangs", 2*phase)
		node.signal(t, syscall.SIGCONT)
		n.during("with the node awake", phase)
	}
	if n.failed.Load() > 0 {
		t.Errorf("%d searches failed", n.failed.Load())
	}
	victim := nodeOf(t, 1+datatest.Rand(t).IntN(3))
	victim.signal(t, syscall.SIGKILL)
	n.during("with a node lost", 2*phase)
	start := time.Now()
	victim.start(t)
	n.during("with "+filepath.Base(string(victim))+" back", phase)
	n.done.Store(true)
	working.Wait()
	n.catchUp()
	t.Logf("figure: the lag was 0 at most %.0f s after the node was started", time.Since(start).Seconds())
	lost := 0
	for path := range n.words {
		if word := n.word(path); word != "" && n.paths(word) != path {
			lost++
		}
	}
	report, err := library.CheckIndex(t.Context(), place, n.reader.State, nil)
	if err != nil || lost > 0 || len(report.Differing) > 0 || report.Extra > 0 {
		t.Errorf("%v; %d of %d documents are not found; the index has %d other documents, and %d chunks too many",
			err, lost, len(n.words), len(report.Differing), report.Extra)
	}
	t.Logf("figure: %d changes stored, %d searches, %d failed, %d stale, %d of %d documents lost", n.stored.Load(), n.searches.Load(),
		n.failed.Load(), n.stale.Load(), lost, len(n.words))
}

// TestNodeLostInserts stores new documents only while a node is lost, which Weaviate accepts on the
// remaining replicas. The index does not count them until the node is back; then every document
// must be found with the other replica lost.
func TestNodeLostInserts(t *testing.T) {
	second, third := nodeOf(t, 2), nodeOf(t, 3)
	place := newPlace(t, "PostgreSQL")
	place.Cluster = cluster(t)
	model, err := embed.New()
	must(t, err)
	lib, err := library.Open(t.Context(), library.Place{Data: t.TempDir(), URL: place.URL, Cluster: place.Cluster}, model, library.Options{})
	must(t, err)
	t.Cleanup(func() { lib.Close() })
	_, err = lib.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	n := &nodeStory{T: t, writer: lib, reader: lib}
	stored := 0
	insert := func(count int) {
		for range count {
			path, word := strconv.Itoa(stored), fmt.Sprintf("zyx%dq", stored)
			must(t, storeWord(t.Context(), lib, path, word))
			stored++
		}
	}
	insert(20)
	n.catchUp()
	second.signal(t, syscall.SIGKILL)
	time.Sleep(8 * time.Second) // the other nodes regard it as dead
	insert(60)
	time.Sleep(5 * time.Second)
	if lag, err := lib.Clustered.Lag(t.Context()); err != nil || lag < 60 {
		t.Errorf("with a node lost, the lag is %d of 60 changes: %v", lag, err)
	}
	var took []time.Duration
	for range 6 {
		began := time.Now()
		n.paths("zyx1q")
		took = append(took, time.Since(began).Round(time.Millisecond))
	}
	t.Logf("figure: searches with a node lost: %s", took)
	if least := slices.Min(took[1:]); 2*least > took[0] { // the first waits for the index
		t.Errorf("the shortest of the later searches needed %v, the first %v; want less than half, without a wait", least, took[0])
	}
	second.start(t)
	n.catchUp()
	third.signal(t, syscall.SIGKILL)
	t.Cleanup(func() { third.start(t) })
	time.Sleep(8 * time.Second)
	lost := 0
	for i := range stored {
		if n.paths(fmt.Sprintf("zyx%dq", i)) != strconv.Itoa(i) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d documents are not found on the replicas that were lost", lost, stored)
	}
}

// A nodeStory is a library that one server changes and another searches.
type nodeStory struct {
	*testing.T
	writer, reader                  *library.Library
	done                            atomic.Bool
	longest                         atomic.Int64 // milliseconds of a search
	stored, searches, failed, stale atomic.Int64

	mu    sync.Mutex
	words map[string][]string // that each document has had, by path; empty if it was deleted
}

// during reports the changes and searches of a period.
func (n *nodeStory) during(what string, d time.Duration) {
	n.longest.Store(0)
	stored, searches, failed, stale := n.stored.Load(), n.searches.Load(), n.failed.Load(), n.stale.Load()
	time.Sleep(d)
	lag, err := n.reader.Clustered.Lag(n.Context())
	if n.stored.Load() == stored || 10*(n.failed.Load()-failed) > n.searches.Load()-searches {
		n.Errorf("%s no document is stored, or searches fail", what)
	}
	n.Logf("figure: %s, for %s: %d changes stored, %d searches, %d failed, %d stale, the longest took %d ms; the lag at the end is %d (%v)",
		what, d, n.stored.Load()-stored, n.searches.Load()-searches, n.failed.Load()-failed, n.stale.Load()-stale, n.longest.Load(), lag, err)
}

// catchUp waits until the index has all changes, for ten minutes at most.
func (n *nodeStory) catchUp() {
	ctx, cancel := context.WithTimeout(n.Context(), 10*time.Minute)
	defer cancel()
	for lag := int64(-1); lag != 0; time.Sleep(100 * time.Millisecond) {
		var err error
		if lag, err = n.reader.Clustered.Lag(ctx); ctx.Err() != nil {
			n.Fatalf("the index still lags by %d changes: %v", lag, err)
		}
	}
}

// store changes documents, at most twenty a second: it adds documents, changes their words and
// deletes them.
func (n *nodeStory) store() {
	random := datatest.Rand(n.T)
	for i := 0; !n.done.Load(); i++ {
		path, word := fmt.Sprint(random.IntN(i+1)), fmt.Sprintf("zyx%dq", i)
		var err error
		n.mu.Lock()
		if n.word(path) != "" && i%2 == 0 {
			word = ""
			err = n.writer.Delete(n.Context(), "a/"+path)
		} else {
			err = storeWord(n.Context(), n.writer, path, word)
		}
		n.words[path] = append(n.words[path], word)
		n.mu.Unlock()
		if err != nil {
			n.Errorf("storing: %v", err)
			return
		}
		n.stored.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

// word returns the word of a document, or "" if it does not exist.
func (n *nodeStory) word(path string) string {
	if words := n.words[path]; len(words) > 0 {
		return words[len(words)-1]
	}
	return ""
}

// search searches for the words of documents. The passages that it finds must have been stored when
// it began or later.
func (n *nodeStory) search() {
	for i := 0; !n.done.Load(); i++ {
		n.mu.Lock()
		before := make(map[string]int, len(n.words))
		for path, words := range n.words {
			before[path] = len(words) - 1
		}
		n.mu.Unlock()
		query := retrieve.Query{Text: fmt.Sprintf("Which text has the word zyx%dq?", i%(len(before)+1)), K: 10}
		began := time.Now()
		found, err := n.reader.Search(n.Context(), query)
		n.longest.Store(max(n.longest.Load(), time.Since(began).Milliseconds()))
		n.searches.Add(1)
		if err != nil {
			n.failed.Add(1)
			n.Logf("searching: %v", err)
			time.Sleep(100 * time.Millisecond)
		}
		n.mu.Lock()
		for _, p := range found {
			since := n.words[p.Path][before[p.Path]:]
			if !slices.ContainsFunc(since, func(word string) bool { return word != "" && strings.Contains(p.Text, word+".") }) {
				n.stale.Add(1)
				n.Errorf("%s is shown with %q; its words were %q", p.Path, p.Text, since)
			}
		}
		n.mu.Unlock()
	}
}

// paths returns the documents with a word.
func (n *nodeStory) paths(word string) string {
	paths, err := pathsOf(n.Context(), n.reader, word)
	if err != nil {
		n.Errorf("searching for %s: %v", word, err)
	}
	return strings.Join(paths, " ")
}
