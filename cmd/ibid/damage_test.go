package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/retrieve/local"
)

// A document whose stored text was changed on the disk is named and left out;
// the rest answers, and ingesting the folder again mends it.
func TestDamageIsNamed(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	file := filepath.Join(data, local.FileName)
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(stored, []byte("slipway"), []byte("slipwax"))
	if bytes.Equal(stored, changed) {
		t.Fatal("the text is not in the file")
	}
	if err := os.WriteFile(file, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs, code := ibid(t, data, "verify")
	if code != exitDamage || !strings.Contains(out, "damage in ") || !strings.Contains(out, "/boats.md: its chunk 1 is damaged: ingest it again") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = ibid(t, data, "ask", "When does the chart room open?")
	if code != 0 || !strings.Contains(out, "opens at nine") || !strings.Contains(errs, "damage in ") || !strings.Contains(errs, "/boats.md: ") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	out, errs, code = ibid(t, data, "search", "slipway")
	if code != 0 || strings.Contains(out, "slipwax") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := ibid(t, data, "ingest", folder); code != 0 || !strings.Contains(out, "boats.md") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := ibid(t, data, "search", "slipway"); code != 0 || strings.Contains(errs, "damage") || !strings.Contains(out, "slipway") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
