package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/retrieve/state"
)

// A document whose stored text was changed on the disk is named and left out;
// the rest answers, and ingesting the folder again mends it.
func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	mustRun(t, data, "ingest", folder)
	file := filepath.Join(data, state.FileName)
	stored, err := os.ReadFile(file)
	must(t, err)
	changed := bytes.ReplaceAll(stored, []byte("slipway"), []byte("slipwax"))
	if bytes.Equal(stored, changed) {
		t.Fatal("the text is not in the file")
	}
	must(t, os.WriteFile(file, changed, 0o644))
	out, errs, code := ibid(t, data, "verify")
	if code != exitDamage || !strings.Contains(out, "damage in ") || !strings.Contains(out, "/boats.md: its text is damaged") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = ibid(t, data, "ask", "When does the chart room open?")
	if code != 0 || !strings.Contains(out, "opens at nine") || !strings.Contains(errs, "damage in ") ||
		!strings.Contains(errs, "/boats.md: ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = ibid(t, data, "search", "slipway")
	if code != 0 || strings.Contains(out, "slipwax") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := ibid(t, data, "ingest", folder); code != 0 || !strings.Contains(out, "boats.md") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := ibid(t, data, "search", "slipway"); code != 0 || strings.Contains(errs, "damage") ||
		!strings.Contains(out, "slipway") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// The command that sets a damaged database aside names the lost documents: the
// next one does not know of them.
func TestLossIsNamedOnce(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"reembed"}, {"forget", "docs"}, {"search", "slipway"}} {
		data := t.TempDir()
		must(t, os.WriteFile(filepath.Join(data, state.FileName), nil, 0o600))
		_, errs, _ := ibid(t, data, command...)
		if n := strings.Count(errs, "damage in "); n != 1 || !strings.Contains(errs, "the damaged file is kept as damaged-") {
			t.Errorf("%q: damage is named %d times: %s", command, n, errs)
		}
		if _, errs, _ = ibid(t, data, command...); strings.Contains(errs, "damage") {
			t.Errorf("%q again: %s", command, errs)
		}
	}
}

// A database that cannot be compacted for its damage is damage found.
func TestCompactDamage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	must(t, os.WriteFile(filepath.Join(data, state.FileName), bytes.Repeat([]byte("no database "), 4096), 0o600))
	if out, errs, code := ibid(t, data, "compact"); code != exitDamage || !strings.Contains(errs, "'ibid doctor' repairs it") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
