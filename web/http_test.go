package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/tools/txtar"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/retrieve"
)

// volatile are the parts of a reply that change: ids, times and measurements.
var volatile = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`"support":[0-9.]+`), `"support":0`},
	{regexp.MustCompile(`"request":"[A-Z2-7]{26}"`), `"request":"ID"`},
	{regexp.MustCompile(`"(chatcmpl-|cmpl-|resp_|msg_|fc_|call_)[A-Z2-7]{26}"`), `"${1}ID"`},
	{regexp.MustCompile(`"id":"chatcmpl-[0-9]+"`), `"id":"chatcmpl-1"`}, // counted by the scripted model
	{regexp.MustCompile(`"(created(?:_at)?)":[1-9][0-9]{9}`), `"$1":TIME`},
	{regexp.MustCompile(`(?m)^Ibid-Run: [a-z2-7]{16}$`), `Ibid-Run: RUN`},
	{regexp.MustCompile(`(?m)^id: [0-9a-z]+-`), `id: TIME-`},
	{regexp.MustCompile(`"(resp_|msg_|fc_)[a-z2-7]{16}"`), `"${1}RUN"`},
	{regexp.MustCompile(`"(started|ended|at)":"20[^"]+"`), `"$1":"TIME"`},
	{regexp.MustCompile(` at http://127\.0\.0\.1:[0-9]+`), ` at http://127.0.0.1:PORT`},
}

// TestHTTP sends the request of each golden file and compares the whole reply.
// A new case is a file with a request; -update writes the reply.
func TestHTTP(t *testing.T) {
	golden(t, "testdata/http/*.txt", nil)
}

// golden sends the request of each file to a server.
func golden(t *testing.T, files string, change func(*Options)) {
	h := newHandler(t, change)
	eachGolden(t, files, func(*testing.T, string) *told { return &told{Echo: h} })
}

// eachGolden sends the requests of each file to its server, and compares the replies.
func eachGolden(t *testing.T, files string, server func(t *testing.T, name string) *told) {
	names, err := filepath.Glob(files)
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range names {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			must(t, err)
			s, now := server(t, name), &txtar.Archive{Comment: a.Comment}
			for _, f := range a.Files {
				if f.Name == "request" {
					now.Files = append(now.Files, f, txtar.File{Name: "reply", Data: []byte(s.exchange(t, f.Data))})
				}
			}
			if len(now.Files) == 0 {
				t.Error("the file has no request")
			}
			datatest.Golden(t, path, string(txtar.Format(now)))
		})
	}
}

// A told server knows the names that the requests of a story use: its keys, and the runs of
// earlier replies as RUN, RUN2 and so on.
type told struct {
	*echo.Echo
	keys, runs []string // pairs of value and name
}

// swapPairs returns a list of pairs with both members swapped, in reverse order.
func swapPairs(pairs []string) []string {
	pairs = slices.Clone(pairs)
	slices.Reverse(pairs)
	return pairs
}

// exchange sends a request in its text form, with the body after the empty line,
// and returns the reply as text.
func (s *told) exchange(t *testing.T, request []byte) string {
	t.Helper()
	request = []byte(strings.NewReplacer(swapPairs(slices.Concat(s.keys, s.runs))...).Replace(string(request)))
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	body = bytes.TrimSuffix(body, []byte("\n"))
	raw := fmt.Sprintf("%s\nContent-Length: %d\n\n%s", bytes.TrimSuffix(head, []byte("\n")), len(body), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	must(t, err)
	r.RemoteAddr = r.Header.Get("Peer")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if id := w.Header().Get(runHeader); id != "" && !slices.Contains(s.runs, id) {
		name := "RUN"
		if n := len(s.runs)/2 + 1; n > 1 {
			name += strconv.Itoa(n)
		}
		s.runs = append(s.runs, id, name)
	}
	// Replies of the model are passed on unchanged.
	if !bytes.Contains(body, []byte("scripted/model")) && !bytes.Contains(body, []byte("### Task:")) {
		checker.check(t, s.Echo, r.Method, r.URL.RequestURI(), w)
	}
	res := w.Result()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	for _, name := range alwaysSent {
		if res.Header.Get(name) == "" {
			t.Errorf("reply has no %s", name)
		}
		res.Header.Del(name)
	}
	var b strings.Builder
	fmt.Fprintln(&b, res.StatusCode, http.StatusText(res.StatusCode))
	for _, name := range slices.Sorted(maps.Keys(res.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(res.Header[name], ", "))
	}
	fmt.Fprintf(&b, "\n%s\n", bytes.TrimSuffix(text, []byte("\n")))
	out := strings.NewReplacer(s.runs...).Replace(b.String())
	for _, v := range volatile {
		out = v.re.ReplaceAllString(out, v.by)
	}
	return out
}

// TestStories sends the requests of each story, one after the other.
func TestStories(t *testing.T) {
	t.Parallel()
	echoes := func(o *Options) {
		documents := o.Asker
		o.Asker = askerFunc(func(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
			if q.Text == "What is the mooring fee?" {
				return documents.Ask(ctx, q)
			}
			said := "Answer to " + q.Text
			for _, turn := range q.History {
				said += fmt.Sprintf(" after %s: %s;", turn.Role, turn.Content)
			}
			return script{q.Text: {answer.Text{Text: said}, answer.Usage{}}}.Ask(ctx, q)
		})
	}
	keyed := map[string]func(*Options){
		"conversations": echoes, "v1-previous": echoes, "runs-of-keys": func(*Options) {}, "v1-stores": func(*Options) {},
		"origins": func(o *Options) { o.Origins = []string{"https://shop.example"} },
		"people-with-a-key": func(o *Options) {
			echoes(o)
			o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
		},
		"v1-keys": func(o *Options) {
			o.Upstream, _ = upstream(t)
			o.Relay = true
		},
	}
	plain := map[string]func(*Options){
		"collections": func(o *Options) { o.UploadFolders, o.UploadCollection = oneFolder{}, "sent" },
		"originals": func(o *Options) {
			o.Originals = files{"club/guide.pdf": "%PDF-1.4 the guide", "club/handbook/mooring.md": "<script>",
				"club/odd/empty.txt": "changed"}
		},
		"original-elsewhere": func(o *Options) { o.Originals = files{"club/guide.pdf": "elsewhere"} },
		"v1-without-links":   func(o *Options) { o.NoLinks = true },
		"v1-useless-schemas": func(o *Options) { o.Upstream, _ = upstream(t) },
		"indexing":           func(o *Options) { o.Indexing = func() Indexing { return Indexing{3, 20, false} } },
		"empty-library":      func(o *Options) { o.Library = shelf{} },
		"filters": func(o *Options) {
			o.Library = shelf{{ID: "club/a.md", Root: "club", Path: "a.md", Format: "markdown",
				Meta: map[string]string{"author": "Ole Brandt", "language": "de-AT", "tags": "sea, boats", "date": "2024-05-01"}},
				{ID: "other/b.txt", Root: "other", Path: "b.txt", Format: "text"}}
		},
	}
	eachGolden(t, "testdata/story/*.txt", func(t *testing.T, name string) *told {
		s := &told{}
		s.Echo = newHandler(t, func(o *Options) {
			o.KeepAnswers = time.Hour
			if change := keyed[name]; change != nil {
				ring := newRing()
				for name, with := range map[string]func(*retrieve.Key){"reader": nil, "writer": writer, "limited": writingOnlyIn("default"),
					"elsewhere": func(k *retrieve.Key) { k.Collections = []string{"other"} },
					"visitor":   func(k *retrieve.Key) { k.Public, k.Collections = true, []string{"default"} },
					"itself":    func(k *retrieve.Key) { k.Relay = true }} {
					s.keys = append(s.keys, "Bearer "+ring.make(t, name, with), "Bearer "+name)
				}
				o.Keys = ring
				change(o)
			} else if change := plain[name]; change != nil {
				change(o)
			}
		})
		return s
	})
}

// alwaysSent are the headers of every reply; TestHeaders checks their values.
var alwaysSent = []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "X-Request-Id"}
