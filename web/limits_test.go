package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/data/datatest"
)

// from sends a search request from an address.
func (k *keyed) from(t *testing.T, peer string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := request(t, 0, "POST", "/api/search", `{"question":"mooring"}`, headers...)
	r.RemoteAddr = peer
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	return w
}

func retryAfter(t *testing.T, w *httptest.ResponseRecorder) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if err != nil || seconds < 1 {
		t.Errorf("Retry-After = %q, want at least 1", w.Header().Get("Retry-After"))
	}
	return time.Duration(seconds) * time.Second
}

// TestTries checks that an address can send ten wrong keys a minute, whatever
// its headers claim, and that valid keys work from there all the time.
func TestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, nil)
		const peer = "192.0.2.7:4711"
		wrong := func(n int, peer string, headers ...string) *httptest.ResponseRecorder {
			return k.from(t, peer, append(headers, fmt.Sprintf("Authorization: Bearer wrong-%d", n))...)
		}
		right := "Authorization: Bearer " + k.write
		for n := range MaxTries {
			if w := wrong(n, fmt.Sprintf("192.0.2.7:%d", n+1)); w.Code != http.StatusUnauthorized {
				t.Errorf("wrong key %d: status = %d, want 401", n+1, w.Code)
			}
		}
		for n, headers := range [][]string{nil, {"X-Forwarded-For: 198.51.100.1"}, {"X-Real-Ip: 198.51.100.2"}, {"Forwarded: for=198.51.100.3"},
			{"True-Client-Ip: 198.51.100.4"}, {"Cf-Connecting-Ip: 198.51.100.5"}} {
			w := wrong(n+100, peer, headers...)
			if w.Code != http.StatusTooManyRequests || retryAfter(t, w) > time.Minute {
				t.Errorf("wrong key after %d, %v: status = %d, want 429", MaxTries, headers, w.Code)
			}
		}
		for what, header := range map[string]string{"a right key": right, "a session": "Cookie: " + k.cookie + "=" + k.session} {
			if w := k.from(t, peer, header); w.Code != http.StatusOK {
				t.Errorf("%s from this address: status = %d, want 200", what, w.Code)
			}
		}
		if w := k.from(t, peer); w.Code != http.StatusUnauthorized {
			t.Errorf("no key: status = %d, want 401", w.Code)
		}
		if w := k.from(t, "192.0.2.8:4711", right); w.Code != http.StatusOK {
			t.Errorf("from another address: status = %d, want 200", w.Code)
		}
		time.Sleep(retryAfter(t, wrong(0, peer)))
		if w := wrong(0, peer); w.Code != http.StatusUnauthorized {
			t.Errorf("wrong key after the wait: status = %d, want 401", w.Code)
		}

		// Cookies and the form count too, and all addresses of an IPv6 network count
		// together.
		for n := range MaxTries {
			peer := fmt.Sprintf("[2001:db8::%x]:4711", n+1)
			if n%2 == 0 {
				k.from(t, peer, fmt.Sprintf("Cookie: %s=wrong-%d", k.cookie, n))
				continue
			}
			r := request(t, 0, "POST", "/key", "key=wrong", "Content-Type: application/x-www-form-urlencoded")
			r.RemoteAddr = peer
			k.ServeHTTP(httptest.NewRecorder(), r)
		}
		if w := wrong(0, "[2001:db8::ffff:1]:4711"); w.Code != http.StatusTooManyRequests {
			t.Errorf("wrong keys and cookies from a network: status = %d, want 429", w.Code)
		}
		if w := wrong(0, "[2001:db8:0:1::1]:4711"); w.Code != http.StatusUnauthorized {
			t.Errorf("from another network: status = %d, want 401", w.Code)
		}
	})
}

// TestTrustedProxy checks that the last hop of X-Forwarded-For is the client's
// address when a trusted proxy sends it, and only then.
func TestTrustedProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, func(o *Options) { o.TrustProxies = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")} })
		for n := range MaxTries + 1 {
			for _, tt := range []struct{ peer, forwarded string }{
				{"10.1.2.3:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d, 198.51.100.1", n)}, // the first address is forged by the client
				{"10.2.0.1:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n)},               // not a trusted proxy
				{"127.0.0.1:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n)},              // this machine is not trusted either
			} {
				w := k.from(t, tt.peer, tt.forwarded, fmt.Sprintf("Authorization: Bearer wrong-%d", n))
				if want := map[bool]int{true: 401, false: 429}[n < MaxTries]; w.Code != want {
					t.Errorf("from %s, %s: status = %d, want %d", tt.peer, tt.forwarded, w.Code, want)
				}
			}
		}
		if w := k.from(t, "10.1.2.3:80", "X-Forwarded-For: 198.51.100.2", "Authorization: Bearer wrong"); w.Code != 401 {
			t.Errorf("another client of the proxy: status = %d, want 401", w.Code)
		}
	})
}

// TestPaceBounded checks that the memory for callers has a limit, and that callers over
// the limit are counted together.
func TestPaceBounded(t *testing.T) {
	var all rateLimit
	now := time.Unix(1_700_000_000, 0)
	for n := range 3 * maxCallers {
		all.take(strconv.Itoa(n), MaxTries, now)
	}
	if len(all.freeAt) > maxCallers+1 {
		t.Errorf("%d callers stored, want at most %d", len(all.freeAt), maxCallers+1)
	}
	if over, below := all.take("another", MaxTries, now), all.take("0", MaxTries, now); over == 0 || below != 0 {
		t.Errorf("wait of a caller over the limit = %v, below it = %v", over, below)
	}
	now = now.Add(time.Minute)
	if wait := all.take("another", MaxTries, now); wait != 0 || len(all.freeAt) != 1 {
		t.Errorf("wait after a minute = %v with %d callers stored, want 0 with 1", wait, len(all.freeAt))
	}
	for range MaxTries {
		all.take("full", MaxTries, now)
	}
	all.giveBack("full", MaxTries, now)
	if first, second := all.take("full", MaxTries, now), all.take("full", MaxTries, now); first != 0 || second != time.Minute/MaxTries {
		t.Errorf("after one returned turn the next caller waits %v, the one after it %v", first, second)
	}
}

// TestEveryLimit hits each limit on requests once, and checks its message.
func TestEveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(waiting)
		uploads := uploadFolder(t)
		uploads.MaxBytes, uploads.MaxTotal = 10, 10
		k := newKeyed(t, func(o *Options) {
			o.UploadFolders, o.Asker, o.KeyRate, o.UserRate, o.MaxAsks = oneFolder{Uploads: uploads}, finish, 6, 2, 4
			o.TrustProxies, o.SignIn = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, testSignIn()
		})
		on := map[string]*keyed{"keyed": k, "open": {Echo: newHandler(t, func(o *Options) {
			o.KeyRate, o.UserRate, o.Addr = 2, 1, "0.0.0.0:8080"
		})}}
		var keys []string
		for n := range 7 {
			key := "KEY" + strconv.Itoa(n+1)
			keys = append(keys, key, "Authorization: Bearer "+k.ring.make(t, key, writer))
		}
		fill := strings.NewReplacer(append(keys, "SPACES", strings.Repeat(" ", MaxBody+1), "LONG", strings.Repeat("x", MaxQuestion+1))...)
		for _, step := range datatest.Table[struct {
			Times              int    // before the one that is refused
			On                 string // the server
			Method, Path, Body string
			Headers            []string
			Status             int
			Code, Words        string // in the reply
		}](t, "testdata/rows/tables.txt", "limits") {
			for n, header := range step.Headers {
				step.Headers[n] = fill.Replace(header)
			}
			send := func() *httptest.ResponseRecorder {
				return on[step.On].send(t, step.Method, step.Path, fill.Replace(step.Body), step.Headers...)
			}
			for n := range step.Times {
				if w := send(); w.Code == http.StatusTooManyRequests {
					t.Errorf("%s %s: request %d is refused: %s", step.Path, step.Words, n+1, w.Body)
				}
			}
			if step.Status == 0 {
				continue
			}
			w := send()
			if w.Code != step.Status || !strings.Contains(w.Body.String(), `"code":"`+step.Code+`"`) || !strings.Contains(w.Body.String(), step.Words) {
				t.Errorf("%s %q: %d %s, want %d %s", step.Path, step.Words, w.Code, w.Body, step.Status, step.Code)
			}
			if w.Code == http.StatusTooManyRequests && retryAfter(t, w) > time.Minute {
				t.Errorf("%s: wait = %v, want at most a minute", step.Words, retryAfter(t, w))
			}
		}
		close(finish)
	})
}

// TestKeyRate checks that a key and its session are limited together, that only questions
// count, and that the reported wait is long enough.
func TestKeyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, func(o *Options) { o.KeyRate = 6 })
		ask := func(n int) *httptest.ResponseRecorder {
			header := "Authorization: Bearer " + k.write
			if n%2 == 0 {
				header = "Cookie: " + k.cookie + "=" + k.session
			}
			return k.send(t, "POST", "/api/search", `{"question":"mooring"}`, header)
		}
		for n := range 6 {
			if w := ask(n); w.Code != http.StatusOK {
				t.Errorf("question %d: status = %d, want 200", n+1, w.Code)
			}
		}
		w := ask(6)
		if w.Code != http.StatusTooManyRequests || retryAfter(t, w) > 10*time.Second {
			t.Errorf("status = %d: %v", w.Code, w.Header())
		}
		if w := k.send(t, "GET", "/api/documents", "", "Authorization: Bearer "+k.write); w.Code != http.StatusOK {
			t.Errorf("listing documents: status = %d, want 200", w.Code)
		}
		time.Sleep(retryAfter(t, w))
		if w := ask(7); w.Code != http.StatusOK {
			t.Errorf("after the wait: status = %d, want 200", w.Code)
		}
	})
}
