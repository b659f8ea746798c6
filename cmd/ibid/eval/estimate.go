package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is how many times the questions are drawn anew for an interval;
// Efron and Tibshirani (1993) advise a thousand or more for percentiles.
const resamples = 2000

// confidence is the chance with which an interval holds the true value.
const confidence = .95

// A Part is what one question adds to a figure, which is the sum of all Num
// over the sum of all Den. A question with a Den of 0 says nothing.
type Part struct{ Num, Den float64 }

// ratio is the figure of the parts drawn.
func ratio(parts []Part, drawn []int) float64 {
	num, den := 0., 0.
	for _, i := range drawn {
		num += parts[i].Num
		den += parts[i].Den
	}
	if den == 0 {
		return 0
	}
	return num / den
}

// Quantile is the smallest of the values that the share q of them does not
// exceed (the nearest rank: type 1 of Hyndman and Fan 1996); 0 for none.
// The values are sorted.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9))
	return sorted[max(0, min(len(sorted), rank)-1)]
}

// Bootstrap gives the 95 % percentile interval of a statistic of n questions
// (Efron and Tibshirani 1993, chapter 13): it is computed anew for as many
// questions drawn with replacement, many times, and the middle 95 % of what
// comes out are the interval. The same seed gives the same interval. For few
// questions, under about 20, it is too narrow.
func Bootstrap(n int, seed uint64, statistic func(drawn []int) float64) (low, high float64) {
	if n == 0 {
		return 0, 0
	}
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	drawn, values := make([]int, n), make([]float64, resamples)
	for i := range values {
		for j := range drawn {
			drawn[j] = random.IntN(n)
		}
		values[i] = statistic(drawn)
	}
	slices.Sort(values)
	tail := (1 - confidence) / 2
	return Quantile(values, tail), Quantile(values, 1-tail)
}

// Wilson gives the 95 % score interval of a share (Wilson 1927). Unlike the
// bootstrap it does not say that 5 right of 5 is certain.
func Wilson(n, of int) (low, high float64) {
	if of == 0 {
		return 0, 0
	}
	const z = 1.959963984540054 // the .975 quantile of the normal distribution
	count, p := float64(of), Share(n, of)
	middle := p + z*z/(2*count)
	half := z * math.Sqrt(p*(1-p)/count+z*z/(4*count*count))
	scale := 1 + z*z/count
	low, high = (middle-half)/scale, (middle+half)/scale
	if n == 0 {
		low = 0
	}
	if n == of {
		high = 1
	}
	return low, high
}

// of computes a measure of the parts drawn.
func (m Measure) of(parts []Part, drawn []int) float64 {
	if m.quantile == 0 {
		return ratio(parts, drawn)
	}
	values := make([]float64, len(drawn))
	for i, at := range drawn {
		values[i] = parts[at].Num
	}
	slices.Sort(values)
	return Quantile(values, m.quantile)
}

// An Estimate is a figure with the interval in which it would probably lie on
// other questions of the same kind.
type Estimate struct {
	Value     float64 `json:"value"`
	Low       float64 `json:"low"` // of the 95 % interval
	High      float64 `json:"high"`
	Questions int     `json:"questions"` // that it is computed from
}

// estimate computes a measure of the parts.
func (m Measure) estimate(parts []Part, seed uint64) Estimate {
	telling := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Den == 0 })
	all := make([]int, len(telling))
	none, whole, one := 0, 0, true // questions with a share of 0 and of 1; all count once
	for i, p := range telling {
		all[i] = i
		one = one && p.Den == 1
		switch p.Num {
		case 0:
			none++
		case p.Den:
			whole++
		}
	}
	statistic := func(drawn []int) float64 { return m.of(telling, drawn) }
	e := Estimate{Value: statistic(all), Questions: len(telling)}
	yesOrNo := one && none+whole == len(telling) || none == len(telling) || whole == len(telling)
	if m.Unit == ShareUnit && yesOrNo {
		e.Low, e.High = Wilson(whole, len(telling))
	} else if m.Unit == ShareUnit && len(telling) == 1 {
		e.Low, e.High = 0, 1 // one question says nothing about others
	} else {
		e.Low, e.High = Bootstrap(len(telling), seed, statistic)
	}
	return e
}
