package web

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

func TestFeedback(t *testing.T) {
	l := newLedger()
	h := newHandler(t, func(o *Options) { o.Ledger, o.KeepAnswers = l, time.Hour })
	id := call(h, "POST", "/api/ask", `{"question":"What is the mooring fee?"}`).Header().Get(runHeader)
	for _, tt := range []struct {
		body   string
		status int
		field  string // the one at fault
	}{
		{`{"run":"ID","rating":1}`, 201, ""},
		{`{"run":"ID","rating":-1,"citation":1,"comment":" Not what it says. "}`, 201, ""},
		{`{"run":"ID","rating":-1,"citation":2}`, 404, "citation"},
		{`{"run":"ID","rating":-1,"citation":-1}`, 404, "citation"},
		{`{"run":"ID","rating":0}`, 400, "rating"},
		{`{"run":"ID"}`, 400, "rating"},
		{`{"rating":1}`, 400, "run"},
		{`{"run":"ID","rating":1,"comment":"` + strings.Repeat("a", MaxComment+1) + `"}`, 400, "comment"},
		{`{"run":"other","rating":1}`, 404, ""},
	} {
		w := call(h, "POST", "/api/feedback", strings.ReplaceAll(tt.body, "ID", id))
		if p := into[Problem](t, w, tt.status); p.Field != tt.field {
			t.Errorf("%s: field %q", tt.body, p.Field)
		}
	}
	first := into[listedFeedback](t, call(h, "GET", "/api/feedback?limit=1", ""), 200)
	second := into[listedFeedback](t, call(h, "GET", "/api/feedback?limit=1&after="+first.Next, ""), 200)
	if len(first.Feedback) != 1 || *first.Feedback[0].Citation != 1 || first.Feedback[0].Comment != "Not what it says." || first.Next == "" {
		t.Errorf("%+v", first)
	}
	if len(second.Feedback) != 1 || second.Feedback[0].Citation != nil || second.Feedback[0].Rating != 1 || second.Next != "" ||
		second.Feedback[0].Run != id {
		t.Errorf("%+v", second)
	}
	for _, wrong := range []string{"limit=0", "limit=x", "limit=100000", "after=x", "after=-1"} {
		if w := call(h, "GET", "/api/feedback?"+wrong, ""); w.Code != 400 {
			t.Errorf("%s: %d: %s", wrong, w.Code, w.Body)
		}
	}
}

// TestRunsOfKeys checks that runs and their feedback belong to the key that
// began them.
func TestRunsOfKeys(t *testing.T) {
	var limited string
	k := newKeyed(t, func(o *Options) {
		o.KeepAnswers = time.Hour
		limited = o.Keys.(*ring).make(t, "limited", func(k *retrieve.Key) { k.Write, k.Collections = true, []string{"default"} })
	})
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	id := begunAs(t, k, `{"question":"What is the mooring fee?"}`, as(k.read)...)
	for _, key := range []string{k.read, k.write} {
		want := 404
		if key == k.read {
			want = 200
		}
		stream := call(k, "GET", "/api/runs/"+id, "", append(as(key), asEvents...)...)
		if w := call(k, "GET", "/api/runs/"+id, "", as(key)...); w.Code != want || stream.Code != want {
			t.Errorf("%d, %d, want %d: %s", w.Code, stream.Code, want, w.Body)
		}
		if list := into[recordPage](t, call(k, "GET", "/api/runs", "", as(key)...), 200); (len(list.Runs) == 1) != (want == 200) {
			t.Errorf("%+v", list)
		}
		w := call(k, "POST", "/api/feedback", `{"run":"`+id+`","rating":1}`, as(key)...)
		if want == 200 && w.Code != 201 || want == 404 && w.Code != 404 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if w := call(k, "DELETE", "/api/runs/"+id, "", as(key)...); w.Code != want {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	// Only its own key can share it, and keys that reach its documents can then see it.
	elsewhere := k.ring.make(t, "elsewhere", func(k *retrieve.Key) { k.Collections = []string{"other"} })
	for range 2 {
		for _, tt := range []struct {
			method, key            string
			want, limited, outside int
		}{{"PUT", k.write, 404, 404, 404}, {"PUT", k.read, 204, 200, 404}, {"DELETE", k.write, 404, 200, 404},
			{"DELETE", k.read, 204, 404, 404}} {
			if w := call(k, tt.method, "/api/runs/"+id+"/shared", "", as(tt.key)...); w.Code != tt.want {
				t.Errorf("%s: %d, want %d: %s", tt.method, w.Code, tt.want, w.Body)
			}
			for key, want := range map[string]int{limited: tt.limited, elsewhere: tt.outside, k.read: 200} {
				w := call(k, "GET", "/api/runs/"+id, "", as(key)...)
				for ; w.Code == 401; w = call(k, "GET", "/api/runs/"+id, "", as(key)...) {
					time.Sleep(freshFor / 10) // a new key is known soon
				}
				if w.Code != want {
					t.Errorf("after %s: %d, want %d: %s", tt.method, w.Code, want, w.Body)
				}
			}
			if w := call(k, "DELETE", "/api/runs/"+id+"?forget=true", "", as(limited)...); w.Code != 404 {
				t.Errorf("another key can delete it: %d", w.Code)
			}
		}
	}
	for key, want := range map[string]int{k.read: 403, limited: 403, k.write: 200} {
		if w := call(k, "GET", "/api/feedback", "", as(key)...); w.Code != want {
			t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
		}
	}
}

func begunAs(t testing.TB, k *keyed, body string, headers ...string) string {
	t.Helper()
	id := into[answerRecord](t, call(k, "POST", "/api/runs", body, headers...), 202).ID
	// Its record is written when it has been read to its end.
	call(k, "GET", "/api/runs/"+id, "", append(headers, asEvents...)...)
	for {
		if w := call(k, "GET", "/api/runs", "", headers...); strings.Contains(w.Body.String(), id) {
			return id
		}
	}
}

func TestCollections(t *testing.T) {
	h := newHandler(t, func(o *Options) {
		o.UploadFolders, o.UploadCollection = oneFolder{}, "sent"
	})
	got := into[listedCollections](t, call(h, "GET", "/api/collections", ""), 200)
	want := listedCollections{[]collection{
		{Name: "default", Documents: 4, Chunks: 4, Bytes: got.Collections[0].Bytes, Roots: []collectionRoot{{Name: "club", Documents: 4}}},
		{Name: "sent", Roots: []collectionRoot{{Name: "uploads", Uploads: true}}, Uploads: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" || got.Collections[0].Bytes == 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
