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

// TestStreamsThroughNginx streams an answer through nginx, configured as the page says: its
// first words must arrive before its last are sent.
func TestStreamsThroughNginx(t *testing.T) {
	t.Parallel()
	nginx := findNginx(t)
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
	front := startNginx(t, nginx, 0, strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(url, "http://")))

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front+"/api/ask",
		strings.NewReader(`{"question":"What does a swinging mooring cost in 2025?","strategy":"stuff"}`))
	must(t, err)
	r.Host = "docs.example.org"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	reply, err := http.DefaultClient.Do(r)
	must(t, err)
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
		t.Fatalf("%s: %v; first words received: %v, end received: %v", reply.Status, err, first, done)
	}
}

// halfway is a model's reply that pauses until the reader has the first words.
type halfway struct {
	http.ResponseWriter
	writes  int
	arrived <-chan struct{}
}

func (h *halfway) Write(p []byte) (int, error) {
	if h.writes--; h.writes == 0 {
		select {
		case <-h.arrived:
		case <-time.After(5 * time.Minute):
			return 0, errors.New("no reader has the first words")
		}
	}
	return h.ResponseWriter.Write(p)
}

func (h *halfway) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func findNginx(t *testing.T) string {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		t.Skip("nginx is not installed")
	}
	return nginx
}

// TestSignInAtNginx signs users in at nginx, configured as the page says. They read only
// what their groups may; a user name that a client sets, or a request that bypasses nginx,
// has no effect.
func TestSignInAtNginx(t *testing.T) {
	t.Parallel()
	nginx := findNginx(t)
	folder := t.TempDir()
	users := filepath.Join(folder, "users")
	must(t, os.WriteFile(users, []byte("anna:{PLAIN}kale\nbert:{PLAIN}beet\n"), 0o644))
	data := filepath.Join(folder, "data")
	fees := filepath.Join(moduleRoot(t), "data", "library", "fees")
	mustRun(t, data, "ingest", "--collection", "handbook", fees)
	url := serve(t, data, "--public-url", "https://docs.example.org", "--trust-proxy", "127.0.0.1", "--auth-header", "X-Forwarded-User",
		"--auth-group", "staff=read:handbook", "--auth-group", "editors=write:*")
	ready(t, url)
	front := startNginx(t, nginx, 1, strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(url, "http://"), "/etc/nginx/users", users))
	for _, c := range []struct {
		to, user, password, method, path string
		headers                          []string
		want                             int
	}{
		{front, "", "", "GET", "/api/documents", nil, 401},
		{front, "anna", "beet", "GET", "/api/documents", nil, 401},
		{front, "anna", "kale", "GET", "/api/documents", nil, 200},
		{front, "anna", "kale", "POST", "/api/documents?name=a.md", nil, 201},
		{front, "bert", "beet", "GET", "/api/documents", nil, 200},
		{front, "bert", "beet", "POST", "/api/documents?name=b.md", nil, 403},
		{front, "bert", "beet", "POST", "/api/documents?name=b.md", []string{"X-Forwarded-User", "anna", "X-Forwarded-Groups", "editors"}, 403},
		{front, "", "", "GET", "/api/documents", []string{"X-Forwarded-User", "anna", "X-Forwarded-Groups", "editors"}, 401},
		{url, "", "", "GET", "/api/documents", []string{"X-Forwarded-For", "127.0.0.1"}, 401},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.to+c.path, strings.NewReader("A berth costs 5 euros."))
		must(t, err)
		r.Host = "docs.example.org"
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		reply, err := http.DefaultClient.Do(r)
		must(t, err)
		if reply.StatusCode != c.want {
			t.Errorf("%s %s as %q, headers %v: %s, want %d", c.method, c.path, c.user, c.headers, reply.Status, c.want)
		}
		must(t, reply.Body.Close())
	}
}

// startNginx starts nginx as a proxy of an address, with one of the page's configurations,
// and returns the proxy's address.
func startNginx(t *testing.T, nginx string, number int, change *strings.Replacer) string {
	t.Helper()
	blocks := slices.DeleteFunc(blocksOf(t, "cmd/ibid/DEPLOYING.md"), func(b block) bool { return b.kind != "nginx" })
	if len(blocks) <= number {
		t.Fatalf("the page has %d blocks for nginx, want more than %d", len(blocks), number)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	front := l.Addr().String()
	must(t, l.Close())
	folder := t.TempDir()
	temps := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temps += fmt.Sprintf("%s_temp_path %s/%s;\n", of, folder, of)
	}
	site := strings.Replace(change.Replace(blocks[number].text), "listen 80;", "listen "+front+";", 1)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // a user that can read the test's folder
	}
	conf := user + "daemon off;\npid " + folder + "/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" + temps + site + "}\n"
	name := filepath.Join(folder, "nginx.conf")
	must(t, os.WriteFile(name, []byte(conf), 0o644))
	var said bytes.Buffer
	cmd := exec.Command(nginx, "-p", folder, "-c", name)
	cmd.Stderr = &said
	must(t, cmd.Start())
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
