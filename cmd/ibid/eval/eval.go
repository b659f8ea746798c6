// Package eval computes the figures by which Ibid is measured, and reads public
// benchmark formats and files of questions. It imports no other package of Ibid:
// rankings, scores and texts are arguments, so that the tests of every package
// use the same measures as the command.
//
// Rankings are measured as trec_eval and BEIR measure them (see [Metric]), so
// figures are comparable with published ones.
//
// 'ibid eval report' is one path: [ReadQuestions] gives questions, asking each
// gives an [Outcome], and a [Report] of them is written as text, JSON or HTML.
package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Figures are named numbers in display order.
type Figures []Figure

// A Figure is a named number.
type Figure struct {
	Name  string
	Value float64
}

// Get returns the value of a figure by name.
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
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", x.Name, err)
		}
		fmt.Fprintf(&b, "%q:%s", x.Name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
