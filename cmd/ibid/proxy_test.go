package main

import (
	"bufio"
	"bytes"
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
	const perToken = 20 * time.Millisecond
	long := strings.Repeat("A swinging mooring costs 530 euros a year. [1] ", 12)
	model := httptest.NewServer(&openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Reply: openaitest.Reply{Text: long, PerToken: perToken}},
	)})
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
	var first, done time.Time
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch lines.Text() {
		case "event: text":
			if first.IsZero() {
				first = time.Now()
			}
		case "event: done":
			done = time.Now()
		}
	}
	if err := lines.Err(); err != nil || reply.StatusCode != http.StatusOK || first.IsZero() || done.IsZero() {
		t.Fatalf("%s: %v; the first words at %v, the end at %v", reply.Status, err, first, done)
	}
	if took, least := done.Sub(first), perToken*time.Duration(len(openaitest.Split(long)))/3; took < least {
		t.Errorf("the first words came %v before the end, and not %v at the least: they were held back", took, least)
	}
}

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
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", front)
		if err == nil {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return "http://" + front
		}
		if time.Now().After(deadline) {
			t.Fatalf("nginx does not listen: %v\n%s", err, said.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
