package main

import (
	"net/http"
	"net/http/httptest"
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
	send := func(method, path, body string) string {
		return string(fetch(t, method, s.url+path, "", body, http.StatusOK))
	}
	got := send("POST", "/api/settings/test", `{"base_url":"http://127.0.0.1:9/v1","model":"none"}`)
	if !strings.Contains(got, "correct the endpoint or the key") || strings.Contains(got, " --") {
		t.Errorf("the page shows flags: %s", got)
	}
	send("PUT", "/api/settings", `{"base_url":"`+model+`","model":"scripted"}`)
	send("PUT", "/api/settings", `{"model":""}`)
	if !strings.Contains(s.log.String(), "there is no model for --gate") {
		t.Errorf("the server does not say that its gate has no model:\n%s", s.log.String())
	}
}

// TestFindModels checks that models are found without a key, that this and other
// servers of Ibid are not, and that no redirect is followed.
func TestFindModels(t *testing.T) {
	serve := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
				t.Errorf("asked for %s with %v", r.URL, r.Header)
			}
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	const two = `{"data":[{"id":"llama3.2"},{"id":"qwen3"}]}`
	own, ollama := serve(200, two), serve(200, two)
	found := findModels(t.Context(), []modelServer{{name: "own", address: own}, {name: "Ollama", address: ollama},
		{name: "Ibid", address: serve(200, `{"data":[{"id":"ibid"},{"id":"ibid/default"}]}`)}, {name: "moved", address: serve(302, two)},
		{name: "other", address: serve(200, `<html>`)}, {name: "none", address: "127.0.0.1:1"}}, own)
	want := "Found Ollama with 2 models: ibid serve --base-url http://" + ollama + "/v1 --model llama3.2"
	if len(found) != 1 || found[0].hint() != want {
		t.Errorf("found %v, want %s", found, want)
	}
}
