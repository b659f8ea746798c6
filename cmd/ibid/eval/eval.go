// Package eval holds the measures by which Ibid is judged, and reads the
// public benchmark formats they are computed on. It imports nothing of Ibid's:
// what is measured comes in as rankings, chances and texts, so that tests of
// every room can use the same measures as the command.
//
// Rankings are measured as trec_eval and BEIR measure them (see [Metric]), so
// that figures compare with published ones.
package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Figures are named numbers in the order in which they are shown.
type Figures []Figure

// A Figure is one named number.
type Figure struct {
	Name  string
	Value float64
}

// Get gives a figure by its name.
func (f Figures) Get(name string) (float64, bool) {
	for _, x := range f {
		if x.Name == name {
			return x.Value, true
		}
	}
	return 0, false
}

// MarshalJSON writes one object whose members keep the order of the figures.
func (f Figures) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, fmt.Errorf("the figure %s: %w", x.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
