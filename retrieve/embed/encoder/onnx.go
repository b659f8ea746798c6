package encoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
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

// An onnxTensor is one array. Its numbers are in exactly one of raw, floats and ints.
type onnxTensor struct {
	kind   int // as in TensorProto.DataType
	dims   []int
	raw    []byte // little endian
	floats []byte // packed float32
	ints   []byte // packed varints
}

const (
	onnxFloat = 1
	onnxUint8 = 2
	onnxInt8  = 3
)

// errONNX is the error of a file that is not an ONNX model.
var errONNX = errors.New("the weights are not an ONNX model")

func readONNX(from io.ReaderAt, size int64) (*onnxModel, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(from, 0, size), data); err != nil {
		return nil, fmt.Errorf("reading the weights: %w", err)
	}
	m := &onnxModel{tensors: make(map[string]onnxTensor), dense: make(map[string]string)}
	err := fields(data, func(field protowire.Number, value []byte, _ uint64) error {
		if field != 7 { // the graph
			return nil
		}
		return fields(value, func(field protowire.Number, value []byte, _ uint64) error {
			switch field {
			case 1:
				return m.addNode(value)
			case 5:
				return m.addTensor(value)
			}
			return nil
		})
	})
	if err == nil && len(m.tensors) == 0 {
		err = errONNX
	}
	return m, err
}

// fields calls f for each field of a message, with its bytes or its number.
func fields(message []byte, f func(field protowire.Number, value []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("%w: %w", errONNX, protowire.ParseError(n))
		}
		message = message[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
			value = message[:max(0, n)]
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errONNX, protowire.ParseError(n))
		}
		message = message[n:]
		if err := f(field, value, number); err != nil {
			return err
		}
	}
	return nil
}

// addNode records the matrix of a dense layer. Exporters name the product after the layer:
// /encoder/layer.0/output/dense/MatMul.
func (m *onnxModel) addNode(message []byte) error {
	var inputs []string
	var name string
	err := fields(message, func(field protowire.Number, value []byte, _ uint64) error {
		switch field {
		case 1:
			inputs = append(inputs, string(value))
		case 3:
			name = string(value)
		}
		return nil
	})
	name, _ = strings.CutSuffix(name, "_quant")
	if layer, product := strings.CutSuffix(name, "/MatMul"); product && len(inputs) > 1 {
		layer = strings.ReplaceAll(strings.Trim(layer, "/"), "/", ".")
		m.dense[layer+".weight"], _ = strings.CutSuffix(inputs[1], "_quantized")
	}
	return err
}

func (m *onnxModel) addTensor(message []byte) error {
	var t onnxTensor
	var name string
	err := fields(message, func(field protowire.Number, value []byte, number uint64) error {
		switch field {
		case 1:
			if value == nil {
				value = protowire.AppendVarint(nil, number)
			}
			for len(value) > 0 {
				d, n := protowire.ConsumeVarint(value)
				if n < 0 || d > maxFile {
					return fmt.Errorf("%w: a tensor has impossible dimensions", errONNX)
				}
				t.dims, value = append(t.dims, int(d)), value[n:]
			}
		case 2:
			t.kind = int(number)
		case 4:
			t.floats = append(t.floats, value...)
		case 5:
			if value == nil {
				value = protowire.AppendVarint(nil, number)
			}
			t.ints = append(t.ints, value...)
		case 8:
			name = string(value)
		case 9:
			t.raw = value
		}
		return nil
	})
	m.tensors[name] = t
	return err
}

func (t *onnxTensor) count() int {
	all := 1
	for _, d := range t.dims {
		if all *= d; all > maxFile {
			return 0
		}
	}
	return all
}

// values returns n of the tensor's numbers, starting at index first.
func (t *onnxTensor) values(first, n int) ([]float32, error) {
	out := make([]float32, n)
	width, data := 1, t.raw
	if t.kind == onnxFloat {
		width = 4
		if data == nil {
			data = t.floats
		}
	} else if data == nil {
		for rest := t.ints; len(rest) > 0; {
			v, size := protowire.ConsumeVarint(rest)
			if size < 0 {
				return nil, errONNX
			}
			data, rest = append(data, byte(v)), rest[size:]
		}
	}
	if first < 0 || n < 0 || len(data) != width*t.count() || first+n > t.count() {
		return nil, fmt.Errorf("%w: a tensor has %d bytes instead of %d numbers", errONNX, len(data), t.count())
	}
	data = data[width*first:]
	for i := range out {
		switch t.kind {
		case onnxFloat:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case onnxUint8:
			out[i] = float32(data[i])
		case onnxInt8:
			out[i] = float32(int8(data[i]))
		default:
			return nil, fmt.Errorf("%w: numbers of the kind %d", errONNX, t.kind)
		}
	}
	return out, nil
}

// matrix returns the named tensor. Suffix is "_quantized" if the tensor is rounded, and ""
// otherwise.
func (m *onnxModel) matrix(name string) (t onnxTensor, suffix string, known bool) {
	for _, suffix = range []string{"", "_quantized"} {
		if t, known = m.tensors[name+suffix]; known {
			return t, suffix, true
		}
	}
	return t, "", false
}

func (m *onnxModel) slice(name string, first, n int) ([]float32, error) {
	matrix, dense := m.dense[name]
	if !dense {
		matrix = name
	}
	t, rounded, known := m.matrix(matrix)
	if !known || t.count() < first+n {
		return nil, fmt.Errorf("the weights have no tensor %s with %d numbers", name, first+n)
	}
	out, err := t.values(first, n)
	if err == nil && rounded != "" {
		err = m.scale(out, first, matrix, t.dims)
	}
	if err != nil {
		return nil, fmt.Errorf("the tensor %s: %w", name, err)
	}
	if !dense {
		return out, nil
	}
	if len(t.dims) != 2 || n != t.count() {
		return nil, fmt.Errorf("the tensor %s has the shape %v", name, t.dims)
	}
	// A product has the inputs in rows, and checkpoints have the outputs in rows.
	rows, columns := t.dims[0], t.dims[1]
	turned := make([]float32, n)
	for i := range rows {
		for j := range columns {
			turned[j*rows+i] = out[i*columns+j]
		}
	}
	return turned, nil
}

// scale converts rounded numbers of a matrix to their values before rounding. There is one scale,
// or one for each column.
func (m *onnxModel) scale(out []float32, first int, matrix string, dims []int) error {
	scales, zeros := m.tensors[matrix+"_scale"], m.tensors[matrix+"_zero_point"]
	n := scales.count()
	if len(dims) != 2 || n != 1 && n != dims[1] || zeros.count() != n || zeros.kind == onnxFloat {
		return errors.New("its scales do not fit its shape")
	}
	scale, err := scales.values(0, n)
	if err != nil {
		return err
	}
	zero, err := zeros.values(0, n)
	if err != nil {
		return err
	}
	for i := range out {
		at := (first + i) % n
		out[i] = (out[i] - zero[at]) * scale[at]
	}
	return nil
}

func (m *onnxModel) shape() (s Shape) {
	table := func(name string) (rows, columns int) {
		if t, _, _ := m.matrix(name); len(t.dims) == 2 {
			return t.dims[0], t.dims[1]
		}
		return 0, 0
	}
	s.Words, s.Width = table(wordVectors)
	s.Positions, _ = table("embeddings.position_embeddings.weight")
	inner := m.tensors["encoder.layer.0.intermediate.dense.bias"]
	s.Inner = inner.count()
	for {
		if _, known := m.tensors[fmt.Sprintf("encoder.layer.%d.output.dense.bias", s.Layers)]; !known {
			return s
		}
		s.Layers++
	}
}
