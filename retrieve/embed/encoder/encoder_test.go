package encoder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve/embed/encoder/kernel"
)

var must = datatest.Must

var tiny = struct {
	facts Facts
	shape Shape
	words []string
}{
	Facts{Name: "tiny", Heads: 2, Epsilon: 1e-12, Pooling: meanPooling, MaxTokens: 40},
	Shape{Layers: 2, Width: 64, Inner: 128, Words: 16, Positions: 48},
	[]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "cafe", "har", "##bour", "##s", "!", "灯", "a", "##a", "light", "[", "]", "b"},
}

// tinyTensors are random weights of the tiny model, by name, with their shapes.
func tinyTensors() (shapes map[string][]int, data map[string][]float32) {
	s := tiny.shape
	shapes = map[string][]int{
		"embeddings.word_embeddings.weight": {s.Words, s.Width}, "embeddings.position_embeddings.weight": {s.Positions, s.Width},
		"embeddings.token_type_embeddings.weight": {2, s.Width},
	}
	dense := func(name string, out, in int) {
		shapes[name+".weight"], shapes[name+".bias"] = []int{out, in}, []int{out}
	}
	norm := func(name string) { shapes[name+".weight"], shapes[name+".bias"] = []int{s.Width}, []int{s.Width} }
	norm("embeddings.LayerNorm")
	for i := range s.Layers {
		l := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			dense(l+"attention."+name, s.Width, s.Width)
		}
		dense(l+"intermediate.dense", s.Inner, s.Width)
		dense(l+"output.dense", s.Width, s.Inner)
		norm(l + "attention.output.LayerNorm")
		norm(l + "output.LayerNorm")
	}
	r := rand.New(rand.NewPCG(1, 2))
	data = make(map[string][]float32)
	for _, name := range sortedKeys(shapes) {
		n := shapes[name][0]
		if len(shapes[name]) == 2 {
			n *= shapes[name][1]
		}
		for range n {
			data[name] = append(data[name], float32(r.NormFloat64()*.2))
		}
	}
	return shapes, data
}

func sortedKeys[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tinyCheckpoint returns the safetensors file of the tiny model.
func tinyCheckpoint(t testing.TB) []byte {
	shapes, tensors := tinyTensors()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, name := range sortedKeys(shapes) {
		start := len(data)
		for _, x := range tensors[name] {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		header["bert."+name] = map[string]any{"dtype": "F32", "shape": shapes[name], "data_offsets": []int{start, len(data)}}
	}
	text, err := json.Marshal(header)
	must(t, err)
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, data)
}

func tinyModel(t testing.TB) (*Model, []byte) {
	var file bytes.Buffer
	must(t, convert(&file, tiny.facts, "", tinyCheckpoint(t), tiny.words))
	path := filepath.Join(t.TempDir(), FileName("tiny"))
	must(t, os.WriteFile(path, file.Bytes(), 0o600))
	m, err := Open(path)
	must(t, err)
	t.Cleanup(func() {
		must(t, m.Close())
	})
	return m, file.Bytes()
}

// reference computes the vector of a text in float64, directly from the tensors.
func reference(weights tensors, heads int, ids []int32) []float64 {
	shape := weights.shape(0)
	width := shape.Width
	dense := func(name string, rows [][]float64) [][]float64 {
		weights, bias := weights(name+".weight"), weights(name+".bias")
		out := make([][]float64, len(rows))
		for i, row := range rows {
			for j, b := range bias {
				sum := float64(b)
				for l, w := range weights[j*len(row):][:len(row)] {
					sum += row[l] * float64(w)
				}
				out[i] = append(out[i], sum)
			}
		}
		return out
	}
	norm := func(name string, x, y [][]float64) {
		gain, shift := weights(name+".weight"), weights(name+".bias")
		for i := range x {
			var mean, variance float64
			for j := range x[i] {
				x[i][j] += y[i][j]
				mean += x[i][j] / float64(width)
			}
			for _, v := range x[i] {
				variance += (v - mean) * (v - mean) / float64(width)
			}
			for j, v := range x[i] {
				x[i][j] = (v-mean)/math.Sqrt(variance+1e-12)*float64(gain[j]) + float64(shift[j])
			}
		}
	}
	x, y := make([][]float64, len(ids)), make([][]float64, len(ids))
	words, positions, segment := weights(wordVectors), weights(positionVectors), weights("embeddings.token_type_embeddings.weight")
	for i, id := range ids {
		x[i], y[i] = make([]float64, width), make([]float64, width)
		word, position := words[int(id)*width:], positions[i*width:]
		for j := range width {
			x[i][j], y[i][j] = float64(word[j]), float64(position[j]+segment[j])
		}
	}
	norm("embeddings.LayerNorm", x, y)
	for i := range shape.Layers {
		l := fmt.Sprintf("encoder.layer.%d.", i)
		q, k, v := dense(l+"attention.self.query", x), dense(l+"attention.self.key", x), dense(l+"attention.self.value", x)
		joined := make([][]float64, len(x))
		for at := range x {
			joined[at] = make([]float64, width)
			for head := 0; head < width; head += width / heads {
				var total float64
				sum := make([]float64, width/heads)
				for other := range x {
					var score float64
					for d := head; d < head+width/heads; d++ {
						score += q[at][d] * k[other][d]
					}
					weight := math.Exp(score / math.Sqrt(float64(width/heads)))
					total += weight
					for d := range sum {
						sum[d] += weight * v[other][head+d]
					}
				}
				for d := range sum {
					joined[at][head+d] = sum[d] / total
				}
			}
		}
		norm(l+"attention.output.LayerNorm", x, dense(l+"attention.output.dense", joined))
		inner := dense(l+"intermediate.dense", x)
		for _, row := range inner {
			for j, u := range row {
				row[j] = u / 2 * (1 + math.Erf(u/math.Sqrt2))
			}
		}
		norm(l+"output.LayerNorm", x, dense(l+"output.dense", inner))
	}
	mean := make([]float64, width)
	for _, row := range x {
		for j, u := range row {
			mean[j] += u
		}
	}
	return mean
}

// tinyReference is reference for the tiny model.
func tinyReference(t testing.TB, ids []int32) []float64 {
	weights, err := readCheckpoint(tinyCheckpoint(t))
	must(t, err)
	return reference(weights, tiny.facts.Heads, ids)
}

func cosine[A, B float32 | float64](a []A, b []B) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot, aa, bb = dot+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

// TestReference compares complete models with the definition for each kernel, and texts embedded
// together with texts embedded alone.
func TestReference(t *testing.T) {
	m, _ := tinyModel(t)
	texts := []string{"", "Harbours", "a light café!", strings.Repeat("harbour light b ", 30), "灯[a]", strings.Repeat("a ", 33)}
	for _, m.kernel = range kernel.Kernels {
		together, err := m.EmbedPassages(t.Context(), texts, m.MaxTokens)
		must(t, err)
		for i, text := range texts {
			alone, err := m.EmbedQuestion(t.Context(), text)
			must(t, err)
			if !slices.Equal(alone, together[i]) {
				t.Errorf("%s: vector of %q depends on the other texts", m.kernel.Name, text)
			}
			if c := cosine(alone, tinyReference(t, m.vocabulary.tokens(text, m.MaxTokens))); c < .998 {
				t.Errorf("%s: cosine of %q with the reference = %v", m.kernel.Name, text, c)
			}
		}
	}
}

// checkTokens compares the pieces of texts with a section of a file.
func checkTokens(t *testing.T, m *Model, words []string, section string) {
	t.Helper()
	for _, row := range datatest.Rows(t, "testdata/pieces.txt", section) {
		limit, err := strconv.Atoi(row[2])
		must(t, err)
		var got []string
		for _, id := range m.vocabulary.tokens(row[0], limit) {
			got = append(got, words[id])
		}
		if s := strings.Join(got, " "); s != row[1] {
			t.Errorf("%q: %s, want %s", row[0], s, row[1])
		}
	}
}

func TestTokens(t *testing.T) {
	m, _ := tinyModel(t)
	checkTokens(t, m, tiny.words, "words")
}

// TestMake checks that weights and words of other models are refused.
func TestMake(t *testing.T) {
	weights := tinyCheckpoint(t)
	ids := make(map[string]int)
	for id, word := range tiny.words {
		ids[word] = id
	}
	tokenizer, err := json.Marshal(map[string]any{"model": map[string]any{"type": "WordPiece", "vocab": ids}})
	must(t, err)
	part := Part{Facts: tiny.facts, File: weightsFile, Weights: fmt.Sprintf("%x", sha256.Sum256(weights)),
		Vocabulary: fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(tiny.words, "\n")+"\n")))}
	for says, files := range map[string][2][]byte{
		"":                           {weights, tokenizer},
		"not the weights of tiny":    {append(slices.Clone(weights[:99]), 7), tokenizer},
		"not the vocabulary of tiny": {weights, bytes.Replace(tokenizer, []byte("light"), []byte("night"), 1)},
		"gives the id 0":             {weights, []byte(`{"model":{"vocab":{"a":0,"b":0}}}`)},
		"reading tokenizer":          {weights, []byte(`{`)},
	} {
		var file bytes.Buffer
		err := part.Make(&file, files[0], files[1])
		if says == "" && err == nil {
			_, err = parse(file.Bytes())
		}
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestDamagedFile checks that damaged files, with a right or wrong checksum, are refused and do not
// crash the program.
func TestDamagedFile(t *testing.T) {
	whole, file := tinyModel(t)
	must(t, whole.Verify())
	body := slices.Clip(file[:len(file)-sumBytes])
	seal := func(body []byte) []byte {
		return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
	}
	hidden := slices.Clone(body) // damage with a correct checksum
	hidden[len(hidden)/2] ^= 1
	if m, err := parse(seal(hidden)); err != nil || !errors.Is(m.Verify(), ErrFile) {
		t.Errorf("another digest: err = %v", err)
	}
	for at := 0; at < len(file); at += 1 + at/8 {
		damaged := slices.Clone(file)
		damaged[at] ^= 4
		if _, err := parse(damaged); !errors.Is(err, ErrFile) {
			t.Errorf("byte %d changed: err = %v, want ErrFile", at, err)
		}
		if _, err := parse(file[:at]); !errors.Is(err, ErrFile) {
			t.Errorf("cut after %d bytes: err = %v, want ErrFile", at, err)
		}
	}
	for at := 12; at < 2<<10; at++ { // the header, the vocabulary and its table
		damaged := slices.Clone(body)
		damaged[at] ^= 0x81
		if m, err := parse(seal(slices.Clip(damaged))); err == nil {
			m.vocabulary.tokens("harbours", 9)
		} else if !errors.Is(err, ErrFile) {
			t.Errorf("byte %d changed, with a correct checksum: err = %v, want ErrFile", at, err)
		}
	}
	for _, c := range [][2]string{{`"layers":2`, `"layers":3`}, {`"width":64`, `"width":65`}, {`"words":16`, `"words":99`},
		{`"heads":2`, `"heads":4`}, {`"max_tokens":40`, `"max_tokens":49`}, {`"word_bytes":`, `"word_bytes":-`}, {"[CLS]", "[CL ]"}} {
		hostile := bytes.Replace(slices.Clone(body), []byte(c[0]), []byte(c[1]), 1)
		if _, err := parse(seal(hostile)); !errors.Is(err, ErrFile) {
			t.Errorf("%s replaces %s: err = %v, want ErrFile", c[1], c[0], err)
		}
	}
}

// TestDamagedWeights checks that non-finite numbers cause an error.
func TestDamagedWeights(t *testing.T) {
	m, _ := tinyModel(t)
	m.norm.gain = slices.Repeat([]float32{float32(math.NaN())}, m.Width)
	if rows, err := m.EmbedPassages(t.Context(), []string{"a"}, 9); err == nil {
		t.Errorf("vectors = %v, want an error", rows)
	}
}

// runtimeVectors are the vectors of ONNX Runtime in float32, made by ../train/runtime.py from the
// weights of a model.
func runtimeVectors(t testing.TB, model string) (all []struct {
	Text   string
	IDs    []int32
	Vector []float64
}) {
	file, err := os.Open(filepath.Join("testdata", model+".jsonl"))
	must(t, err)
	defer file.Close()
	for lines := json.NewDecoder(file); lines.More(); {
		all = slices.Grow(all, 1)[:len(all)+1]
		must(t, lines.Decode(&all[len(all)-1]))
	}
	return all
}

// TestRuntime compares the definition in float64 with ONNX Runtime: for the tiny model, whose
// weights are written to the file that IBID_TINY names, and for all-MiniLM-L6-v2 if IBID_CHECKPOINT
// names its model.safetensors. If IBID_ENCODER names the file of 'ibid setup english', the int8
// vectors of every kernel are compared too.
func TestRuntime(t *testing.T) {
	tiniest := tinyCheckpoint(t)
	if path := os.Getenv("IBID_TINY"); path != "" {
		must(t, os.WriteFile(path, tiniest, 0o600))
	}
	check := func(what string, got float64, least float64) {
		t.Helper()
		if t.Logf("%s: a cosine of %.6f", what, got); got < least {
			t.Errorf("%s: cosine = %.6f, want %v", what, got, least)
		}
	}
	for _, v := range runtimeVectors(t, "tiny") {
		check("tiny", cosine(v.Vector, tinyReference(t, v.IDs)), .9999)
	}
	vectors := runtimeVectors(t, "english")
	if path := os.Getenv("IBID_CHECKPOINT"); path != "" {
		data, err := os.ReadFile(path)
		must(t, err)
		weights, err := readCheckpoint(data)
		must(t, err)
		for _, v := range vectors {
			check(v.Text, cosine(v.Vector, reference(weights, known[English].Heads, v.IDs)), .9999)
		}
	}
	if os.Getenv("IBID_ENCODER") == "" {
		t.Skip("needs weights: run 'ibid setup english' and set IBID_ENCODER to the installed file")
	}
	m, err := Open(os.Getenv("IBID_ENCODER"))
	must(t, err)
	for _, m.kernel = range kernel.Kernels {
		for _, v := range vectors {
			if ids := m.vocabulary.tokens(v.Text, m.MaxTokens); !slices.Equal(ids, v.IDs) {
				t.Errorf("%q has the tokens %v, want %v", v.Text, ids, v.IDs)
			}
			row, err := m.EmbedQuestion(t.Context(), v.Text)
			must(t, err)
			check(m.kernel.Name+": "+v.Text, cosine(v.Vector, row), .99)
		}
	}
	must(t, m.Close())
}

func TestCandidates(t *testing.T) {
	for _, test := range []struct{ layers, passage, tokens, want int }{
		{6, 128, 6 * 128, 1}, {6, 128, 12 * 8 * 256, 30}, {6, 128, 12 * 15 * 256, 30},
		{12, 256, 6 * 128, 0}, {12, 256, 12 * 8 * 256, 8}, {12, 256, 12 * 15 * 256, 15},
	} {
		m := &Model{layers: make([]layer, test.layers), kernel: &kernel.Kernel{LayerTokens: test.tokens}}
		m.Facts.PassageTokens = test.passage
		if got := m.Candidates(); got != test.want {
			t.Errorf("%+v: %d candidates", test, got)
		}
	}
}
