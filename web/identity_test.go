package web

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func testSignIn() *SignIn {
	return &SignIn{User: "X-Forwarded-User", Groups: "X-Forwarded-Groups", Grants: []Grant{
		{Group: "staff", Collections: []string{"open"}}, {Group: "all"},
		{Group: "uploaders", Write: true, Collections: []string{"uploads"}}, {Group: "guides", Write: true, Collections: []string{"open"}},
		{Group: "editors", Write: true}, {Group: "admins", Write: true, Settings: true},
	}}
}

// TestGroups checks what members of groups may do: a group that only reads does not
// extend what another one may write.
func TestGroups(t *testing.T) {
	t.Parallel()
	k := newSharedServer(t)
	const upload, feedback, settings = "POST /api/documents?name=a.md", "GET /api/feedback", "GET /api/settings"
	for _, c := range []struct {
		groups, request string
		want            int
	}{
		{"", "GET /api/documents", 403},
		{"Staff", "GET /api/documents", 403},
		{"staff", "GET /api/documents", 200},
		{"other, staff", "GET /api/documents", 200},
		{"staff", upload, 403},
		{"guides", upload, 201}, // into the only collection that they may change
		{"all,guides", upload, 201},
		{"all,guides", upload + "&collection=uploads", 403},
		{"uploaders", upload, 201},
		{"all,uploaders", upload, 201},
		{"editors", upload, 201},
		{"all", feedback, 403},
		{"all,guides", feedback, 403},
		{"guides,all", feedback, 403},
		{"editors", feedback, 200},
		{"staff", "GET /metrics", 403},
		{"staff,editors", "GET /metrics", 200},
		{"editors", settings, 403},
		{"admins", settings, 200},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		w := k.send(t, method, path, "A", "Peer: 192.0.2.1:9", "X-Forwarded-User: anna", "X-Forwarded-Groups: "+c.groups)
		if w.Code != c.want {
			t.Errorf("%s in %q: status %d, want %d: %.300s", c.request, c.groups, w.Code, c.want, w.Body)
		}
	}
}

// TestNamesFromElsewhere checks that only trusted proxies name people, and that the
// log says who did otherwise, without the name.
func TestNamesFromElsewhere(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	k := newKeyed(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28"), netip.MustParsePrefix("2001:db8::1/128")}, testSignIn()
	})
	for _, c := range []struct {
		peer, headers string
		want          int
	}{
		{"192.0.2.3:1", "X-Forwarded-User: mallory", 403},
		{"192.0.2.3:1", "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all", 200},
		{"[::ffff:192.0.2.3]:1", "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all", 200},
		{"[2001:db8::1]:1", "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all", 200},
		{"192.0.2.3:1", "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all\r\nAuthorization: Basic YTpi", 200},
		{"192.0.2.3:1", "X-Forwarded-User: anna\r\nX-Forwarded-Groups: all\r\nAuthorization: Bearer ibid_x", 401},
		{"192.0.2.3:1", "X-Forwarded-User: \r\nX-Forwarded-Groups: all", 401},
		{"192.0.2.3:1", "X_Forwarded_User: anna\r\nX_Forwarded_Groups: all", 401},
		{"192.0.2.3:1", "X-Forwarded-User: anna\r\nX-Forwarded-User: mallory\r\nX-Forwarded-Groups: all", 401},
		{"192.0.2.3:1", "X-Forwarded-User: a\u202eb\r\nX-Forwarded-Groups: all", 401},
		{"192.0.2.3:1", "X-Forwarded-User: " + strings.Repeat("a", 201) + "\r\nX-Forwarded-Groups: all", 401},
		{"192.0.2.16:1", "X-Forwarded-User: mallory\r\nX-Forwarded-Groups: all", 401},
		{"192.0.2.16:1", "X-Forwarded-For: 192.0.2.3\r\nX-Forwarded-User: mallory\r\nX-Forwarded-Groups: all", 401},
		{"127.0.0.1:1", "X-Forwarded-User: mallory\r\nX-Forwarded-Groups: all", 401},
		{"[2001:db8::2]:1", "X-Forwarded-User: mallory\r\nX-Forwarded-Groups: all", 401},
	} {
		if w := k.send(t, "GET", "/api/documents", "", "Peer: "+c.peer, c.headers); w.Code != c.want {
			t.Errorf("%q from %s: status %d, want %d: %s", c.headers, c.peer, w.Code, c.want, w.Body)
		}
	}
	text := logged.String()
	if n := strings.Count(text, "a name was ignored"); n != 4 {
		t.Errorf("%d names were ignored according to the log, want 4", n)
	}
	if !strings.Contains(text, "key=user:anna") || strings.Contains(text, "mallory") {
		t.Errorf("the log should have the name of who was let in, and no other:\n%s", text)
	}
}

// TestPeopleAreLimited checks that each person has a rate of their own, and sees only
// their own answers.
func TestPeopleAreLimited(t *testing.T) {
	t.Parallel()
	k := newKeyed(t, func(o *Options) {
		o.KeyRate, o.KeepAnswers = 2, time.Hour
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
	})
	ask := func(name string) (int, string) {
		w := k.send(t, "POST", "/api/ask", `{"question":"mooring"}`, "Peer: 192.0.2.1:9", "X-Forwarded-User: "+name, "X-Forwarded-Groups: all")
		return w.Code, w.Header().Get(runHeader)
	}
	_, run := ask("anna")
	for name, want := range map[string]int{"anna": http.StatusOK, "bert": http.StatusNotFound} {
		w := k.send(t, "GET", "/api/runs/"+run, "", "Peer: 192.0.2.1:9", "X-Forwarded-User: "+name, "X-Forwarded-Groups: all")
		if w.Code != want {
			t.Errorf("the answer of anna for %s: status %d, want %d", name, w.Code, want)
		}
	}
	for i, want := range []int{200, 429} {
		if code, _ := ask("anna"); code != want {
			t.Errorf("question %d of anna: status %d, want %d", i+2, code, want)
		}
	}
	if code, _ := ask("bert"); code != http.StatusOK {
		t.Errorf("bert has to wait for anna: status %d", code)
	}
}

// TestPeopleWithAKey checks that the person whom a trusted proxy names along with a key has
// conversations of their own, whatever user the request names.
func TestPeopleWithAKey(t *testing.T) {
	t.Parallel()
	k := newKeyed(t, func(o *Options) {
		o.Ledger, o.KeepAnswers = newLedger(), time.Hour
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
	})
	send := func(name, method, path, body string) (int, string) {
		w := k.send(t, method, path, body, "Peer: 192.0.2.1:9", "Authorization: Bearer "+k.read, "Content-Type: application/json",
			"X-Forwarded-User: "+name)
		return w.Code, w.Body.String()
	}
	if code, said := send("anna", "POST", "/api/ask", `{"question":"Whose secret?","conversation":"c","user":"bert"}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, said)
	}
	for _, path := range []string{"/api/conversations", "/api/conversations/c",
		"/api/conversations?user=anna", "/api/conversations/c?user=anna"} {
		if _, said := send("bert", "GET", path, ""); strings.Contains(said, "secret") {
			t.Errorf("bert reads what anna asked: %s: %s", path, said)
		}
		if code, said := send("anna", "GET", path, ""); code != http.StatusOK || !strings.Contains(said, "secret") {
			t.Errorf("anna does not read what she asked: %s: %d %s", path, code, said)
		}
	}
	if code, _ := send("bert", "DELETE", "/api/conversations/c?user=anna", ""); code != http.StatusNotFound {
		t.Errorf("bert deletes the conversation of anna: %d", code)
	}
	if code, _ := send("anna", "DELETE", "/api/conversations/c", ""); code != http.StatusNoContent {
		t.Errorf("anna does not delete her conversation: %d", code)
	}
}

// TestAudit tells the story of a day: each line of the log names the key or the person
// that asked, deleted or was refused, and has no words, names of documents or keys.
func TestAudit(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	k := newKeyed(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
	})
	reader, writes := "Authorization: Bearer "+k.read, "Authorization: Bearer "+k.write
	anna := "Peer: 192.0.2.1:9\r\nX-Forwarded-User: anna\r\nX-Forwarded-Groups: all"
	const question = `{"question":"Where is the wombat?"}`
	for _, step := range []struct {
		who, request, body, route string
		status                    int
		key                       string
	}{
		{reader, "POST /api/ask", question, "/api/ask", 200, "reader"},
		{reader, "POST /api/search", `{"question":""}`, "/api/search", 400, "reader"},
		{reader, "DELETE /api/documents/uploads/wombat.md", "", "/api/documents/*", 403, "reader"},
		{writes, "DELETE /api/documents/club/wombat.md", "", "/api/documents/*", 403, "writer"},
		{anna, "POST /api/ask", question, "/api/ask", 200, "user:anna"},
		{anna, "GET /api/feedback", "", "/api/feedback", 403, "user:anna"},
		{"Authorization: Bearer " + k.revoked, "POST /api/ask", question, "/api/ask", 401, ""},
	} {
		logged.Reset()
		method, path, _ := strings.Cut(step.request, " ")
		k.send(t, method, path, step.body, step.who, "Content-Type: application/json")
		line := logged.String()
		for _, want := range []string{"method=" + method, "route=" + step.route, fmt.Sprintf("status=%d", step.status), "key=" + step.key} {
			if has := slices.Contains(strings.Fields(line), want); has != (want != "key=") {
				t.Errorf("%s by %s: %q in the log: %t: %s", step.request, step.key, want, has, line)
			}
		}
		if strings.Contains(line, "wombat") || strings.Contains(line, "ibid_") {
			t.Errorf("%s: the log has words or a key: %s", step.request, line)
		}
	}
}

func TestParseGrant(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "staff", "staff=", "staff=read", "staff=read:", "=read:a", "staff=own:a", "staff=read:a,",
		"staff=read:a,*",
		"staff=settings:a", "staff:read=a"} {
		if g, err := ParseGrant(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, g)
		}
	}
	if g, err := ParseGrant("cn=staff,dc=example=write:a b,c"); err != nil || g.Group != "cn=staff,dc=example" || !g.Write || g.Settings ||
		len(g.Collections) != 2 || g.Collections[0] != "a b" {
		t.Errorf("%+v, %v", g, err)
	}
	for _, s := range []SignIn{{User: "Authorization", Groups: "G"}, {User: "Cookie", Groups: "G"}, {User: "A B", Groups: "G"},
		{Groups: "G"}, {User: "U", Groups: "u"}} {
		if s.Check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}
