package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

// makeKey creates a key in a data directory.
func makeKey(t *testing.T, data string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(mustRun(t, data, append([]string{"keys", "make"}, args...)...))
}

// asked sends a request with a key and returns the reply, whose body the caller must close.
func asked(t testing.TB, method, url, key, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	return resp
}

func statusOf(t *testing.T, method, url, key, body string) int {
	t.Helper()
	resp := asked(t, method, url, key, body)
	defer resp.Body.Close()
	_, err := io.Copy(io.Discard, resp.Body)
	must(t, err)
	return resp.StatusCode
}

// TestKeysWhileServing creates and revokes keys while servers run. The requests of a
// revoked key end on all servers.
func TestKeysWhileServing(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	model := openaitest.Start(t, &openaitest.Handler{Reply: func(r openaitest.Request) openaitest.Reply {
		if r.Role == "judge" {
			return openaitest.Reply{Text: "yes"}
		}
		return openaitest.Reply{Text: strings.Repeat("The chart room opens at nine.[1] ", 1000), PerToken: 20 * time.Millisecond}
	}})
	first := makeKey(t, data, "first")
	args := []string{"--auth", "on", "--model", "scripted", "--base-url", model, folder}
	servers := []string{serve(t, data, args...), serve(t, data, args...)}
	ready(t, servers[0])

	const search = `{"question":"chart room"}`
	for _, url := range servers {
		if none, right := statusOf(t, "POST", url+"/api/search", "", search), statusOf(t, "POST", url+"/api/search", first,
			search); none != 401 || right != 200 {
			t.Errorf("search: status = %d without a key and %d with one; want 401 and 200", none, right)
		}
		if status := statusOf(t, "POST", url+"/api/documents?name=a.md", first, "# A"); status != 403 {
			t.Errorf("upload with a reading key: status = %d, want 403", status)
		}
	}
	// A new key works at once.
	second := makeKey(t, data, "second", "--scope", "write")
	for _, url := range servers {
		if status := statusOf(t, "POST", url+"/api/search", second, search); status != 200 {
			t.Errorf("search with a new key: status = %d, want 200", status)
		}
	}
	// A server with keys accepts uploads.
	if status := statusOf(t, "POST", servers[0]+"/api/documents?name=a.md", second, "# A"); status != 201 {
		t.Errorf("upload with a writing key: status = %d, want 201", status)
	}

	streams := make([]*bufio.Reader, len(servers))
	for i, url := range servers {
		resp := asked(t, "POST", url+"/api/ask", second, `{"question":"When does the chart room open?"}`, "Accept: text/event-stream")
		defer resp.Body.Close()
		streams[i] = bufio.NewReader(resp.Body)
		for {
			line, err := streams[i].ReadString('\n')
			must(t, err)
			if line == "event: text\n" {
				break
			}
		}
	}
	mustRun(t, data, "keys", "revoke", "second")
	revoked := time.Now()
	for _, stream := range streams {
		rest, err := io.ReadAll(stream)
		must(t, err)
		events := strings.Split(strings.TrimSpace(string(rest)), "\n\n")
		last := events[len(events)-1]
		var p struct{ Code string }
		_, object, _ := strings.Cut(last, "data: ")
		if err := json.Unmarshal([]byte(object), &p); err != nil || !strings.Contains("\n"+last, "\nevent: error\n") || p.Code != "key_revoked" {
			t.Errorf("stream of a revoked key ends with %q, want key_revoked", last)
		}
		t.Logf("stream of a revoked key ended after %s", time.Since(revoked).Round(time.Millisecond))
	}
	for _, url := range servers {
		if status := statusOf(t, "POST", url+"/api/search", second, search); status != 401 {
			t.Errorf("search with a revoked key: status = %d, want 401", status)
		}
		if status := statusOf(t, "POST", url+"/api/search", first, search); status != 200 {
			t.Errorf("search with another key: status = %d, want 200", status)
		}
	}
	if list := printed[[]keyLine](t, data, "keys", "list", "--json"); len(list) != 1 || time.Since(list[0].Used) > time.Hour {
		t.Errorf("keys list = %+v, want one key, used just now", list)
	}
}
