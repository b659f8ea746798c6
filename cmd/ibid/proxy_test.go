package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

// An answer streams through nginx, configured as the page says: its first words
// arrive long before its last.
func TestStreamsThroughNginx(t *testing.T) {
	t.Parallel()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		t.Skip("nginx is not here")
	}
	long := strings.Repeat("A swinging mooring costs 530 euros a year. [1] ", 12)
	handler := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Reply: openaitest.Reply{Text: long}},
	)}
	arrived := make(chan struct{}) // closed when the reader has the first words
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(&halfway{ResponseWriter: w, writes: len(openaitest.Split(long)) / 2, arrived: arrived}, r)
	}))
	defer model.Close()
	url := serve(t, t.TempDir(), "--model", "m", "--base-url", model.URL+"/v1", "--public-url", "https://docs.example.org", "--no-auth",
		"--trust-proxy", "127.0.0.1",
		filepath.Join(moduleRoot(t), "data", "library", "fees"))
	ready(t, url)
	front := startNginx(t, nginx, strings.TrimPrefix(url, "http://"))

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front+"/api/ask",
		strings.NewReader(`{"question":"What does a swinging mooring cost in 2025?","strategy":"stuff"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "docs.example.org"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	first, done := false, false
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch lines.Text() {
		case "event: text":
			if !first {
				close(arrived)
			}
			first = true
		case "event: done":
			done = true
		}
	}
	if err := lines.Err(); err != nil || reply.StatusCode != http.StatusOK || !first || !done {
		t.Fatalf("%s: %v; the first words arrived: %v, the end: %v", reply.Status, err, first, done)
	}
}

// halfway is a model's reply that stops until the reader has its first words.
type halfway struct {
	http.ResponseWriter
	writes  int
	arrived <-chan struct{}
}

func (h *halfway) Write(p []byte) (int, error) {
	if h.writes--; h.writes == 0 {
		select {
		case <-h.arrived:
		case <-time.After(time.Minute):
			return 0, errors.New("no reader has the first words")
		}
	}
	return h.ResponseWriter.Write(p)
}

func (h *halfway) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// startNginx starts nginx as a proxy of an address, with the page's
// configuration, and returns its own address.
func startNginx(t *testing.T, nginx, address string) string {
	t.Helper()
	blocks := blocksOf(t, "cmd/ibid/DEPLOYING.md")
	i := slices.IndexFunc(blocks, func(b block) bool { return b.kind == "nginx" })
	if i < 0 {
		t.Fatal("the page has no block for nginx")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	temps := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temps += fmt.Sprintf("%s_temp_path %s/%s;\n", of, folder, of)
	}
	site := strings.NewReplacer("listen 80;", "listen "+front+";", "127.0.0.1:8080", address).Replace(blocks[i].text)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // which can read the test's folder
	}
	conf := user + "daemon off;\npid " + folder + "/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" + temps + site + "}\n"
	name := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(name, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(nginx, "-p", folder, "-c", name)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Logf("nginx: %v\n%s", err, said.String())
		}
	})
	eventually(t, "nginx to listen", func() bool {
		c, err := net.Dial("tcp", front)
		return err == nil && c.Close() == nil
	})
	return "http://" + front
}
