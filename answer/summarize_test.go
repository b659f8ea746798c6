package answer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"ibid/cite/marker"
	"ibid/data/datatest"
	"ibid/ingest"
)

var anyLabel = regexp.MustCompile(`\[(\d+)\]`)

// story returns a text of n passages of some length.
func story(n int) found {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("Chapter %d. ", i+1) + strings.Repeat(fmt.Sprintf("On day %d they sailed on past the point. ", i+1), 6)
	}
	return passages(texts...)
}

// TestSummaryCitesLeaves uses a model that cites the labels that it is shown, and many
// others. Over every level of collapsing, each marker of the summary must lead to a passage
// that contributed to it, and no marker may be invented.
func TestSummaryCitesLeaves(t *testing.T) {
	deepest := 0
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "passages")
		seed := rapid.Uint64().Draw(rt, "seed")
		strategy := rapid.SampledFrom([]string{"map-reduce", "map-reduce", "map-reduce", "refine", "auto"}).Draw(rt, "strategy")
		var mu sync.Mutex
		made := map[int]bool{} // invented labels
		m := &script{cut: byRune}
		m.reply = func(p Prompt) (string, error) {
			r := rand.New(rand.NewPCG(seed, uint64(len(p.User))))
			shown := marker.Labels(p.User, 1000)
			if strings.Contains(p.User, "<evidence") {
				shown = nil
				for _, s := range regexp.MustCompile(`(?m)^\[(\d+)\] Document`).FindAllStringSubmatch(p.User, -1) {
					var l int
					fmt.Sscan(s[1], &l)
					shown = append(shown, l)
				}
			}
			var b strings.Builder
			words := 12
			if p.Role == RoleMap {
				words = 60
			}
			if p.Role == RoleCollapse { // slightly shorter, for many levels
				words = len(strings.Fields(p.User)) * 6 / 10
			}
			forms := []string{" [%d]", "[%d].", " [%d](id=%[1]d)", "[%d, %[1]d]", "【%d】", "`[%d]`", " arr[%d].foo", "[^%d]", " x[%d] = 3",
				"[%d][0]", " [id=%d] "}
			for i := range words {
				fmt.Fprintf(&b, "word%d", i)
				if r.IntN(3) == 0 && len(shown) > 0 {
					fmt.Fprintf(&b, forms[r.IntN(len(forms))], shown[r.IntN(len(shown))])
				}
				if r.IntN(8) == 0 {
					l := 1 + r.IntN(2*n)
					if !slices.Contains(shown, l) {
						mu.Lock()
						made[l] = true
						mu.Unlock()
					}
					fmt.Fprintf(&b, forms[r.IntN(len(forms))], l)
				}
				b.WriteByte(' ')
			}
			return b.String(), nil
		}
		a := &Answerer{Model: m, ContextTokens: 1024, StepTokens: 1}
		known := map[int][]int{} // labels that the result of each step may cite
		drafts := map[int]string{}
		levels := map[int]int{}
		var text strings.Builder
		var last Stepped
		for e, err := range a.Summarize(rt.Context(), Summary{Passages: story(n), Strategy: strategy}) {
			if err != nil {
				rt.Fatal(err)
			}
			switch e := e.(type) {
			case Draft:
				drafts[e.Step] += e.Text
				if e.Final && strategy != "refine" {
					known[e.Step] = e.Labels
					if got := marker.Labels(drafts[e.Step], 1000); !slices.Equal(got, e.Labels) {
						rt.Errorf("step %d reports the labels %v, but cites %v", e.Step, e.Labels, got)
					}
				}
			case Stepped:
				last = e
				level := 0
				if e.Role == RoleCollapse || e.Role == RoleCombine {
					may := []int{}
					for _, s := range e.From {
						level = max(level, levels[s]+1)
						may = append(may, known[s]...)
					}
					if extra := difference(e.Labels, may); len(extra) > 0 {
						rt.Errorf("step %d was shown %v, which no earlier step cites", e.Step, extra)
					}
				}
				levels[e.Step] = level
				if e.Role == RoleMap {
					if extra := difference(known[e.Step], e.Labels); len(extra) > 0 {
						rt.Errorf("map step %d cites %v, which it was not shown", e.Step, extra)
					}
				}
				if e.Role == RoleCombine {
					deepest = max(deepest, level)
				}
			case Text:
				text.WriteString(e.Text)
			}
		}
		cited := marker.Labels(text.String(), 1000)
		for _, l := range cited {
			if l > n {
				rt.Errorf("[%d] leads to no passage; there are %d", l, n)
			}
		}
		if last.Role == RoleCombine {
			if extra := difference(cited, last.Labels); len(extra) > 0 {
				rt.Errorf("summary cites %v, which the last call was not shown", extra)
			}
		}
		if text.Len() == 0 {
			rt.Error("the summary is empty")
		}
	})
	if datatest.Campaign() && deepest < 5 {
		t.Errorf("deepest summary collapsed %d times, want at least 4", deepest-1)
	}
}

func TestSummarize(t *testing.T) {
	m := &script{reply: byRole(map[Role][]string{
		RoleAnswer: {"They sail [1]."}, RoleRefine: {"They sail on [1][2] [77].", "NO CHANGE", "They sail far [1][2]."},
		RoleMap: {"a [1]."}, RoleCombine: {"They sail [1]."},
	})}
	sum := func(a *Answerer, s Summary) transcript { return read(a.Summarize(t.Context(), s)) }

	got := sum(&Answerer{Model: m}, Summary{Passages: story(3)})
	if got.err != nil || got.text != "They sail [1]." || len(m.calls) != 1 || m.calls[0].Role != RoleAnswer {
		t.Errorf("%d calls, want one; events\n%s", len(m.calls), got)
	}
	if strings.Contains(m.calls[0].System, "question") {
		t.Errorf("system prompt of a summary has a question: %s", m.calls[0].System)
	}
	got = sum(&Answerer{Model: m, StepTokens: 1}, Summary{Passages: story(4), Strategy: "refine", Words: 50})
	if got.err != nil || got.text != "They sail far [1][2]." || strings.Contains(got.String(), "incomplete") {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(m.calls[len(m.calls)-1].System, "about 50 words") {
		t.Errorf("system prompt lacks the length: %s", m.calls[len(m.calls)-1].System)
	}
	got = sum(&Answerer{Model: m, StepTokens: 1}, Summary{Passages: story(2)})
	if got.err != nil || m.calls[len(m.calls)-1].Role != RoleCombine {
		t.Errorf("got\n%s", got)
	}

	for code, bad := range map[string]struct {
		a *Answerer
		s Summary
	}{
		"model":     {&Answerer{}, Summary{Passages: story(1)}},
		"empty":     {&Answerer{Model: m}, Summary{}},
		"max_words": {&Answerer{Model: m}, Summary{Passages: story(1), Words: -1}},
		"strategy":  {&Answerer{Model: m, StepTokens: 1}, Summary{Passages: story(2), Strategy: "stuff"}},
	} {
		var q *QuestionError
		if got := sum(bad.a, bad.s); !errors.As(got.err, &q) || q.Code != code {
			t.Errorf("%s: got\n%s", code, got)
		}
	}
}

// TestSummaryLacksAPart checks that a summary that lacks a part of the text says so.
func TestSummaryLacksAPart(t *testing.T) {
	for _, strategy := range []string{"refine", "map-reduce"} {
		m := &script{reply: func(p Prompt) (string, error) {
			if strings.Contains(p.User, "Chapter 2.") {
				return "", errDown
			}
			return "They sail [1].", nil
		}}
		got := read((&Answerer{Model: m, StepTokens: 1}).Summarize(t.Context(), Summary{Passages: story(3), Strategy: strategy}))
		if got.err != nil || !strings.HasPrefix(got.text, "They sail [1]") || !strings.Contains(got.String(), "incomplete {Reason:1 of 3 pa") {
			t.Errorf("%s: got\n%s", strategy, got)
		}
		m.reply = func(Prompt) (string, error) { return "", downError{} }
		m.calls = nil
		got = read((&Answerer{Model: m, StepTokens: 1, Parallel: 1}).Summarize(t.Context(), Summary{Passages: story(30), Strategy: strategy}))
		if got.err == nil || got.text != "" || len(m.calls) > 3 {
			t.Errorf("%s: %d calls, want at most 3 and an error; events\n%s", strategy, len(m.calls), got)
		}
	}
}

// TestSummaryDoesNotShrink checks that parts that do not fit into one prompt are returned
// unchanged, and that the summary says that it is incomplete.
func TestSummaryDoesNotShrink(t *testing.T) {
	for _, longer := range []bool{false, true} {
		m := &script{reply: func(p Prompt) (string, error) {
			switch {
			case p.Role == RoleMap:
				return strings.TrimSpace(strings.Repeat("They sailed on. ", 40)), nil
			case p.Role == RoleCollapse && longer:
				return strings.Repeat("They sailed past the point and saw land [1]. ", 150), nil
			case p.Role == RoleCollapse:
				_, text, _ := strings.Cut(p.User, ">\n")
				return text, nil
			}
			return "They sailed [1].", nil
		}}
		got := read((&Answerer{Model: m, StepTokens: 1, ContextTokens: 1024, Parallel: 1}).Summarize(t.Context(),
			Summary{Passages: story(8), Strategy: "map-reduce"}))
		if got.err != nil || !strings.Contains(got.String(),
			"incomplete {Reason:the parts could not be combined: the model did not make the parts shorter in round") {
			t.Fatalf("got\n%s", got)
		}
		if n := strings.Count(got.text, "They sailed on"); n != 8*40 {
			t.Errorf("of %d sentences %d are left", 8*40, n)
		}
		for _, p := range m.calls {
			if n := ingest.CountTokens(p.System) + ingest.CountTokens(p.User); n > 1024*85/100 {
				t.Errorf("prompt has %d tokens (%s)", n, p.Role)
			}
		}
	}
}

// TestSummaryWindowTooSmall checks that if the window is smaller than the setting, parts
// are halved and no text is lost.
func TestSummaryWindowTooSmall(t *testing.T) {
	var halved []string
	m := &script{}
	m.reply = func(p Prompt) (string, error) {
		if ingest.CountTokens(p.System)+ingest.CountTokens(p.User) > 1300 {
			return "", fmt.Errorf("400: %w", ErrContextLength)
		}
		if p.Role == RoleMap {
			halved = append(halved, p.User)
		}
		return strings.Repeat("They sail "+anyLabel.FindString(p.User)+". ", 20), nil
	}
	got := read((&Answerer{Model: m, ContextTokens: 3000}).Summarize(t.Context(), Summary{Passages: story(60), Strategy: "map-reduce"}))
	if got.err != nil || !strings.HasPrefix(got.text, "They sail [1].") || strings.Contains(got.String(), "\nincomplete ") ||
		strings.Count(got.String(), "\nwarning ") != 1 {
		t.Errorf("got\n%s", got)
	}
	read := strings.Join(halved, "")
	for i := range 60 {
		if !strings.Contains(read, fmt.Sprintf("Chapter %d. ", i+1)) {
			t.Errorf("passage %d was not read", i+1)
		}
	}
}

func TestSuggest(t *testing.T) {
	m := &script{reply: byRole(map[Role][]string{RoleSuggest: {"Here are the questions:\n1. What does a mooring cost?\n" +
		"- “Who pays half?”\nMembers pay.\n"}})}
	a := &Answerer{Model: m}
	got, err := a.Suggest(t.Context(), three, 8)
	if want := []string{"What does a mooring cost?", "Who pays half?"}; err != nil || !slices.Equal(got, want) || len(m.calls) != 1 {
		t.Errorf("Suggest = %q, %v after %d calls; want %q after 1", got, err, len(m.calls), want)
	}
	if got, err := new(Answerer).Suggest(t.Context(), three, 8); got != nil || err != nil {
		t.Errorf("Suggest without a model = %q, %v; want none", got, err)
	}
}

// TestSummaryLeft checks that leaving a summary stops its calls and leaves nothing running:
// a synctest bubble ends only when all its goroutines have.
func TestSummaryLeft(t *testing.T) {
	for _, strategy := range []string{"refine", "map-reduce"} {
		synctest.Test(t, func(t *testing.T) {
			m := stalled{make(chan struct{}, 9)}
			a := &Answerer{Model: m, StepTokens: 1, Parallel: 4}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-m.running
				cancel()
			}()
			got := read(a.Summarize(ctx, Summary{Passages: story(9), Strategy: strategy}))
			if !errors.Is(got.err, context.Canceled) || got.text != "" {
				t.Errorf("%s: got\n%s", strategy, got)
			}
		})
	}
	for leave := range 12 {
		synctest.Test(t, func(t *testing.T) {
			m := &script{reply: func(Prompt) (string, error) { return "They sail [1].", nil }}
			n := 0
			for _, err := range (&Answerer{Model: m, StepTokens: 1}).Summarize(t.Context(), Summary{Passages: story(4), Strategy: "map-reduce"}) {
				if err != nil {
					t.Error(err)
				}
				if n++; n > leave {
					break
				}
			}
		})
	}
}
