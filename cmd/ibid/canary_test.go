package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

// TestCanaries sends secrets and the words of documents and questions through
// every route, with right keys and wrong, while the model fails in every way
// that repeats what it was sent: none of them is in the log, at its finest, in
// an error or in the metrics.
func TestCanaries(t *testing.T) {
	t.Parallel()
	const (
		upstreamKey = "sk-canaryupstream0123456789"
		inDocument  = "canarydocumentword"
		inTitle     = "canarytitleword"
		inQuestion  = "canaryquestionword"
		inName      = "canaryfilename"
		inHistory   = "canaryhistoryword"
	)
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, map[string]string{inName + ".md": "# " + inTitle + "\n\nThe " + inDocument + " opens at nine, and the chart room too.\n"})
	faults := []openaitest.Fault{"", openaitest.EchoHeaders, openaitest.NotHTTP, openaitest.Unauthorized, openaitest.ContextLength, openaitest.HTML,
		openaitest.ErrorString, openaitest.Reset, openaitest.ContentFilter, openaitest.NoFinish}
	fault := make(chan openaitest.Fault, 1)
	model := openaitest.Start(t, &openaitest.Handler{Reply: func(r openaitest.Request) openaitest.Reply {
		f := <-fault
		fault <- f
		if r.Role == "judge" && f == "" {
			return openaitest.Reply{Text: "yes"}
		}
		return openaitest.Reply{Text: "The " + inDocument + " opens at nine [1].", Fault: f}
	}})
	fault <- ""

	key, write := makeKey(t, data, "reader"), makeKey(t, data, "writer", "--scope", "write")
	cmd := command(t.Context(), data, "serve", "--addr", "127.0.0.1:0", "--auth", "on", "--log-level", "debug", "--metrics-addr", "127.0.0.1:0",
		"--model", "scripted", "--base-url", model, "--gate", "model", folder)
	cmd.Env = append(cmd.Env, "OPENAI_API_KEY="+upstreamKey)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	var log bytes.Buffer
	cmd.Stderr = &log
	url := listening(t, cmd)
	ready(t, url)

	secrets := []string{key, write, strings.TrimPrefix(key, "ibid_"), upstreamKey}
	words := []string{inDocument, inTitle, inQuestion, inHistory}
	var routes struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	resp := asked(t, "GET", url+"/openapi.json", key, "")
	if err := json.NewDecoder(resp.Body).Decode(&routes); err != nil || len(routes.Paths) < 10 {
		t.Fatalf("%d paths: %v", len(routes.Paths), err)
	}
	resp.Body.Close()
	requests, failures := 0, 0
	send := func(method, path, key, body string, headers ...string) {
		t.Helper()
		resp := asked(t, method, url+path, key, body, headers...)
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		requests++
		for _, s := range secrets {
			if bytes.Contains(reply, []byte(s)) {
				t.Errorf("%s %s: the reply has a secret: %.300s", method, path, reply)
			}
		}
		if resp.StatusCode < 500 {
			return
		}
		failures++
		for _, w := range words {
			if bytes.Contains(reply, []byte(w)) {
				t.Errorf("%s %s: the error has %q: %.300s", method, path, w, reply)
			}
		}
	}
	question := `{"question":"When does the ` + inDocument + ` open, ` + inQuestion + `?","history":[{"role":"user","content":"` + inHistory + `"}]}`
	for _, f := range faults {
		<-fault
		fault <- f
		for _, accept := range []string{"application/json", "text/event-stream"} {
			send("POST", "/api/ask", key, question, "Content-Type: application/json", "Accept: "+accept)
		}
		send("POST", "/mcp", key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":`+question+`}}`,
			"Content-Type: application/json", "Accept: application/json, text/event-stream")
	}
	// Keys that were right from an address are looked at although many are not.
	send("GET", "/api/documents", write, "")
	for path, methods := range routes.Paths {
		at := strings.NewReplacer("{id}", inQuestion, "{path}", inName+".md", "{document}", inName+".md", "{name}", inName).Replace(path)
		for method := range methods {
			for _, with := range []string{write, "", "ibid_" + inQuestion, write[:len(write)-1] + "x"} {
				send(strings.ToUpper(method), at+"?canary="+inQuestion, with, question, "Content-Type: application/json", "Referer: https://example.org/"+inQuestion,
					"User-Agent: "+inQuestion, "Cookie: ibid_session="+write, "Accept: application/json, text/event-stream", "Ibid-Run: "+inQuestion)
			}
		}
	}
	metrics := asked(t, "GET", url+"/metrics", key, "")
	figures, err := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	if err != nil || !bytes.Contains(figures, []byte(`ibid_model_call_failures_total{kind="auth",role="condense"}`)) || !bytes.Contains(figures, []byte(`ibid_problems_total{code="bad_key"}`)) {
		t.Errorf("%v: the metrics lack what was done:\n%s", err, figures)
	}
	alone := ""
	if err := cmd.Cancel(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "msg=request ") && !strings.Contains(line, " id=") {
			t.Errorf("a line without the id of its request: %s", line)
		}
		if _, a, ok := strings.Cut(line, "msg=metrics address="); ok {
			alone = strings.TrimSpace(a)
		}
	}
	if !strings.HasPrefix(alone, "http://127.0.0.1:") {
		t.Errorf("the address of the metrics is %q", alone)
	}
	for what, text := range map[string]string{"log": log.String(), "metrics": string(figures)} {
		for _, s := range append(secrets, words...) {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("the %s has %q: …%s", what, s, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
	t.Logf("%d requests, %d failures, %d bytes of log", requests, failures, log.Len())
	if failures == 0 {
		t.Error("nothing failed")
	}
}

// TestMetricsAddress: an address of its own gives the metrics without a key,
// and nothing else.
func TestMetricsAddress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	data := t.TempDir()
	makeKey(t, data, "reader")
	cmd := command(ctx, data, "serve", "--addr", "127.0.0.1:0", "--auth", "on", "--metrics-addr", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, address := bufio.NewScanner(log), ""
	for address == "" && lines.Scan() {
		if _, a, ok := strings.Cut(lines.Text(), "msg=metrics address="); ok {
			address = a
		}
	}
	resp, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.Contains(b, []byte("ibid_store_documents 0")) {
		t.Errorf("%v: %.500s", err, b)
	}
	for _, path := range []string{"/api/documents", "/"} {
		resp, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, %v: %s", path, resp.Status, err, b)
		}
	}
	cancel()
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the server ended with %v", err)
	}
}
