package web

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/ingest"
	"ibid/retrieve"
)

// papers are the passages of a search or summary.
type papers []retrieve.Passage

func newPapers(texts ...string) papers {
	var p papers
	for i, text := range texts {
		id := fmt.Sprintf("club/paper%d.md", i+1)
		p = append(p, retrieve.Passage{
			Chunk: ingest.Chunk{ID: id + "#1", Document: id, Text: text, End: len(text)},
			Root:  "club", Path: fmt.Sprintf("paper%d.md", i+1), Title: fmt.Sprintf("Paper %d", i+1),
		})
	}
	return p
}

func (p papers) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) { return p, nil }

// summarizer always summarizes its papers.
type summarizer struct {
	*answer.Answerer
	papers
}

func (s summarizer) Summarize(ctx context.Context, sum answer.Summary) iter.Seq2[answer.Event, error] {
	sum.Passages = s.papers
	return s.Answerer.Summarize(ctx, sum)
}

// steps returns the steps in the event done of a reply.
func steps(t *testing.T, path, body string, change func(*Options)) []map[string]any {
	t.Helper()
	events := eventsOf(t, call(newHandler(t, change), "POST", path, body, asEvents...).Body.Bytes())
	var object struct{ Steps []map[string]any }
	if err := json.Unmarshal(events[len(events)-1].data, &object); err != nil {
		t.Fatal(err)
	}
	return object.Steps
}

func scripted(t *testing.T, reply func(openaitest.Request) openaitest.Reply) *openai.Client {
	t.Helper()
	c, err := openai.New(openai.Options{BaseURL: openaitest.Start(t, &openaitest.Handler{Reply: reply}), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestDoneNamesLabelsOfRefine checks that every step of the refine loop names the
// labels that its reply made up and those that the answer lost.
func TestDoneNamesLabelsOfRefine(t *testing.T) {
	t.Parallel()
	found := newPapers("A mooring costs 120 marks.", "The kitchen serves soup.", "The fee is due in April.", "Members pay half of the fee.", "Visitors pay by the night.")
	replies := openaitest.Sequence(
		openaitest.Reply{Text: "A mooring costs 120 marks.[1] It is cheap.[9]"},
		openaitest.Reply{Text: "NO CHANGE"},
		openaitest.Reply{Text: "It is due in April,[3] as it was[77] befo", Finish: "length"},
		openaitest.Reply{Text: "It is due[78] in", Fault: openaitest.NoFinish, After: 100},
		openaitest.Reply{Text: "Visitors pay by the night.[5]"},
	)
	a := &answer.Answerer{Retriever: found, Model: scripted(t, replies), Gate: answer.GateOff, StepPassages: 1}
	got := steps(t, "/api/ask", `{"question":"What does a mooring cost?"}`, func(o *Options) { o.Asker = a })
	var lines []string
	for _, s := range got {
		lines = append(lines, fmt.Sprint(s["step"], " ", s["role"], " ", s["reason"], " ", s["labels"], " invented ", s["invented"], " lost ", s["lost"]))
	}
	want := []string{
		"1 answer <nil> [1] invented [9] lost []",
		"2 refine meta_remark [2] invented [] lost []",
		"3 refine cut [3] invented [77] lost []",
		"4 refine model_error [4] invented [78] lost []",
		"5 refine <nil> [5] invented [] lost [1]",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestDoneNamesLabelsOfCollapse checks the same for every call of a map-reduce.
func TestDoneNamesLabelsOfCollapse(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`\[(\d+)\]`)
	// Each reply cites the first label in its prompt and one that is not in it.
	reply := func(r openaitest.Request) openaitest.Reply {
		first, words, made := label.FindStringSubmatch(r.User)[1], 60, "900"
		switch r.Role {
		case "collapse":
			words, made = 20, "901"
		case "combine":
			words, made = 5, "902"
		}
		return openaitest.Reply{Text: strings.Repeat("boats ", words) + "sail.[" + first + "] They never sank.[" + made + "]"}
	}
	var texts []string
	for i := range 24 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("On day %d they sailed on past the point. ", i+1), 20))
	}
	a := &answer.Answerer{Model: scripted(t, reply), ContextTokens: 1024, StepPassages: 1}
	got := steps(t, "/api/summarize", `{"document":"club/guide.pdf","strategy":"map-reduce"}`, func(o *Options) { o.Summarizer = summarizer{a, newPapers(texts...)} })
	seen := map[any]int{}
	for _, s := range got {
		role := s["role"]
		seen[role]++
		made := map[any]float64{"map": 900, "collapse": 901, "combine": 902}[role]
		if !reflect.DeepEqual(s["invented"], []any{made}) {
			t.Errorf("step %v (%v): invented labels %v", s["step"], role, s["invented"])
		}
		lost := []any{}
		if role != "map" {
			lost = s["labels"].([]any)[1:]
		}
		if !reflect.DeepEqual(s["lost"], lost) {
			t.Errorf("step %v (%v) of the labels %v: lost labels %v", s["step"], role, s["labels"], s["lost"])
		}
	}
	if seen["map"] != 24 || seen["collapse"] < 2 || seen["combine"] != 1 {
		t.Errorf("the steps were %v", seen)
	}
}
