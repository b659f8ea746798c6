package main

import (
	"archive/zip"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest"
)

var hours = map[string]string{
	"hours.md": "# Opening hours\n\nThe chart room opens at nine and closes at five.\n",
	"boats.md": "# Boats\n\nThe dinghies stand on the slipway. A keelboat needs two hands.\n",
}

// TestTwoWritersOneReader has two processes write and one read the same data directory,
// without errors or lost documents.
func TestTwoWritersOneReader(t *testing.T) {
	t.Parallel()
	rounds := datatest.Cases(t, 60)
	data := t.TempDir()
	folders := []string{filepath.Join(t.TempDir(), "left"), filepath.Join(t.TempDir(), "right")}
	for i, folder := range folders {
		writeFiles(t, folder, map[string]string{"fixed.md": fmt.Sprintf("# Lantern %d\n\nThe lantern of pier %d burns green.\n", i, i)})
		mustRun(t, data, "ingest", folder)
	}
	url := serve(t, data)

	var writing sync.WaitGroup
	var ended atomic.Int32
	for i, folder := range folders {
		writing.Go(func() {
			defer ended.Add(1)
			for n := range rounds {
				// Each round adds, changes and removes a document.
				files := map[string]string{
					fmt.Sprintf("new-%d.md", n): fmt.Sprintf("# Log %d\n\nEntry %d of the log of pier %d.\n", n, n, i),
					"changing.md":               fmt.Sprintf("# Tide\n\nRound %d of pier %d.\n", n, i),
				}
				writeFiles(t, folder, files)
				if n >= 2 {
					if err := os.Remove(filepath.Join(folder, fmt.Sprintf("new-%d.md", n-2))); err != nil {
						t.Error(err)
					}
				}
				out, err := command(t.Context(), data, "ingest", folder).CombinedOutput()
				if err != nil || bytes.Contains(out, []byte("locked")) {
					t.Errorf("round %d of %s: %v: %s", n, folder, err, out)
					return
				}
			}
		})
	}
	questions := 0
	for int(ended.Load()) < len(folders) {
		for i := range folders {
			a := ask(t, url, fmt.Sprintf("Which colour does the lantern of pier %d burn?", i))
			if !a.Answered || !strings.Contains(a.Text, "green") {
				t.Errorf("question %d: answer = %q, want green", questions, a.Text)
			}
			questions++
			time.Sleep(100 * time.Millisecond) // leave processor time to the writers
		}
	}
	writing.Wait()
	t.Logf("figure: %d ingests in each of two processes, and %d questions meanwhile, without an error", rounds, questions)

	// The store has all documents of the folders.
	want := map[string]bool{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		must(t, err)
		for _, e := range entries {
			want[filepath.Base(folder)+"/"+e.Name()] = true
		}
	}
	got := documents(t, url)
	for id := range want {
		if !got[id] {
			t.Errorf("%s is lost", id)
		}
	}
	for id := range got {
		if !want[id] {
			t.Errorf("%s is still stored", id)
		}
	}
}

// A call is one request of a webhook.
type webhookCall struct {
	id   string
	body map[string]any
}

// TestWebhook checks that the webhook is called at the end of a sync and of a run: signed,
// without words of documents or questions, again after a failure, and without following
// redirects.
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
			t.Errorf("Webhook-Signature = %q, want %q, err = %v", r.Header.Get("Webhook-Signature"), want, err)
		}
		if r.URL.Path == "/elsewhere" {
			elsewhere <- id
			return
		}
		if bytes.Contains(body, []byte("ferry")) || bytes.Contains(body, []byte("nine")) {
			t.Errorf("call has words of a document or question: %s", body)
		}
		var c map[string]any
		if err := json.Unmarshal(body, &c); err != nil {
			t.Errorf("body of a call is not JSON: %v: %s", err, body)
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
		case <-time.After(5 * time.Minute):
			t.Fatal("no call received")
		}
		return webhookCall{}
	}
	synced := next()
	files, _ := synced.body["files"].(map[string]any)
	if synced.body["state"] != "done" || files["added"] != 1.0 || failures[synced.id] != 1 {
		t.Errorf("call for the sync = %v", synced)
	}
	ask(t, url, "When does the ferry leave?")
	ended := next()
	run, _ := ended.body["run"].(string)
	if members := slices.Sorted(maps.Keys(ended.body)); strings.Join(members, " ") != "kind run state timestamp type" ||
		ended.body["type"] != "run.ended" || ended.body["state"] != "done" {
		t.Errorf("call for the run = %v", ended)
	}
	fetch(t, "GET", url+"/api/runs/"+run, "", "", http.StatusOK)
	ask(t, url, "When does the ferry leave?")
	if second := next(); second.id == ended.id || len(elsewhere) > 0 {
		t.Errorf("%d redirects followed; next call = %v", len(elsewhere), second)
	}
	for _, bad := range [][]string{{"--webhook", "ftp://example.org", "--webhook-secret-file", file}, {"--webhook", hook.URL},
		{"--webhook", "http://a:b@example.org", "--webhook-secret-file", file}} {
		if _, said, code := ibid(t, t.TempDir(), append([]string{"serve", "--addr", "127.0.0.1:0"}, bad...)...); code != exitUsage ||
			!strings.Contains(said, "webhook") {
			t.Errorf("%q: exit code = %d: %s", bad, code, said)
		}
	}
}

// TestDrawnPages checks that the viewer of a PDF file shows its page with the quoted words
// marked, for a file in a folder and for one in an archive.
func TestDrawnPages(t *testing.T) {
	t.Parallel()
	reader := &ingest.Reader{PDF: ingest.PDFOptions{Helped: true}}
	if from, _ := reader.PDFium(); from == "" {
		t.Skip("no PDFium: run 'go generate ./ingest/pdf' and set the tag pdfium")
	}
	sample, err := os.ReadFile("sample.pdf")
	must(t, err)
	folder := filepath.Join(t.TempDir(), "club")
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	light, err := archive.Create("papers/light.pdf")
	must(t, err)
	_, err = light.Write(sample)
	must(t, errors.Join(err, archive.Close()))
	writeFiles(t, folder, map[string]string{"harbour.pdf": string(sample), "packed.zip": packed.String(),
		"changed.pdf": string(sample) + "\n", "gone.pdf": string(sample) + "\n\n", "note.md": "# Note\n\nNo page of this is drawn."})
	address := serve(t, t.TempDir(), "--no-watch", folder)
	ready(t, address)
	writeFiles(t, folder, map[string]string{"changed.pdf": string(sample)})
	must(t, os.Remove(filepath.Join(folder, "gone.pdf")))

	get := func(path string, status int) []byte { return fetch(t, "GET", address+path, "", "", status) }
	for _, document := range []string{"/documents/club/harbour.pdf", "/documents/club/packed.zip/papers/light.pdf"} {
		const quoted = "?start=4&end=17" // the bytes of "harbour light"
		page := string(get(document+quoted, http.StatusOK))
		if want := `<img src="` + document + `?drawn=1&amp;end=17&amp;start=4"`; !strings.Contains(page, want) {
			t.Errorf("%s is not in %s", want, page)
		}
		plain, marked := get(document+"?drawn=1&width=600", http.StatusOK), get(document+quoted+"&drawn=1&width=600", http.StatusOK)
		if image, err := png.DecodeConfig(bytes.NewReader(marked)); err != nil || image.Width != 600 || bytes.Equal(plain, marked) {
			t.Errorf("%s: image = %v, %v; want it 600 pixels wide and marked", document, image, err)
		}
	}
	for _, tt := range []struct {
		path   string
		status int
		code   string
	}{
		{"harbour.pdf?drawn=2", 404, "page_not_found"},
		{"harbour.pdf?drawn=0", 400, "bad_page"},
		{"harbour.pdf?drawn=1&width=20000", 400, "bad_width"},
		{"changed.pdf?drawn=1", 404, "original_changed"},
		{"gone.pdf?drawn=1", 404, "original_not_found"},
		{"note.md?drawn=1", 404, "not_drawn"},
		{"never.pdf?drawn=1", 404, "document_not_found"},
	} {
		var p struct{ Code string }
		if err := json.Unmarshal(get("/documents/club/"+tt.path, tt.status), &p); err != nil || p.Code != tt.code {
			t.Errorf("%s: code = %q, %v; want %s", tt.path, p.Code, err, tt.code)
		}
	}
}
