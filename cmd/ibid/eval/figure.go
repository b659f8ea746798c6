package eval

import (
	"fmt"
	"math"
)

// A Figure is one number of a report.
type Figure struct {
	Name      string  `json:"name"`
	Unit      Unit    `json:"unit"`
	Value     float64 `json:"value"`
	Questions int     `json:"questions"` // number of questions that count
	Says      string  `json:"-"`         // meaning, in a few words
}

// Text returns the value in its unit.
func (f Figure) Text() string { return f.Unit.Write(f.Value) }

// A Unit says what a figure counts and how to write it.
type Unit string

const (
	ShareUnit   Unit = "share"   // 0 to 1
	SecondsUnit Unit = "seconds" // written as ms or s
	CountUnit   Unit = "count"   // a mean count
)

// Write returns a value in its unit.
func (u Unit) Write(x float64) string {
	switch {
	case u == ShareUnit:
		return fmt.Sprintf("%.3f", x)
	case u == CountUnit && x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case u == SecondsUnit && x < .0995:
		return fmt.Sprintf("%.1f ms", x*1e3)
	case u == SecondsUnit && x < .9995:
		return fmt.Sprintf("%.0f ms", x*1e3)
	case u == SecondsUnit:
		return fmt.Sprintf("%.2f s", x)
	}
	return fmt.Sprintf("%.2f", x)
}
