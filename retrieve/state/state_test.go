package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

// onBothDialects runs a test over both dialects. The argument address is the address of a new library.
func onBothDialects(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "data")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, statetest.Schema(t)) })
}

func openTest(t testing.TB, address string) *Store {
	t.Helper()
	s, err := Open(context.Background(), address, Options{})
	must(t, err)
	s.limits = testLimits
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// must fails the test with the driver's error too.
func must(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		t.Fatalf("%v, because of: %v", err, f.err)
	}
	t.Fatal(err)
}

func TestTransactions(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		ctx := t.Context()
		s, other := openTest(t, address), openTest(t, address)
		name, err := s.Library(ctx)
		must(t, err)
		if again, err := other.Library(ctx); name == "" || again != name || err != nil {
			t.Errorf("Library = %q, on another handle %q, %v", name, again, err)
		}
		const odd = "\x00\xff ü"
		must(t, s.update(ctx, func(t *tx) { t.set("odd", odd) }))
		stop := errors.New("stop")
		if err := s.update(ctx, func(t *tx) {
			t.set("odd", "changed")
			check(stop)
		}); !errors.Is(err, stop) {
			t.Errorf("failed update: err = %v", err)
		}
		must(t, other.view(ctx, func(tx *tx) {
			if value := tx.setting("odd"); value != odd {
				t.Errorf("setting = %q", value)
			}
		}))
		must(t, s.update(ctx, func(t *tx) { t.set("n", "") }))
		var done sync.WaitGroup
		const rounds = 20
		for _, s := range []*Store{s, other} {
			done.Go(func() {
				for range rounds {
					err := s.update(ctx, func(t *tx) {
						t.lock("n")
						t.set("n", t.setting("n")+"x")
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		must(t, s.view(ctx, func(tx *tx) {
			if value := tx.setting("n"); len(value) != 2*rounds {
				t.Errorf("%d of %d updates were counted", len(value), 2*rounds)
			}
		}))
		must(t, s.Close())
		if _, err := s.Library(ctx); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("Library of a closed store: err = %v", err)
		}
	})
}

// TestErrLayout opens a library of another version, which must be named in the error and stay
// unchanged.
func TestErrLayout(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		s := openTest(t, address)
		for number, remedy := range map[int]string{99: "update ibid", 5: "delete it and ingest its folders again"} {
			must(t, s.update(t.Context(), func(t *tx) {
				if s.dir == "" {
					t.exec(`DELETE FROM ibid.migrations`)
				}
				s.setLayout(t, number)
			}))
			_, opened := Open(t.Context(), address, Options{})
			_, verified := Verify(t.Context(), address, Options{}, nil)
			_, copied := Backup(t.Context(), address, filepath.Join(t.TempDir(), "copy.db"), Options{}, nil)
			for _, err := range []error{opened, verified, copied} {
				if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), remedy) {
					t.Errorf("layout %d: %v", number, err)
				}
			}
		}
	})
}

// TestWait makes a server unreachable for a minute. A call must give up after its own wait or the
// store's, whichever is shorter.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		own, store time.Duration // own wait; 0 means none
		ok         bool
	}{{10 * time.Second, time.Hour, false}, {0, 20 * time.Second, false}, {time.Hour, 20 * time.Second, false},
		{time.Hour, 2 * time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, most := t.Context(), c.store
			if c.own > 0 {
				ctx, most = retrieve.WithWait(ctx, c.own), min(c.own, c.store)
			}
			start := time.Now()
			err := (&Store{maxPause: 2 * time.Second}).retry(ctx, c.store, func() error {
				if time.Since(start) > time.Minute {
					return nil
				}
				return &failure{message: "away", unavailable: true}
			})
			passed := time.Since(start)
			if ok := err == nil; ok != c.ok || !ok && !errors.Is(err, retrieve.ErrUnavailable) || passed > most ||
				passed < min(most, time.Minute)/2 {
				t.Errorf("own wait %v, the store's %v: err = %v after %v", c.own, c.store, err, passed)
			}
		})
	}
}

// TestTypesOfColumns checks that the rows of a damaged file can be distinguished by the
// types of their columns.
func TestTypesOfColumns(t *testing.T) {
	tables := regexp.MustCompile(`(?ms)^CREATE TABLE ibid\.(\w+) \(\n(.*?)^\);`)
	columns := regexp.MustCompile(`(?m)^\t(\w+)\s+(ID|INT|BYTES|SERIAL)\b`)
	known := make(map[string]string)
	for _, table := range tables.FindAllStringSubmatch(schema, -1) {
		var types []string
		sum := false
		for _, c := range columns.FindAllStringSubmatch(table[2], -1) {
			types = append(types, c[2])
			sum = sum || c[1] == "sum"
		}
		signature := strings.Join(types, " ")
		if other := known[signature]; other != "" && sum && table[1] != other+"_copy" {
			t.Errorf("tables %s and %s have the same types: %s", table[1], other, signature)
		}
		if sum {
			known[signature] = table[1]
		}
	}
	if len(known) < 10 {
		t.Errorf("%d tables, want at least 10", len(known))
	}
}

func TestKindOf(t *testing.T) {
	const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/ann/far rw,nosuid shared:2 - fuse.sshfs ann@far:/srv rw,user_id=1000
31 30 0:41 / /home/ann/far/near rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/my\040cloud rw - fuse.rclone remote: rw
33 22 0:43 / /mnt/disk rw - fuseblk /dev/sdc1 rw
34 22 0:44 / /mnt/auto rw - autofs systemd-1 rw
35 22 0:45 / /mnt/auto rw - nfs4 far:/srv rw
a line that says nothing
`
	for _, row := range datatest.Rows(t, "testdata/mounts.txt", "kinds") {
		if got := kindOf(mounts, row[0]); got != row[1] {
			t.Errorf("kindOf(%q) = %q, want %q", row[0], got, row[1])
		}
	}
}

// newDocument returns a document of the root with one chunk for each text.
func newDocument(root, path string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{
		ID: root + "/" + path, Root: root, Path: path, Title: "Title of " + path, Format: "text",
		Digest: fmt.Sprintf("%x", strings.Join(texts, "|")), Text: strings.Join(texts, "\n"),
		Sections: []ingest.Section{{Heading: "All", Level: 1, Anchor: "all", End: len(strings.Join(texts, "\n"))}},
		Meta:     map[string]string{"author": "Ann <b>"},
	}
	if strings.HasSuffix(path, ".md") {
		doc.Format = "markdown"
	}
	var chunks []ingest.Chunk
	at := 0
	for i, text := range texts {
		chunks = append(chunks, ingest.Chunk{
			ID: fmt.Sprintf("%s#%d", doc.ID, i+1), Document: doc.ID, Ordinal: i + 1, Start: at, End: at + len(text),
			Heading: "All", Anchor: "all", Line: i + 1, Text: text, Tokens: len(strings.Fields(text)),
		})
		at += len(text) + 1
	}
	return doc, chunks
}

// vectorAt returns the unit vector at an angle in degrees.
func vectorAt(angle float64) []float32 {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0}
}
