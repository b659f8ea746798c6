package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A call is one that a webhook made.
type webhookCall struct {
	id   string
	body map[string]any
}

// TestWebhook checks that the ends of a sync and of a run arrive, signed, repeated after a
// failure and without words, and that redirects are not followed.
func TestWebhook(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZg==" // 0123456789abcdef
	calls, elsewhere := make(chan webhookCall, 100), make(chan string, 100)
	failures, redirected := map[string]int{}, 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		mac := hmac.New(sha256.New, []byte("0123456789abcdef"))
		fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || r.Header.Get("Webhook-Signature") != want {
			t.Errorf("the signature is %q, want %q, %v", r.Header.Get("Webhook-Signature"), want, err)
		}
		if r.URL.Path == "/elsewhere" {
			elsewhere <- id
			return
		}
		if bytes.Contains(body, []byte("ferry")) || bytes.Contains(body, []byte("nine")) {
			t.Errorf("it has words: %s", body)
		}
		var c map[string]any
		if err := json.Unmarshal(body, &c); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		if c["type"] == "sync.ended" && failures[id] == 0 {
			failures[id]++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if c["kind"] == "ask" && redirected == 0 {
			redirected++
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
		calls <- webhookCall{id, c}
	}))
	defer hook.Close()
	file := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{"ferry.md": "The ferry leaves at nine."})
	url := serve(t, t.TempDir(), "--webhook", hook.URL, "--webhook-secret-file", file, folder)
	next := func() webhookCall {
		t.Helper()
		select {
		case c := <-calls:
			return c
		case <-time.After(60 * time.Second):
			t.Fatal("no call came")
		}
		return webhookCall{}
	}
	synced := next()
	files, _ := synced.body["files"].(map[string]any)
	if synced.body["state"] != "done" || files["added"] != 1.0 || failures[synced.id] != 1 {
		t.Errorf("of the sync: %v", synced)
	}
	ask(t, url, "When does the ferry leave?")
	ended := next()
	run, _ := ended.body["run"].(string)
	if members := slices.Sorted(maps.Keys(ended.body)); strings.Join(members, " ") != "kind run state timestamp type" ||
		ended.body["type"] != "run.ended" || ended.body["state"] != "done" {
		t.Errorf("of the run: %v", ended)
	}
	fetch(t, "GET", url+"/api/runs/"+run, "", "", http.StatusOK)
	ask(t, url, "When does the ferry leave?")
	if second := next(); second.id == ended.id || len(elsewhere) > 0 {
		t.Errorf("after a redirect, of which %d were followed: %v", len(elsewhere), second)
	}
	for _, bad := range [][]string{{"--webhook", "ftp://example.org", "--webhook-secret-file", file}, {"--webhook", hook.URL},
		{"--webhook", "http://a:b@example.org", "--webhook-secret-file", file}} {
		if _, said, code := ibid(t, t.TempDir(), append([]string{"serve", "--addr", "127.0.0.1:0"}, bad...)...); code != exitUsage ||
			!strings.Contains(said, "webhook") {
			t.Errorf("%q: exit code %d: %s", bad, code, said)
		}
	}
}
