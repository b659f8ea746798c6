package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site is read by the command line and by the server, and read again; limits are
// reported, and a site that was never there leaves nothing.
func TestSites(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	pages := map[string]string{
		"/docs/":       `<a href="hours">hours</a> <a href="keys">keys</a> <a href="private/x">no</a> <a href="private/y">no</a>`,
		"/docs/hours":  "<h1>Hours</h1><p>The chart room opens at nine in the morning.",
		"/docs/keys":   "<h1>Keys</h1><p>The spare key of the boathouse hangs behind the kitchen door.",
		"/alone":       "<h1>Fees</h1><p>The mooring fee is 240 crowns a season.",
		"/robots.txt":  "User-agent: *\nDisallow: /docs/private/\n",
		"/docs/unseen": "nothing links here",
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(web.Close)
	data, site := t.TempDir(), web.URL+"/docs/"
	ingest := func(want ...string) {
		t.Helper()
		out, errs, code := ibid(t, data, "ingest", "--fetch-private", site)
		for _, w := range want {
			if !strings.Contains(out+errs, w) || code != exitDone {
				t.Errorf("exit code %d, %q is missing in:\n%s%s", code, w, out, errs)
			}
		}
	}

	ingest("hours.html (1 chunk)", "keys.html (1 chunk)", "2 pages of it left out, as its robots.txt asks")
	out := mustRun(t, data, "ask", "--json", "When does the chart room open?")
	if want := site + "hours#:~:text="; !strings.Contains(out, want) {
		t.Errorf("%s is missing in %s", want, out)
	}
	mu.Lock()
	pages["/docs/hours"] = "<h1>Hours</h1><p>The chart room opens at ten in the morning."
	delete(pages, "/docs/keys")
	mu.Unlock()
	ingest("updated", "removed", "1 updated", "1 removed")
	out, _, _ = ibid(t, data, "ingest", "--json", "--fetch-private", "--max-pages", "1", site)
	for _, want := range []string{`{"notice":{"site":"` + site + `","code":"many_pages","n":1,`, `"url":"` + site + `hours"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	if out, errs, code := ibid(t, data, "ingest", "--fetch-private", "--max-pages", "1", site); code != exitDone ||
		!strings.Contains(out+errs, "not all of it was read: it has more than 1 pages (--max-pages)") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}

	for address, want := range map[string]string{site: "--fetch-private", "file:///etc/passwd": "",
		"https://user:secret@example.org/": "remove them"} {
		out, errs, code := ibid(t, data, "ingest", address)
		if code == exitDone || !strings.Contains(errs, want) || strings.Contains(out+errs, "secret") {
			t.Errorf("%s: exit code %d: %s%s", address, code, out, errs)
		}
	}
	if _, errs, code := ibid(t, data, "ingest", "--fetch-private", web.URL+"/missing/"); code == exitDone || !strings.Contains(errs, "404") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	mirrors, err := os.ReadDir(filepath.Join(data, "sites"))
	if err != nil || len(mirrors) != 1 {
		t.Errorf("%v, %v", mirrors, err)
	}

	// The server reads a site again that was read more than a day ago.
	index := filepath.Join(data, "sites", mirrors[0].Name(), "index.json")
	saved, err := os.ReadFile(index)
	must(t, err)
	var state map[string]any
	must(t, json.Unmarshal(saved, &state))
	state["started"], state["ended"] = time.Now().Add(-25*time.Hour), time.Now().Add(-25*time.Hour)
	saved, err = json.Marshal(state)
	must(t, err)
	must(t, os.WriteFile(index, saved, 0o600))
	mu.Lock()
	pages["/docs/hours"] = "<h1>Hours</h1><p>The chart room opens at eleven in the morning."
	mu.Unlock()
	url := serve(t, data, "--fetch-private")
	ready(t, url)
	eventually(t, "the site is read again", func() bool {
		return strings.Contains(ask(t, url, "When does the chart room open?").Text, "at eleven")
	})
	reply, err := http.Post(url+"/api/documents?url="+web.URL+"/alone", "", nil)
	must(t, err)
	reply.Body.Close()
	if reply.StatusCode != http.StatusAccepted {
		t.Fatalf("status %d", reply.StatusCode)
	}
	eventually(t, "the page is read", func() bool { return strings.Contains(ask(t, url, "What is the mooring fee?").Text, "240 crowns") })
}
