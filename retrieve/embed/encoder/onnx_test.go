package encoder

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// field appends a bytes field of a protocol buffer.
func field(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

func varint(to []byte, number protowire.Number, value int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), uint64(value))
}

// An onnxWriter writes a file as an exporter does.
type onnxWriter struct{ graph []byte }

func (w *onnxWriter) tensor(name string, kind int, dims []int, data []byte, where protowire.Number) {
	var t []byte
	for _, d := range dims {
		t = varint(t, 1, d)
	}
	t = field(field(varint(t, 2, kind), 8, []byte(name)), where, data)
	w.graph = field(w.graph, 5, t)
}

func (w *onnxWriter) floats(name string, dims []int, values []float32, where protowire.Number) {
	var data []byte
	for _, x := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	w.tensor(name, onnxFloat, dims, data, where)
}

// rounded writes a matrix in bytes, with one scale for each column or for all columns.
func (w *onnxWriter) rounded(name string, rows, columns int, values []float32, single bool) {
	n, kind, zero := columns, onnxInt8, 0
	if single {
		n, kind, zero = 1, onnxUint8, 128
	}
	scales := make([]float32, n)
	for i, x := range values {
		scales[i%n] = max(scales[i%n], x/127, -x/127)
	}
	var data, zeros []byte
	for i, x := range values {
		data = append(data, byte(int(math.RoundToEven(float64(x/scales[i%n])))+zero))
	}
	for range n {
		zeros = protowire.AppendVarint(zeros, uint64(zero))
	}
	w.tensor(name+"_quantized", kind, []int{rows, columns}, data, 9)
	dims := []int{n}
	if single {
		dims = nil
	}
	w.floats(name+"_scale", dims, scales, 4)
	w.tensor(name+"_zero_point", kind, dims, zeros, 5)
}

// onnxTiny is the tiny model in ONNX's format, in float32 or rounded.
func onnxTiny(rounded bool) []byte {
	shapes, tensors := tinyTensors()
	var w onnxWriter
	for i, name := range sortedKeys(shapes) {
		dims, values := shapes[name], tensors[name]
		layer, matrix := strings.CutSuffix(name, ".weight")
		dense := matrix && len(dims) == 2 && strings.HasPrefix(name, "encoder.")
		switch {
		case !dense && len(dims) == 2 && rounded:
			w.rounded(name, dims[0], dims[1], values, true)
		case !dense:
			w.floats(name, dims, values, 9)
		default:
			turned, columns := make([]float32, len(values)), dims[0]
			for at, x := range values {
				turned[at%dims[1]*columns+at/dims[1]] = x
			}
			product, input := "/"+strings.NewReplacer("layer.", "layer.", ".", "/").Replace(layer)+"/MatMul", "onnx::MatMul_"+string(rune('a'+i))
			if rounded {
				w.rounded(input, dims[1], columns, turned, false)
				input, product = input+"_quantized", product+"_quant"
			} else {
				w.floats(input, []int{dims[1], columns}, turned, 9)
			}
			w.graph = field(w.graph, 1, field(field(field(nil, 1, []byte("x")), 1, []byte(input)), 3, []byte(product)))
		}
	}
	return field(varint(nil, 1, 8), 7, w.graph)
}

// TestONNX compares models from ONNX files with the model from a checkpoint.
func TestONNX(t *testing.T) {
	want, _ := tinyModel(t)
	for _, rounded := range []bool{false, true} {
		var out bytes.Buffer
		must(t, convert(&out, tiny.facts, onnxFile, onnxTiny(rounded), tiny.words))
		got, err := parse(out.Bytes())
		must(t, err)
		if !rounded && !slices.Equal(got.words, want.words) {
			t.Error("vectors of the words differ")
		}
		for i := range got.layers {
			a, b := got.layers[i].widen, want.layers[i].widen
			// Numbers that are rounded twice may differ by one.
			near := func(x, y int8) bool { return x == y || rounded && (x == y+1 || x+1 == y) }
			if !slices.EqualFunc(a.Levels, b.Levels, near) || cosine(a.Scale, b.Scale) < .9999 {
				t.Errorf("rounded %v: weights of layer %d differ", rounded, i)
			}
		}
		rows := [2][][]float32{make([][]float32, 1), make([][]float32, 1)}
		for i, m := range []*Model{got, want} {
			must(t, m.encode([][]int32{{2, 5, 8, 3}}, rows[i]))
		}
		if c := cosine(rows[0][0], rows[1][0]); c < .999 {
			t.Errorf("rounded %v: cosine = %v", rounded, c)
		}
	}
}

// TestFirstPooling checks that a model can use the vector of the first token.
func TestFirstPooling(t *testing.T) {
	m, _ := tinyModel(t)
	m.Pooling = firstPooling
	rows := make([][]float32, 2)
	must(t, m.encode([][]int32{{2, 5, 3}, {2, 8, 6, 3}}, rows))
	alone := make([][]float32, 1)
	must(t, m.encode([][]int32{{2, 8, 6, 3}}, alone))
	if !slices.Equal(rows[1], alone[0]) || slices.Equal(rows[0], rows[1]) {
		t.Error("vector is not that of the first token")
	}
}
