package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
)

// A shared library shows the documents of all collections: only the server hides those that
// a key does not include.
type shared struct{ shelf }

// canaries are visible only with a key for the collection "shut". No request
// contains them.
var canaries = []string{"CANARYTEXT", "CANARYTITLE", "CANARYPATH", "CANARYTROUBLE", "CANARYCOMMENT", "CANARYQUESTION",
	"CANARYDRAWN", "CANARYFILE"}

func newShared() shared {
	doc := func(collection, path, title, text string) *ingest.Document {
		return &ingest.Document{ID: collection + "/" + path, Root: collection, Path: path, Title: title, Format: "pdf", Text: text,
			Digest: strings.Repeat("cd", 32), Meta: map[string]string{"collection": collection}, Pages: []ingest.Page{{Number: 1, End: len(text)}}}
	}
	return shared{shelf{
		doc("open", "guide.pdf", "Guide", "The lamp on the quay is lit at dusk."),
		doc("shut", "known.pdf", "CANARYTITLE", "CANARYTEXT: the vault opens at nine."),
		doc("shut", "CANARYPATH.pdf", "CANARYTITLE two", "CANARYTEXT: the vault closes at five."),
		doc("uploads", "known.pdf", "CANARYTITLE", "CANARYTEXT: the vault is behind the clock."),
	}}
}

func (s shared) Search(ctx context.Context, q retrieve.Query) (found []retrieve.Passage, err error) {
	list, err := s.Documents(ctx, q.Filter)
	for _, d := range list {
		found = append(found, retrieve.Passages(&d.Document,
			[]ingest.Chunk{{ID: d.ID + "#1", Document: d.ID, End: len(d.Text), Text: d.Text}})...)
	}
	return found, err
}

func (s shared) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		found, err := s.Search(ctx, retrieve.Query{Filter: q.Filter})
		if err != nil {
			yield(nil, err)
			return
		}
		s.answerWith(found, !strings.Contains(q.Text, "CANARY"), yield)
	}
}

func (s shared) Summarize(_ context.Context, x answer.Summary) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) { s.answerWith(x.Passages, true, yield) }
}

// answerWith sends every kind of event that contains words of the passages. If unanswered is
// set, the last event is an [answer.Unanswered].
func (s shared) answerWith(found []retrieve.Passage, unanswered bool, yield func(answer.Event, error) bool) {
	if !yield(answer.Retrieved{Passages: found}, nil) || !yield(answer.Kept{Passages: found}, nil) {
		return
	}
	for i, p := range found {
		if !yield(answer.Text{Text: fmt.Sprintf("%s[%d] ", p.Text, i+1)}, nil) {
			return
		}
	}
	if !unanswered || yield(answer.Unanswered{Text: "No more.", Nearest: found}, nil) {
		yield(answer.Usage{}, nil)
	}
}

func (s shared) Add(context.Context, string, io.Reader, map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "uploads/known.pdf", Action: ingest.Added, Reason: "CANARYTEXT"}, nil
}
func (s shared) Reread(context.Context, string, map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "uploads/known.pdf", Action: ingest.Updated, Reason: "CANARYTEXT"}, nil
}
func (s shared) CollectionUploads(_ context.Context, collection string) (Uploads, error) {
	if collection == "open" {
		return openUploads{}, nil
	}
	return s, nil
}
func (s shared) RootUploads(ctx context.Context, root string) (Uploads, string, error) {
	if root != "open" && root != "shut" {
		return nil, "", fs.ErrNotExist
	}
	u, err := s.CollectionUploads(ctx, root)
	return u, root, err
}
func (s shared) Roots(context.Context) ([]ingest.Root, error) {
	return []ingest.Root{{Name: "open", Collection: "open"}, {Name: "shut", Collection: "shut"}}, nil
}
func (s shared) Rename(context.Context, string, string) error { return errors.New("CANARYTEXT") }
func (s shared) Delete(context.Context, string, bool) error   { return errors.New("CANARYTEXT") }
func (s shared) AddSite(context.Context, string, string) (ingest.Root, error) {
	return ingest.Root{Path: "https://example.org/CANARYPATH"}, nil
}
func (s shared) SiteStates() []SiteState {
	return []SiteState{{Address: "https://example.org/CANARYSITE", Notices: []site.Notice{{Detail: "CANARYTEXT"}}}}
}
func (s shared) Remove(context.Context, string) error { return errors.New("CANARYTEXT") }

func (s shared) CanDraw(context.Context, string) bool { return true }
func (s shared) DrawPage(context.Context, *ingest.Document, int, string, int) ([]byte, error) {
	return []byte("CANARYDRAWN"), nil
}
func (s shared) IsLocal(context.Context, *ingest.Document) bool { return true }

func (s shared) Original(context.Context, *ingest.Document) ([]byte, error) {
	return []byte("CANARYFILE"), nil
}

// openUploads are those of a collection that the limited key may see and change.
type openUploads struct{}

func (openUploads) Add(context.Context, string, io.Reader, map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "open/guide.pdf", Action: ingest.Added}, nil
}
func (openUploads) Reread(context.Context, string, map[string]string) (ingest.Change, error) {
	return ingest.Change{Document: "open/guide.pdf", Action: ingest.Updated}, nil
}
func (openUploads) Remove(context.Context, string) error { return nil }

func newSharedServer(t *testing.T) *keyed {
	s := newShared()
	return newKeyed(t, func(o *Options) {
		o.Library, o.Searcher, o.Asker, o.Summarizer, o.Drawer, o.Originals, o.Sites = s, s, s, s, s, s, s
		o.UploadFolders = s
		o.UploadCollection, o.KeepAnswers, o.KeyRate = "uploads", time.Hour, 1e9
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
		o.Troubles = func() []ingest.Change { return []ingest.Change{{Path: "CANARYTROUBLE"}} }
	})
}

// TestOptionsAreNarrowed checks that all options that reach documents respect keys. A new
// option fails the test until it is wrapped or exempt.
func TestOptionsAreNarrowed(t *testing.T) {
	// These reach no documents of the library, record the key that each entry belongs to, or get
	// documents that the library has returned.
	exempt := []string{"Ledger", "Keys", "Upstream", "Drawer", "Originals", "Sample", "Settings"}
	s := newShared()
	var o Options
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch {
		case v.Field(i).Kind() != reflect.Interface || slices.Contains(exempt, name):
		case !reflect.TypeFor[shared]().AssignableTo(v.Field(i).Type()):
			t.Errorf("%s is new: implement it on shared, or exempt it if it reaches no documents", name)
		default:
			v.Field(i).Set(reflect.ValueOf(s))
		}
	}
	o.restrictToKeys()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Interface && !v.Field(i).IsNil() && v.Field(i).Elem().Type() == reflect.TypeFor[shared]() {
			t.Errorf("%s is not wrapped", v.Type().Field(i).Name)
		}
	}
}

// attempts returns requests of a route that could reach documents, as path and
// body.
func attempts(t *testing.T, method, pattern, run string) (out [][2]string) {
	paths := []string{strings.ReplaceAll(pattern, ":id", run)}
	if strings.HasPrefix(pattern, "/api/conversations/") {
		paths = []string{strings.ReplaceAll(pattern, ":id", "talk")}
	}
	if strings.HasPrefix(pattern, "/v1/") && strings.Contains(pattern, ":id") {
		paths = nil
		for _, id := range []string{"shut", "open", fileID("shut/CANARYPATH.pdf"), fileID("uploads/known.pdf"), "resp_" + run} {
			paths = append(paths, strings.ReplaceAll(pattern, ":id", id))
		}
	}
	if strings.HasSuffix(pattern, "*") {
		paths = nil
		for _, id := range []string{"shut/known.pdf", "shut%2Fknown.pdf", "open/../shut/known.pdf", "uploads/known.pdf", "shut/",
			"shut/known.pdf/", "shut/known.pdf%00"} {
			paths = append(paths, strings.TrimSuffix(pattern, "*")+id)
		}
	}
	queries := []string{"", "drawn=1", "original=1", "start=0&end=9", "collection=shut", "root=shut", "path_prefix=k", "format=pdf",
		"limit=9&after=", "after=" + fileID("open/guide.pdf"), "html=1", "name=known.pdf", "name=shut/known.pdf",
		"name=known.pdf&collection=shut", "run=" + run, "forget=true",
		"url=https://example.org/"}
	bodies := []string{""}
	if method != "GET" && method != "HEAD" {
		for _, body := range datatest.Lines[json.RawMessage](t, "testdata/rows/attempts.jsonl") {
			bodies = append(bodies, strings.ReplaceAll(string(body), "RUN", run))
		}
	}
	for _, path := range paths {
		for _, q := range queries {
			out = append(out, [2]string{path + "?" + q, bodies[min(1, len(bodies)-1)]})
		}
		for _, b := range bodies {
			out = append(out, [2]string{path, b})
		}
	}
	return out
}

// TestCollectionsOfKeys checks that a key for one collection sees nothing of
// another, by any route or request with which a full key sees it.
func TestCollectionsOfKeys(t *testing.T) {
	t.Parallel()
	k := newSharedServer(t)
	limited := k.ring.make(t, "limited", writingOnlyIn("open"))
	const proxy, elsewhere = "192.0.2.1:4711", "192.0.2.9:4711"
	full := k.ring.make(t, "full", writer)
	// A run of another key, with feedback.
	begin := func(key string) string {
		w := k.send(t, "POST", "/api/ask", `{"question":"Is CANARYQUESTION true?","conversation":"talk"}`, "Authorization: Bearer "+key)
		run := w.Header().Get(runHeader)
		if w.Code != http.StatusOK || run == "" {
			t.Fatalf("ask: %d %s", w.Code, w.Body)
		}
		if w := k.send(t, "POST", "/api/feedback", `{"run":"`+run+`","rating":1,"comment":"CANARYCOMMENT"}`,
			"Authorization: Bearer "+key); w.Code != http.StatusCreated {
			t.Fatalf("feedback: %d %s", w.Code, w.Body)
		}
		if w := k.send(t, "PUT", "/api/runs/"+run+"/shared", "", "Authorization: Bearer "+key); w.Code != http.StatusNoContent {
			t.Fatalf("share: %d %s", w.Code, w.Body)
		}
		return run
	}
	run := begin(full)

	// Metrics count all collections together.
	if w := k.send(t, "GET", "/metrics", "", "Authorization: Bearer "+limited); w.Code != http.StatusForbidden ||
		strings.Contains(w.Body.String(), "ibid_") {
		t.Errorf("metrics with a limited key: %d %.200s", w.Code, w.Body)
	}
	if w := k.send(t, "GET", "/metrics", "", "Authorization: Bearer "+full); w.Code != http.StatusOK {
		t.Errorf("metrics with a full key: %d %.200s", w.Code, w.Body)
	}
	seen, shown, sent := map[string]bool{}, map[string]bool{}, 0
	random := datatest.Rand(t)
	try := func(full bool, peer, caller string, report func(route, request, word string)) {
		for _, r := range k.Routes() {
			requests := attempts(t, r.Method, r.Path, run)
			if _, open := openRoutes()[r.Method+" "+r.Path]; open {
				requests = requests[:1] // there are no documents
			}
			for _, a := range requests {
				if full && (strings.Contains(a[0], "forget") || r.Method == "DELETE") {
					continue // keeps the run for later requests
				}
				for _, accept := range []string{"*/*", "application/json, text/event-stream", "text/html"} {
					if !full && !datatest.Campaign() && random.IntN(20) != 0 {
						continue
					}
					sent++
					w := k.send(t, r.Method, a[0], a[1], "Peer: "+peer, caller, "Accept: "+accept, "Content-Type: application/json")
					reply := fmt.Sprint(w.Header()) + w.Body.String()
					for _, word := range canaries {
						if strings.Contains(reply, word) {
							report(r.Method+" "+r.Path, a[0]+" "+a[1], word)
						}
					}
				}
			}
		}
	}
	for _, who := range []struct{ peer, caller string }{
		{elsewhere, "Authorization: Bearer " + limited},
		{proxy, "X-Forwarded-User: anna\r\nX-Forwarded-Groups: staff"},
		{elsewhere, "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all"},                          // untrusted sender: ignored
		{proxy, "X-Forwarded-User: anna\r\nX-Forwarded-Groups: staff\r\nX-Forwarded-Groups: all"}, // a client's own header line is still present
		{proxy, "X-Forwarded-User: anna"},                                                         // in no group
		{proxy, "X-Forwarded-Groups: all"},                                                        // no name
		{elsewhere, "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-User: anna\r\nX-Forwarded-Groups: all"},
		{proxy, "Authorization: Bearer " + limited + "\r\nX-Forwarded-User: anna\r\nX-Forwarded-Groups: all"}, // only the key counts
	} {
		try(false, who.peer, who.caller, func(route, request, word string) {
			t.Errorf("%s: %s: %s from %s: reply contains %s", route, request, who.caller, who.peer, word)
		})
	}
	for _, who := range []string{"Authorization: Bearer " + full, "X-Forwarded-User: anna\r\nX-Forwarded-Groups: staff, all"} {
		w := k.send(t, "GET", "/api/documents/shut/known.pdf", "", "Peer: "+proxy, who)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "CANARYTEXT") {
			t.Errorf("%s: status = %d: %s", who, w.Code, w.Body)
		}
	}
	try(true, elsewhere, "Authorization: Bearer "+full, func(route, _, word string) { shown[route], seen[word] = true, true })
	for _, word := range canaries {
		if !seen[word] {
			t.Errorf("%s is never shown to the full key", word)
		}
	}
	if len(shown) < 29 { // of 31: a request that changes the library may come after another has deleted what it would show
		t.Errorf("the full key sees more by only %d routes, want at least 29", len(shown))
	}
	t.Logf("%d requests; the full key sees more by %d routes: %v", sent, len(shown), slices.Sorted(maps.Keys(shown)))

	// The limited key sees its own collection.
	for _, path := range []string{"/documents/open/guide.pdf", "/api/documents/open/guide.pdf"} {
		if w := k.send(t, "GET", path, "", "Authorization: Bearer "+limited); w.Code != http.StatusOK ||
			!strings.Contains(w.Body.String(), "quay") {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	var list documentList
	if w := k.send(t, "GET", "/api/documents", "", "Authorization: Bearer "+limited); json.Unmarshal(w.Body.Bytes(), &list) != nil ||
		list.Total != 1 {
		t.Errorf("list = %s, want one document", w.Body)
	}
	for _, path := range []string{"/api/ask", "/api/search"} {
		if w := k.send(t, "POST", path, `{"question":"When is the lamp lit?"}`,
			"Authorization: Bearer "+limited); !strings.Contains(w.Body.String(), "quay") {
			t.Errorf("%s = %s, want a passage of the quay", path, w.Body)
		}
	}
}

// TestNoKeyReachesNothing checks that a context without a key, such as that of a
// public route, reaches no document.
func TestNoKeyReachesNothing(t *testing.T) {
	s := newShared()
	o := Options{Asker: s, Searcher: s, Library: s, UploadFolders: s}
	o.restrictToKeys()
	ctx := t.Context()
	_, documents := o.Library.Documents(ctx, retrieve.Filter{})
	_, holds := o.Library.Holds(ctx, retrieve.Filter{})
	_, document := o.Library.Document(ctx, "open/guide.pdf")
	_, search := o.Searcher.Search(ctx, retrieve.Query{})
	_, into := o.UploadFolders.CollectionUploads(ctx, "open")
	_, _, of := o.UploadFolders.RootUploads(ctx, "open")
	var ask error
	for _, err := range o.Asker.Ask(ctx, answer.Question{}) {
		ask = err
	}
	for what, err := range map[string]error{"documents": documents, "holds": holds, "document": document, "search": search, "into": into,
		"of": of, "rename": o.UploadFolders.Rename(ctx, "a", "b"), "delete": o.UploadFolders.Delete(ctx, "a", false), "ask": ask} {
		if !errors.Is(err, errNoHolder) {
			t.Errorf("%s: err = %v, want errNoHolder", what, err)
		}
	}
}

// TestKeyOfUploads checks that a key changes only the uploads of its collections, adds to its
// only collection by default, and cannot tell a folder of another collection from a missing
// one.
func TestKeyOfUploads(t *testing.T) {
	k := newSharedServer(t)
	keys := map[string]string{"reads": k.ring.make(t, "reads", func(key *retrieve.Key) { key.Collections = []string{"open"} }),
		"open": k.ring.make(t, "open", writingOnlyIn("open")), "uploads": k.ring.make(t, "uploads", writingOnlyIn("uploads")),
		"both": k.ring.make(t, "both", writingOnlyIn("open", "shut")), "all": k.write}
	for _, c := range datatest.Lines[struct {
		Key, Request string
		Want         int
	}](t, "testdata/rows/keys.jsonl") {
		method, path, _ := strings.Cut(c.Request, " ")
		if w := k.send(t, method, path, "A", "Authorization: Bearer "+keys[c.Key]); w.Code != c.Want {
			t.Errorf("%s, key %s: status = %d, want %d: %s", c.Request, c.Key, w.Code, c.Want, w.Body)
		}
	}
	said := func(root string) string {
		w := k.send(t, "DELETE", "/api/documents/"+root+"/known.pdf", "", "Authorization: Bearer "+keys["open"])
		return strings.ReplaceAll(w.Body.String(), root, "")
	}
	if said("shut") != said("none") {
		t.Errorf("reply for another collection = %s, for none = %s; want the same", said("shut"), said("none"))
	}
}
