package site

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/child"
)

var must = datatest.Must

func TestMain(m *testing.M) {
	if code, ran := RunChild(os.Getenv, os.Stdin, os.Stdout, os.Stderr); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A server is a web site for tests, which counts its replies by path and status.
type server struct {
	*httptest.Server
	mux *http.ServeMux

	mu   sync.Mutex
	sent map[string]int // "200 /path"
}

func newServer(t *testing.T) *server {
	s := &server{mux: http.NewServeMux(), sent: make(map[string]int)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &statusWriter{w, http.StatusOK}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent[fmt.Sprint(counted.status, " ", r.URL.Path)]++
		}()
		s.mux.ServeHTTP(counted, r)
	}))
	t.Cleanup(s.Close)
	return s
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// reset returns the replies so far and clears them.
func (s *server) reset() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = make(map[string]int)
	return sent
}

// page serves a page with an ETag for its content.
func (s *server) page(path, kind string, body func() string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		text := body()
		w.Header().Set("ETag", `"`+hash(text)+`"`)
		w.Header().Set("Content-Type", kind)
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, text)
	})
}

func (s *server) html(path, body string) {
	s.page(path, "text/html; charset=utf-8", func() string { return "<html><body>" + body + "</body></html>" })
}

func openSite(t *testing.T, folder, address string) *Site {
	t.Helper()
	s, err := Open(folder, address)
	must(t, err)
	s.Fetcher = &Fetcher{Private: true, pause: time.Microsecond}
	t.Cleanup(func() { s.Close() })
	return s
}

func crawlOnce(t *testing.T, s *Site) Report {
	t.Helper()
	report, err := s.Crawl(t.Context(), false, nil)
	must(t, err)
	return report
}

// files returns the documents by path, with their addresses or the reasons why they failed.
func files(s *Site) map[string]string {
	found := make(map[string]string)
	for p := range s.Pages() {
		found[p.Path] = strings.TrimPrefix(s.Address(p.Path), "http://"+s.address.Host)
		if p.Err != nil {
			found[p.Path] += ": " + p.Err.Error()
		}
	}
	return found
}

// ofChildren returns the processor time of the children that have ended.
var ofChildren = func() time.Duration { return 0 }

// TestManyPages checks that a site of a thousand pages is read as far as robots.txt allows,
// and that a second crawl fetches only changed pages.
func TestManyPages(t *testing.T) {
	t.Parallel()
	n := datatest.Cases(t, 2000)
	web := newServer(t)
	var mu sync.Mutex
	version, broken, gone := make(map[int]int), map[int]bool{7: true}, make(map[int]bool)
	web.mux.HandleFunc("/p/{n}", func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscan(r.PathValue("n"), &i); err != nil {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		tag := fmt.Sprintf(`"%d"`, version[i])
		fails, missing := broken[i], gone[i]
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		switch w.Header().Set("ETag", tag); {
		case fails:
			http.Error(w, "broken", http.StatusInternalServerError)
		case missing:
			http.NotFound(w, r)
		case r.Header.Get("If-None-Match") == tag:
			w.WriteHeader(http.StatusNotModified)
		default:
			fmt.Fprintf(w, "<p>Page %d, version %s.", i, tag)
			if i%10 == 0 { // a slow page
				http.NewResponseController(w).Flush()
			}
			fmt.Fprintf(w, `<a href="./%d#top">next</a> <a href="../old/%d">old</a> <a href="/secret/%d">no</a>
				<a href="https://elsewhere.example/">away</a> <a href="mailto:x@y">mail</a>`, i+2, i, i)
		}
	})
	web.mux.HandleFunc("/old/{n}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/p/"+r.PathValue("n"), http.StatusMovedPermanently)
	})
	web.page("/robots.txt", "text/plain", func() string { return "User-agent: *\nDisallow: /secret/\n" })
	web.page("/sitemap.xml", "application/xml", func() string {
		// Odd pages are only in the sitemap, even ones are linked.
		var b strings.Builder
		b.WriteString("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>")
		for i := 1; i < n; i += 2 {
			fmt.Fprintf(&b, "<url><loc>%s/p/%d</loc></url>", web.URL, i)
		}
		return b.String() + "</urlset>"
	})
	web.html("/{$}", fmt.Sprintf(`<a href="p/0">first</a> <a href="p/%d">last</a>`, n-2))
	for i := 0; i < n; i += 20 { // within the depth
		web.html(fmt.Sprintf("/c/%d", i), fmt.Sprintf(`<a href="/p/%d">x</a>`, i))
	}
	for i := n; i < n+2; i++ {
		gone[i] = true
	}
	folder := t.TempDir()
	s := openSite(t, folder, web.URL)
	s.Limits.Depth = n
	begun := child.ProcessorTime() + ofChildren()
	report := crawlOnce(t, s)
	if took := child.ProcessorTime() + ofChildren() - begun; took > time.Minute {
		t.Errorf("the crawl needed %s of processor time", took)
	}
	if len(report.Limits) > 0 || report.Disallowed == 0 {
		t.Errorf("report = %+v", report)
	}
	got := files(s)
	for i := range n {
		want, name := fmt.Sprintf("/p/%d", i), fmt.Sprintf("p/%d.html", i)
		if i == 7 {
			want += ": the server replied with 500 Internal Server Error"
		}
		if got[name] != want {
			t.Fatalf("%s = %q, want %q", name, got[name], want)
		}
	}
	for sent, times := range web.reset() {
		if strings.Contains(sent, "/secret/") || strings.HasPrefix(sent, "200") && times > 1 {
			t.Errorf("%s was sent %d times", sent, times)
		}
	}
	mu.Lock()
	version[10], version[11], broken[7], broken[12], gone[13] = 1, 1, false, true, true
	mu.Unlock()
	s = openSite(t, folder, web.URL)
	s.Limits.Depth = n
	if report = crawlOnce(t, s); report.Fetched != 3 {
		t.Errorf("%d pages were fetched again, want 3", report.Fetched)
	}
	whole := slices.DeleteFunc(slices.Sorted(maps.Keys(web.reset())), func(sent string) bool {
		return !strings.HasPrefix(sent, "200") || sent == "200 /robots.txt" || sent == "200 /sitemap.xml"
	})
	datatest.Same(t, "sent in full", []string{"200 /", "200 /p/10", "200 /p/11", "200 /p/7"}, whole)
	got = files(s)
	_, there := got["p/13.html"]
	if there || got["p/12.html"] != "/p/12: the server replied with 500 Internal Server Error" || len(got) != n {
		t.Errorf("13 = %q, 12 = %q, %d files", got["p/13.html"], got["p/12.html"], len(got))
	}
}

// public is an address that the fetcher of TestRefused may use.
const public = "93.184.215.14"

// TestTwins checks that a Markdown twin is read instead of its page, with the page's
// address.
func TestTwins(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	md := func(path, kind, text string) { web.page(path, kind, func() string { return text }) }
	md("/robots.txt", "text/plain", "User-agent: *\nDisallow: /docs/no.md\n")
	md("/docs/llms.txt", "text/plain", "# Docs\n- [Home](index.md)\n- [A](a.md)\n- [No](no.md)\n"+
		"- [B](b/index.md): b\n- [C](c.md)\n- [D](d.html.md)\n- [E](e.md)\n- [Away](https://x.example/e.md)\n")
	md("/docs/index.md", "text/markdown", "# Home")
	web.html("/docs/no", "page no")
	md("/docs/no.md", "text/markdown", "# No")
	md("/docs/map.xml", "text/xml", "<urlset><url><loc>/docs/a</loc></url></urlset>")
	web.html("/docs/{$}", `<a href=no>n</a> <a href=a>a</a> <a href=b/>b</a> <a href=linked>l</a> <a href=broken>x</a>
		<a href=c>c</a> <a href=d.html>d</a>`)
	web.html("/docs/a", "menu a")
	md("/docs/a.md", "text/markdown", "# A, see [B](b/index.md)")
	web.html("/docs/b/{$}", "menu b")
	md("/docs/b/index.md", "text/plain; charset=utf-8", "# B")
	web.html("/docs/c", "page c") // the page has no twin
	web.html("/docs/d.html", "menu d")
	web.html("/docs/d.html.md", "no Markdown, but the page of a missing one")
	md("/docs/e.md", "text/markdown", "# E, which has no other page")
	web.html("/docs/linked", `menu l <link rel="alternate" type="text/markdown" href="/docs/l.txt">`)
	md("/docs/l.txt", "text/plain", "# L")
	web.html("/docs/broken", `page x <link rel="alternate" type="text/markdown" href="/missing.md">`)
	folder := t.TempDir()
	for range 2 { // the second crawl finds no change
		s := openSite(t, folder, web.URL+"/docs/")
		report := crawlOnce(t, s)
		want := map[string]string{"docs/index.md": "/docs/", "docs/no.html": "/docs/no", "docs/a.md": "/docs/a",
			"docs/b/index.md": "/docs/b/", "docs/c.html": "/docs/c", "docs/e.md": "/docs/e.md",
			"docs/d.html": "/docs/d.html", "docs/linked.md": "/docs/linked", "docs/broken.html": "/docs/broken"}
		datatest.Same(t, "files", want, files(s))
		for name, text := range map[string]string{"docs/index.md": "# Home", "docs/a.md": "# A, see [B](b/index.md)",
			"docs/b/index.md": "# B", "docs/linked.md": "# L"} {
			if got, err := fs.ReadFile(s, name); string(got) != text || err != nil {
				t.Errorf("%s = %q, %v; want %q", name, got, err, text)
			}
		}
		if again := !s.Ended.IsZero() && report.Fetched == 0; again != (web.reset()["200 /docs/a.md"] == 0) {
			t.Errorf("second crawl: a.md fetched again = %v, report = %+v", again, report)
		}
	}
	for _, path := range []string{"/docs/a", "/docs/map.xml"} {
		s := openSite(t, t.TempDir(), web.URL+path)
		crawlOnce(t, s)
		datatest.Same(t, "files of "+path, map[string]string{"docs/a.md": "/docs/a"}, files(s))
	}
}

// TestRefused checks that the fetcher connects to none of these addresses, however it
// reaches them.
func TestRefused(t *testing.T) {
	t.Parallel()
	private := strings.Fields(`127.0.0.1 127.8.9.1 10.0.0.1 172.16.3.4 192.168.1.1 169.254.169.254 169.254.1.1 100.64.0.1 100.100.100.200
		0.0.0.0 0.1.2.3 255.255.255.255 224.0.0.1 198.18.0.1 192.0.0.192 168.63.129.16 203.0.113.9 240.0.0.1
		[::1] [::] [fe80::1] [fe80::1%25eth0] [fc00::1] [fd00:ec2::254] [ff02::1] [::ffff:127.0.0.1] [::ffff:10.1.1.1] [::ffff:a9fe:a9fe]
		[64:ff9b::7f00:1] [2002:7f00:1::] [2001:db8::1] [2001::7f00:1] [::127.0.0.1] [fec0::1]`)
	var attempts []string
	for i, host := range private {
		attempts = append(attempts, "http://"+host+"/")
		if i%3 == 0 {
			attempts = append(attempts, "http://redirects.example/?to=http://"+host+"/x")
		}
	}
	attempts = append(attempts, "https://[::1]/", "file:///etc/passwd", "gopher://"+public+"/1", "ftp://"+public+"/",
		"http://user:pass@ok.example/",
		"http://user@ok.example/", "http://ok.example:22/", "http://ok.example:8080/", "https://ok.example:80/", "http://ok.example:6379/",
		"http:///x",
		"http://redirects.example/?to=file:///etc/passwd", "http://redirects.example/?to=gopher://127.0.0.1:70/",
		"http://redirects.example/?to=http://a:b@ok.example/", "http://redirects.example/?to=http://ok.example:22/",
		"http://redirects.example/?to=http://inside.example/", "http://inside.example/", "http://mixed.example/", "http://mapped.example/",
		"http://rebinds.example/", "http://localhost/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/")
	if len(attempts) < 60 {
		t.Fatalf("only %d attempts, want at least 60", len(attempts))
	}
	web := newServer(t)
	web.mux.HandleFunc("/robots.txt", http.NotFound)
	web.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.FormValue("to"))
		w.WriteHeader(http.StatusFound)
	})
	for _, attempt := range attempts {
		t.Run(attempt, func(t *testing.T) {
			t.Parallel()
			lookups := 0
			f := &Fetcher{pause: time.Microsecond}
			f.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				lookups++
				found, ok := map[string]string{"redirects.example": public, "ok.example": public, "inside.example": "10.0.0.7",
					"mixed.example": public + " 127.0.0.1", "mapped.example": "::ffff:192.168.0.1", "localhost": "127.0.0.1",
					"127.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "0177.0.0.1": "127.0.0.1",
					"rebinds.example": public}[host]
				if host == "rebinds.example" && lookups > 1 {
					found = "127.0.0.1"
				}
				if !ok {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				var addresses []netip.Addr
				for a := range strings.FieldsSeq(found) {
					addresses = append(addresses, netip.MustParseAddr(a))
				}
				return addresses, nil
			}
			f.connect = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address != public+":80" {
					t.Errorf("connected to %s", address)
					return nil, errors.New("refused by the test")
				}
				conn, err := new(net.Dialer).DialContext(ctx, network, web.Listener.Addr().String())
				if strings.Contains(attempt, "rebinds") { // each request needs a new connection
					conn.Close()
				}
				return conn, err
			}
			if _, err := Address(f, attempt); err != nil {
				return // refused at once
			}
			s := openSite(t, t.TempDir(), attempt)
			s.Fetcher = f
			if _, err := s.Crawl(t.Context(), false, nil); err == nil || len(s.ByURL) > 0 {
				t.Errorf("files fetched: %v", files(s))
			}
		})
	}
}

// TestBombs checks that endless replies are cut off, and that the report or the page says
// so.
func TestBombs(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	web.mux.HandleFunc("/robots.txt", http.NotFound)
	web.mux.HandleFunc("/redirects/{n}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"0", http.StatusFound)
	})
	web.html("/redirects/{$}", `<a href="1">x</a>`)
	endless := func(w http.ResponseWriter, write func([]byte) (int, error)) {
		for range 60 { // MB; more than the limit of any reader here
			if _, err := write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
	web.html("/body/{$}", `<a href="1">x</a>`)
	web.mux.HandleFunc("/body/1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		endless(w, w.Write)
	})
	web.html("/gzip/{$}", `<a href="1">x</a>`)
	web.mux.HandleFunc("/gzip/1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		endless(w, packed.Write)
		packed.Close()
	})
	web.mux.HandleFunc("/sitemaps/{n}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<sitemapindex>")
		for i := range 10 {
			fmt.Fprintf(w, "<sitemap><loc>%s%d</loc></sitemap>", r.URL.Path, i)
		}
		fmt.Fprint(w, "</sitemapindex>")
	})
	web.html("/links/{n}", "page")
	web.mux.HandleFunc("/links/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		var links bytes.Buffer
		for i := range 1_000_000 {
			fmt.Fprintf(&links, "<a href=%d>", i)
		}
		w.Write(links.Bytes())
	})
	web.mux.HandleFunc("/packed.xml.gz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		endless(w, packed.Write)
		packed.Close()
	})
	for _, c := range []struct{ path, says string }{
		{"/packed.xml.gz", "packed.xml.gz has more than 50 MB, unpacked"},
		{"/redirects/", "more than 10 redirects"},
		{"/body/", "the page is too large: it has more than 32 MB"},
		{"/gzip/", "the page is too large: it has more than 32 MB"},
		{"/sitemaps/1", "more than 50 sitemaps"},
		{"/links/", "links it has more than 20 pages (--max-pages)"},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, t.TempDir(), web.URL+c.path)
			s.Limits = Limits{Pages: 20}
			report := crawlOnce(t, s)
			said := fmt.Sprint(report.Limits, files(s))
			if !strings.Contains(said, c.says) || len(s.ByURL) > 25 {
				t.Errorf("%d pages, report %.300s; want %q", len(s.ByURL), said, c.says)
			}
		})
	}
}

// TestEndlessFirstPage checks that a site whose first page or robots.txt never ends is
// refused.
func TestEndlessFirstPage(t *testing.T) {
	t.Parallel()
	rules, loops := newServer(t), newServer(t)
	rules.page("/robots.txt", "text/plain", func() string { return strings.Repeat("Disallow: /x\n", maxRobots/10) })
	rules.html("/{$}", "page")
	loops.mux.HandleFunc("/robots.txt", http.NotFound)
	loops.mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	for says, web := range map[string]*server{"too large": rules, "more than 10 redirects": loops} {
		s := openSite(t, t.TempDir(), web.URL)
		if _, err := s.Crawl(t.Context(), false, nil); err == nil || !strings.Contains(err.Error(), says) || len(s.ByURL) > 0 {
			t.Errorf("err = %v, %d pages; want %q", err, len(s.ByURL), says)
		}
	}
}

// TestResumed checks that an interrupted crawl is resumed.
func TestResumed(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	links := ""
	for i := range 40 {
		links += fmt.Sprintf(`<a href="%d">x</a>`, i)
		web.html(fmt.Sprintf("/%d", i), fmt.Sprintf("page %d", i))
	}
	web.html("/{$}", links)
	folder := t.TempDir()
	s := openSite(t, folder, web.URL)
	ctx, stop := context.WithCancel(t.Context())
	_, err := s.Crawl(ctx, false, func(done, total int) {
		if done == 20 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v, want context.Canceled", err)
	}
	first := web.reset()
	s = openSite(t, folder, web.URL)
	crawlOnce(t, s)
	again := 0
	for sent := range web.reset() {
		if first[sent] > 0 && strings.HasPrefix(sent, "200") {
			again++
		}
	}
	if again > 1+parallel { // the first page and those that were in progress
		t.Errorf("%d pages were sent again", again)
	}
	if got := files(s); len(got) != 41 {
		t.Errorf("%d pages, want 41", len(got))
	}
}

// TestFailing checks that failing pages do not affect other pages.
func TestFailing(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	links := ""
	for i := range 40 {
		links += fmt.Sprintf(`<a href="%d">x</a>`, i)
		web.mux.HandleFunc(fmt.Sprintf("/%d", i), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502 - i%2*99) })
	}
	web.html("/{$}", links+`<a href="good">x</a>`)
	web.html("/good", "good")
	s := openSite(t, t.TempDir(), web.URL)
	report := crawlOnce(t, s)
	if got := files(s); len(got) != 42 || got["good.html"] != "/good" || len(report.Limits) > 0 {
		t.Errorf("files = %v, report = %v", got, report)
	}
}

// TestExtent checks that the address determines how much of a site is read.
func TestExtent(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	web.html("/a/{$}", `<a href="b">b</a> <a href="../c">c</a>`)
	web.html("/a/b", `<a href="d">d</a>`)
	web.html("/a/d", "deeper")
	web.html("/c", `<a href="a/b">b</a>`)
	for from, to := range map[string]string{"/e/": "/e", "/f/": "/f/home.html", "/g/": "/e", "/h/": "/h/en/", "/i/": "/f/home.html"} {
		web.mux.Handle(from+"{$}", http.RedirectHandler(to, http.StatusPermanentRedirect))
	}
	elsewhere := strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/e"
	web.mux.Handle("/{$}", http.RedirectHandler(elsewhere, http.StatusFound))
	web.html("/e", `<a href="/e/b">b</a> <a href="/c">c</a>`)
	web.html("/e/b", "below")
	web.html("/f/home.html", `<a href="b">b</a> <a href="/c">c</a>`)
	web.html("/f/b", "beside")
	web.html("/h/en/{$}", `<a href="b">b</a> <a href="../de/b">c</a>`)
	web.html("/h/en/b", "below")
	web.page("/map.xml", "text/xml", func() string {
		return "<urlset><url><loc>" + web.URL + "/c</loc></url><url><loc>http://other.example/</loc></url></urlset>"
	})
	for address, want := range map[string]string{
		"/a/": "a/b.html a/d.html a/index.html", "/a/b": "a/b.html", "/c": "c.html", "/map.xml": "c.html",
		"/e": "e.html", "/e/": "e.html e/b.html", "/f/": "f/b.html f/home.html", "/g/": "e.html e/b.html",
		"/": "e.html e/b.html", "/h/": "h/en/b.html h/en/index.html", "/i/": "f/b.html f/home.html",
	} {
		s := openSite(t, t.TempDir(), web.URL+address)
		crawlOnce(t, s)
		if got := strings.Join(slices.Sorted(maps.Keys(files(s))), " "); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	s := openSite(t, t.TempDir(), web.URL+"/missing/")
	if _, err := s.Crawl(t.Context(), false, nil); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("missing page: err = %v", err)
	}
}

// A sink collects documents.
type sink map[string]*ingest.Document

func (s sink) StoredDocuments(context.Context, ingest.Root) (map[string]ingest.Stored, error) {
	known := make(map[string]ingest.Stored)
	for _, d := range s {
		known[d.Path] = ingest.Stored{Digest: d.Digest, Meta: map[string]string{ingest.ReaderKey: d.Meta[ingest.ReaderKey]}}
	}
	return known, nil
}

func (s sink) Replace(_ context.Context, d *ingest.Document, _ []ingest.Chunk) error {
	s[d.ID] = d
	return nil
}

func (s sink) Rename(_ context.Context, from string, to *ingest.Document) error {
	delete(s, from)
	s[to.ID] = to
	return nil
}

func (s sink) Delete(_ context.Context, id string) error {
	delete(s, id)
	return nil
}

// TestSynced checks that pages are synced like files: each has its address, and pages that
// moved, failed or were deleted are handled like such files.
func TestSynced(t *testing.T) {
	t.Parallel()
	web := newServer(t)
	state := "first"
	page := func(path, first, second string) {
		web.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch body := map[string]string{"first": first, "second": second}[state]; body {
			case "500":
				w.WriteHeader(http.StatusBadGateway)
			case "404":
				http.NotFound(w, r)
			case "moved":
				http.Redirect(w, r, "/new", http.StatusMovedPermanently)
			default:
				fmt.Fprintf(w, `<link rel="canonical" href="https://evil.example/"><nav>Menu Home</nav><main><p>%s</p></main>`, body)
			}
		})
	}
	page("/{$}", `home <a href="same">s</a><a href="gone">g</a><a href="fails">f</a><a href="old">o</a>`, "changed")
	page("/same", "same", "same")
	page("/gone", "gone", "404")
	page("/fails", "fails", "500")
	page("/old", "old words", "moved")
	page("/new", "404", "old words")
	documents := make(sink)
	s := openSite(t, t.TempDir(), web.URL)
	syncer := &ingest.Syncer{Sink: documents}
	var got []string
	for range 2 {
		crawlOnce(t, s)
		for c, err := range syncer.Sync(t.Context(), ingest.Root{Name: "site", Path: web.URL}, s) {
			must(t, err)
			got = append(got, fmt.Sprintf("%s %s %s", c.Action, c.Path, c.From))
		}
		state = "second"
	}
	want := []string{"added fails.html ", "added gone.html ", "added index.html ", "added old.html ", "added same.html ",
		"failed fails.html ", "updated index.html ", "renamed new.html old.html", "unchanged same.html ", "removed gone.html "}
	datatest.Same(t, "changes", want, got)
	d := documents["site/same.html"]
	if d.Text != "same" || d.Meta[ingest.AddressKey] != web.URL+"/same" || d.Meta["url"] != "" {
		t.Errorf("text = %q, metadata = %v", d.Text, d.Meta)
	}
}

// FuzzDocumentPath checks that every address has a path that can be a file's.
func FuzzDocumentPath(f *testing.F) {
	for _, seed := range []string{"https://a.example/", "http://a.example/.git/../%2e%2e%2fx?a=/b#c",
		"http://a/%ff%00/\u202e/" + strings.Repeat("x", 3000),
		"http://a/a%5cb/c:d*?.html", "http://[::1]:80/x.HTML", "http://ünï.example//a//b/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := parse(address)
		if err != nil {
			return
		}
		again, err := parse(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q becomes %q, which becomes %v (%v)", address, u, again, err)
		}
		p := documentPath(u, ".html")
		if !fs.ValidPath(p) || strings.Contains("/"+p, "/.") || filepath.Ext(p) != ".html" ||
			strings.ContainsAny(p, "\\\x00\ufffd") || len(p) > 420 {
			t.Errorf("path of %q = %q", address, p)
		}
	})
}
