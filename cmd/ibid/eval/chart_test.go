package eval

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Where charts put things, computed by hand.
func TestCharts(t *testing.T) {
	r := sampleReport(t)
	// One question of five is 200 of 1000.
	bar := r.outcomeBar()
	if diff := cmp.Diff([]barSegment{
		{"passed", "passed", 1, 0, 200}, {"gate", "failed, gate", 1, 200, 200}, {"generation", "failed, generation", 1, 400, 200},
		{"citation", "failed, citation", 1, 600, 200}, {"open", "open", 1, 800, 200},
	}, bar.Segments); diff != "" {
		t.Error(diff)
	}
	// q1, q2 and q3 know their answers; q3 is skipped by the gate, q2 has the wrong words.
	var stages [][2]int
	for _, s := range r.stages() {
		stages = append(stages, [2]int{s.Count, s.Lost})
	}
	if diff := cmp.Diff([][2]int{{3, 0}, {3, 0}, {2, 1}, {2, 0}, {1, 1}}, stages); diff != "" {
		t.Error(diff)
	}
	if s := r.stages(); s[2].Width != 667 || s[4].Width != 333 {
		t.Errorf("%+v", s)
	}
	// 148 wide, from 6.
	if got := *newInterval(.25, .5, .75, 0, 1); got != (interval{43, 80, 117, 6}) {
		t.Errorf("%+v", got)
	}
	if got := *newInterval(-.1, 0, .3, -.2, .2); got != (interval{43, 80, 154, 80}) {
		t.Errorf("%+v", got)
	}
	// Three ranks, at 56, 340 and 624; from 236 at 0 up to 12 at 1.
	depth, ok := r.depthChart()
	if !ok || len(depth.Lines) != 2 || depth.Lines[0].Points != "56.0,86.7 340.0,12.0 624.0,12.0" || depth.Lines[1].Points != "56.0,86.7 340.0,49.3 624.0,49.3" {
		t.Errorf("%+v", depth)
	}
	if diff := cmp.Diff([]tick{{56, "1"}, {340, "2"}, {624, "3"}}, depth.XTicks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]tick{{236, "0 %"}, {180, "25 %"}, {124, "50 %"}, {68, "75 %"}, {12, "100 %"}}, depth.YTicks); diff != "" {
		t.Error(diff)
	}
	// .2, .3, .6, 1 and 2 s on an axis of 2 s in steps of .5.
	times, ok := r.timeChart()
	if !ok || times.Lines[0].Points != "56.0,236.0 112.8,236.0 112.8,191.2 141.2,191.2 141.2,146.4 226.4,146.4 226.4,101.6 340.0,101.6 340.0,56.8 624.0,56.8 624.0,12.0" {
		t.Errorf("%+v", times)
	}
	if diff := cmp.Diff([]tick{{56, "0 µs"}, {198, "500 ms"}, {340, "1.00 s"}, {482, "1.50 s"}, {624, "2.00 s"}}, times.XTicks); diff != "" {
		t.Error(diff)
	}
	if _, ok := oneQuestion(t).depthChart(); ok {
		t.Error("a chart of nothing")
	}
	if c := oneQuestion(t).lineCharts(); c != nil {
		t.Errorf("%+v", c)
	}
}

// Of many ranks every other is named, and none beyond the 20th is drawn.
func TestDeepChart(t *testing.T) {
	for _, test := range []struct {
		passages, ticks int
		last            string
	}{{2, 2, "2"}, {12, 12, "12"}, {13, 7, "13"}, {30, 10, "19"}} {
		o := Outcome{Question: Question{Documents: []string{"a"}}}
		for range test.passages {
			o.Retrieved = append(o.Retrieved, Passage{Document: "a"})
		}
		c, ok := (&Report{Outcomes: []Outcome{o}}).depthChart()
		if !ok || len(c.XTicks) != test.ticks || c.XTicks[len(c.XTicks)-1].Label != test.last {
			t.Errorf("%d passages: %+v", test.passages, c.XTicks)
		}
	}
}
