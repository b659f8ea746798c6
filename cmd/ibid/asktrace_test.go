package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/cite"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// A foundAlways finds the same passages for any question.
type foundAlways []retrieve.Passage

func (f foundAlways) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) {
	return f, nil
}

// A trace covers passages, steps and statements. Of four statements that are held, the
// judge clears one at once and one when it is asked again, the third is dropped, and the
// fourth gets its source.
func TestShowTraceGolden(t *testing.T) {
	const doubtful, wrong = "Members pay half of the mooring fee", "The mooring fee includes the winter store"
	h := doubtingModel("The mooring fee is 120 marks a season.[1][7] "+doubtful+".[2] "+wrong+".[3] The fee is due on the first of April.",
		wrong, doubtful)
	client, err := openai.New(openai.Options{BaseURL: openaitest.Start(t, h), Model: "scripted"})
	must(t, err)
	defer client.Close()
	var found foundAlways
	for _, p := range []struct{ id, title, text string }{
		{"fees", "Fees", "The mooring fee is 120 marks a season. It covers water and the use of the crane."},
		{"members", "Members", "Members pay half of the mooring fee, and nothing for the slip."},
		{"store", "Winter store", "In the winter store a boat costs 80 marks; the mooring fee does not include it."},
		{"dates", "Dates\x1b[2J", "The fee is due on the first of April, and is not refunded."},
		{"bread", "Galley", "Bread is baked on Sundays."},
	} {
		found = append(found, retrieve.Passage{Title: p.title,
			Chunk: ingest.Chunk{ID: p.id, Document: "harbour/" + p.id + ".md", Text: p.text, End: len(p.text)}})
	}
	a := &answer.Answerer{Retriever: found, Model: client, Unproved: answer.UnprovedDrop, Parallel: 1}
	events := a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee, and when is it due?"})
	tr := &tracer{}
	reply, err := cite.Collect(cite.Number(tr.record(events), cite.Options{}))
	must(t, err)
	var b strings.Builder
	b.WriteString(reply.Text + "\n")
	must(t, tr.printTrace(&b, reply))
	datatest.Golden(t, filepath.Join("testdata", "trace.txt"), b.String())
}

// doubtingModel is a model that writes an answer. As the judge it rejects one statement every
// time and another only the first time.
func doubtingModel(text, wrong, doubtful string) *openaitest.Handler {
	return &openaitest.Handler{Reply: func(r openaitest.Request) openaitest.Reply {
		switch again := strings.Contains(r.User, "of use to a reader"); {
		case r.Role != "verify":
			return openaitest.Reply{Text: text}
		case strings.Contains(r.User, wrong), strings.Contains(r.User, doubtful) && !again:
			return openaitest.Reply{Text: "no"}
		}
		return openaitest.Reply{Text: "yes"}
	}}
}

// TestDroppedStream uses the stream of a real server, with the statements in its done event
// and their trace. Of three statements the second is held, doubted, checked again and
// dropped, since the judge rejects it twice; the third, which it rejects once, is shown.
func TestDroppedStream(t *testing.T) {
	t.Parallel()
	const wrong, doubtful = "Guests pay 50 marks", "Members pay half of the mooring fee"
	h := doubtingModel("The mooring fee is 120 marks a season.[1] "+wrong+".[1] "+doubtful+".[1]", wrong, doubtful)
	data, folder := t.TempDir(), filepath.Join(t.TempDir(), "harbour")
	must(t, os.Mkdir(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, "fees.txt"),
		[]byte("The mooring fee is 120 marks a season. Members pay half of the mooring fee, and nothing for the slip."), 0o644))
	mustRun(t, data, "ingest", folder)
	url := serve(t, data, "--no-self-test", "--unproved", "drop", "--model", "scripted", "--base-url", openaitest.Start(t, h))
	stream := fetch(t, "POST", url+"/api/ask", "text/event-stream", `{"question":"What is the mooring fee?"}`, 200)
	var b strings.Builder
	var found struct{ Passages []retrieve.Passage }
	for _, event := range strings.Split(strings.TrimSpace(string(stream)), "\n\n") {
		_, event, _ = strings.Cut(event, "event: ")
		kind, payload, _ := strings.Cut(event, "\ndata: ")
		b.WriteString(kind)
		if slices.Contains([]string{"text", "cited", "quoted"}, kind) {
			b.WriteString(" " + changing.ReplaceAllString(payload, `"$1":…`))
		}
		b.WriteByte('\n')
		switch kind {
		case "retrieved":
			must(t, json.Unmarshal([]byte(payload), &found))
		case "done":
			var raw struct{ Verified []json.RawMessage }
			must(t, json.Unmarshal([]byte(payload), &raw))
			for _, v := range raw.Verified {
				b.WriteString("     " + changing.ReplaceAllString(string(v), `"$1":…`) + "\n")
			}
			var reply cite.Answer
			must(t, json.Unmarshal([]byte(payload), &reply))
			tr := tracer{passages: found.Passages, first: len(found.Passages), verified: checks(reply.Verified)}
			must(t, tr.printTrace(&b, reply))
		}
	}
	datatest.Golden(t, filepath.Join("testdata", "dropped.txt"), b.String())
}

// changing are the parts of an event that differ from run to run.
var changing = regexp.MustCompile(`"(link|digest|support|tokens|took_ms)":("[^"]*"|[0-9.]+)`)

func checks(verified []answer.Verified) (all []check) {
	for _, v := range verified {
		all = append(all, check{Verified: v})
	}
	return all
}

// TestTraceFollowsDecisions checks that a trace reports the final decision on each passage
// and statement, even if one call decided otherwise.
func TestTraceFollowsDecisions(t *testing.T) {
	t.Parallel()
	lit := answer.Verified{Statement: "It is lit.", Verdict: answer.Cleared, By: "model", Calls: 1}
	events := []answer.Event{
		answer.Retrieved{Passages: []retrieve.Passage{{Chunk: ingest.Chunk{ID: "a"}}}},
		answer.Judged{Passage: "a", Decision: answer.Relevant, By: "model", Reason: "the model says no, but its chance of 98 % keeps it"},
		lit, answer.Stepped{Step: 1, Role: answer.RoleAnswer, Reason: "unproved"},
		lit, answer.Stepped{Step: 1, Role: answer.RoleAnswer, Changed: true}, answer.Usage{},
	}
	tr := &tracer{}
	a, err := cite.Collect(tr.record(func(yield func(answer.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}))
	must(t, err)
	var b strings.Builder
	must(t, tr.printTrace(&b, a))
	at := 0
	for _, want := range []string{"    the model says no, but its chance of 98 % keeps it\n",
		"the passages prove none of its statements, so it is not shown\n",
		"not shown, since no part of this reply has a source: the judge accepted it",
		"    shown: the judge accepted it in 1 call\n"} {
		next := strings.Index(b.String()[at:], want)
		if next < 0 {
			t.Fatalf("%q not found after byte %d of\n%s", want, at, b.String())
		}
		at += next
	}
	if strings.Contains(b.String(), "said yes: the model says no") {
		t.Errorf("trace has a decision that contradicts its reason:\n%s", b.String())
	}
}

// TestWarningsAfterLine checks that a warning does not split a sentence.
func TestWarningsAfterLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, err := range printAnswer(func(yield func(answer.Event, error) bool) {
		_ = yield(answer.Warning{Message: "early"}, nil) && yield(answer.Text{Text: "It is "}, nil) &&
			yield(answer.Warning{Message: "late"}, nil) && yield(answer.Text{Text: "lit."}, nil) &&
			yield(answer.Incomplete{Reason: "cut"}, nil)
	}, surroundings{stdout: &out, stderr: &out}) {
		must(t, err)
	}
	if want := "ibid: early\nIt is lit.\nibid: late\nibid: the answer is incomplete: cut\n"; out.String() != want {
		t.Errorf("output = %q, want %q", out.String(), want)
	}
}

// TestShowTrace has the cases that the scripted run lacks.
func TestShowTrace(t *testing.T) {
	t.Parallel()
	unmarked := answer.Verified{Statement: "It is lit.", By: "code", Plain: true}
	tests := []shownTrace{{Name: "without a judge", Answer: cite.Answer{Verified: []answer.Verified{unmarked}},
		Want: "shown: it cites nothing, so it is marked; no judge was used\n"}}
	for _, test := range append(tests, datatest.Lines[shownTrace](t, "testdata/traces.jsonl")...) {
		tr := tracer{verified: checks(test.Answer.Verified)}
		if test.Found {
			tr.passages, tr.first = []retrieve.Passage{{Chunk: ingest.Chunk{ID: "a", Document: "docs/a", Page: 3}, Title: "A"}}, 1
		}
		var b strings.Builder
		must(t, tr.printTrace(&b, test.Answer))
		if !strings.Contains(b.String(), test.Want) {
			t.Errorf("%s: trace = %q, want it to contain %q", test.Name, b.String(), test.Want)
		}
	}
}

// A shownTrace is an answer and a part of its trace; the answer has one passage if Found is
// set.
type shownTrace struct {
	Name   string
	Found  bool
	Answer cite.Answer
	Want   string
}
