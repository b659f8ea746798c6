package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/trial"
	"ibid/retrieve"
)

// trialNote is the name of the stored note with the result of the models' trial.
func trialNote(c modelConfig, e endpointConfig) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", e.BaseURL, c.Model, c.GateModel, trial.Questions()))
	return "self-test " + hex.EncodeToString(sum[:8])
}

// trialResult returns the result of the models' trial; false if they were not tried.
func (l *openedLibrary) trialResult(ctx context.Context, c modelConfig, e endpointConfig) (r trial.Result, known bool, err error) {
	known, err = readNote(ctx, l.State, trialNote(c, e), "the result of the model's self-test", &r)
	return r, known, err
}

// writerModel returns the model that writes answers, or "" if answers are quoted, including
// after the model failed its self-test.
func (srv *server) writerModel(ctx context.Context) string {
	if r, _ := srv.testResult(ctx); r.Trust().Distrust != "" {
		return ""
	}
	return srv.currentModels(ctx).model.Model
}

// testResult returns the result of the self-test of the model in use; false if it has not
// ended.
func (srv *server) testResult(ctx context.Context) (r trial.Result, known bool) {
	m := srv.currentModels(ctx)
	if m.model.Model == "" || m.model.NoSelfTest {
		return r, true
	}
	r, known, err := srv.lib.trialResult(ctx, m.model, m.endpoint)
	if err != nil && ctx.Err() == nil {
		srv.logger.Warn("the result of the model's self-test could not be read: the model is trusted", "error", err)
	}
	return r, known || err != nil
}

// unmeasured describes a model that has not been tried yet.
const unmeasured = "the model is trusted until its self-test ends; the test starts after an answer"

// selfTest returns the state of the self-test for /readyz.
func (srv *server) selfTest(ctx context.Context) string {
	r, known := srv.testResult(ctx)
	switch why := r.Trust().Distrust; {
	case !known:
		return unmeasured
	case why != "":
		return "the model did not pass its self-test (" + why + "): sentences are quoted instead (--no-self-test overrides this)"
	}
	return ""
}

// storing is how long an answer may wait for storing a server's abilities.
const storing = 2 * time.Second

// servers yields the clients of an answerer, each with the name of the stored note about its
// server's abilities.
func (c modelConfig) servers(a *answer.Answerer, e endpointConfig) iter.Seq2[string, *openai.Client] {
	return func(yield func(string, *openai.Client) bool) {
		names := []string{c.Model, c.GateModel, c.RefineModel}
		for i, m := range []answer.Model{a.Model, a.GateModel, a.RefineModel} {
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", e.BaseURL, names[i]))
			if client, ok := m.(*openai.Client); ok && !yield("abilities "+hex.EncodeToString(sum[:8]), client) {
				return
			}
		}
	}
}

// rememberAbilities gives the models of an answerer the stored abilities of their servers, and
// stores abilities detected later.
func (l *openedLibrary) rememberAbilities(ctx context.Context, a *answer.Answerer, c modelConfig, e endpointConfig) error {
	for note, client := range c.servers(a, e) {
		var known openai.Abilities
		if _, err := readNote(ctx, l.State, note, "the abilities of the server of the model "+c.Model, &known); err != nil {
			return err
		}
		client.Remember(known, func(known openai.Abilities) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storing)
			defer cancel()
			if err := storeNote(ctx, l.State, note, known); err != nil && !errors.Is(err, retrieve.ErrReadOnly) {
				l.printMessage("storing the abilities of the model's server: %v; they are detected again after the next start", err)
			}
		})
	}
	return nil
}

// A selfTest tries the models of a server in the background, after a question was answered and
// while none is being answered. If it breaks off, it is repeated after a later question,
// up to [mostTries] times in all.
type selfTest struct {
	models answer.Answerer
	keep   func(context.Context, trial.Result) error
	logger *slog.Logger

	replaced atomic.Bool // other models are in use

	mu     sync.Mutex
	trust  answer.Trust
	active int       // questions being answered
	ended  time.Time // when the last question ended
	broken error     // why the test broke off
}

// mostTries is the maximum number of attempts at a self-test.
const mostTries = 3

// quiet is the idle time required before each call of a self-test.
const quiet = 3 * time.Second

// newSelfTest returns the self-test of models, whose result sets the answerer's trust in them.
// It returns nil if no test is needed.
func (srv *server) newSelfTest(ctx context.Context, m *models) (*selfTest, error) {
	if m.model.Model == "" || m.model.NoSelfTest {
		return nil, nil
	}
	r, known, err := srv.lib.trialResult(ctx, m.model, m.endpoint)
	if err != nil {
		return nil, err
	}
	t := &selfTest{models: *m.answerer, logger: srv.logger, trust: r.Trust(),
		keep: func(ctx context.Context, r trial.Result) error {
			return storeNote(ctx, srv.lib.State, trialNote(m.model, m.endpoint), r)
		}}
	t.models.Style = "" // the answers are compared with known ones
	m.answerer.Trust = t.question
	if known {
		return nil, nil
	}
	return t, nil
}

// question returns the trust in the models at the start of a question.
func (t *selfTest) question() (answer.Trust, func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active++
	return t.trust, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.active--
		t.ended = time.Now()
	}
}

// waitTurn waits until a question has been answered and none is being answered.
func (t *selfTest) waitTurn(ctx context.Context) error {
	for {
		t.mu.Lock()
		wait := time.Until(t.ended.Add(quiet))
		if t.active > 0 || t.ended.IsZero() {
			wait = quiet
		}
		t.mu.Unlock()
		switch {
		case t.replaced.Load():
			return context.Canceled
		case wait <= 0:
			return ctx.Err()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// brokenError returns why the test broke off, or nil.
func (t *selfTest) brokenError() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// run tries the models and stores the result.
func (t *selfTest) run(ctx context.Context) {
	r, err := trial.Run(ctx, &t.models, t.waitTurn)
	for try := 1; err != nil && ctx.Err() == nil && !t.replaced.Load(); try++ {
		next := "the test runs again after the next question"
		if try == mostTries {
			next = "the model is trusted until the server restarts"
		}
		t.logger.Warn("the model's self-test failed: "+next, "error", err)
		t.mu.Lock()
		t.ended, t.broken = time.Time{}, err // wait for another question
		t.mu.Unlock()
		if try == mostTries {
			return
		}
		r, err = trial.Run(ctx, &t.models, t.waitTurn)
	}
	if ctx.Err() != nil || t.replaced.Load() {
		return
	}
	t.mu.Lock()
	t.trust, t.broken = r.Trust(), nil
	t.mu.Unlock()
	t.logger.Info("the model's self-test ended", "judge", fmt.Sprintf("AUROC %.2f", r.Judge.AUROC),
		"answers", fmt.Sprintf("%d of %d", r.Writer.Right, r.Writer.Answerable), "tokens", r.Tokens)
	if why := t.trust.Distrust; why != "" {
		t.logger.Error("the model did not pass its self-test: sentences are quoted instead (--no-self-test overrides this)", "reason", why)
	}
	if err := t.keep(ctx, r); err != nil {
		t.logger.Warn("the result of the model's self-test could not be stored: the test runs again after the next start", "error", err)
	}
}
