package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

// A panel is settings in memory.
type panel struct {
	mu     sync.Mutex
	using  Choices
	key    *string
	tested []Choices
	got    []string
	part   Part
	found  []ModelServer
}

func (p *panel) Show(context.Context) (ShownSettings, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ShownSettings{Choices: p.using, Fixed: map[string]string{}, Key: "none",
		Found: append([]ModelServer{}, p.found...), Parts: []Part{}, Reader: []Finding{}}
	if p.key != nil && *p.key != "" {
		s.Key = "stored"
	}
	if p.part.Name != "" {
		s.Parts = append(s.Parts, p.part)
	}
	return s, nil
}

func (p *panel) Using(context.Context) Choices {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.using
}

func (p *panel) Change(_ context.Context, c Choices, key *string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.using, p.key = c, key
	return nil
}

func (p *panel) Test(_ context.Context, c Choices, key *string) ([]Finding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tested = append(p.tested, c)
	return []Finding{{Check: "endpoint", State: "failed", Detail: "it is down", Next: "start it"}}, nil
}

func (p *panel) Get(_ context.Context, part string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, part)
	p.part.State = "getting"
	return nil
}

func settingsCall(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return call(h, method, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// TestSettings checks what may be chosen, and from where.
func TestSettings(t *testing.T) {
	const code = "K7QM2F9PAB"
	for name, tt := range map[string]struct {
		using        Choices
		path, body   string
		headers      []string
		status       int
		code, member string // of the problem
	}{
		"this machine":           {body: `{"base_url":"http://127.0.0.1:11434/v1/","model":"llama3.2"}`, status: 200},
		"this machine by name":   {body: `{"base_url":"http://LOCALHOST:11434/v1","model":"llama3.2"}`, status: 200},
		"IPv6":                   {body: `{"base_url":"http://[::1]:11434/v1","model":"m"}`, status: 200},
		"outside":                {body: `{"base_url":"https://api.example.org/v1","model":"m"}`, status: 403, code: "code_needed", member: "code"},
		"outside, wrong code":    {body: `{"base_url":"https://api.example.org/v1","model":"m","code":"K7QM2F9PAC"}`, status: 403, code: "code_needed"},
		"outside with the code":  {body: `{"base_url":"https://api.example.org/v1","model":"m","key":"sk-1","code":" k7qm2f9pab"}`, status: 200},
		"in use":                 {using: Choices{BaseURL: "https://api.example.org/v1", Model: "m"}, body: `{"model":"m2"}`, status: 200},
		"the default is outside": {using: Choices{BaseURL: "https://api.openai.com/v1"}, body: `{"model":"m"}`, status: 403, code: "code_needed"},
		"another endpoint than in use": {using: Choices{BaseURL: "https://api.example.org/v1", Model: "m"},
			body: `{"base_url":"https://api.example.org/v2"}`, status: 403, code: "code_needed"},
		"a name that leads here": {body: `{"base_url":"http://localtest.me/v1","model":"m"}`, status: 403, code: "code_needed"},
		"looks like loopback":    {body: `{"base_url":"http://127.0.0.1.evil.example/v1","model":"m"}`, status: 403, code: "code_needed"},
		"loopback as a number":   {body: `{"base_url":"http://2130706433/v1","model":"m"}`, status: 403, code: "code_needed"},
		"any address":            {body: `{"base_url":"http://0.0.0.0:11434/v1","model":"m"}`, status: 403, code: "code_needed"},
		"metadata":               {body: `{"base_url":"http://169.254.169.254/v1","model":"m"}`, status: 403, code: "code_needed"},
		"test outside":           {path: "/test", body: `{"base_url":"https://api.example.org/v1","model":"m"}`, status: 403, code: "code_needed"},
		"test here":              {path: "/test", body: `{"base_url":"http://127.0.0.1:1/v1","model":"m"}`, status: 200},
		"test nothing":           {path: "/test", body: `{}`, status: 400, code: "bad_setting", member: "model"},
		"user":                   {body: `{"base_url":"http://a:b@127.0.0.1/v1","model":"m"}`, status: 400, code: "bad_setting", member: "base_url"},
		"file":                   {body: `{"base_url":"file:///etc/passwd","model":"m"}`, status: 400, code: "bad_setting", member: "base_url"},
		"query":                  {body: `{"base_url":"http://127.0.0.1/v1?x=1","model":"m"}`, status: 400, code: "bad_setting"},
		"no endpoint":            {body: `{"base_url":"","model":"m"}`, status: 400, code: "bad_setting"},
		"line break":             {body: `{"language":"German\nIgnore"}`, status: 400, code: "bad_setting", member: "language"},
		"style":                  {body: `{"style":"pirate"}`, status: 400, code: "bad_setting", member: "style"},
		"confidence":             {body: `{"confidence":2}`, status: 400, code: "bad_setting", member: "confidence"},
		"long key":               {body: `{"key":"` + strings.Repeat("k", 5000) + `"}`, status: 400, code: "bad_setting", member: "key"},
		"wishes":                 {body: `{"language":"German","style":"brief","confidence":0}`, status: 200},
		"a form":                 {body: `{"model":""}`, headers: []string{"Content-Type", "text/plain"}, status: 415, code: "not_json"},
		"another site":           {body: `{"model":""}`, headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: "cross_origin"},
		"another origin":         {body: `{"model":""}`, headers: []string{"Origin", "https://evil.example"}, status: 403, code: "cross_origin"},
		"another site's test":    {path: "/test", body: `{"model":"m"}`, headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, code: "cross_origin"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &panel{using: tt.using}
			h := newHandler(t, func(o *Options) { o.Settings, o.SettingsCode = p, code })
			method := http.MethodPut
			if tt.path != "" {
				method = http.MethodPost
			}
			w := settingsCall(h, method, "/api/settings"+tt.path, tt.body, tt.headers...)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), `"`+tt.code) || !strings.Contains(w.Body.String(), tt.member) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if tt.status != 200 && (!gocmp.Equal(p.using, tt.using) || p.key != nil || p.tested != nil) {
				t.Errorf("a refused request changed %+v", p)
			}
			for _, secret := range []string{"sk-1", code} {
				if strings.Contains(w.Body.String(), secret) {
					t.Errorf("the reply shows %s: %s", secret, w.Body)
				}
			}
		})
	}
}

// TestSettingsKeys checks that keys need the scope and no code.
func TestSettingsKeys(t *testing.T) {
	ring, p := newRing(), &panel{}
	key := ring.make(t, "admin", func(k *retrieve.Key) { k.Write, k.Settings = true, true })
	reader := ring.make(t, "reader", nil)
	h := newHandler(t, func(o *Options) { o.Settings, o.Keys = p, ring })
	body := `{"base_url":"https://api.example.org/v1","model":"m","key":"sk-1"}`
	if w := settingsCall(h, "PUT", "/api/settings", body, "Authorization", "Bearer "+key); w.Code != 200 || p.using.Model != "m" ||
		!strings.Contains(w.Body.String(), `"key":"stored"`) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	for _, k := range []string{key, reader} {
		w := settingsCall(h, "GET", "/", "", "Authorization", "Bearer "+k, "Accept", "text/html")
		if strings.Contains(w.Body.String(), `id="settings-button"`) != (k == key) {
			t.Error("the page shows settings that the key may not use, or hides them")
		}
	}
	if w := settingsCall(h, "POST", "/api/settings/parts", `{"part":"english"}`, "Authorization", "Bearer "+key); w.Code != 200 ||
		!slices.Equal(p.got, []string{"english"}) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestBrowserSettings chooses a model that was found on this machine, tries it and
// saves it, by keyboard.
func TestBrowserSettings(t *testing.T) {
	t.Parallel()
	p := &panel{using: Choices{BaseURL: "https://api.openai.com/v1", Style: "auto", Confidence: new(float64)},
		found: []ModelServer{{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"llama3.2", "qwen3"}}},
		part:  Part{Name: "english", Model: "all-MiniLM-L6-v2", Licence: "Apache-2.0", Languages: 1, Bytes: 83e6, State: "missing"}}
	s := newScene(t, func(o *Options) { o.Settings, o.SettingsCode = p, "ABCDEFGHJK" })
	b := s.newTab(t, 800, "light")
	b.js(`document.querySelector("#settings-button").focus(); ""`)
	b.press("Enter", "\r", 13)
	b.waitFor(`document.querySelector("#settings [type=submit]") !== null`)
	b.look("5-settings")
	b.js(`[...document.querySelectorAll("#settings .found button")].find((e) => e.textContent.includes("qwen3")).click(); ""`)
	b.waitFor(`document.querySelector("#settings-status").textContent.startsWith("Saved")`)
	b.is("http://127.0.0.1:11434/v1", `document.querySelector("#set-base_url").value`)
	b.is("true", `String(document.querySelector("#set-code-line").hidden)`)
	b.js(`document.querySelector("#set-test").click(); ""`)
	b.waitFor(`document.querySelector("#set-findings .failed") !== null`)
	if c := p.Using(t.Context()); c.Model != "qwen3" || c.BaseURL != "http://127.0.0.1:11434/v1" {
		t.Errorf("saved %+v", c)
	}
	b.is("qwen3 writes the answers", `document.querySelector("#settings-writer").textContent`)
	b.look("5-settings-saved")
	b.js(`document.querySelector("#set-base_url").value = "https://api.example.com/v1"
		document.querySelector("#set-base_url").dispatchEvent(new Event("input")); ""`)
	b.is("false", `String(document.querySelector("#set-code-line").hidden)`)
	b.press("Escape", "", 27)
	b.waitFor(`!document.querySelector("#settings").open`)
}
