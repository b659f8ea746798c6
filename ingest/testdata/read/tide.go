// Package tide computes when the water is high.
package tide

import "math"

// Mean is the mean height at the jetty, in metres.
const Mean = 2.4

// A Station is where heights are measured.
type Station[T any] struct {
	Name string
	Data T
}

// Height gives the height of the water
// at an hour, in metres.
func (s *Station[T]) Height(hour float64) float64 {
	return Mean + math.Sin(hour/6.2) // a rough rule
}

func quiet() {}
