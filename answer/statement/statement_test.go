package statement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/data/datatest"
)

func split(pieces ...string) (units []Unit, space string) {
	s := NewSplitter(9)
	for _, p := range pieces {
		units = append(units, s.Add(p)...)
	}
	rest, space := s.End()
	return append(units, rest...), space
}

// TestUnits reads cases in which "¦" separates the units of the text, each of which begins
// with its kind.
func TestUnits(t *testing.T) {
	kinds := map[Kind]string{Claim: "C", Verbatim: "V", Lead: "L", Aside: "A", Trailer: "T"}
	for _, text := range datatest.Lines[string](t, "testdata/units.jsonl") {
		want := strings.Split(text, "¦")
		whole := ""
		for _, u := range want {
			whole += u[2:]
		}
		units, space := split(whole)
		var got []string
		for _, u := range units {
			got = append(got, kinds[u.Kind]+":"+u.Space+u.Text)
		}
		if !slices.Equal(got, want) || space != "" {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	}
}

var fragments = []string{"A mooring costs 120 marks.", " ", "\n", "\n\n", "- ", "1. ", "# Fees\n", "These are:\n", "| a | b |\n",
	"|---|---|\n",
	"```\n", "`x. Y`", "> ", "am 12. April ", "(cf. Grey et al. ", ")", "[1]", "[2](id=2)", "[1, 2]", "Sure!", "and so on", "Ünü. ", "~~~",
	"**", "?"}

// TestAnyCut checks that the units of a text do not depend on how it is cut, and that
// together they are the text.
func TestAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 30).Draw(t, "text"), "")
		whole, space := split(text)
		var joined strings.Builder
		for _, u := range whole {
			joined.WriteString(u.Space + u.Text)
		}
		if got := joined.String() + space; got != text {
			t.Fatalf("units together = %q, want %q", got, text)
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 7)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		cut, end := split(pieces...)
		if fmt.Sprint(cut, end) != fmt.Sprint(whole, space) {
			t.Fatalf("cut as %q\n got %+v\nwant %+v", pieces, cut, whole)
		}
	})
}

// show returns the output of a queue if the units that contain a word of drop are dropped,
// with the verdicts given in an order.
func show(units []Unit, drop func(Unit) bool, order func([]int)) (text string, kept bool) {
	var q Queue
	read := func() {
		for piece, ok := q.Next(); ok; piece, ok = q.Next() {
			text += piece
		}
	}
	var claims []int
	for i, u := range units {
		u.States = u.Kind == Claim
		if q.Push(u); u.States {
			claims = append(claims, i)
		}
		read()
	}
	order(claims)
	for i, n := range claims {
		if i == len(claims)/2 {
			q.Close()
		}
		v := Keep
		if drop(units[n]) {
			v = Drop
		}
		q.Decide(n, v, units[n].Text)
		read()
	}
	q.Close()
	read()
	return text, q.HasContent()
}

func TestQueue(t *testing.T) {
	for _, test := range datatest.Table[struct{ Name, Text, Want string }](t, "testdata/tables.txt", "queues") {
		units, _ := split(test.Text)
		wrong := func(u Unit) bool { return strings.Contains(u.Text, "wrong") }
		for _, order := range []func([]int){func([]int) {}, slices.Reverse[[]int]} {
			if got, kept := show(units, wrong, order); got != test.Want || kept != (test.Want != "") {
				t.Errorf("%s:\n got %q, kept %t\nwant %q", test.Name, got, kept, test.Want)
			}
		}
	}
}

// TestAnyOrder checks that the order of the verdicts does not matter, that dropped units
// are not shown, and that nothing is shown unless a unit is kept.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, _ := split(strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 30).Draw(t, "text"), ""))
		dropped := map[string]bool{}
		for _, u := range units {
			dropped[u.Text] = rapid.Bool().Draw(t, "drop")
		}
		drop := func(u Unit) bool { return dropped[u.Text] }
		want, kept := show(units, drop, func([]int) {})
		got, _ := show(units, drop, func(n []int) { copy(n, rapid.Permutation(n).Draw(t, "order")) })
		if got != want || !kept && want != "" {
			t.Fatalf("output = %q, kept %t; in another order %q", want, kept, got)
		}
		all, _ := show(units, func(Unit) bool { return false }, func([]int) {})
		joined := ""
		for _, u := range units {
			joined += u.Space + u.Text
		}
		if all != joined {
			t.Fatalf("nothing dropped, but output = %q, want %q", all, joined)
		}
	})
}
