package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestClients runs the client programs of the pages, and calls every method of the clients,
// through a proxy that cuts every other event stream.
func TestClients(t *testing.T) {
	t.Parallel()
	server := serve(t, t.TempDir(), filepath.Join(moduleRoot(t), "data", "library"))
	ready(t, server)
	proxy, cuts := cuttingProxy(t, server)
	archive, err := txtar.ParseFile("testdata/clients.txtar")
	must(t, err)
	programs := map[string]string{}
	for _, f := range archive.Files {
		programs[f.Name] = string(f.Data)
	}
	for kind, test := range map[string]struct{ language, program, file string }{
		"py": {"python", "python3", "program.py"}, "js": {"js", "node", "program.mjs"},
	} {
		t.Run(kind, func(t *testing.T) {
			if _, err := exec.LookPath(test.program); err != nil {
				t.Skipf("%s is not installed", test.program)
			}
			client := filepath.Join(moduleRoot(t), "web", "clients", kind)
			dir := t.TempDir()
			modules := filepath.Join(dir, "node_modules")
			must(t, errors.Join(os.Mkdir(modules, 0o755), os.Symlink(client, filepath.Join(modules, "ibid-client"))))
			run := func(program string) string {
				file := filepath.Join(dir, test.file)
				must(t, os.WriteFile(file, []byte(program), 0o644))
				cmd := exec.CommandContext(t.Context(), test.program, file)
				cmd.Env = append(os.Environ(), "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("running %s: %v\n%s", test.program, err, out)
				}
				return string(out)
			}
			page := "web/clients/" + kind + "/README.md"
			blocks := blocksOf(t, page)
			for i, b := range blocks {
				if b.kind != test.language {
					continue
				}
				if got, want := run(strings.ReplaceAll(b.text, "http://127.0.0.1:8080", proxy)), blocks[i+1].text; got != want {
					t.Errorf("%s: output = \n%s\nwant, as the page has it,\n%s", page, got, want)
				}
			}
			got := run(strings.ReplaceAll(programs[kind], "SERVER", proxy))
			if got = strings.NewReplacer("['", "", "']", "", "True", "true").Replace(got); got != programs["output"] {
				t.Errorf("got\n%s\nwant\n%s", got, programs["output"])
			}
		})
	}
	if cuts.Load() == 0 {
		t.Error("the proxy cut no stream")
	}
}

// cuttingProxy forwards requests to a server, and cuts every other stream of events
// after 500 bytes.
func cuttingProxy(t *testing.T, server string) (address string, cuts *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(server)
	must(t, err)
	cuts = new(atomic.Int64)
	var streams atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") && streams.Add(1)%2 == 1 {
			r.Body = &cutBody{ReadCloser: r.Body, left: 500, cuts: cuts}
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL, cuts
}

// A cutBody returns an error after a number of bytes.
type cutBody struct {
	io.ReadCloser
	left int
	cuts *atomic.Int64
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.cuts.Add(1)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
