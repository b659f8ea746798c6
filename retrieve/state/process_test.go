package state

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// The environment of a child process: this test binary again, as another process
// that stores documents in a data directory until it is killed.
const (
	childDir  = "IBID_TEST_STATE_DIR"
	childSeed = "IBID_TEST_STATE_SEED"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const childPaths = 12

// child changes documents, and announces each change before it begins and after it is durable.
func child(dir string) error {
	ctx := context.Background()
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for {
		path := fmt.Sprintf("%d-%d", seed%2, random.IntN(childPaths))
		version := 1 + random.IntN(1e9)
		switch random.IntN(12) {
		case 0:
			if _, _, err := Compact(ctx, dir, Options{}); err != nil {
				return err
			}
			continue
		case 1, 2:
			version = 0
		}
		fmt.Println("TRY", path, version)
		if version == 0 {
			err = s.Delete(ctx, "a/"+path)
		} else {
			err = replace(s, "a", path, versionTexts(version)...)
		}
		if err != nil {
			return err
		}
		fmt.Println("ACK", path, version)
	}
}

func versionTexts(version int) []string {
	texts := make([]string, 1+version%4)
	for i := range texts {
		texts[i] = fmt.Sprintf("version%d piece %d %s", version, i, strings.Repeat("and more words ", version%50))
	}
	return texts
}

// A process is a running child.
type process struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	acked map[string]int   // by path, the last version known to be durable; 0 means deleted
	tried map[string][]int // versions tried since
	first chan struct{}    // closed at the first acknowledgement
	once  sync.Once
	err   string
	ended chan struct{}
}

func startChild(t *testing.T, dir string, seed uint64, acked map[string]int) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &process{cmd: exec.Command(self), acked: acked, tried: make(map[string][]int),
		first: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childSeed, seed))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.note(s.Text())
		}
	}()
	return p
}

func (p *process) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := strings.Fields(line)
	if len(f) > 0 && f[0] == "ERROR" {
		p.err = line
		p.once.Do(func() { close(p.first) })
	}
	if len(f) != 3 {
		return // cut off by the kill
	}
	version, err := strconv.Atoi(f[2])
	switch {
	case err != nil:
	case f[0] == "TRY":
		p.tried[f[1]] = append(p.tried[f[1]], version)
	case f[0] == "ACK":
		p.acked[f[1]] = version
		delete(p.tried, f[1])
		p.once.Do(func() { close(p.first) })
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Kill())
	<-p.ended
	_ = p.cmd.Wait() // killed
	if p.err != "" {
		t.Errorf("the child failed: %s", p.err)
	}
}

// TestKilled repeatedly kills two processes that store in one data directory: acknowledged
// documents must be undamaged, and every other document must be in its state before or after the
// interrupted change. A third process that stays open must see the same. It is not parallel: a
// process that starts holds the locks of all files of this one, and TestDamage needs them free.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openTest(t, dir)
	ctx := ready(t, s, "a")
	random := rand.New(rand.NewPCG(5, 6))
	acked := [2]map[string]int{{}, {}}
	documents := 0
	for round := range datatest.Cases(t, 300) {
		var processes [2]*process
		for i := range processes {
			processes[i] = startChild(t, dir, uint64(2*round+i), acked[i])
		}
		for _, p := range processes {
			<-p.first
		}
		timer := time.NewTimer(time.Duration(random.IntN(60)) * time.Millisecond)
		<-timer.C
		for _, p := range processes {
			p.kill(t)
		}
		fresh, err := Open(ctx, dir, Options{})
		must(t, err)
		for i, p := range processes {
			for n := range childPaths {
				path := fmt.Sprintf("%d-%d", i, n)
				version := versionOf(t, fresh, path)
				if version != acked[i][path] && !slices.Contains(p.tried[path], version) {
					t.Errorf("round %d: %s has version %d; %d was acknowledged, then %v attempted", round, path, version, acked[i][path], p.tried[path])
				}
				if other := versionOf(t, s, path); other != version {
					t.Errorf("round %d: %s has version %d, but %d for the open process", round, path, version, other)
				}
				if acked[i][path] = version; version > 0 {
					documents++
				}
			}
		}
		if round%10 == 0 {
			var f follower
			f.same(t, fresh)
		}
		must(t, fresh.Close())
	}
	r, err := s.verify(ctx, nil)
	if err != nil || len(r.Damaged) > 0 {
		t.Errorf("verify = %+v, %v", r, err)
	}
	t.Logf("%d documents checked", documents)
}

// versionOf reads a document of a child and checks it.
func versionOf(t *testing.T, s *Store, path string) (version int) {
	t.Helper()
	doc, err := s.Document(t.Context(), "a/"+path)
	if errors.Is(err, retrieve.ErrNotFound) {
		return 0
	}
	must(t, err)
	if _, err := fmt.Sscanf(doc.Text, "version%d ", &version); err != nil {
		t.Errorf("%s has the text %q", path, doc.Text)
	}
	chunks, vectors, err := s.DocumentChunks(t.Context(), doc.ID)
	must(t, err)
	want := versionTexts(version)
	if len(chunks) != len(want) || len(vectors) != len(want) || doc.Text != strings.Join(want, "\n") {
		t.Errorf("%s is incomplete: %d of %d chunks", path, len(chunks), len(want))
	}
	return version
}
