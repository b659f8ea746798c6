package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
