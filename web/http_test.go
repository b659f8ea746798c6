package web

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// volatile are the parts of a reply that change: ids, times and measurements.
var volatile = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`"support":[0-9.]+`), `"support":0`},
	{regexp.MustCompile(`"request":"[A-Z2-7]{26}"`), `"request":"ID"`},
	{regexp.MustCompile(`"(chatcmpl-|cmpl-|resp_|msg_|fc_|call_)[A-Z2-7]{26}"`), `"${1}ID"`},
	{regexp.MustCompile(`"id":"chatcmpl-[0-9]+"`), `"id":"chatcmpl-1"`}, // the scripted model counts
	{regexp.MustCompile(`"(created(?:_at)?)":[1-9][0-9]{9}`), `"$1":TIME`},
	{regexp.MustCompile(`(?m)^Ibid-Run: [a-z2-7]{16}$`), `Ibid-Run: RUN`},
	{regexp.MustCompile(`(?m)^id: [0-9a-z]+-`), `id: TIME-`},
	{regexp.MustCompile(`"(resp_|msg_|fc_)[a-z2-7]{16}"`), `"${1}RUN"`},
	{regexp.MustCompile(` at http://127\.0\.0\.1:[0-9]+`), ` at http://127.0.0.1:PORT`},
}

// TestHTTP sends the request of each golden file and compares the whole reply.
// A new case is a file with a request; -update writes the reply.
func TestHTTP(t *testing.T) {
	golden(t, "testdata/http/*.txt", nil)
}

// golden sends the request of each file to a server.
func golden(t *testing.T, files string, change func(*Options)) {
	names, err := filepath.Glob(files)
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	h := newHandler(t, change)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			must(t, err)
			if len(a.Files) == 0 || a.Files[0].Name != "request" {
				t.Fatal("the file does not begin with a request")
			}
			got := exchange(t, h, a.Files[0].Data)
			if *update {
				a.Files = []txtar.File{a.Files[0], {Name: "reply", Data: []byte(got)}}
				must(t, os.WriteFile(name, txtar.Format(a), 0o644))
				return
			}
			if len(a.Files) != 2 {
				t.Fatal("the file has no reply: run with -update and check what it writes")
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// exchange sends a request in its text form, with the body after the empty line,
// and returns the reply as text.
func exchange(t *testing.T, h *echo.Echo, request []byte) string {
	t.Helper()
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	raw := fmt.Sprintf("%s\nContent-Length: %d\n\n%s", head, len(body), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	must(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	// Replies of the model are passed on unchanged.
	if !bytes.Contains(body, []byte(`"model": "scripted/model"`)) && !bytes.Contains(body, []byte("### Task:")) {
		checker.check(t, h, r.Method, r.URL.RequestURI(), w)
	}
	res := w.Result()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	for _, name := range alwaysSent {
		if res.Header.Get(name) == "" {
			t.Errorf("the reply has no %s", name)
		}
		res.Header.Del(name)
	}
	var b strings.Builder
	fmt.Fprintln(&b, res.StatusCode, http.StatusText(res.StatusCode))
	names := []string{}
	for name := range res.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(res.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", bytes.TrimSuffix(text, []byte("\n")))
	out := b.String()
	for _, v := range volatile {
		out = v.re.ReplaceAllString(out, v.by)
	}
	return out
}

// alwaysSent are the headers of every reply; TestHeaders checks their values.
var alwaysSent = []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "X-Request-Id"}
