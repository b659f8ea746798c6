package eval

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// An interval is drawn as a line with a point on it, in a box of 160 by 16.
type interval struct{ Low, Value, High, Zero float64 }

const intervalWidth, intervalEdge = 160., 6.

// newInterval draws on a scale that runs from one end to the other.
func newInterval(low, value, high, from, to float64) *interval {
	x := func(v float64) float64 {
		v = max(from, min(to, v))
		return math.Round(10*(intervalEdge+(v-from)/(to-from)*(intervalWidth-2*intervalEdge))) / 10
	}
	return &interval{x(low), x(value), x(high), x(0)}
}

// A stackedBar shows parts of a whole, 1000 wide.
type stackedBar struct {
	Segments []barSegment
	Says     string
}

type barSegment struct {
	Class    string
	Label    string
	Count    int
	X, Width float64
}

// outcomeBar shows how the questions came out.
func (r *Report) outcomeBar() stackedBar {
	var b stackedBar
	total := max(1, len(r.Outcomes))
	at := 0
	var says []string
	add := func(class, label string, n int) {
		if n == 0 {
			return
		}
		x := 1000 * float64(at) / float64(total)
		b.Segments = append(b.Segments, barSegment{class, label, n, math.Round(x*10) / 10, math.Round(10000*float64(n)/float64(total)) / 10})
		says = append(says, fmt.Sprintf("%s %d", label, n))
		at += n
	}
	add("passed", "passed", r.Passed)
	for _, c := range r.Causes {
		add(string(c.Cause), "failed, "+string(c.Cause), c.Count)
	}
	add("open", "open", r.Open)
	b.Says = fmt.Sprintf("Of %s: %s.", counted(len(r.Outcomes), "question"), strings.Join(says, ", "))
	return b
}

// A stage counts the questions that came so far with what is right.
type stage struct {
	Says         string
	Count, Lost  int
	Width, Share float64 // of 1000; 0 to 1
}

// stages tell where what is right got lost, of the questions with an answer
// that say where it stands and what it says; nil where there are none.
func (r *Report) stages() []stage {
	counts := [5]int{}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		_, placed := o.Question.level()
		lacking, known := o.lacking()
		if !placed || !known || o.Question.Unanswerable {
			continue
		}
		right := func(kept bool) bool {
			return slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return p.Right && (p.Kept || !kept) })
		}
		for at, is := range []bool{true, right(false), right(true), o.Answered, lacking == ""} {
			if !is {
				break
			}
			counts[at]++
		}
	}
	if counts[0] == 0 {
		return nil
	}
	var stages []stage
	for i, says := range []string{"have an answer that is known", "what is right was retrieved", "and kept by the gate", "and the question answered", "with the right words"} {
		s := stage{Says: says, Count: counts[i], Share: Share(counts[i], counts[0])}
		s.Width = math.Round(1000 * s.Share)
		if i > 0 {
			s.Lost = counts[i-1] - counts[i]
		}
		stages = append(stages, s)
	}
	return stages
}

// A lineChart is drawn in a box of 640 by 280.
type lineChart struct {
	ID, Title, Says string
	XLabel, YLabel  string
	XTicks, YTicks  []tick
	Lines           []line
}

type tick struct {
	At    float64
	Label string
}

type line struct {
	Class, Label, Points string
}

// The box that lines are drawn in.
const chartLeft, chartRight, chartTop, chartBottom = 56., 624., 12., 236.

// place gives the points of a polyline; both coordinates are from 0 to 1.
func place(points [][2]float64) string {
	out := make([]string, len(points))
	for i, p := range points {
		out[i] = fmt.Sprintf("%.1f,%.1f", chartX(p[0]), chartY(p[1]))
	}
	return strings.Join(out, " ")
}

func chartX(x float64) float64 {
	return math.Round(10*(chartLeft+max(0, min(1, x))*(chartRight-chartLeft))) / 10
}

func chartY(y float64) float64 {
	return math.Round(10*(chartBottom-max(0, min(1, y))*(chartBottom-chartTop))) / 10
}

func shareTicks() []tick {
	var ticks []tick
	for _, share := range []float64{0, .25, .5, .75, 1} {
		ticks = append(ticks, tick{chartY(share), percent(share)})
	}
	return ticks
}

func (r *Report) lineCharts() (charts []lineChart) {
	if c, ok := r.depthChart(); ok {
		charts = append(charts, c)
	}
	if c, ok := r.timeChart(); ok {
		charts = append(charts, c)
	}
	return charts
}

// depthChart shows how far down the ranking one has to look.
func (r *Report) depthChart() (lineChart, bool) {
	deepest := 0
	for _, o := range r.Outcomes {
		deepest = max(deepest, len(o.Retrieved))
	}
	deepest = min(deepest, 20)
	c := lineChart{ID: "depth", Title: "How deep one has to look", XLabel: "rank", YLabel: "questions, or right places", YTicks: shareTicks()}
	if deepest < 2 {
		return c, false
	}
	for k := 1; k <= deepest; k++ {
		if deepest <= 12 || k%2 == 1 {
			c.XTicks = append(c.XTicks, tick{chartX(float64(k-1) / float64(deepest-1)), fmt.Sprint(k)})
		}
	}
	var says []string
	for _, s := range []struct{ level, kind, label string }{
		{documentLevel, "hit", "any right document"}, {documentLevel, "recall", "right documents"},
		{pageLevel, "recall", "right pages"}, {quoteLevel, "recall", "right quotes"},
	} {
		var points [][2]float64
		var values []float64
		for k := 1; k <= deepest; k++ {
			m := Measure{part: PlaceMetric{s.level, Metric{s.kind, k}}.of}
			e := m.parts(r.Outcomes)
			if !slices.ContainsFunc(e, func(p Part) bool { return p.Den > 0 }) {
				break
			}
			all := make([]int, len(e))
			for i := range all {
				all[i] = i
			}
			values = append(values, ratio(e, all))
			points = append(points, [2]float64{float64(k-1) / float64(deepest-1), values[k-1]})
		}
		if values == nil {
			continue
		}
		c.Lines = append(c.Lines, line{fmt.Sprintf("line-%d", len(c.Lines)+1), s.label, place(points)})
		says = append(says, fmt.Sprintf("%s: %s at rank 1, %s at rank %d", s.label, percent(values[0]), percent(values[deepest-1]), deepest))
	}
	c.Says = strings.Join(says, "; ") + "."
	return c, c.Lines != nil
}

// timeChart shows which share of the questions had come how far after what time.
func (r *Report) timeChart() (lineChart, bool) {
	c := lineChart{ID: "times", Title: "How long it took", YLabel: "questions", YTicks: shareTicks()}
	series := []struct {
		label string
		of    func(Seconds) float64
		times []float64
	}{{"whole answer", func(s Seconds) float64 { return s.Whole }, nil}, {"first text", func(s Seconds) float64 { return s.First }, nil}}
	for i := range series {
		for _, o := range r.Outcomes {
			if t := series[i].of(o.Seconds); t > 0 {
				series[i].times = append(series[i].times, t)
			}
		}
		slices.Sort(series[i].times)
	}
	if len(series[0].times) < 2 {
		return c, false
	}
	step, count := niceStep(Quantile(series[0].times, .99))
	longest := step * float64(count)
	c.XLabel = "time; the slowest hundredth may lie further right"
	for i := range count + 1 {
		c.XTicks = append(c.XTicks, tick{chartX(float64(i) / float64(count)), SecondsUnit.Write(step * float64(i))})
	}
	var says []string
	for _, s := range series {
		if s.times == nil {
			continue
		}
		points := [][2]float64{{0, 0}}
		for i, t := range s.times {
			if t > longest {
				break
			}
			was := points[len(points)-1][1]
			points = append(points, [2]float64{t / longest, was}, [2]float64{t / longest, float64(i+1) / float64(len(s.times))})
		}
		c.Lines = append(c.Lines, line{fmt.Sprintf("line-%d", len(c.Lines)+1), s.label, place(points)})
		says = append(says, fmt.Sprintf("%s: half within %s, 95 %% within %s", s.label, SecondsUnit.Write(Quantile(s.times, .5)), SecondsUnit.Write(Quantile(s.times, .95))))
	}
	c.Says = strings.Join(says, "; ") + "."
	return c, true
}

// niceStep parts a length into 4 to 8 steps of 1, 2 or 5 times a power of ten.
func niceStep(length float64) (step float64, count int) {
	power := math.Pow(10, math.Floor(math.Log10(length/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		step = m * power
		if count = int(math.Ceil(length/step - 1e-9)); count <= 8 {
			break
		}
	}
	return step, max(1, count)
}
