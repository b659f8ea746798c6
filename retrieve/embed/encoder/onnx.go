package encoder

import (
	"iter"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// An onnxModel is the weights in an ONNX file, a protocol buffer
// (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). Exporters keep the names of biases,
// norms and tables, but replace the name of a dense layer's matrix by a number, so the matrix is
// found through the product that uses it. Matrices may be rounded to bytes with scales (ONNX
// Runtime's dynamic quantisation).
type onnxModel struct {
	tensors map[string]onnxTensor
	dense   map[string]string // the matrix of a layer, such as encoder.layer.0.output.dense.weight
}

// An onnxTensor is one array.
type onnxTensor struct {
	kind int // as in TensorProto.DataType
	dims []int
	data []byte // little endian
}

const (
	onnxFloat = 1
	onnxUint8 = 2
	onnxInt8  = 3
)

func readONNX(file []byte) *onnxModel {
	m := &onnxModel{tensors: make(map[string]onnxTensor), dense: make(map[string]string)}
	for field, graph := range fields(file) {
		if field != 7 {
			continue
		}
		for field, value := range fields(graph) {
			switch field {
			case 1:
				m.addNode(value)
			case 5:
				m.addTensor(value)
			}
		}
	}
	return m
}

// fields yields the number and the value of each field of a message, bytes without their length.
func fields(message []byte) iter.Seq2[protowire.Number, []byte] {
	return func(yield func(protowire.Number, []byte) bool) {
		for rest := message; len(rest) > 0; {
			field, kind, n := protowire.ConsumeTag(rest)
			size := protowire.ConsumeFieldValue(field, kind, rest[n:])
			value := rest[n:][:size]
			rest = rest[n+size:]
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			if !yield(field, value) {
				return
			}
		}
	}
}

// addNode records the matrix of a dense layer. Exporters name the product after the layer:
// /encoder/layer.0/output/dense/MatMul.
func (m *onnxModel) addNode(message []byte) {
	var inputs []string
	var name string
	for field, value := range fields(message) {
		switch field {
		case 1:
			inputs = append(inputs, string(value))
		case 3:
			name = strings.TrimSuffix(string(value), "_quant")
		}
	}
	if layer, product := strings.CutSuffix(name, "/MatMul"); product && len(inputs) > 1 {
		layer = strings.ReplaceAll(strings.Trim(layer, "/"), "/", ".")
		m.dense[layer+".weight"] = strings.TrimSuffix(inputs[1], "_quantized")
	}
}

func (m *onnxModel) addTensor(message []byte) {
	var t onnxTensor
	var name string
	for field, value := range fields(message) {
		number, n := protowire.ConsumeVarint(value) // if it is one
		switch field {
		case 1:
			t.dims = append(t.dims, int(number))
		case 2:
			t.kind = int(number)
		case 4, 9:
			t.data = value
		case 5: // several numbers
			for ; len(value) > 0; number, n = protowire.ConsumeVarint(value) {
				t.data, value = append(t.data, byte(number)), value[n:]
			}
		case 8:
			name = string(value)
		}
	}
	m.tensors[name] = t
}

// values returns the tensor's numbers.
func (t onnxTensor) values() []float32 {
	if t.kind == onnxFloat {
		return readFloats(t.data)
	}
	out := make([]float32, len(t.data))
	for i, b := range t.data {
		if out[i] = float32(b); t.kind == onnxInt8 {
			out[i] = float32(int8(b))
		}
	}
	return out
}

// floats implements [tensors].
func (m *onnxModel) floats(name string) []float32 {
	matrix, dense := m.dense[name]
	if !dense {
		matrix = name
	}
	t, exact := m.tensors[matrix]
	if !exact {
		t = m.tensors[matrix+"_quantized"]
	}
	out := t.values()
	if !exact {
		scales, zeros := m.tensors[matrix+"_scale"].values(), m.tensors[matrix+"_zero_point"].values()
		for i := range out {
			at := i % len(scales) // there is one scale, or one for each column
			out[i] = (out[i] - zeros[at]) * scales[at]
		}
	}
	if !dense {
		return out
	}
	// In a product each row is an input; in a checkpoint each row is an output.
	rows, columns := t.dims[0], t.dims[1]
	turned := make([]float32, len(out))
	for i := range rows {
		for j := range columns {
			turned[j*rows+i] = out[i*columns+j]
		}
	}
	return turned
}
