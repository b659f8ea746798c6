package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rows of a damaged file are distinguished by the types of their columns.
func TestTypesOfColumns(t *testing.T) {
	tables := regexp.MustCompile(`(?ms)^CREATE TABLE ibid\.(\w+) \(\n(.*?)^\);`)
	columns := regexp.MustCompile(`(?m)^\t(\w+)\s+(ID|INT|BYTES|SERIAL)\b`)
	known := make(map[string]string)
	names, err := schema.ReadDir("schema")
	must(t, err)
	for _, file := range names {
		text, err := schema.ReadFile("schema/" + file.Name())
		must(t, err)
		for _, table := range tables.FindAllStringSubmatch(string(text), -1) {
			var types []string
			sum := false
			for _, c := range columns.FindAllStringSubmatch(table[2], -1) {
				types = append(types, c[2])
				sum = sum || c[1] == "sum"
			}
			signature := strings.Join(types, " ")
			if other := known[signature]; other != "" && sum && table[1] != other+"_copy" {
				t.Errorf("the tables %s and %s have the same types: %s", table[1], other, signature)
			}
			if sum {
				known[signature] = table[1]
			}
		}
	}
	if len(known) < 10 {
		t.Errorf("%d tables", len(known))
	}
}

// TestEarlierUntouched checks that a library of an earlier layout is refused and
// not changed.
func TestEarlierUntouched(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	must(t, err)
	must(t, s.update(t.Context(), func(t *tx) error { return s.setLayout(t, firstLayout-1) }))
	must(t, s.Close())
	file := filepath.Join(dir, FileName)
	before, err := os.ReadFile(file)
	must(t, err)
	_, opened := Open(t.Context(), dir, Options{})
	_, verified := Verify(t.Context(), dir, Options{}, nil)
	_, copied := Backup(t.Context(), dir, filepath.Join(t.TempDir(), "copy.db"), Options{}, nil)
	for _, err := range []error{opened, verified, copied} {
		if !errors.Is(err, errEarlier) {
			t.Errorf("%v, want %v", err, errEarlier)
		}
	}
	if after, err := os.ReadFile(file); !bytes.Equal(before, after) || err != nil {
		t.Errorf("the file has changed, %v", err)
	}
}

// TestNoFile checks that a pipe or folder in place of a file of the data directory
// is refused, and that a database that is replaced while it is open is noticed.
func TestNoFile(t *testing.T) {
	for _, name := range []string{FileName, FileName + "-wal", lockName} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), name+" is not a file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	must(t, err)
	defer s.Close()
	other, err := Open(t.Context(), t.TempDir(), Options{})
	must(t, err)
	must(t, other.Close())
	must(t, os.Rename(other.place, filepath.Join(dir, FileName)))
	_, _, revision := s.Revision(t.Context())
	_, documents := s.Roots(t.Context())
	_, err = s.AddRoot(t.Context(), "/srv/a", "")
	for _, err := range []error{revision, documents, err} {
		if err == nil || !strings.Contains(err.Error(), "removed or replaced") {
			t.Error(err)
		}
	}
}
