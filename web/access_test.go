package web

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/retrieve"
)

// accesses is the table of accesses of a server with all routes.
func accesses() accessTable {
	t := accessTable{}
	for _, r := range (&handlers{}).routes(true, true) {
		t[r.method+" "+r.path] = r.access
	}
	return t
}

// TestAccess checks which routes are public and which change the library.
func TestAccess(t *testing.T) {
	want := accessTable{}
	for _, r := range []string{"GET /static/*", "GET /openapi.json", "GET /docs", "GET /healthz", "GET /readyz", "GET /key", "POST /key",
		"POST /key/leave", "GET " + resourceMetadata} {
		want[r] = public
	}
	for _, r := range []string{"POST /api/sample", "GET /api/feedback", "POST /api/documents", "POST /api/collections",
		"PATCH /api/collections/:id", "DELETE /api/collections/:id",
		"POST /api/documents/*", "PATCH /api/documents/*", "DELETE /api/documents/*"} {
		want[r] = writers
	}
	want["POST /api/ask"], want["POST /api/search"] = visitors, visitors
	for _, r := range []string{"GET /api/settings", "PUT /api/settings", "POST /api/settings/test", "POST /api/settings/parts"} {
		want[r] = administrators
	}
	for r, a := range accesses() {
		if w, ok := want[r]; ok && a != w || !ok && a != readers {
			t.Errorf("the access of %s is %d", r, a)
		}
	}
	for _, r := range newHandler(t, everyRoute).Routes() {
		if _, ok := accesses().of(r.Method, r.Path); !ok {
			t.Errorf("the route %s %s is not in the table of routes", r.Method, r.Path)
		}
	}
}

// everyRoute sets the options without which some routes do not exist.
func everyRoute(o *Options) {
	o.UploadFolders, o.Sample = oneFolder{Uploads: &ingest.Uploads{}}, fstest.MapFS{}
	o.Keys = newRing()
}

// TestUnlisted checks that a route outside the table of accesses is not served.
func TestUnlisted(t *testing.T) {
	e := newHandler(t, nil)
	e.GET("/forgotten", func(c echo.Context) error { return c.String(http.StatusOK, "the books") })
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/forgotten", 404}, {"GET", "/nowhere", 404}, {"POST", "/healthz", 405}, {"OPTIONS", "/api/ask", 204}, {"HEAD", "/healthz", 200},
	} {
		if w := call(e, tt.method, tt.path, ""); w.Code != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
}

// TestModelServerHidden checks that only a key that may see the settings gets the words
// and the address of the model's server.
func TestModelServerHidden(t *testing.T) {
	const inner = ": cannot reach the model server at http://10.1.2.3:11434/v1: connection refused"
	k := newKeyed(t, func(o *Options) {
		o.Asker = script{"warned": {answer.Warning{Message: "the question was searched for unchanged" + inner},
			answer.Judged{Passage: "club/guide.pdf#0", Document: "club/guide.pdf", Decision: answer.Errored,
				Reason: "the judge could not be asked" + inner},
			answer.Text{Text: "Yes"},
			answer.Incomplete{Reason: "asking the model (answer): the reply of m at http://10.1.2.3:11434/v1 broke off: EOF"}},
			"failed": {&openai.Error{Kind: openai.Down, Server: "http://10.1.2.3:11434/v1", Detail: "refused by 10.1.2.3"}}}
	})
	chief := k.ring.make(t, "chief", func(k *retrieve.Key) { k.Settings = true })
	for _, question := range []string{"warned", "failed"} {
		for key, shown := range map[string]bool{k.read: false, chief: true} {
			got := k.send(t, "POST", "/api/ask", `{"question":"`+question+`"}`, "Authorization: Bearer "+key).Body.String()
			if strings.Contains(got, "10.1.2.3") != shown ||
				question == "warned" && (!strings.Contains(got, "searched for unchanged") || !strings.Contains(got, "the reply of m")) {
				t.Errorf("%s, settings %v: %s", question, shown, got)
			}
		}
	}
}
