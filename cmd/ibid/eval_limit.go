package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ibid/cmd/ibid/eval"
)

// A limit is a value that a figure must reach, or must not exceed.
type limit struct {
	value float64
	unit  eval.Unit // empty for a plain number
	text  string    // as it was given
}

// parseLimit reads a number, a share like 80% or a time like 2.5s.
func parseLimit(text string) (l limit, err error) {
	l.text = strings.TrimSpace(text)
	if share, ok := strings.CutSuffix(l.text, "%"); ok {
		l.value, err = strconv.ParseFloat(strings.TrimSpace(share), 64)
		l.value, l.unit = l.value/100, eval.ShareUnit
	} else if l.value, err = strconv.ParseFloat(l.text, 64); err != nil {
		var d time.Duration
		d, err = time.ParseDuration(l.text)
		l.value, l.unit = d.Seconds(), eval.SecondsUnit
	}
	if err != nil || math.IsNaN(l.value) || math.IsInf(l.value, 0) {
		return limit{}, fmt.Errorf("%q is no value: give a number, a share like 80%% or a time like 3s", l.text)
	}
	return l, nil
}

// limitConfig is the thresholds as they are given.
type limitConfig struct {
	Min []string `help:"Exit with code 4 when a figure is below a value; may be given more than once: recall@5=.8, supported=95%." placeholder:"FIGURE=VALUE"`
	Max []string `help:"Exit with code 4 when a figure is above a value: p95=3s, false_answers=5%." placeholder:"FIGURE=VALUE"`
}

// limits are the thresholds of a report, by the names of the figures.
type limits struct{ min, max map[string]limit }

func (c limitConfig) parse() (l limits, err error) {
	read := func(flag string, given []string) map[string]limit {
		of := make(map[string]limit)
		for _, g := range given {
			name, value, _ := strings.Cut(g, "=")
			x, wrong := parseLimit(value)
			if wrong != nil && err == nil {
				err = usageError("%s %s: %w", flag, g, wrong)
			}
			of[strings.TrimSpace(name)] = x
		}
		return of
	}
	l = limits{read("--min", c.Min), read("--max", c.Max)}
	return l, err
}

// names are the figures that the limits are of.
func (l limits) names() []string {
	names := slices.Sorted(maps.Keys(l.min))
	return append(names, slices.Sorted(maps.Keys(l.max))...)
}

// units are what a limit may be given in.
var units = map[eval.Unit]string{eval.ShareUnit: "share", eval.SecondsUnit: "time"}

// check refuses a limit of a figure that there is not, or in another unit.
func (l limits) check(measures []eval.Measure) error {
	for flag, of := range map[string]map[string]limit{"--min": l.min, "--max": l.max} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			i := slices.IndexFunc(measures, func(m eval.Measure) bool { return m.Name == name })
			if i < 0 && name == eval.CostFigure {
				return usageError("%s %s: what a question costs is not known without a price: give --price-in or --price-out, what a million tokens of prompts and of replies cost", flag, name)
			}
			if i < 0 {
				known := make([]string, len(measures))
				for j, m := range measures {
					known[j] = m.Name
				}
				return usageError("%s %s: there is no such figure; there are %s, and hit, recall, ndcg, mrr and p with any rank", flag, name, strings.Join(known, ", "))
			}
			if x := of[name]; x.unit != "" && x.unit != measures[i].Unit {
				return usageError("%s %s=%s: the figure is no %s", flag, name, x.text, units[x.unit])
			}
		}
	}
	return nil
}

// missed says in words which limits the report does not keep. A figure that no
// question tells of is kept by none.
func (l limits) missed(r *eval.Report) []string {
	missed := []string{}
	each := func(of map[string]limit, word string, broken func(value, limit float64) bool) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			f, ok := r.Figure(name)
			switch {
			case !ok:
				missed = append(missed, name+" could not be measured: no question tells of it")
			case broken(f.Value, of[name].value):
				missed = append(missed, fmt.Sprintf("%s is %s, %s %s", name, f.Unit.Write(f.Value), word, of[name].text))
			}
		}
	}
	each(l.min, "below", func(value, limit float64) bool { return value < limit })
	each(l.max, "above", func(value, limit float64) bool { return value > limit })
	return missed
}
