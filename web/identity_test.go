package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ibid/data/datatest"
)

func testSignIn() *SignIn {
	return &SignIn{User: "X-Forwarded-User", Groups: "X-Forwarded-Groups", Grants: []Grant{
		{Group: "staff", Collections: []string{"open"}}, {Group: "all"},
		{Group: "uploaders", Write: true, Collections: []string{"uploads"}}, {Group: "guides", Write: true, Collections: []string{"open"}},
		{Group: "editors", Write: true}, {Group: "admins", Write: true, Settings: true},
	}}
}

// TestGroups checks the rights of groups: a group that may only read does not extend the
// write access of another group.
func TestGroups(t *testing.T) {
	t.Parallel()
	k := newSharedServer(t)
	for _, c := range datatest.Lines[struct {
		Groups, Request string
		Want            int
	}](t, "testdata/rows/groups.jsonl") {
		method, path, _ := strings.Cut(c.Request, " ")
		w := k.send(t, method, path, "A", "Peer: 192.0.2.1:9", "X-Forwarded-User: anna", "X-Forwarded-Groups: "+c.Groups)
		if w.Code != c.Want {
			t.Errorf("%s in %q: status %d, want %d: %.300s", c.Request, c.Groups, w.Code, c.Want, w.Body)
		}
	}
}

// TestUntrustedNames checks that only trusted proxies name people, and that the log names
// other senders without the name that they sent.
func TestUntrustedNames(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	k := newKeyed(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28"), netip.MustParsePrefix("2001:db8::1/128")}, testSignIn()
	})
	for _, c := range datatest.Lines[struct {
		Peer, Headers string
		Want          int
	}](t, "testdata/rows/names.jsonl") {
		if w := k.send(t, "GET", "/api/documents", "", "Peer: "+c.Peer, c.Headers); w.Code != c.Want {
			t.Errorf("%q from %s: status = %d, want %d: %s", c.Headers, c.Peer, w.Code, c.Want, w.Body)
		}
	}
	text := logged.String()
	if n := strings.Count(text, "a name was ignored"); n != 4 {
		t.Errorf("%d log lines about an ignored name, want 4", n)
	}
	if !strings.Contains(text, "key=user:anna") || strings.Contains(text, "mallory") {
		t.Errorf("log lacks the signed-in name, or has another:\n%s", text)
	}
}

// TestPeopleAreLimited checks that each person has a separate rate limit, and sees only
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
			t.Errorf("answer of anna for %s: status = %d, want %d", name, w.Code, want)
		}
	}
	for i, want := range []int{200, 429} {
		if code, _ := ask("anna"); code != want {
			t.Errorf("question %d of anna: status = %d, want %d", i+2, code, want)
		}
	}
	if code, _ := ask("bert"); code != http.StatusOK {
		t.Errorf("question of bert: status = %d, want 200", code)
	}
}

// TestAudit checks that each line of a day's log names the key or person that asked, deleted
// or was refused, and contains no texts, names of documents or keys.
func TestAudit(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	k := newKeyed(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
	})
	who := map[string]string{"reader": "Authorization: Bearer " + k.read, "writer": "Authorization: Bearer " + k.write,
		"user:anna": "Peer: 192.0.2.1:9\r\nX-Forwarded-User: anna\r\nX-Forwarded-Groups: all", "": "Authorization: Bearer " + k.revoked}
	for _, step := range datatest.Lines[struct {
		Key, Request, Route string
		Body                json.RawMessage
		Status              int
	}](t, "testdata/rows/audit.jsonl") {
		logged.Reset()
		method, path, _ := strings.Cut(step.Request, " ")
		k.send(t, method, path, string(step.Body), who[step.Key], "Content-Type: application/json")
		line := logged.String()
		for _, want := range []string{"method=" + method, "route=" + step.Route, fmt.Sprintf("status=%d", step.Status), "key=" + step.Key} {
			if has := slices.Contains(strings.Fields(line), want); has != (want != "key=") {
				t.Errorf("%s by %s: log has %q = %t: %s", step.Request, step.Key, want, has, line)
			}
		}
		if strings.Contains(line, "wombat") || strings.Contains(line, "ibid_") {
			t.Errorf("%s: log has words or a key: %s", step.Request, line)
		}
	}
}

func TestParseGrant(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "staff", "staff=", "staff=read", "staff=read:", "=read:a", "staff=own:a", "staff=read:a,",
		"staff=read:a,*",
		"staff=settings:a", "staff:read=a"} {
		if g, err := ParseGrant(bad); err == nil {
			t.Errorf("ParseGrant(%q) = %+v, want an error", bad, g)
		}
	}
	if g, err := ParseGrant("cn=staff,dc=example=write:a b,c"); err != nil || g.Group != "cn=staff,dc=example" || !g.Write || g.Settings ||
		len(g.Collections) != 2 || g.Collections[0] != "a b" {
		t.Errorf("ParseGrant = %+v, %v", g, err)
	}
	for _, s := range []SignIn{{User: "Authorization", Groups: "G"}, {User: "Cookie", Groups: "G"}, {User: "A B", Groups: "G"},
		{Groups: "G"}, {User: "U", Groups: "u"}} {
		if s.Check() == nil {
			t.Errorf("Check() of %+v = nil, want an error", s)
		}
	}
}
