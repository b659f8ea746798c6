package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ibid/retrieve/embed/encoder"
)

// TestInstalledPart checks that parts installed with the program are found: those in the
// data directory first, then those next to the program.
func TestInstalledPart(t *testing.T) {
	t.Parallel()
	root, data := t.TempDir(), t.TempDir()
	program := filepath.Join(root, "bin", "ibid")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	this, err := os.Executable()
	must(t, err)
	binary, err := os.ReadFile(this)
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	must(t, os.WriteFile(program, binary, 0o755))
	doctor := func() string {
		cmd := command(t.Context(), data, "doctor")
		cmd.Path, cmd.Err = program, nil
		out, _ := cmd.Output() // doctor fails, since it finds a damaged part
		return string(out)
	}
	for _, folder := range []string{filepath.Join(root, "share", "ibid"), filepath.Join(root, "bin"), data} {
		part := filepath.Join(folder, encoder.FileName(encoder.English))
		must(t, os.MkdirAll(folder, 0o755))
		must(t, os.WriteFile(part, []byte("IBIDENC1 and no more"), 0o600))
		if out := doctor(); !strings.Contains(out, part) {
			t.Errorf("part in %s is not used:\n%s", folder, out)
		}
	}
}

// emptyModel writes a part, named after its file, with weights of zero.
func emptyModel(t *testing.T, path string) {
	shapes := map[string][]int{"embeddings.word_embeddings.weight": {3, 64}, "embeddings.position_embeddings.weight": {3, 64},
		"embeddings.token_type_embeddings.weight": {2, 64}}
	for name, matrix := range map[string]bool{"attention.self.query": true, "attention.self.key": true, "attention.self.value": true,
		"attention.output.dense": true, "attention.output.LayerNorm": false, "intermediate.dense": true, "output.dense": true,
		"output.LayerNorm": false, "embeddings.LayerNorm": false} {
		if !strings.HasPrefix(name, "embeddings") {
			name = "encoder.layer.0." + name
		}
		shapes[name+".weight"], shapes[name+".bias"] = []int{64}, []int{64}
		if matrix {
			shapes[name+".weight"] = []int{64, 64}
		}
	}
	header, size := make(map[string]any), 0
	for name, shape := range shapes {
		start := size
		size += 4 * shape[0] * append(shape, 1)[1]
		header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{start, size}}
	}
	text, err := json.Marshal(header)
	must(t, err)
	weights := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, make([]byte, size))
	var file bytes.Buffer
	part := encoder.Part{Facts: encoder.Facts{Name: filepath.Base(path), Heads: 2, Epsilon: 1e-12, Pooling: "mean", MaxTokens: 3},
		Weights: fmt.Sprintf("%x", sha256.Sum256(weights)), Vocabulary: fmt.Sprintf("%x", sha256.Sum256([]byte("[UNK]\n[CLS]\n[SEP]\n")))}
	must(t, part.Make(&file, weights, []byte(`{"model": {"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}}}`)))
	must(t, os.WriteFile(path, file.Bytes(), 0o600))
}

// TestServeUsesParts checks that a running server uses a part as soon as it is installed
// next to the program, and then a better one.
func TestServeUsesParts(t *testing.T) {
	t.Parallel()
	data := ingested(t, hours)
	server := start(t, data)
	for _, part := range []string{encoder.English, encoder.Multilingual, encoder.EnglishLarge} {
		emptyModel(t, filepath.Join(data, encoder.FileName(part)))
		if part != encoder.EnglishLarge {
			eventually(t, part+" to be used", func() bool {
				return strings.Contains(server.log.String(), "encoder="+encoder.FileName(part))
			})
		}
		if out := mustRun(t, data, "search", "When does the chart room open?"); !strings.Contains(out, "opens at nine") {
			t.Errorf("search with %s = %s", part, out)
		}
	}
	server.stop()
	if log := server.log.String(); strings.Contains(log, "encoder="+encoder.FileName(encoder.EnglishLarge)) ||
		strings.Contains(log, "level=ERROR") {
		t.Errorf("log names the large encoder or has errors:\n%s", log)
	}
}

// TestDamagedPartSkipped checks that if the part in the data directory can't be opened, another is
// used and the error names both.
func TestDamagedPartSkipped(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	must(t, err)
	data, name := t.TempDir(), "passed-over"
	bad, good := filepath.Join(data, encoder.FileName(name)), filepath.Join(filepath.Dir(program), encoder.FileName(name))
	must(t, os.WriteFile(bad, []byte("IBIDENC1 and no more"), 0o600))
	emptyModel(t, good)
	m, err := openPart(data, name)
	if m == nil || err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), good+" is used instead") {
		t.Fatalf("embedder = %v, err = %v; want the good part, and an error that names both", m, err)
	}
	must(t, m.Close())
	must(t, os.Remove(good))
	if _, err := openPart(data, name); !errors.Is(err, encoder.ErrFile) {
		t.Error(err)
	}
}
