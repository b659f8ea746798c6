package local

import (
	"bufio"
	"context"
	"flag"
	"fmt"

	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// The environment of a child process: this test binary again, as another
// process on the same data directory.
const (
	childRole = "IBID_TEST_CHILD" // "write" or "read"
	childDir  = "IBID_TEST_DIR"
	childSeed = "IBID_TEST_SEED"
	childTime = "IBID_TEST_TIME" // for how long; for ever without it
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := child(role); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if !datatest.Campaign() {
		flag.Set("rapid.checks", "10")
	}
	os.Exit(m.Run())
}

const childPaths = 12

func child(role string) error {
	ctx := context.Background()
	if d, err := time.ParseDuration(os.Getenv(childTime)); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	e, err := Open(context.Background(), os.Getenv(childDir), Options{})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	work := write
	if role == "read" {
		work = read
	}
	for ctx.Err() == nil {
		if err := work(e, seed, r); err != nil {
			return err
		}
	}
	return e.Close()
}

// write changes one document and says so before, and again when it is durable.
func write(e *Engine, seed uint64, r *rand.Rand) error {
	ctx := context.Background()
	path := fmt.Sprintf("%d-%d", seed%2, r.IntN(childPaths))
	version := 1 + r.IntN(1e9)
	if r.IntN(20) == 0 {
		if _, _, err := Compact(ctx, os.Getenv(childDir), Options{}); err != nil {
			return err
		}
		return nil
	}
	if r.IntN(5) == 0 {
		fmt.Println("TRY", path, 0)
		if err := e.Delete(ctx, "a/"+path); err != nil {
			return err
		}
		fmt.Println("ACK", path, 0)
		return nil
	}
	doc, chunks := enginetest.Document("a", path, versionTexts(version)...)
	vectors := make([][]float32, len(chunks))
	for i := range vectors {
		vectors[i] = enginetest.Vector(r.Float64() * 360)
	}
	fmt.Println("TRY", path, version)
	if err := e.Replace(ctx, doc, chunks, vectors); err != nil {
		return err
	}
	fmt.Println("ACK", path, version)
	return nil
}

func versionTexts(version int) []string {
	texts := make([]string, 1+version%4)
	for i := range texts {
		texts[i] = fmt.Sprintf("version%d piece %d %s", version, i, strings.Repeat("and more words ", version%50))
	}
	return texts
}

// read searches, and reads what is found: any error ends it.
func read(e *Engine, _ uint64, r *rand.Rand) error {
	ctx := context.Background()
	ids, err := e.Dense(ctx, enginetest.Vector(r.Float64()*360), 10, retrieve.Filter{})
	if err != nil {
		return err
	}
	more, err := e.Lexical(ctx, []string{"piec"}, 10, retrieve.Filter{})
	if err != nil {
		return err
	}
	found, err := e.Candidates(ctx, append(ids, more...))
	if err != nil {
		return err
	}
	for _, c := range found {
		if !strings.HasPrefix(c.Text, "version") {
			return fmt.Errorf("%s has the text %q", c.ID, c.Text)
		}
	}
	if d := e.Damaged(); len(d) > 0 {
		return fmt.Errorf("damaged: %v", d)
	}
	fmt.Println("ACK", "read", len(found))
	return nil
}

// A process is a running child.
type process struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	acked map[string]int   // by path, the version last known to be durable
	tried map[string][]int // versions tried since
	count int
	err   string
	ended chan struct{}
}

func startChild(t *testing.T, role, dir string, seed uint64, lasting time.Duration, acked map[string]int) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self), acked: acked, tried: make(map[string][]int), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir, fmt.Sprintf("%s=%d", childSeed, seed))
	if lasting > 0 {
		p.cmd.Env = append(p.cmd.Env, childTime+"="+lasting.String())
	}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.take(s.Text())
		}
	}()
	return p
}

func (p *process) take(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := strings.Fields(line)
	switch {
	case len(f) == 3 && f[0] == "TRY":
		version, _ := strconv.Atoi(f[2])
		p.tried[f[1]] = append(p.tried[f[1]], version)
	case len(f) == 3 && f[0] == "ACK":
		version, _ := strconv.Atoi(f[2])
		p.acked[f[1]] = version
		delete(p.tried, f[1])
		p.count++
	case len(f) > 0 && f[0] == "ERROR":
		p.err = line
	}
}

func (p *process) acks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// TestKill kills a process at random moments of storing, deleting and
// compacting, always on the same data directory: no acknowledged change is lost,
// and no document is half one version and half another.
func TestKill(t *testing.T) {
	kills := datatest.Cases(t, 200)
	r := datatest.Rand(t)
	seed := r.Uint64()
	dir := t.TempDir()
	prepareDir(t, dir)
	acked := make(map[string]int)
	total := 0
	for n := range kills {
		p := startChild(t, "write", dir, seed+2*uint64(n), 0, acked)
		wait := p.acks() + 1 + r.IntN(10)
		for deadline := time.Now().Add(30 * time.Second); p.acks() < wait; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the writer does not get on: %s", p.err)
			}
		}
		time.Sleep(time.Duration(r.IntN(5000)) * time.Microsecond)
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.ended
		_ = p.cmd.Wait() // it was killed, and says so
		if p.err != "" {
			t.Fatal(p.err)
		}
		total += p.count
		e, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		if d := e.Damaged(); len(d) > 0 {
			t.Fatalf("after kill %d: damaged: %v", n+1, d)
		}
		checkStored(t, e, p.acked, p.tried)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(t.Context(), dir, Options{}, nil); err != nil || len(r.Damaged) > 0 {
			t.Fatalf("after kill %d: verify: %v %v", n+1, r.Damaged, err)
		}
	}
	t.Logf("%d changes acknowledged, none lost", total)
}

func prepareDir(t *testing.T, dir string) {
	t.Helper()
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetSpace(t.Context(), "test/4"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddRoot(t.Context(), "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkStored compares the engine with what was acknowledged; a document may
// also be in a state that was tried and not acknowledged, which it then has.
func checkStored(t *testing.T, e *Engine, acked map[string]int, tried map[string][]int) {
	t.Helper()
	ctx := t.Context()
	list, err := e.Documents(ctx, retrieve.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(map[string]int)
	for _, d := range list {
		doc, err := e.Document(ctx, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		var version int
		if _, err := fmt.Sscanf(doc.Text, "version%d", &version); err != nil {
			t.Fatalf("%s has the text %q", d.ID, doc.Text)
		}
		stored[d.Path] = version
		want, chunks := enginetest.Document("a", d.Path, versionTexts(version)...)
		if doc.Text != want.Text || d.Chunks != len(chunks) {
			t.Errorf("%s is half a document", d.ID)
		}
		var ids []string
		for _, c := range chunks {
			ids = append(ids, c.ID)
		}
		found, err := e.Candidates(ctx, ids)
		if err != nil || len(found) != len(chunks) {
			t.Fatalf("%s has %d chunks of %d: %v", d.ID, len(found), len(chunks), err)
		}
		for i, c := range found {
			if c.Chunk != chunks[i] {
				t.Errorf("%s is %+v, want %+v", c.ID, c.Chunk, chunks[i])
			}
		}
	}
	for path := range stored {
		if _, ok := acked[path]; !ok && len(tried[path]) == 0 {
			t.Errorf("a/%s came from nowhere", path)
		}
	}
	for path, want := range acked {
		got := stored[path]
		allowed := append([]int{want}, tried[path]...)
		ok := false
		for _, v := range allowed {
			ok = ok || v == got
		}
		if !ok {
			t.Errorf("a/%s has the version %d, want one of %v", path, got, allowed)
		}
	}
	for path, versions := range tried {
		if got := stored[path]; got == versions[len(versions)-1] {
			acked[path] = got
		}
	}
}

// TestProcesses has two processes write and one read one data directory at
// once: no error, and in the end everything is as it was last said to be.
func TestProcesses(t *testing.T) {
	lasting := time.Duration(datatest.Cases(t, 40)) * time.Second
	dir := t.TempDir()
	prepareDir(t, dir)
	acked := []map[string]int{{}, {}, {}}
	var all []*process
	for i, role := range []string{"write", "write", "read"} {
		all = append(all, startChild(t, role, dir, uint64(i), lasting, acked[i]))
	}
	for i, p := range all {
		<-p.ended
		if err := p.cmd.Wait(); err != nil || p.err != "" {
			t.Errorf("process %d: %v: %s", i, err, p.err)
		}
		if p.count == 0 {
			t.Errorf("process %d did nothing", i)
		}
		t.Logf("process %d: %d acknowledged", i, p.count)
	}
	e := openTest(t, dir)
	if d := e.Damaged(); len(d) > 0 {
		t.Errorf("damaged: %v", d)
	}
	for i, p := range all[:2] {
		for path, version := range acked[1-i] {
			p.acked[path] = version
		}
	}
	checkStored(t, e, acked[0], nil)
}
