package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"syscall"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/retrieve"
	"ibid/web"
)

// models are the models of a server. They are replaced when the settings change.
type models struct {
	chosen   chosen
	model    modelConfig
	endpoint endpointConfig
	answerer *answer.Answerer
	relay    *openai.Relay // nil without a model
	test     *selfTest     // nil if there is nothing to test
}

// settingsFresh is how soon a server notices settings changed by another process.
const settingsFresh = 2 * time.Second

// useModels creates the chosen models and uses them from now on.
func (srv *server) useModels(ctx context.Context, c chosen) error {
	m := &models{chosen: c}
	m.model, m.endpoint = srv.chooseModels(c)
	var err error
	if m.answerer, err = srv.lib.answerer(ctx, m.model, m.endpoint); err != nil {
		return err
	}
	for _, model := range []*answer.Model{&m.answerer.Model, &m.answerer.GateModel, &m.answerer.RefineModel} {
		*model = srv.metrics.MeasureModel(*model)
	}
	m.answerer.Retriever = srv.search
	if m.model.Model != "" {
		o, err := m.endpoint.options(srv.getenv, m.model.Model)
		if err != nil {
			return err
		}
		if m.relay, err = openai.NewRelay(o); err != nil {
			return usageError("--base-url %s, --model %s: %w", o.BaseURL, m.model.Model, err)
		}
	}
	if m.test, err = srv.newSelfTest(ctx, m); err != nil {
		return err
	}
	if old := srv.modelsInUse.Swap(m); old != nil && old.test != nil {
		old.test.replaced.Store(true)
	}
	return nil
}

// chooseModels is [surroundings.choose] for a server: flags about a model have no effect until
// a model is set.
func (srv *server) chooseModels(c chosen) (modelConfig, endpointConfig) {
	m, e := srv.choose(c.Choices, srv.Data, srv.modelConfig, srv.endpointConfig)
	if m.Model == "" && srv.allowsSettings() {
		m.GateModel, m.RefineModel = "", ""
		if m.Gate == "model" || m.Gate == "both" {
			m.Gate = "auto"
		}
	}
	return m, e
}

// startSelfTest starts the self-test of the models in the background, unless it is done.
func (srv *server) startSelfTest() {
	m := srv.modelsInUse.Load()
	if m.test != nil && srv.background != nil {
		srv.background(m.test.run)
	}
}

// currentModels returns the models in use, after checking for settings changed by another
// process.
func (srv *server) currentModels(ctx context.Context) *models {
	if time.Since(time.Unix(0, srv.looked.Load())) > settingsFresh && srv.changing.TryLock() {
		defer srv.changing.Unlock()
		srv.looked.Store(time.Now().UnixNano())
		c, err := readChosen(ctx, srv.lib.State)
		if err == nil && !c.Changed.Equal(srv.modelsInUse.Load().chosen.Changed) {
			if err = srv.useModels(ctx, c); err == nil {
				srv.startSelfTest()
			}
		}
		if err != nil && ctx.Err() == nil {
			srv.logger.Warn("the settings could not be read: the earlier ones are used", "error", err)
		}
	}
	return srv.modelsInUse.Load()
}

// Ask answers a question with the models in use.
func (srv *server) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	return srv.currentModels(ctx).answerer.Ask(ctx, q)
}

// Summarize summarizes with the models in use.
func (srv *server) Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return srv.currentModels(ctx).answerer.Summarize(ctx, s)
}

// An upstream is the model that a server uses, for clients that use it without documents.
type upstream struct{ srv *server }

// Model returns the name of the model in use, or "".
func (u upstream) Model() string { return u.srv.modelsInUse.Load().model.Model }

// Chat forwards a chat request to the model in use.
func (u upstream) Chat(ctx context.Context, body []byte) (*openai.Relayed, error) {
	m := u.srv.currentModels(ctx)
	if m.relay == nil {
		return nil, errors.New("no model is selected: choose one under Settings")
	}
	return m.relay.Chat(ctx, body)
}

// A settingsPanel serves the settings on a server's page.
type settingsPanel struct {
	*server
	parts *partsPanel

	readers sync.Map // findings of 'ibid doctor' about the readers of files, by state of PDFium
}

// checkReaders checks the readers of files as 'ibid doctor' does, once per state of PDFium.
func (p *settingsPanel) checkReaders() []web.Finding {
	from, trouble := p.lib.reader.PDFium()
	state := [2]string{from, trouble}
	found, ok := p.readers.Load(state)
	if !ok {
		d := doctorCmd{readConfig: p.readConfig, storeConfig: p.storeConfig}
		found = []web.Finding{d.checkPDF(context.Background()), d.checkOCR()}
		p.readers.Store(state, found)
	}
	return found.([]web.Finding)
}

// allowsSettings reports whether the page has settings: if keys are required, or only this
// machine can reach the server.
func (srv *server) allowsSettings() bool {
	return srv.keys != nil || srv.isLocal() && srv.PublicURL == "" && len(srv.AllowHost) == 0
}

// Current returns the settings in use.
func (p *settingsPanel) Current(ctx context.Context) web.Choices {
	m := p.currentModels(ctx)
	return web.Choices{BaseURL: m.endpoint.BaseURL, Model: m.model.Model, Confidence: &m.model.Confidence,
		Language: m.model.AnswerLanguage, Style: m.model.AnswerStyle}
}

// Show returns the settings in use and the possible values.
func (p *settingsPanel) Show(ctx context.Context) (web.ShownSettings, error) {
	m := p.currentModels(ctx)
	shown := web.ShownSettings{Choices: p.Current(ctx), Fixed: p.given.fixedSettings(), Key: "none", Parts: p.parts.list(),
		Reader: p.checkReaders(), Found: findModels(ctx, usualServers, p.Addr)}
	switch file := keyFile(p.Data, m.endpoint.BaseURL); {
	case m.endpoint.APIKeyFile == file:
		shown.Key = "stored"
	case m.endpoint.APIKeyFile != "" || !m.endpoint.NoVariable && p.getenv("OPENAI_API_KEY") != "":
		shown.Key = "fixed"
	}
	if m.model.Model == "" || m.model.NoSelfTest {
		return shown, nil
	}
	r, known, err := p.lib.trialResult(ctx, m.model, m.endpoint)
	if known {
		shown.SelfTest = new(pageFinding(writerFinding(r)))
	} else if why := m.test.brokenError(); why != nil {
		shown.SelfTest = new(pageFinding(warning("self-test", "not finished: "+why.Error(),
			"the model is trusted until the test has run: after the next question, or after a restart of the server")))
	} else {
		shown.SelfTest = &web.Finding{Check: "self-test", State: "pending", Detail: unmeasured}
	}
	return shown, err
}

// Change stores settings and uses them from now on.
func (p *settingsPanel) Change(ctx context.Context, next web.Choices, key *string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	before := p.modelsInUse.Load()
	c, err := p.change(before, next)
	if err != nil {
		return err
	}
	_, e := p.chooseModels(c)
	if key != nil && e.APIKeyFile != "" && e.APIKeyFile != keyFile(p.Data, e.BaseURL) {
		return web.FixedSetting("key", "--api-key-file")
	}
	if err := p.check(c); err != nil {
		return err
	}
	if key != nil {
		if err := storeKey(p.Data, e.BaseURL, *key); err != nil {
			return err
		}
	}
	if err := storeNote(ctx, p.lib.State, settingsNote, c); errors.Is(err, retrieve.ErrReadOnly) && !errors.Is(err, syscall.ENOSPC) {
		return web.UnstoredSetting()
	} else if err != nil {
		return fmt.Errorf("storing the settings: %w", err)
	}
	if err := p.useModels(ctx, c); err != nil {
		return err
	}
	p.startSelfTest()
	p.logger.Info("settings changed", "model", cmp.Or(c.Model, "none"), "endpoint", e.BaseURL)
	return nil
}

// change returns the settings to store after a change: only those that differ from the settings
// in use.
func (p *settingsPanel) change(before *models, next web.Choices) (c chosen, err error) {
	c = before.chosen
	c.Changed = time.Now()
	fixed := p.given.fixedSettings()
	for _, s := range []struct {
		name    string
		differs bool
		set     func()
	}{
		{"base_url", next.BaseURL != before.endpoint.BaseURL, func() { c.BaseURL, c.Model = next.BaseURL, next.Model }},
		{"model", next.Model != before.model.Model, func() { c.BaseURL, c.Model = next.BaseURL, next.Model }},
		{"confidence", *next.Confidence != before.model.Confidence, func() { c.Confidence = next.Confidence }},
		{"language", next.Language != before.model.AnswerLanguage, func() { c.Language = next.Language }},
		{"style", next.Style != before.model.AnswerStyle, func() { c.Style = next.Style }},
	} {
		if !s.differs {
			continue
		}
		if flag := fixed[s.name]; flag != "" {
			return c, web.FixedSetting(s.name, flag)
		}
		s.set()
	}
	return c, nil
}

// check returns a problem unless models can be created from the settings.
func (p *settingsPanel) check(c chosen) error {
	m, e := p.chooseModels(c)
	e.APIKeyFile = ""
	if _, err := newAnswerer(m, e, p.getenv); err != nil {
		return web.BadSetting("base_url", "%s", pageWords.Replace(err.Error()))
	}
	return nil
}

// Test tries an endpoint and its model as 'ibid doctor' does, without the self-test.
func (p *settingsPanel) Test(ctx context.Context, next web.Choices, key *string) ([]web.Finding, error) {
	c, err := p.change(p.currentModels(ctx), next)
	if err != nil {
		return nil, err
	}
	d := doctorCmd{storeConfig: p.storeConfig}
	d.modelConfig, d.endpointConfig = p.chooseModels(c)
	d.NoSelfTest = true
	getenv := p.getenv
	if key != nil { // the key is for this endpoint, and not stored
		d.APIKeyFile, d.NoVariable = "", false
		getenv = func(name string) string {
			if name == "OPENAI_API_KEY" {
				return *key
			}
			return p.getenv(name)
		}
	}
	up := &checkup{}
	if err := d.checkModels(ctx, surroundings{getenv: getenv}, up); err != nil {
		return nil, web.BadSetting("base_url", "%s", pageWords.Replace(err.Error()))
	}
	for i := range up.findings {
		up.findings[i] = pageFinding(up.findings[i])
	}
	return up.findings, nil
}

// pageWords replaces words about a command line with words about the page.
var pageWords = strings.NewReplacer(
	"correct --base-url", "correct the endpoint",
	"--base-url ", "the endpoint ", ", --model ", ", the model ",
	"select another --gate-model, or use it anyway with --no-self-test", "choose another model to have a judge",
	"select another --model, or trust it with --no-self-test", "choose another model",
	"check --api-key-file", "check the file of the key")

// pageFinding returns a finding of 'ibid doctor' in words about the page.
func pageFinding(f web.Finding) web.Finding {
	f.Detail, f.Next = pageWords.Replace(f.Detail), pageWords.Replace(f.Next)
	return f
}

// GetPart starts to install an optional part.
func (p *settingsPanel) GetPart(_ context.Context, part string) error { return p.parts.begin(part) }

// newSettings returns the settings of the page, and the code that it prints and that endpoints
// on other machines require. It returns nil if the page has no settings.
func (srv *server) newSettings() (web.Settings, string) {
	if !srv.allowsSettings() {
		return nil, ""
	}
	p := &settingsPanel{server: srv, parts: &partsPanel{srv: srv, failed: map[string]string{}}}
	needed := srv.Gate == "model" || srv.Gate == "both" || srv.GateModel+srv.RefineModel != ""
	if srv.currentModels(context.Background()).model.Model == "" && needed {
		fmt.Fprintln(srv.stderr, "ibid: --gate, --gate-model and --refine-model have no effect without a model: "+
			"give --model, or choose one under Settings on the page")
	}
	if srv.keys != nil {
		return p, ""
	}
	code := rand.Text()[:10]
	fmt.Fprintf(srv.stderr, "ibid: to choose a model on another machine, enter this code on the page: %s\n", code)
	return p, code
}
