package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

var caseAsked = regexp.MustCompile(`case number (\d+)`)

var evidenceText = regexp.MustCompile(`(?s)<evidence \w+>\n(.*?)\n</evidence \w+>`)

// obedient returns the reply of a model that repeats the last text it was given: that of
// the case in the question, otherwise that of the documents.
func obedient(texts []string, r openaitest.Request) string {
	if m := caseAsked.FindAllStringSubmatch(r.Prompt(), -1); m != nil {
		n, _ := strconv.Atoi(m[len(m)-1][1])
		return texts[n]
	}
	said := ""
	for _, m := range evidenceText.FindAllStringSubmatch(r.Prompt(), -1) {
		said += m[1] + "\n\n"
	}
	return said
}

// TestInjection runs the program with a model that obeys any instruction. The model's
// words, and the text, names, titles, headings, cells and metadata of hostile documents,
// must reach the terminal without control characters. Package web tests the other outputs.
func TestInjection(t *testing.T) {
	t.Parallel()
	var all []string
	for _, h := range datatest.Pick(t, datatest.HostileTexts(t)) {
		all = append(all, h.Text)
	}
	texts := all
	if !datatest.Campaign() { // all texts in one answer
		texts = []string{strings.Join(all, "\n\n")}
	}
	model := openaitest.Start(t, &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Func: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: "yes\n" + obedient(texts, r)}
		}},
		openaitest.Rule{Role: "refine", Reply: openaitest.Reply{Text: "NO CHANGE"}},
		openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: obedient(texts, r) + "\n\nThe chart room opens at nine [1]."}
		}},
	)})
	data, folder := t.TempDir(), t.TempDir()
	hostileFolder(t, folder, all)
	// Some texts make invalid documents.
	if out, errs, code := ibid(t, data, "ingest", folder); code != exitDone && code != exitPartial ||
		strings.Count(out, "added ") < 4*len(all) {
		t.Fatalf("ingest: exit code = %d: %s%s", code, out, errs)
	}
	ask := func(question string, flags ...string) {
		t.Helper()
		out, errs, code := ibid(t, data, append([]string{"ask", question}, flags...)...)
		if code != 0 && !strings.Contains(errs, "incomplete") {
			t.Fatalf("ask: exit code = %d: %s", code, errs)
		}
		if out != printable(out) || errs != printable(errs) {
			t.Errorf("%q: control character in %q or %q", question, out, errs)
		}
	}
	flags := []string{"--model", "m", "--base-url", model, "--gate", "model", "--context-tokens", "16384"}
	for n := range texts {
		ask(fmt.Sprintf("What does case number %d say of the chart room?", n), flags...)
	}
	for _, question := range []string{"When does the chart room open?", "What is hostile about the chart room?",
		"Which cell, heading, title and name has the chart room?"} {
		ask(question, flags...)
		ask(question) // without a model the answer quotes documents
	}
}

// hostileFolder writes documents with the texts as words, headings, titles, names, cells
// and metadata.
func hostileFolder(t *testing.T, folder string, texts []string) {
	t.Helper()
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		must(t, err)
		return string(b)
	}
	var table bytes.Buffer
	table.WriteString("hostile,chart room\n")
	files := map[string]string{}
	for n, text := range texts {
		line := strings.Join(strings.Fields(text), " ")
		const opens = "\n\nThe chart room opens at nine, says hostile document "
		files[fmt.Sprintf("body-%d.md", n)] = "# Case\n\n" + text + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("heading-%d.md", n)] = "# " + line + "\n\n## " + line + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("title-%d.md", n)] = "---\ntitle: " + quoted(text) + "\nauthor: " + quoted(text) + "\ntags: [" + quoted(line) +
			"]\nurl: " + quoted("javascript:"+line) + "\n---\n" + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("page-%d.html", n)] = "<title>" + text + "</title><meta name=author content=" + quoted(line) + "><p>" + opens +
			strconv.Itoa(n) + ".</p>"
		name := strings.NewReplacer("/", "∕", "\x00", "", "\\", "∖").Replace(line)
		for len(name) > 200 {
			name = name[:len(name)-1]
		}
		files["names/"+strings.ToValidUTF8(strings.TrimLeft(name, ". "), "")+".txt"] = opens + strconv.Itoa(n) + ".\n"
		fmt.Fprintf(&table, "%s,\"%s\"\n", `"`+strings.ReplaceAll(text, `"`, `""`)+`"`, "The chart room opens at nine.")
	}
	files["table.csv"] = table.String()
	writeFiles(t, folder, files)
}

// TestCanaries sends secrets and words of documents and questions through every route, with
// valid and invalid keys, while the model fails in every way that repeats its input. None
// of them may appear in the debug log, in errors or in the metrics.
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
	writeFiles(t, folder, map[string]string{inName + ".md": "# " + inTitle + "\n\nThe " + inDocument +
		" opens at nine, and the chart room too.\n"})
	faults := append([]openaitest.Fault{"", openaitest.Unauthorized},
		datatest.Pick(t, []openaitest.Fault{openaitest.EchoHeaders, openaitest.NotHTTP,
			openaitest.ContextLength, openaitest.HTML, openaitest.ErrorString, openaitest.Reset, openaitest.ContentFilter, openaitest.NoFinish})...)
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

	keyFile := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(keyFile, []byte(upstreamKey), 0o600))
	key, write := makeKey(t, data, "reader"), makeKey(t, data, "writer", "--scope", "write")
	server := start(t, data, "--auth", "on", "--log-level", "debug",
		"--model", "scripted", "--base-url", model, "--api-key-file", keyFile, "--gate", "model", "--no-fallback", folder)
	url := server.url
	ready(t, url)

	secrets := []string{key, write, strings.TrimPrefix(key, "ibid_"), upstreamKey}
	words := []string{inDocument, inTitle, inQuestion, inHistory}
	var routes struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	resp := asked(t, "GET", url+"/openapi.json", key, "")
	if err := json.NewDecoder(resp.Body).Decode(&routes); err != nil || len(routes.Paths) < 10 {
		t.Fatalf("openapi.json has %d paths, err = %v; want at least 10", len(routes.Paths), err)
	}
	resp.Body.Close()
	requests, failures := 0, 0
	send := func(method, path, key, body string, headers ...string) {
		t.Helper()
		resp := asked(t, method, url+path, key, body, headers...)
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("reading the reply to %s %s: %v", method, path, err)
		}
		requests++
		for _, s := range secrets {
			if bytes.Contains(reply, []byte(s)) {
				t.Errorf("%s %s: reply has a secret: %.300s", method, path, reply)
			}
		}
		if resp.StatusCode < 500 {
			return
		}
		failures++
		for _, w := range words {
			if bytes.Contains(reply, []byte(w)) {
				t.Errorf("%s %s: error has %q: %.300s", method, path, w, reply)
			}
		}
	}
	question := `{"question":"When does the ` + inDocument + ` open, ` + inQuestion + `?","history":[{"role":"user","content":"` +
		inHistory + `"}]}`
	for _, f := range faults {
		<-fault
		fault <- f
		for _, accept := range []string{"application/json", "text/event-stream"} {
			send("POST", "/api/ask", key, question, "Content-Type: application/json", "Accept: "+accept)
		}
		send("POST", "/mcp", key, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":`+question+`}}`,
			"Content-Type: application/json", "Accept: application/json, text/event-stream")
	}
	// Valid keys from an address are accepted even after many invalid ones.
	send("GET", "/api/documents", write, "")
	send("GET", "/api/documents", "ibid_"+inQuestion, "")
	type request struct{ method, path, key string }
	var all []request
	for path, methods := range routes.Paths {
		at := strings.NewReplacer("{id}", inQuestion, "{path}", inName+".md", "{document}", inName+".md", "{name}", inName).Replace(path)
		for method := range methods {
			for _, with := range []string{write, "", "ibid_" + inQuestion, write[:len(write)-1] + "x"} {
				all = append(all, request{strings.ToUpper(method), at, with})
			}
		}
	}
	slices.SortFunc(all, func(a, b request) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.method, b.method))
	})
	for _, r := range datatest.Pick(t, all) {
		send(r.method, r.path+"?canary="+inQuestion, r.key, question, "Content-Type: application/json",
			"Referer: https://example.org/"+inQuestion,
			"User-Agent: "+inQuestion, "Cookie: ibid_session="+write, "Accept: application/json, text/event-stream", "Ibid-Run: "+inQuestion)
	}
	metrics := asked(t, "GET", url+"/metrics", key, "")
	figures, err := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	if err != nil || !bytes.Contains(figures, []byte(`ibid_model_call_failures_total{kind="auth",role="condense"}`)) ||
		!bytes.Contains(figures, []byte(`ibid_problems_total{code="bad_key"}`)) {
		t.Errorf("metrics lack the failures, err = %v:\n%s", err, figures)
	}
	server.stop()
	log := server.log.String()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "msg=request ") && !strings.Contains(line, " id=") {
			t.Errorf("log line without a request id: %s", line)
		}
	}
	for what, text := range map[string]string{"log": log, "metrics": string(figures)} {
		for _, s := range append(secrets, words...) {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("%s has %q: …%s", what, s, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
	t.Logf("%d requests, %d failures, %d bytes of log", requests, failures, len(log))
	if failures == 0 {
		t.Error("no request failed")
	}
}
