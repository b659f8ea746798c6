package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
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
		t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
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
				t.Errorf("wrong key %d: status %d", n+1, w.Code)
			}
		}
		for n, headers := range [][]string{nil, {"X-Forwarded-For: 198.51.100.1"}, {"X-Real-Ip: 198.51.100.2"}, {"Forwarded: for=198.51.100.3"},
			{"True-Client-Ip: 198.51.100.4"}, {"Cf-Connecting-Ip: 198.51.100.5"}} {
			w := wrong(n+100, peer, headers...)
			if w.Code != http.StatusTooManyRequests || retryAfter(t, w) > time.Minute {
				t.Errorf("wrong key after %d, %v: status %d", MaxTries, headers, w.Code)
			}
		}
		for what, header := range map[string]string{"a right key": right, "a session": "Cookie: " + k.cookie + "=" + k.session} {
			if w := k.from(t, peer, header); w.Code != http.StatusOK {
				t.Errorf("%s from this address: status %d", what, w.Code)
			}
		}
		if w := k.from(t, peer); w.Code != http.StatusUnauthorized {
			t.Errorf("no key: status %d", w.Code)
		}
		if w := k.from(t, "192.0.2.8:4711", right); w.Code != http.StatusOK {
			t.Errorf("from another address: status %d", w.Code)
		}
		time.Sleep(retryAfter(t, wrong(0, peer)))
		if w := wrong(0, peer); w.Code != http.StatusUnauthorized {
			t.Errorf("a wrong key after the wait: status %d", w.Code)
		}

		// Cookies and the form count too, and so do all addresses of one IPv6
		// network.
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
			t.Errorf("wrong keys and cookies of a network: status %d", w.Code)
		}
		if w := wrong(0, "[2001:db8:0:1::1]:4711"); w.Code != http.StatusUnauthorized {
			t.Errorf("from another network: status %d", w.Code)
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
				{"10.1.2.3:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d, 198.51.100.1", n)}, // the client made up the first address
				{"10.2.0.1:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n)},               // not a trusted proxy
				{"127.0.0.1:80", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n)},              // neither is this machine
			} {
				w := k.from(t, tt.peer, tt.forwarded, fmt.Sprintf("Authorization: Bearer wrong-%d", n))
				if want := map[bool]int{true: 401, false: 429}[n < MaxTries]; w.Code != want {
					t.Errorf("from %s, %s: status %d, want %d", tt.peer, tt.forwarded, w.Code, want)
				}
			}
		}
		if w := k.from(t, "10.1.2.3:80", "X-Forwarded-For: 198.51.100.2", "Authorization: Bearer wrong"); w.Code != 401 {
			t.Errorf("another client of the proxy: status %d", w.Code)
		}
	})
}

// TestTriesBounded checks that the memory for addresses has a limit, and that
// addresses over the limit are counted together.
func TestTriesBounded(t *testing.T) {
	all := addressCounts{most: MaxTries}
	now := time.Unix(1_700_000_000, 0)
	for n := range 3 * maxAddresses {
		all.add(fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), now)
	}
	if len(all.counts) > maxAddresses+1 {
		t.Errorf("%d addresses are kept", len(all.counts))
	}
	if all.wait("203.0.113.1", now) == 0 || all.wait("10.0.0.1", now) != 0 {
		t.Errorf("an address over the limit waits %v, one below it %v", all.wait("203.0.113.1", now), all.wait("10.0.0.1", now))
	}
	now = now.Add(time.Minute)
	all.add("203.0.113.1", now)
	if len(all.counts) != 1 || all.wait("203.0.113.1", now) != 0 {
		t.Errorf("after a minute %d are kept", len(all.counts))
	}
}

// TestKeyRate checks that a key can ask a limited number of questions a minute,
// that the reply over the limit has the time to wait, and that other keys can
// still ask.
func TestKeyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, func(o *Options) { o.KeyRate = 6 })
		ask := func(header string) *httptest.ResponseRecorder {
			return k.send(t, "POST", "/api/search", `{"question":"mooring"}`, header)
		}
		for n := range 6 {
			if w := ask("Authorization: Bearer " + k.read); w.Code != http.StatusOK {
				t.Errorf("question %d: status %d", n+1, w.Code)
			}
		}
		w := ask("Authorization: Bearer " + k.read)
		wait := retryAfter(t, w)
		if w.Code != http.StatusTooManyRequests || wait > 10*time.Second || !strings.Contains(w.Body.String(), `"code":"too_fast"`) {
			t.Errorf("status %d, to wait %v: %s", w.Code, wait, w.Body)
		}
		if w := k.send(t, "GET", "/api/documents", "", "Authorization: Bearer "+k.read); w.Code != http.StatusOK {
			t.Errorf("listing documents: status %d", w.Code)
		}
		// A key and its session count as one.
		for n := range 6 {
			header := "Authorization: Bearer " + k.write
			if n%2 == 0 {
				header = "Cookie: " + k.cookie + "=" + k.session
			}
			if w := ask(header); w.Code != http.StatusOK {
				t.Errorf("another key: status %d", w.Code)
			}
		}
		if w := ask("Authorization: Bearer " + k.write); w.Code != http.StatusTooManyRequests {
			t.Errorf("a key and its session: status %d", w.Code)
		}
		time.Sleep(wait)
		if w := ask("Authorization: Bearer " + k.read); w.Code != http.StatusOK {
			t.Errorf("after the wait: status %d", w.Code)
		}
	})
}

// TestAddressRate checks that without keys an address of another machine can ask a
// limited number of questions a minute.
func TestAddressRate(t *testing.T) {
	h := newHandler(t, func(o *Options) { o.KeyRate, o.Addr = 3, "0.0.0.0:8080" })
	k := &keyed{Echo: h}
	for n, want := range []int{200, 200, 200, 429} {
		if w := k.from(t, "192.0.2.7:1", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", n)); w.Code != want {
			t.Errorf("question %d: status %d", n+1, w.Code)
		}
	}
	for _, peer := range []string{"192.0.2.8:1", "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"} {
		if w := k.from(t, peer); w.Code != http.StatusOK {
			t.Errorf("from %s: status %d", peer, w.Code)
		}
	}
}

// TestKeyShare checks that one key cannot use all places.
func TestKeyShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		k := newKeyed(t, func(o *Options) {
			o.MaxAsks = 4
			o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
				<-finish
				yield(answer.Usage{}, nil)
			})
		})
		ask := func(key string) *httptest.ResponseRecorder {
			return k.send(t, "POST", "/api/ask", `{"question":"Why?"}`, "Authorization: Bearer "+key)
		}
		replies := make(chan int, 8)
		for range 2 {
			go func() { replies <- ask(k.read).Code }()
			synctest.Wait()
		}
		if w := ask(k.read); w.Code != http.StatusTooManyRequests || retryAfter(t, w) == 0 {
			t.Errorf("the third of four by one key: status %d", w.Code)
		}
		for range 2 {
			go func() { replies <- ask(k.write).Code }()
			synctest.Wait()
		}
		close(finish)
		for range 4 {
			if code := <-replies; code != http.StatusOK {
				t.Errorf("status %d", code)
			}
		}
		if w := ask(k.read); w.Code != http.StatusOK {
			t.Errorf("after the places are free: status %d", w.Code)
		}
	})
}
