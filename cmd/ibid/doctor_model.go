package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// checkModels tries the endpoint with every model that is named.
func (c *doctorCmd) checkModels(ctx context.Context, s surroundings, up *checkup) error {
	a, err := newAnswerer(c.modelConfig, c.endpointConfig, s.getenv)
	var coded *exitError
	if errors.As(err, &coded) {
		return err // wrong use
	}
	if err != nil {
		return up.add(finding{"model", stateFailed, err.Error(), "correct the flag or the file it names"})
	}
	if c.Model == "" {
		return up.add(ok("model", "none: answers are quoted from the documents; with --model NAME and --base-url URL an endpoint is used"))
	}
	if err := up.add(ok("timeouts", "--first-token-timeout %s, --idle-timeout %s, --model-timeout %s", c.FirstTokenTimeout, c.IdleTimeout, c.ModelTimeout)); err != nil {
		return err
	}
	if reached, err := c.checkList(ctx, s, up); err != nil || !reached {
		return err
	}
	tried := map[string]bool{}
	for _, m := range []struct {
		flag, name string
		model      answer.Model
	}{{"model", c.Model, a.Model}, {"gate model", c.GateModel, a.GateModel}, {"refine model", c.RefineModel, a.RefineModel}} {
		if m.model == nil || tried[m.name] {
			continue
		}
		tried[m.name] = true
		f, works := checkChat(ctx, m.flag, m.name, m.model)
		if err := up.add(f); err != nil {
			return err
		}
		if !works {
			return nil // nothing more can be learned from it
		}
	}
	for _, check := range []func() finding{
		func() finding { return checkWindow(ctx, a.Model, c.ContextTokens) },
		func() finding { return checkJudge(ctx, a) },
		func() finding { return checkCitations(ctx, a) },
	} {
		if err := up.add(check()); err != nil {
			return err
		}
	}
	return nil
}

// checkList asks the server for its models. A server need not have the list.
func (c *doctorCmd) checkList(ctx context.Context, s surroundings, up *checkup) (reached bool, err error) {
	o, err := c.options(s.getenv, c.Model)
	if err != nil {
		return false, up.add(finding{"endpoint", stateFailed, err.Error(), "check --api-key-file"})
	}
	names, err := openai.Models(ctx, o)
	var failed *openai.Error
	if errors.As(err, &failed) && (failed.Kind == openai.Down || failed.Kind == openai.Unauthorized || failed.Kind == openai.TimedOut) {
		return false, up.add(finding{"endpoint", stateFailed, failed.Error(), "start the server, or correct --base-url or the key"})
	}
	if err != nil {
		return true, up.add(finding{"endpoint", stateWarning, "no list of models: " + err.Error(), "if the checks below pass, this does not matter"})
	}
	var missing []string
	for _, name := range []string{c.Model, c.GateModel, c.RefineModel} {
		// Ollama names a model with its tag, and takes it without.
		if name != "" && !slices.Contains(names, name) && !slices.Contains(names, name+":latest") && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return true, up.add(finding{"endpoint", stateWarning, fmt.Sprintf("%s does not list %s", c.BaseURL, strings.Join(missing, ", ")),
			"it lists " + oneLine(strings.Join(names, ", "), 300)})
	}
	return true, up.add(ok("endpoint", "%s, %d models", c.BaseURL, len(names)))
}

// checkChat asks for a few words, and sees how they come.
func checkChat(ctx context.Context, check, name string, m answer.Model) (f finding, works bool) {
	start := time.Now()
	var first time.Duration
	var text strings.Builder
	pieces := 0
	var last answer.Piece
	for p, err := range m.Complete(ctx, answer.Prompt{
		Role: answer.RoleAnswer, User: "Write the numbers from one to twelve in words, with commas between them.", MaxTokens: 400, // room for thoughts
	}) {
		if err != nil {
			return finding{check, stateFailed, err.Error(), "no question can be answered with this model before it replies"}, false
		}
		if p.Text != "" {
			if pieces++; pieces == 1 {
				first = time.Since(start)
			}
			text.WriteString(p.Text)
		}
		last = p
	}
	took := time.Since(start)
	switch {
	case strings.TrimSpace(text.String()) == "":
		return finding{check, stateFailed, name + " replied without a word", "a model that only thinks needs room: choose another, or raise what the server lets it write"}, false
	case pieces == 1 && text.Len() > 20:
		return finding{check, stateWarning, fmt.Sprintf("%s replies, but not as a stream: all of it came after %s", name, short(took)),
			"turn on streaming in the server or in the proxy before it; without it an answer shows only when it is complete"}, true
	}
	f = ok(check, "%s: first words after %s, all %d tokens after %s", name, short(first), last.Usage.Completion, short(took))
	if last.Usage.Reasoning > 0 {
		f.Detail += fmt.Sprintf(", %d of them thoughts", last.Usage.Reasoning)
	}
	if !last.Usage.Reported {
		f.Detail += "; the server reports no usage, so tokens are counted by Ibid"
	}
	return f, true
}

// A server that reports less than this share of a prompt's tokens has cut it;
// tokenisers differ less.
const readShare = .7

// checkWindow sends a prompt that nearly fills the window, and compares what
// the server says it read with what was sent.
func checkWindow(ctx context.Context, m answer.Model, window int) finding {
	const check = "context"
	const reply = 16
	var b strings.Builder
	b.WriteString("Below is a log. Read it and reply with the one word: read.\n\n")
	line := "The boat came back to the harbour in the evening, and the crew made it fast at the long jetty.\n"
	each := ingest.CountTokens(line)
	// The same margin for foreign tokenisers that answers keep.
	for n := ingest.CountTokens(b.String()) + reply; n+each < window*85/100; n += each {
		b.WriteString(line)
	}
	sent := ingest.CountTokens(b.String())
	start := time.Now()
	var last answer.Piece
	for p, err := range m.Complete(ctx, answer.Prompt{Role: answer.RoleAnswer, User: b.String(), MaxTokens: reply, Hard: true}) {
		switch {
		case errors.Is(err, answer.ErrContextLength):
			return finding{check, stateFailed, fmt.Sprintf("a prompt of about %d tokens is too long for the server: %v", sent, err),
				fmt.Sprintf("set --context-tokens (%d now) to the server's real window, or raise that of the server", window)}
		case err != nil:
			return finding{check, stateFailed, fmt.Sprintf("a prompt of about %d tokens failed: %v", sent, err),
				fmt.Sprintf("lower --context-tokens (%d now), or give the server more time or memory", window)}
		}
		last = p
	}
	took := short(time.Since(start))
	if !last.Usage.Reported {
		return finding{check, stateWarning, fmt.Sprintf("a prompt of about %d tokens was taken in %s, but the server does not report how much of it it read", sent, took),
			fmt.Sprintf("make sure that the server's context length is at least %d", window)}
	}
	if read := last.Usage.Prompt; float64(read) < readShare*float64(sent) {
		return finding{check, stateFailed, fmt.Sprintf("the server read %d of about %d prompt tokens: it cuts prompts without a word", read, sent),
			fmt.Sprintf("raise its context length to %d or more (OLLAMA_CONTEXT_LENGTH for Ollama, --ctx-size for llama.cpp, --max-model-len for vLLM), or set --context-tokens %d", window, max(read, 512))}
	}
	return ok(check, "a prompt of about %d tokens was read in full (%d by the server's count) in %s; --context-tokens is %d", sent, last.Usage.Prompt, took, window)
}

// The samples that judge and citations are tried on.
const trialQuestion = "When is the harbour light lit?"

var trialTexts = [...]struct {
	title, text string
	helps       bool
}{
	{"Harbour light", "The harbour light is lit at dusk and put out at sunrise. The keeper writes both times into the log.", true},
	{"Kitchen", "The kitchen serves soup and bread at noon. Plates go back to the hatch before two.", false},
}

// trial is a search that finds the samples.
type trial struct{}

func (trial) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) {
	var out []retrieve.Passage
	for i, t := range trialTexts {
		id := fmt.Sprintf("sample/%d.md", i+1)
		out = append(out, retrieve.Passage{
			Chunk: ingest.Chunk{ID: id + "#1", Document: id, Text: t.text, End: len(t.text)},
			Title: t.title, Scores: retrieve.Scores{Dense: .5, Lexical: .5, Coverage: .5},
		})
	}
	return out, nil
}

// try asks the question about the samples with a gate of that kind.
func try(ctx context.Context, a *answer.Answerer, gate answer.GateKind) iter.Seq2[answer.Event, error] {
	b := *a
	b.Retriever, b.Gate = trial{}, gate
	return b.Ask(ctx, answer.Question{Text: trialQuestion, Strategy: "stuff"})
}

// checkJudge sees whether the model gives verdicts in the form asked for.
func checkJudge(ctx context.Context, a *answer.Answerer) finding {
	const check = "judge"
	unreadable, wrong, seen := 0, 0, 0
	for e, err := range try(ctx, a, answer.GateModel) {
		if err != nil {
			return finding{check, stateFailed, err.Error(), "passages cannot be judged by this model: set --gate score"}
		}
		j, is := e.(answer.Judged)
		if !is {
			if e.Kind() == "retrieved" {
				continue
			}
			break
		}
		helps := trialTexts[seen].helps
		seen++
		switch {
		case j.Decision == answer.Unparsable || j.Decision == answer.Errored:
			unreadable++
		case helps != (j.Decision == answer.Relevant):
			wrong++
		}
	}
	switch {
	case unreadable > 0:
		return finding{check, stateWarning, fmt.Sprintf("%d of %d verdicts were not a yes or no on the first line", unreadable, seen),
			"passages with such verdicts are kept; choose another --gate-model, or set --gate score"}
	case wrong > 0:
		return finding{check, stateWarning, fmt.Sprintf("%d of %d plain passages were judged wrongly", wrong, seen),
			"the model is too weak to judge: choose another --gate-model, or set --gate score"}
	}
	return ok(check, "%d verdicts in the form asked for, and right", seen)
}

// checkCitations sees whether the model cites as asked.
func checkCitations(ctx context.Context, a *answer.Answerer) finding {
	const check = "citations"
	got, err := cite.Collect(cite.Number(try(ctx, a, answer.GateOff), cite.Options{}))
	switch {
	case err != nil:
		return finding{check, stateFailed, err.Error(), "look into the server's log"}
	case !got.Answered:
		return finding{check, stateWarning, "the model found no answer in a passage that states it", "choose a stronger --model, or leave it out: answers are then quoted from the documents"}
	case len(got.Citations) == 0:
		return finding{check, stateWarning, fmt.Sprintf("the model answers without citing: %q", oneLine(got.Text, 100)),
			"answers will stand without sources; choose a stronger --model, or leave it out: answers are then quoted from the documents"}
	}
	for _, s := range got.Sources {
		if s.Document != "sample/1.md" {
			return finding{check, stateWarning, fmt.Sprintf("the model cites a passage that does not bear its answer out: %q", oneLine(got.Text, 100)), "choose a stronger --model, and open the sources before you rely on an answer"}
		}
	}
	return ok(check, "the answer cites its passage: %q", oneLine(got.Text, 100))
}
