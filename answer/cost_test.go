package answer_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve"
)

// The cost of answers, compared with a refine loop as LangChain's chain runs it:
// the first passage makes an answer, and each further one is sent to the model
// with the answer so far, one call after the other. The model is a script with
// the latency of a real one, over HTTP.

const (
	costQuestion = "What does a mooring at Tarn Quay cost, and who pays less?"
	costFirst    = 300 * time.Millisecond // to the first token
	costToken    = 20 * time.Millisecond  // for each further one
)

// costFacts are what the four passages that are on topic state; the ancestor's
// first passage is one of them.
var costFacts = map[int]string{
	0: "A mooring at Tarn Quay costs 120 marks a season for boats of up to six metres.",
	2: "Boats above six metres pay 30 marks more for each metre or part of one.",
	5: "Members of the sailing school pay half of the mooring fee in their first two years.",
	9: "A mooring taken after the first of August costs a third of the price of the season.",
}

// costPassages are twelve passages of about 150 tokens, four of them on
// topic. Their scores leave every one of them to the judge.
func costPassages() passages {
	filler := []string{
		"The quay was built from stone of the old quarry and has three jetties.",
		"Ropes belong on the hooks beside the ladder, and never on the planks.",
		"The harbour master walks the jetties in the morning and in the evening.",
		"Water and power are at the second jetty, and the taps are shut in winter.",
		"Visitors write the name of their boat into the book at the gate.",
		"Boats that are not used for a season are brought to the field behind the shed.",
		"The wind from the north raises a short sea in front of the entrance.",
	}
	var out passages
	for i := range 12 {
		var text []string
		for j := range 9 {
			text = append(text, filler[(i+j)%len(filler)])
			if fact, ok := costFacts[i]; ok && j == 4 {
				text = append(text, fact)
			}
		}
		// Passages that say the same would be left out.
		text = append(text, fmt.Sprintf("This is paper %d of the mooring rules of Tarn Quay, and it was read out at assembly %d.", i+1, 40+3*i))
		out = append(out, retrieve.Passage{
			Chunk: ingest.Chunk{ID: fmt.Sprintf("r/%d#1", i+1), Document: fmt.Sprintf("r/%d", i+1), Text: strings.Join(text, " ")},
			Title: fmt.Sprintf("Paper %d", i+1), Scores: retrieve.Scores{Dense: .5, Lexical: .5, Coverage: .5},
		})
	}
	return out
}

// costModel is the scripted model: it repeats the facts in a prompt, with the
// answer so far, and judges by whether a passage has a fact.
func costModel(r openaitest.Request) openaitest.Reply {
	label := regexp.MustCompile(`(?m)^\[(\d+)\] Paper`)
	var found []string
	facts := func(text, mark string) {
		for _, i := range []int{0, 2, 5, 9} {
			if strings.Contains(text, costFacts[i]) && !slices.Contains(found, costFacts[i]+mark) {
				found = append(found, costFacts[i]+mark)
			}
		}
	}
	switch r.Role {
	case "judge":
		if facts(r.User, ""); len(found) > 0 {
			return openaitest.Reply{Text: "yes"}
		}
		return openaitest.Reply{Text: "no\nIt is about the quay, and says nothing of prices."}
	case "answer", "refine":
		draft, isRefine := "", false
		if _, rest, ok := strings.Cut(r.User, "<answer "); ok {
			_, rest, _ = strings.Cut(rest, "\n")
			draft, _, isRefine = strings.Cut(rest, "\n</answer ")
		}
		at := label.FindAllStringSubmatchIndex(r.User, -1)
		for i, m := range at {
			end := len(r.User)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			facts(r.User[m[0]:end], "["+r.User[m[2]:m[3]]+"]")
		}
		if isRefine && len(found) == 0 {
			return openaitest.Reply{Text: "NO CHANGE"}
		}
		if isRefine {
			found = append([]string{draft}, found...)
		}
		return openaitest.Reply{Text: strings.Join(found, " ")}
	}
	// The ancestor: its prompts hold the answer so far and one passage.
	facts(r.User, "")
	if len(found) == 0 {
		return openaitest.Reply{Text: "The context does not say what a mooring costs."}
	}
	return openaitest.Reply{Text: strings.Join(found, " ")}
}

// A cost is what one answer took.
type cost struct {
	calls      int // all of them
	sequential int // the longest row of calls of which each began after the one before had ended
	in, out    int // tokens read and written by the model
	wall       time.Duration
	first      time.Duration // to the first visible token, of a draft or of the answer
	text       string
}

// measure runs an answer against the scripted model.
func measure(t testing.TB, h *openaitest.Handler, run func(shown func()) string) cost {
	var c cost
	start := time.Now()
	first := time.Duration(0)
	c.text = run(func() {
		if first == 0 {
			first = time.Since(start)
		}
	})
	c.wall, c.first = time.Since(start), first
	calls := h.Exchanges()
	slices.SortFunc(calls, func(a, b openaitest.Exchange) int { return a.End.Compare(b.End) })
	var last time.Time
	for _, x := range calls {
		if !x.Ended {
			t.Errorf("request %d (%s) has not ended", x.N, x.Role)
		}
		c.calls++
		c.in += x.Tokens
		c.out += x.Sent
		if !x.Start.Before(last) {
			c.sequential++
			last = x.End
		}
	}
	for _, fact := range costFacts {
		if !strings.Contains(c.text, fact) {
			t.Errorf("the answer lacks %q: %q", fact, c.text)
		}
	}
	return c
}

// A costing is one way to answer.
type costing func(ctx context.Context, t testing.TB, m answer.Model, shown func()) string

// byIbid is the loop as it is without any setting.
func byIbid(ctx context.Context, t testing.TB, m answer.Model, shown func()) string {
	a := &answer.Answerer{Retriever: costPassages(), Model: m}
	var text strings.Builder
	for e, err := range a.Ask(ctx, answer.Question{Text: costQuestion}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case answer.Draft:
			shown()
		case answer.Text:
			shown()
			text.WriteString(e.Text)
		}
	}
	return text.String()
}

// byAncestor is the refine loop of LangChain's chain: all passages in turn, no
// gate, prompts of the same make and about the same length as there.
func byAncestor(ctx context.Context, t testing.TB, m answer.Model, shown func()) string {
	draft := ""
	for i, p := range costPassages() {
		prompt := "This is the context:\n------\n" + p.Text + "\n------\nUse it, and no knowledge of your own, to answer the question: " + costQuestion + "\n"
		if i > 0 {
			prompt = "This is the question that was asked: " + costQuestion + "\nThere is an answer to it already: " + draft +
				"\nIt can be made better (if that is needed) with the following context:\n------\n" + p.Text +
				"\n------\nWith the new context in mind, make the answer to the question better. If the context is of no use, repeat the answer as it was.\n"
		}
		var reply strings.Builder
		for piece, err := range m.Complete(ctx, answer.Prompt{User: prompt}) {
			if err != nil {
				t.Fatal(err)
			}
			if piece.Text != "" {
				shown()
			}
			reply.WriteString(piece.Text)
		}
		draft = reply.String()
	}
	return draft
}

// TestCostAgainstAncestor shows what the gate and the packed refine loop save.
// Time is that of a synctest bubble, so the figures are exact.
func TestCostAgainstAncestor(t *testing.T) {
	run := func(way costing) (c cost) {
		synctest.Test(t, func(t *testing.T) {
			h := &openaitest.Handler{Reply: costModel, FirstToken: costFirst, PerToken: costToken}
			client, err := openai.New(openai.Options{BaseURL: openaitest.PipeURL, Model: "m", Transport: openaitest.Pipe(t, h)})
			if err != nil {
				t.Fatal(err)
			}
			c = measure(t, h, func(shown func()) string { return way(t.Context(), t, client, shown) })
		})
		return c
	}
	ours, theirs := run(byIbid), run(byAncestor)
	for _, c := range []struct {
		who string
		cost
	}{{"ibid", ours}, {"ancestor", theirs}} {
		t.Logf("figure: cost %-8s %2d calls, %2d in sequence, %.2f s, first token %.2f s, %d tokens in, %d out",
			c.who, c.calls, c.sequential, c.wall.Seconds(), c.first.Seconds(), c.in, c.out)
	}
	if theirs.calls != 12 || theirs.sequential != 12 {
		t.Errorf("the ancestor made %d calls, %d in sequence", theirs.calls, theirs.sequential)
	}
	if ours.wall*3 > theirs.wall {
		t.Errorf("%v are more than a third of %v", ours.wall, theirs.wall)
	}
	if ours.out*2 > theirs.out {
		t.Errorf("%d tokens out are more than half of %d", ours.out, theirs.out)
	}
	// Two round trips: the judges, all at once, and the first token after them.
	// A judge that says no takes the longest, for its reason.
	no := costFirst + time.Duration(len(openaitest.Split("no\nIt is about the quay, and says nothing of prices."))-1)*costToken
	if most := no + costFirst + 50*time.Millisecond; ours.sequential > 2 || ours.first > most {
		t.Errorf("%d calls in sequence, and the first token after %v: that is more than two round trips (%v)", ours.sequential, ours.first, most)
	}
}
