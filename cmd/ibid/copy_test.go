package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/state"
	"ibid/retrieve/state/statetest"
)

// manyDocuments ingests a folder of n small documents, some of them long enough for several
// chunks, and a folder of five into another collection.
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
	must(t, os.MkdirAll(folder, 0o700))
	for i := range n {
		text := fmt.Sprintf("---\nauthor: Mate %d\ntags: [log, day]\n---\n# Day %d\n\nThe boat %s made %d miles.\n", i%7, i,
			filepath.Base(folder), 3*i)
		for part := range i % 4 {
			text += fmt.Sprintf("\n## Watch %d\n\nWind of force %d, and the glass stood at %d.\n", part, i%9, 990+i%50)
		}
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("day-%03d.md", i)), []byte(text), 0o600))
	}
}

// placeOf parses a place as the command line does.
func placeOf(t *testing.T, word string) placeConfig {
	t.Helper()
	var p placeConfig
	must(t, p.Store.UnmarshalText([]byte(word)))
	must(t, p.AfterApply())
	return p
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
	s := surroundings{getenv: os.Getenv, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	store, err := openStore(t.Context(), placeOf(t, word), s)
	must(t, err)
	t.Cleanup(func() {
		must(t, store.Close())
	})
	return store
}

// found returns the output of searches for some questions.
func found(t *testing.T, word string) (out string) {
	t.Helper()
	for _, q := range []string{"How many miles on day 17?", "force 7 wind", "day-044", "board minutes"} {
		out += mustRun(t, "", append([]string{"search", "--json", q}, at(t, word)...)...)
	}
	return out
}

// TestCopy copies a library there and back: its documents, answers and keys. A
// copy that is killed leaves no library.
func TestCopy(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	documents := datatest.Cases(t, 1000)
	manyDocuments(t, at(t, from), documents)
	makeKey(t, "", append([]string{"reader"}, at(t, from)...)...)
	for name, fresh := range everyStore(t) {
		t.Run(name, func(t *testing.T) {
			to, back := fresh(t), t.TempDir()
			random := datatest.Rand(t)
			for range 3 {
				cmd := command(t.Context(), "", "copy", "--from", from, "--to", to)
				must(t, cmd.Start())
				eventually(t, "some time to pass", func() bool { return random.IntN(20) == 0 })
				_ = cmd.Process.Kill() // the copy may already have finished
				if cmd.Wait() == nil {
					break
				}
			}
			if n, _, err := openHere(t, to).Count(t.Context(), retrieve.Filter{}); err != nil || n != 0 && n != documents+5 {
				t.Errorf("library has %d of %d documents after the copy was killed, err = %v", n, documents+5, err)
			} else if n == 0 {
				to = fresh(t)
				mustRun(t, "", "copy", "--from", from, "--to", to)
			}
			mustRun(t, "", "copy", "--from", to, "--to", back)
			for _, place := range []string{to, back} {
				mustRun(t, "", append([]string{"verify"}, at(t, place)...)...)
				if got, want := found(t, place), found(t, from); got != want {
					t.Errorf("searches in %s found\n%s\nwant\n%s", place, got, want)
				}
				ring, err := openHere(t, place).Keyring().Ring(t.Context())
				if err != nil || len(ring.Keys) != 1 || ring.Keys[0].Name != "reader" {
					t.Errorf("keys of the copy = %v, %v; want reader", ring.Keys, err)
				}
				_, stderr, code := ibid(t, "", "copy", "--from", from, "--to", place)
				if code != exitUsage || !strings.Contains(stderr, "has a library") {
					t.Errorf("second copy: exit code = %d, stderr = %s; want %d", code, stderr, exitUsage)
				}
			}
			// Each library can grow by itself.
			more := filepath.Join(t.TempDir(), "more")
			writeDocuments(t, more, 3)
			mustRun(t, "", append([]string{"ingest", more}, at(t, to)...)...)
			if n, _, err := openHere(t, to).Count(t.Context(), retrieve.Filter{}); err != nil || n != documents+8 {
				t.Errorf("Count = %d, %v; want %d", n, err, documents+8)
			}
		})
	}
}

// everyStore returns the kinds of stores that can be tested on this machine, each with a
// function that creates an empty one.
func everyStore(t *testing.T) map[string]func(t testing.TB) string {
	stores := servedStores(t)
	stores["data directory"] = func(t testing.TB) string { return t.TempDir() }
	return stores
}

// servedStores is everyStore without the local store.
func servedStores(t *testing.T) map[string]func(t testing.TB) string {
	stores := make(map[string]func(t testing.TB) string)
	if os.Getenv(statetest.Env) != "" {
		stores["postgres"] = func(t testing.TB) string { return statetest.Schema(t) }
	} else {
		t.Logf("PostgreSQL is skipped: %s is not set (.ci/postgres starts a server)", statetest.Env)
	}
	return stores
}

// TestStoreURLKeepsSecrets checks that no message about an address has its password,
// however malformed the address is.
func TestStoreURLKeepsSecrets(t *testing.T) {
	t.Parallel()
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "secrets") {
		address := row[0]
		var u storeURL
		if err := u.UnmarshalText([]byte(address)); err != nil && strings.Contains(err.Error(), "Tr0ub4dor") {
			t.Errorf("UnmarshalText(%q) shows the password: %v", address, err)
		}
		if shown := u.String(); strings.Contains(shown, "Tr0ub4dor") {
			t.Errorf("storeURL(%q).String() shows the password: %s", address, shown)
		}
	}
	shown := storeURL{url: &url.URL{Scheme: "postgres", User: url.UserPassword("ibid", "x"), Host: "db:5433", Path: "/library",
		RawQuery: "sslmode=require&password=y"}}.String()
	if shown != "postgres://ibid@db:5433/library" {
		t.Errorf("String() = %s, want no password", shown)
	}
}

func TestStorePassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("of the/file\n"), 0o600))
	for _, test := range []struct{ address, file, environment, want string }{
		{"postgres://ibid@db/library", "", "", ""},
		{"postgres://ibid@db/library", "", "variable", "variable"},
		{"postgres://ibid:own@db/library", "", "variable", "own"},
		{"postgres://ibid:own@db/library", file, "variable", "of the/file"},
	} {
		parsed, err := url.Parse(test.address)
		must(t, err)
		before := parsed.String()
		address, err := placeConfig{Store: storeURL{url: parsed}, StorePasswordFile: test.file}.address(test.environment)
		must(t, err)
		got, err := url.Parse(address)
		must(t, err)
		if password, _ := got.User.Password(); password != test.want {
			t.Errorf("address %s, file %q, variable %q: password = %q, want %q", test.address, test.file, test.environment, password, test.want)
		}
		if parsed.String() != before {
			t.Errorf("address changed from %s to %s", before, parsed)
		}
	}
	if _, err := (placeConfig{Store: storeURL{url: &url.URL{}}, StorePasswordFile: file + "2"}).address("x"); err == nil {
		t.Error("no error for a password file that doesn't exist")
	}
}
