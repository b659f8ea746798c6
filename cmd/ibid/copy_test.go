package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/state"
	"ibid/retrieve/state/statetest"
)

// manyDocuments ingests a folder of n small documents, some of several parts, and
// another of five in a collection of its own.
func manyDocuments(t *testing.T, args []string, n int) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "logs")
	writeDocuments(t, folder, n)
	other := filepath.Join(filepath.Dir(folder), "minutes")
	writeDocuments(t, other, 5)
	for path, collection := range map[string]string{folder: "default", other: "board"} {
		mustRun(t, "", append([]string{"ingest", "--collection", collection, path}, args...)...)
	}
	return folder
}

func writeDocuments(t *testing.T, folder string, n int) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		text := fmt.Sprintf("---\nauthor: Mate %d\ntags: [log, day]\n---\n# Day %d\n\nThe boat %s made %d miles.\n", i%7, i,
			filepath.Base(folder), 3*i)
		for part := range i % 4 {
			text += fmt.Sprintf("\n## Watch %d\n\nWind of force %d, and the glass stood at %d.\n", part, i%9, 990+i%50)
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("day-%03d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// placeOf parses a place on the command line.
func placeOf(t *testing.T, word string) placeConfig {
	t.Helper()
	var a placeArg
	if err := a.UnmarshalText([]byte(word)); err != nil {
		t.Fatal(err)
	}
	return a.placeConfig
}

// at returns the flag that selects a library.
func at(t *testing.T, word string) []string {
	if placeOf(t, word).remote() {
		return []string{"--store", word}
	}
	return []string{"--data", word}
}

// openHere opens a library in this process.
func openHere(t *testing.T, word string) *state.Store {
	t.Helper()
	s := surroundings{os.Getenv, nil, new(bytes.Buffer), new(bytes.Buffer)}
	store, err := openStore(t.Context(), placeOf(t, word), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func copyOf(t *testing.T, from, to string, args ...string) copied {
	t.Helper()
	stdout, stderr, code := ibid(t, "", append([]string{"copy", "--from", from, "--to", to, "--json"}, args...)...)
	var c copied
	if err := json.Unmarshal([]byte(stdout), &c); code != 0 || err != nil {
		t.Fatalf("copying: exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return c
}

// found returns what searches print for some questions.
func found(t *testing.T, word string) (out string) {
	t.Helper()
	for _, q := range []string{"How many miles on day 17?", "force 7 wind", "day-044", "board minutes"} {
		stdout, stderr, code := ibid(t, "", append([]string{"search", "--json", q}, at(t, word)...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		out += stdout
	}
	return out
}

// TestCopyKilled: a copy that is killed repeatedly sends no document twice, and
// ends with the whole library.
func TestCopyKilled(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	documents := datatest.Cases(t, 1000)
	manyDocuments(t, at(t, from), documents)
	for name, fresh := range everyStore(t) {
		t.Run(name, func(t *testing.T) {
			to := fresh(t)
			killCopies(t, from, to, documents+5)
			mustRun(t, "", append([]string{"verify"}, at(t, to)...)...)
			if got, want := found(t, to), found(t, from); got != want {
				t.Errorf("found in the copy\n%s\nwant\n%s", got, want)
			}
			// And back, where it is as it was.
			back := t.TempDir()
			if c := copyOf(t, to, back); c.Sent != documents+5 {
				t.Errorf("back: %+v", c)
			}
			if got, want := found(t, back), found(t, from); got != want {
				t.Errorf("found after the way back\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func killCopies(t *testing.T, from, to string, documents int) {
	t.Helper()
	target := openHere(t, to)
	count := func() int {
		n, _, err := target.Count(t.Context(), retrieve.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, random := 0, datatest.Rand(t)
	for before < documents/2 {
		cmd := command(t.Context(), "", "copy", "--from", from, "--to", to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until := min(before+1+random.IntN(documents/2), documents/2)
		eventually(t, "some documents to be copied", func() bool { return count() >= until })
		_ = cmd.Process.Kill() // it may be done already
		if err := cmd.Wait(); err == nil {
			before = count()
			break
		}
		t.Logf("killed at %d of %d documents", count(), documents)
		before = count()
	}
	c := copyOf(t, from, to)
	// A server may have stored documents in transit after the count.
	const underWay = 8
	if c.Sent > documents-before || c.Sent < documents-before-underWay || c.Documents != documents {
		t.Errorf("after %d: %+v", before, c)
	}
}

// TestCopyAlone: one collection, keys on request, and a target with documents of
// its own.
func TestCopyAlone(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	manyDocuments(t, at(t, from), 12)
	key, stderr, code := ibid(t, "", append([]string{"keys", "make", "reader"}, at(t, from)...)...)
	if code != 0 {
		t.Fatal(stderr)
	}
	for name, fresh := range everyStore(t) {
		t.Run(name, func(t *testing.T) {
			to := fresh(t)
			own := filepath.Join(t.TempDir(), "own")
			writeDocuments(t, own, 3)
			mustRun(t, "", append([]string{"ingest", own}, at(t, to)...)...)
			c := copyOf(t, from, to, "--collection", "board")
			if c.Documents != 5 || len(c.Roots) != 1 || c.Roots[0].Name != "minutes" || c.Keys != 0 {
				t.Errorf("%+v", c)
			}
			if ring, err := openHere(t, to).Keyring().Ring(t.Context()); err != nil || len(ring.Keys) > 0 {
				t.Errorf("keys %v, %v", ring.Keys, err)
			}
			if c = copyOf(t, from, to, "--keys"); c.Documents != 17 || c.Sent != 12 || c.Keys != 1 {
				t.Errorf("%+v", c)
			}
			ring, err := openHere(t, to).Keyring().Ring(t.Context())
			if err != nil || len(ring.Keys) != 1 || ring.Keys[0].Name != "reader" || key == "" {
				t.Errorf("keys %v, %v", ring.Keys, err)
			}
			if c = copyOf(t, from, to, "--keys"); c.Sent != 0 || c.Keys != 0 {
				t.Errorf("again: %+v", c)
			}
			if n, _, err := openHere(t, to).Count(t.Context(), retrieve.Filter{}); n != 20 || err != nil {
				t.Errorf("%d documents, %v", n, err)
			}
		})
	}
}

// TestCopyRefused: a target with another folder of the same name, or the same in
// another collection, stays unchanged; the error says what to do.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	folder := manyDocuments(t, at(t, from), 3)
	other := filepath.Join(t.TempDir(), "logs")
	writeDocuments(t, other, 2)
	for _, args := range [][]string{{other}, {"--collection", "other", folder}} {
		to := t.TempDir()
		mustRun(t, "", append(append([]string{"ingest"}, args...), at(t, to)...)...)
		before, err := openHere(t, to).Documents(t.Context(), retrieve.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		_, stderr, code := ibid(t, "", "copy", "--from", from, "--to", to)
		if code != exitFailed || !strings.Contains(stderr, `the root "logs" `) || !strings.Contains(stderr, "nothing was copied") ||
			!strings.Contains(stderr, "'ibid forget'") || strings.Contains(stderr, "to resume") {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if after, err := openHere(t, to).Documents(t.Context(), retrieve.Filter{}); err != nil || len(after) != len(before) {
			t.Errorf("%d documents, before %d; %v", len(after), len(before), err)
		}
	}
}

// everyStore returns the kinds of stores that can be tested here, each with a
// function that creates an empty one.
func everyStore(t *testing.T) map[string]func(t testing.TB) string {
	stores := servedStores(t)
	stores["data directory"] = func(t testing.TB) string { return t.TempDir() }
	return stores
}

// servedStores is everyStore for stores on servers.
func servedStores(t *testing.T) map[string]func(t testing.TB) string {
	stores := make(map[string]func(t testing.TB) string)
	if server := os.Getenv(statetest.Env); server != "" {
		stores["postgres"] = func(t testing.TB) string { return statetest.Schema(t, server) }
	} else {
		t.Logf("PostgreSQL is left out: %s names no server (.ci/postgres starts one)", statetest.Env)
	}
	return stores
}
