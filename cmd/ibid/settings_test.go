package main

import (
	"net/http"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
)

// TestServeGateBeforeModel starts a server whose flags say what a model decides, and chooses
// the model on the page. What its test finds has no flags in it.
func TestServeGateBeforeModel(t *testing.T) {
	t.Parallel()
	model := openaitest.Start(t, &openaitest.Handler{Model: "scripted", Reply: scriptedWriter})
	s := start(t, t.TempDir(), "--no-self-test", "--gate", "both", "--gate-model", "scripted")
	send := func(method, path, body string, want int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		var b strings.Builder
		must(t, resp.Write(&b))
		if resp.StatusCode != want {
			t.Fatalf("%s %s: %s", method, path, &b)
		}
		return b.String()
	}
	got := send("POST", "/api/settings/test", `{"base_url":"http://127.0.0.1:9/v1","model":"none"}`, http.StatusOK)
	if !strings.Contains(got, "correct the endpoint or the key") || strings.Contains(got, " --") {
		t.Errorf("the page shows flags: %s", got)
	}
	send("PUT", "/api/settings", `{"base_url":"`+model+`","model":"scripted"}`, http.StatusOK)
	send("PUT", "/api/settings", `{"model":""}`, http.StatusOK)
	if !strings.Contains(s.log.String(), "there is no model for --gate") {
		t.Errorf("the server does not say that its gate has no model:\n%s", s.log.String())
	}
}
