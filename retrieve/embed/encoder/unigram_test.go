package encoder

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

var tinyPieces = struct {
	words  []string
	scores []float32
}{
	[]string{"<s>", "<pad>", "</s>", "<unk>", "▁", "▁harbour", "▁har", "bour", "s", "灯", "▁a", "a", "aa", "é", "fi", "!"},
	[]float32{0, 0, 0, 0, -3, -9, -5, -5, -2, -8, -3, -4, -7, -6, -7, -4},
}

// packedTiny returns a packed file with the weights of the tiny model, in which the weights of the
// words and of the inner layers are in blocks.
func packedTiny() []byte {
	var out, directory, data bytes.Buffer
	write := func(to *bytes.Buffer, values ...any) {
		for _, v := range values {
			if err := binary.Write(to, binary.LittleEndian, v); err != nil {
				panic(err)
			}
		}
	}
	s := tiny.shape
	text := strings.Join(tinyPieces.words, "")
	write(&out, packedHead{Magic: [4]byte{'E', '5', 'S', '1'}, Version: 1, Width: int32(s.Width), Layers: int32(s.Layers), Heads: 2,
		Inner: int32(s.Inner), Words: int32(s.Words), Positions: int32(s.Positions), Block: blockNumbers, Pieces: int32(s.Words),
		PieceBytes: int64(len(text))})
	end := uint32(0)
	for _, w := range append([]string{""}, tinyPieces.words...) {
		end += uint32(len(w))
		write(&out, end)
	}
	write(&out, tinyPieces.scores, []byte(text), int32(1), int32(3), []byte("map"))
	_, tensors := tinyTensors()
	names := sortedKeys(tensors)
	for _, name := range names {
		directory.Grow(64)
		short := packedNames.Replace(name)
		write(&directory, uint16(len(short)), []byte(short), packedTensor{N: uint32(len(tensors[name]))})
	}
	at, entry := out.Len()+4+directory.Len(), directory.Bytes()
	for _, name := range names {
		numbers, fields := tensors[name], entry[2+len(packedNames.Replace(name)):]
		binary.LittleEndian.PutUint64(fields[5:], uint64(at+data.Len()))
		entry = fields[21:]
		if name != wordVectors && (!strings.HasPrefix(name, "encoder") || strings.Contains(name, "Norm") || strings.HasSuffix(name, "bias")) {
			write(&data, numbers)
			continue
		}
		fields[0] = 1
		for block := range slices.Chunk(numbers, blockNumbers) {
			write(&data, uint16(0x2c00)) // 1/16
			for i, low := range block[:16] {
				level := func(x float32) byte { return byte(max(0, min(15, 8+math.Round(16*float64(x))))) }
				write(&data, level(low)|level(block[16+i])<<4)
			}
		}
	}
	write(&out, int32(len(names)))
	return slices.Concat(out.Bytes(), directory.Bytes(), data.Bytes())
}

func packedModelOf(t *testing.T) *Model {
	facts := tiny.facts
	facts.Tokenizer = unigramPieces
	var out bytes.Buffer
	must(t, convert(&out, facts, packedModel, packedTiny(), nil))
	m, err := parse(out.Bytes())
	must(t, err)
	return m
}

// TestPacked compares a model from a packed file with the model from a checkpoint.
func TestPacked(t *testing.T) {
	want, _ := tinyModel(t)
	got := packedModelOf(t)
	if !slices.Equal(got.positions, want.positions) || !slices.Equal(got.layers[1].attend.Bias, want.layers[1].attend.Bias) {
		t.Error("weights differ")
	}
	encoded := func(m *Model) []float32 {
		row := make([][]float32, 1)
		must(t, m.encode([][]int32{{0, 5, 8, 2}}, row))
		return row[0]
	}
	// 4 bits for the words and for the weights of the layers.
	if c := cosine(encoded(got), encoded(want)); c < .98 {
		t.Errorf("cosine = %v", c)
	}
	for i, bits := range []uint16{0x3c00, 0xc000, 0x0001, 0x7bff, 0} {
		if x := float16(bits); x != []float32{1, -2, 1. / (1 << 24), 65504, 0}[i] {
			t.Errorf("float16(%#x) = %v", bits, x)
		}
	}
}

func TestUnigram(t *testing.T) { checkTokens(t, packedModelOf(t), tinyPieces.words, "unigram") }
