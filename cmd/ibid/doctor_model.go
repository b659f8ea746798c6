package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/trial"
	"ibid/ingest"
	"ibid/retrieve/state"
)

// checkModels tries every configured model at the endpoint. It returns an error only for wrong
// usage.
func (c *doctorCmd) checkModels(ctx context.Context, s surroundings, up *checkup) error {
	a, err := newAnswerer(c.modelConfig, c.endpointConfig, s.getenv)
	if coded := (*exitError)(nil); errors.As(err, &coded) {
		return err
	}
	if err != nil {
		up.add(failed("model", err, "correct the flag, or the file that it names"))
		return nil
	}
	a.NoFallback = true
	if c.Model == "" {
		up.add(ok("model", "none: answers are quoted from the documents; select one with --model NAME and --base-url URL"))
		return nil
	}
	list, reached := c.checkList(ctx, s)
	up.add(list)
	tried := map[string]bool{}
	for _, m := range []struct {
		flag, name string
		model      answer.Model
	}{{"model", c.Model, a.Model}, {"gate model", c.GateModel, a.GateModel}, {"refine model", c.RefineModel, a.RefineModel}} {
		if !reached {
			return nil
		}
		if m.model == nil || tried[m.name] {
			continue
		}
		tried[m.name] = true
		var f finding
		f, reached = checkChat(ctx, m.flag, m.name, m.model)
		up.add(f)
	}
	if reached {
		up.add(checkWindow(ctx, a.Model, c.ContextTokens))
		c.checkTrial(ctx, s, a, up)
	}
	return nil
}

// checkList asks the server for its models. Servers may lack the list.
func (c *doctorCmd) checkList(ctx context.Context, s surroundings) (f finding, reached bool) {
	const check = "endpoint"
	o, err := c.options(s.getenv, c.Model)
	if err != nil {
		return failed(check, err, "check --api-key-file"), false
	}
	names, err := openai.Models(ctx, o)
	var e *openai.Error
	if errors.As(err, &e) && (e.Kind == openai.Down || e.Kind == openai.Unauthorized || e.Kind == openai.TimedOut) {
		return failed(check, e, "start the server, or correct --base-url or the key"), false
	}
	if err != nil {
		return warning(check, "the server has no list of models: "+err.Error(), "ignore this if the checks below pass"), true
	}
	var missing []string
	for _, name := range []string{c.Model, c.GateModel, c.RefineModel} {
		// Ollama lists a model with its tag, and accepts the name without it.
		if name != "" && !slices.Contains(names, name) && !slices.Contains(names, name+":latest") && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return warning(check, fmt.Sprintf("%s does not list %s", c.BaseURL, strings.Join(missing, ", ")),
			"it lists "+oneLine(strings.Join(names, ", "), 300)), true
	}
	return ok(check, "%s, %s", c.BaseURL, countOf(len(names), "model")), true
}

func checkChat(ctx context.Context, check, name string, m answer.Model) (f finding, works bool) {
	start := time.Now()
	var first time.Duration
	var text strings.Builder
	pieces := 0
	var last answer.Piece
	for p, err := range m.Complete(ctx, answer.Prompt{
		Role: answer.RoleAnswer, User: "Write the numbers from one to twelve in words, with commas between them.",
		MaxTokens: 400, // room for reasoning
	}) {
		if err != nil {
			return failed(check, err, "correct this, or select another model: this one cannot answer questions"), false
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
		return failed(check, errors.New(name+" replied with no text"),
			"a model that only reasons needs a higher token limit in the server: raise it, or select another model"), false
	case pieces == 1 && text.Len() > 20:
		return warning(check, fmt.Sprintf("%s replied in one piece after %s instead of streaming", name, shortDuration(took)),
			"turn on streaming in the server or its proxy; without it, an answer appears only when it is complete"), true
	}
	f = ok(check, "%s: first words after %s, all %d tokens after %s", name, shortDuration(first), last.Usage.Completion, shortDuration(took))
	if last.Usage.Reasoning > 0 {
		f.Detail += fmt.Sprintf(", %d of them reasoning", last.Usage.Reasoning)
	}
	if !last.Usage.Reported {
		f.Detail += "; the server reports no token usage, so Ibid counts the tokens"
	}
	return f, true
}

// A server that reports less than this share of a prompt's tokens has truncated
// it; tokenisers differ by less.
const readShare = .7

// checkWindow sends a prompt that nearly fills the window, and compares the
// tokens that the server reports with those sent.
func checkWindow(ctx context.Context, m answer.Model, window int) finding {
	const check = "context"
	const reply = 16
	var b strings.Builder
	b.WriteString("Below is a log. Read it and reply with the one word: read.\n\n")
	line := "The boat came back to the harbour in the evening, and the crew made it fast at the long jetty.\n"
	each := ingest.CountTokens(line)
	// Answers leave the same margin for other tokenisers.
	for n := ingest.CountTokens(b.String()) + reply; n+each < window*85/100; n += each {
		b.WriteString(line)
	}
	sent := ingest.CountTokens(b.String())
	start := time.Now()
	var last answer.Piece
	for p, err := range m.Complete(ctx, answer.Prompt{Role: answer.RoleAnswer, User: b.String(), MaxTokens: reply, Hard: true}) {
		if err != nil {
			return failed(check, fmt.Errorf("a prompt of about %d tokens failed: %w", sent, err),
				fmt.Sprintf("set --context-tokens (%d now) to the server's window, or give the server more time or memory", window))
		}
		last = p
	}
	took := shortDuration(time.Since(start))
	if !last.Usage.Reported {
		return warning(check,
			fmt.Sprintf("a prompt of about %d tokens was accepted in %s, but the server does not report how many of them it read", sent, took),
			fmt.Sprintf("make sure that the server's context length is at least %d", window))
	}
	if read := last.Usage.Prompt; float64(read) < readShare*float64(sent) {
		return failed(check, fmt.Errorf("the server read %d of about %d prompt tokens: it truncates prompts silently", read, sent),
			fmt.Sprintf("raise its context length to %d or more (OLLAMA_CONTEXT_LENGTH for Ollama, --ctx-size for llama.cpp, "+
				"--max-model-len for vLLM), or set --context-tokens %d", window, max(read, 512)))
	}
	return ok(check, "a prompt of about %d tokens was read in full (%d by the server's count) in %s; --context-tokens is %d",
		sent, last.Usage.Prompt, took, window)
}

// checkTrial tries the models, and stores the result for later answers.
func (c *doctorCmd) checkTrial(ctx context.Context, s surroundings, a *answer.Answerer, up *checkup) {
	if c.NoSelfTest {
		return
	}
	r, err := trial.Run(ctx, a, func(ctx context.Context) error { return ctx.Err() })
	if err != nil {
		up.add(failed("self-test", fmt.Errorf("not finished: %w", err), "check the log of the model's server, and run 'ibid doctor' again"))
		return
	}
	j := r.Judge
	judge := ok("judge", "it tells right statements from wrong ones with AUROC %.2f (%d verdicts, %.0f %% of them yes, position bias %.2f)",
		j.AUROC, j.Verdicts, 100*j.Yes, j.Bias)
	if j.Verdicts < trial.LeastVerdicts {
		judge.Next = "there were too few verdicts for a result, so the judge is trusted: run 'ibid doctor' again when its server is less busy"
	}
	if r.Trust().NoJudge {
		judge.State = stateWarning
		judge.Next = "it is not used as a judge: select another --gate-model, or use it anyway with --no-self-test"
	}
	kept := ok("self-test", "%d tokens", r.Tokens)
	if c.remote() || c.exists() {
		err := c.withStore(ctx, s, func(store *state.Store) error {
			errs := storeNote(ctx, store, trialNote(c.modelConfig, c.endpointConfig), r)
			for note, client := range c.servers(a, c.endpointConfig) {
				errs = errors.Join(errs, storeNote(ctx, store, note, client.Abilities()))
			}
			return errs
		})
		if err != nil {
			kept = warning("self-test", "its result could not be stored: "+err.Error(), "a server tests the model again")
		}
	}
	up.add(judge, writerFinding(r), kept)
}

// writerFinding returns the result of a self-test of the model that writes.
func writerFinding(r trial.Result) finding {
	w := r.Writer
	writer := ok("writer", "%d of %d answers are right, and %d of them cite their passage; "+
		"%d of %d questions without an answer were refused; %d of %d answers follow a passage that contradicts common knowledge",
		w.Right, w.Answerable, w.Cited, w.Refused, w.Unanswerable, w.Stayed, w.Contrary)
	switch {
	case r.Trust().Distrust != "":
		writer.State = stateWarning
		writer.Next = "sentences are quoted instead of its answers: select another --model, or trust it with --no-self-test"
	case w.Cited < w.Right:
		writer.Next = "where the model cites nothing, Ibid cites the passage that supports the statement"
	}
	return writer
}
