package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/data/datatest"
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

func (p *panel) Current(context.Context) Choices {
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

func (p *panel) GetPart(_ context.Context, part string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, part)
	p.part.State = "getting"
	return nil
}

func settingsCall(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return call(h, method, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// TestSettings checks which settings may be changed, and by whom.
func TestSettings(t *testing.T) {
	const code = "K7QM2F9PAB"
	type choice struct {
		What, Path   string
		Using        Choices
		Body         json.RawMessage
		Headers      []string
		Status       int
		Code, Member string // code of the problem
	}
	long := json.RawMessage(`{"key":"` + strings.Repeat("k", 5000) + `"}`)
	for _, tt := range append(datatest.Lines[choice](t, "testdata/rows/settings.jsonl"),
		choice{What: "long key", Body: long, Status: 400, Code: "bad_setting", Member: "key"}) {
		t.Run(tt.What, func(t *testing.T) {
			p := &panel{using: tt.Using}
			h := newHandler(t, func(o *Options) { o.Settings, o.SettingsCode = p, code })
			method := http.MethodPut
			if tt.Path != "" {
				method = http.MethodPost
			}
			w := settingsCall(h, method, "/api/settings"+tt.Path, string(tt.Body), tt.Headers...)
			if w.Code != tt.Status || !strings.Contains(w.Body.String(), `"`+tt.Code) || !strings.Contains(w.Body.String(), tt.Member) {
				t.Errorf("status = %d, want %d: %s", w.Code, tt.Status, w.Body)
			}
			if tt.Status != 200 && (!gocmp.Equal(p.using, tt.Using) || p.key != nil || p.tested != nil) {
				t.Errorf("a refused request changed the settings: %+v", p)
			}
			for _, secret := range []string{"sk-1", code} {
				if strings.Contains(w.Body.String(), secret) {
					t.Errorf("reply shows %s: %s", secret, w.Body)
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
		t.Errorf("PUT /api/settings: %d: %s", w.Code, w.Body)
	}
	for _, k := range []string{key, reader} {
		w := settingsCall(h, "GET", "/", "", "Authorization", "Bearer "+k, "Accept", "text/html")
		if strings.Contains(w.Body.String(), `id="settings-button"`) != (k == key) {
			t.Error("page shows settings to a key that may not use them, or hides them from one that may")
		}
	}
	if w := settingsCall(h, "POST", "/api/settings/parts", `{"part":"english"}`, "Authorization", "Bearer "+key); w.Code != 200 ||
		!slices.Equal(p.got, []string{"english"}) {
		t.Errorf("POST /api/settings/parts: %d: %s", w.Code, w.Body)
	}
}
