package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

// makeKey makes a key in a data directory.
func makeKey(t *testing.T, data string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(mustRun(t, data, append([]string{"keys", "make"}, args...)...))
}

// asked sends a request with a key, and returns the reply; the caller closes its body.
func asked(t *testing.T, method, url, key, body string, headers ...string) *http.Response {
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
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// Keys are made and revoked while servers run. The requests of a revoked key end
// on all of them.
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
			t.Errorf("without a key status %d, with one %d", none, right)
		}
		if status := statusOf(t, "POST", url+"/api/documents?name=a.md", first, "# A"); status != 403 {
			t.Errorf("a key that reads sends a document: status %d", status)
		}
	}
	// A new key works at once.
	second := makeKey(t, data, "second", "--scope", "write")
	for _, url := range servers {
		if status := statusOf(t, "POST", url+"/api/search", second, search); status != 200 {
			t.Errorf("with a new key: status %d", status)
		}
	}
	// A server with keys accepts uploads.
	if status := statusOf(t, "POST", servers[0]+"/api/documents?name=a.md", second, "# A"); status != 201 {
		t.Errorf("a key that writes sends a document: status %d", status)
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
			t.Errorf("the stream of a revoked key ends with %q", last)
		}
		t.Logf("the stream of a revoked key ended after %s", time.Since(revoked).Round(time.Millisecond))
	}
	for _, url := range servers {
		if status := statusOf(t, "POST", url+"/api/search", second, search); status != 401 {
			t.Errorf("a revoked key: status %d", status)
		}
		if status := statusOf(t, "POST", url+"/api/search", first, search); status != 200 {
			t.Errorf("another key: status %d", status)
		}
	}
	if list := printed[[]keyLine](t, data, "keys", "list", "--json"); len(list) != 1 || time.Since(list[0].Used) > time.Hour {
		t.Errorf("the list is %+v", list)
	}
}

// TestCopiesOfKeys checks that each reply with a source names its copies, with a key for
// all collections, and that a key learns of no copy in another collection.
func TestCopiesOfKeys(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), t.TempDir()
	text := hours["hours.md"]
	writeFiles(t, dir, map[string]string{"pier/a.md": text, "pier/b.md": text, "vault/a.md": text, "vault/c.md": text})
	mustRun(t, data, "ingest", "--collection", "open", filepath.Join(dir, "pier"))
	mustRun(t, data, "ingest", "--collection", "shut", filepath.Join(dir, "vault"))
	model := openaitest.Start(t, &openaitest.Handler{Reply: func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Text: "The chart room opens at nine.[1]"}
	}})
	open := makeKey(t, data, "open", "--collection", "open", "--scope", "write")
	all := makeKey(t, data, "all", "--scope", "write")
	url := serve(t, data, "--auth", "on", "--model", "scripted", "--base-url", model)
	ready(t, url)

	const question, tool = `{"question":"When does the chart room open?"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`
	for _, c := range []struct {
		request, body, accept string
		copies                bool // the reply names them
	}{
		{"POST /api/search", question, "", true},
		{"POST /api/ask", question, "", true},
		{"POST /api/ask", question, "text/event-stream", true},
		{"POST /api/ask/batch", `{"questions":[` + question + `]}`, "", true},
		{"POST /api/summarize", `{"document":"pier/a.md"}`, "", true},
		{"POST /api/summarize", `{"filter":{"format":"markdown"}}`, "text/event-stream", true},
		{"GET /api/documents/pier/a.md", "", "", true},
		{"GET /documents/pier/a.md", "", "text/html", true},
		{"POST /mcp", tool + `"search","arguments":` + question + `}}`, "application/json, text/event-stream", true},
		{"POST /mcp", tool + `"ask","arguments":` + question + `}}`, "application/json, text/event-stream", true},
		{"POST /mcp", tool + `"summarize","arguments":{"document":"pier/a.md"}}}`, "application/json, text/event-stream", true},
		{"POST /v1/chat/completions", `{"model":"ibid","messages":[{"role":"user","content":"When does the chart room open?"}]}`, "", false},
		{"POST /v1/responses", `{"model":"ibid","input":"When does the chart room open?"}`, "", false},
		{"POST /api/documents?name=a.md&collection=open", text, "", true},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		for key, shut := range map[string]bool{open: false, all: c.copies} {
			resp := asked(t, method, url+path, key, c.body, "Accept: "+c.accept, "Content-Type: application/json")
			reply, err := io.ReadAll(resp.Body)
			must(t, err)
			resp.Body.Close()
			got := string(reply)
			if resp.StatusCode >= 300 || !strings.Contains(got, "/a.md") || c.copies && !strings.Contains(got, "pier/b.md") ||
				strings.Contains(got, "vault/a.md") != shut {
				t.Errorf("%s %s: copies of all collections %t: %d %s", c.request, c.body, shut, resp.StatusCode, got)
			}
		}
	}
}
