package web

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// TestConversations checks that the questions of one key, user and id follow each other,
// and nobody else's; and that a conversation is listed, exported and deleted.
func TestConversations(t *testing.T) {
	t.Parallel()
	var asked answer.Question
	stored := newLedger()
	k := newKeyed(t, func(o *Options) {
		o.KeepAnswers, o.Ledger = time.Hour, stored
		o.Asker = askerFunc(func(_ context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
			asked = q
			return func(yield func(answer.Event, error) bool) {
				_ = yield(answer.Text{Text: "Answer to " + q.Text}, nil) && yield(answer.Usage{}, nil)
			}
		})
	})
	send := func(key, method, path, body string) (int, string) {
		w := k.send(t, method, path, body, "Authorization: Bearer "+key, "Content-Type: application/json")
		return w.Code, w.Body.String()
	}
	for i, c := range []struct {
		key, body string
		turns     int
	}{
		{k.write, `{"question":"One?","conversation":"c"}`, 0},
		{k.write, `{"question":"Two?","conversation":"c"}`, 2},
		{k.write, `{"question":"Three?","conversation":"c"}`, 4},
		{k.write, `{"question":"Other?","conversation":"d"}`, 0},
		{k.write, `{"question":"Sent?","conversation":"d","history":[{"role":"user","content":"b"}]}`, 1},
		{k.write, `{"question":"Sent?","conversation":"d","history":[]}`, 0},
		{k.write, `{"question":"None?"}`, 0},
		{k.write, `{"question":"Anna?","conversation":"c","user":"anna"}`, 0},
		{k.write, `{"question":"And Anna?","conversation":"c","user":"anna"}`, 2},
		{k.read, `{"question":"Reader?","conversation":"c"}`, 0},
	} {
		code, said := send(c.key, "POST", "/api/ask", c.body)
		if code != http.StatusOK || len(asked.History) != c.turns {
			t.Errorf("question %d: status %d, history %q, want %d turns: %s", i, code, asked.History, c.turns, said)
		}
		if c.turns == 4 && (asked.History[0].Content != "One?" || asked.History[3].Content != "Answer to Two?") {
			t.Errorf("the history: %q", asked.History)
		}
	}
	for body, code := range map[string]string{
		`{"question":"a","conversation":"a b"}`:                                           "bad_conversation",
		`{"question":"a","conversation":"c","record":false}`:                              "no_conversations",
		`{"question":"a","conversation":"c","user":"` + strings.Repeat("a", 201) + `"}`:   "bad_conversation",
		`{"question":"a","conversation":"` + strings.Repeat("a", 65) + `","user":"anna"}`: "bad_conversation",
	} {
		if status, said := send(k.write, "POST", "/api/ask", body); status != 400 || !strings.Contains(said, `"`+code+`"`) {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
	listed := func(key, query string) (list listedConversations) {
		_, said := send(key, "GET", "/api/conversations"+query, "")
		if err := json.Unmarshal([]byte(said), &list); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return list
	}
	all := listed(k.write, "").Conversations
	if len(all) != 3 || all[0].talk != (talk{"c", "anna"}) || all[2].Questions != 3 || all[2].First != "One?" {
		t.Errorf("the list: %+v", all)
	}
	if one := listed(k.write, "?user=anna").Conversations; len(one) != 1 || one[0].Questions != 2 {
		t.Errorf("those of a user: %+v", one)
	}
	var shown shownConversation
	_, said := send(k.write, "GET", "/api/conversations/c", "")
	if err := json.Unmarshal([]byte(said), &shown); err != nil || len(shown.Runs) != 3 || shown.Runs[0].Question != "One?" ||
		!strings.Contains(string(shown.Runs[2].Answer), "Answer to Three?") {
		t.Errorf("the export: %v, %s", err, said)
	}
	for body, want := range map[string]int{`{"name":"The harbour"}`: 200, `{"name":"` + strings.Repeat("x", 201) + `"}`: 400, `{}`: 400} {
		if code, said := send(k.write, "PATCH", "/api/conversations/c", body); code != want {
			t.Errorf("naming by %s: %d %s", body, code, said)
		}
	}
	if code, said := send(k.read, "PATCH", "/api/conversations/d", `{"name":"Mine"}`); code != http.StatusNotFound {
		t.Errorf("naming another key's: %d %s", code, said)
	}
	for _, one := range listed(k.write, "").Conversations {
		if named := one.talk == (talk{"c", ""}); named != (one.Name == "The harbour") {
			t.Errorf("after naming one: %+v", one)
		}
	}
	if code, said := send(k.write, "DELETE", "/api/runs/"+shown.Runs[0].ID+"?forget=true", ""); code != http.StatusNoContent {
		t.Errorf("deleting one run: %d %s", code, said)
	}
	_, said = send(k.write, "GET", "/api/conversations/c", "")
	if strings.Contains(said, "One?") || !strings.Contains(said, "Answer to Two?") {
		t.Errorf("without its first question: %s", said)
	}
	if code, said := send(k.read, "DELETE", "/api/conversations/d", ""); code != http.StatusNotFound {
		t.Errorf("deleting another key's: %d %s", code, said)
	}
	if code, said := send(k.write, "DELETE", "/api/conversations/c", ""); code != http.StatusNoContent {
		t.Errorf("deleting: %d %s", code, said)
	}
	if code, said := send(k.write, "GET", "/api/conversations/c", ""); code != http.StatusNotFound {
		t.Errorf("after the deletion: %d %s", code, said)
	}
	if left := listed(k.write, "").Conversations; len(left) != 2 {
		t.Errorf("after the deletion: %+v", left)
	}
	if list := listed(k.read, "").Conversations; len(list) != 1 {
		t.Errorf("the other key's: %+v", list)
	}
	_, _ = send(k.write, "POST", "/api/ask", `{"question":"Again?","conversation":"c"}`)
	if len(asked.History) != 0 {
		t.Errorf("the history after the deletion: %q", asked.History)
	}
	// The log of the key keeps the lines.
	words := ""
	kept, err := stored.Records(t.Context(), retrieve.DeletedBy("writer"), retrieve.Record{}, 10)
	for _, r := range kept {
		words += string(r.Spec) + string(r.Events)
	}
	if err != nil || len(kept) != 3 || words != "{}{}{}" {
		t.Errorf("%v: %d lines are left, with %q", err, len(kept), words)
	}
}

// slowSearch takes a second for each search, and counts those at a time.
type slowSearch struct {
	shelf
	now, most int
}

func (s *slowSearch) Stats(context.Context, []string) (retrieve.Stats, error) {
	return retrieve.Stats{}, nil
}

func (s *slowSearch) Search(context.Context, retrieve.Query) ([]retrieve.Passage, error) {
	s.now++
	s.most = max(s.most, s.now)
	time.Sleep(time.Second)
	s.now--
	return nil, nil
}

// TestTurns checks that one search runs at a time, in order, that the events of those
// that wait say so, and that one whose reader has left, or that waits too long, ends.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowSearch{shelf: newShelf()}
		turns := TakeTurns(s, 1)
		h := newHandler(t, func(o *Options) {
			o.Asker = askerFunc(func(ctx context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
				return func(yield func(answer.Event, error) bool) {
					if _, err := turns.Search(ctx, retrieve.Query{}); err != nil {
						yield(nil, err)
						return
					}
					_ = yield(answer.Text{Text: "At nine."}, nil) && yield(answer.Usage{}, nil)
				}
			})
		})
		type end struct {
			question int
			took     time.Duration
			events   string // the first and the last
		}
		start, ended := time.Now(), make(chan end)
		gone, leave := context.WithCancel(t.Context())
		for i := range 35 {
			ctx := t.Context()
			if i == 2 {
				ctx = gone
			}
			go func() {
				w := callIn(ctx, h, "POST", "/api/ask", `{"question":"When?"}`, "Accept", "text/event-stream")
				events := eventsOf(t, w.Body.Bytes())
				var places string
				for _, e := range events {
					if e.kind == "queued" {
						places += string(e.data)
					}
				}
				if want, ok := map[int]string{1: `{"place":1}`, 3: `{"place":3}{"place":1}`}[i]; ok && places != want {
					t.Errorf("question %d has the places %s, want %s", i, places, want)
				}
				ended <- end{i, time.Since(start), events[0].kind + " " + events[len(events)-1].kind}
			}()
			synctest.Wait()
			if i == 0 { // so that no time is over when a turn begins
				time.Sleep(time.Second / 2)
			}
		}
		leave()
		ends := make([]end, 35)
		for range ends {
			e := <-ended
			ends[e.question] = e
		}
		// The third has left, so that the others are served a second earlier.
		for question, want := range map[int]end{0: {0, time.Second, "text done"}, 1: {1, 2 * time.Second, "queued done"},
			2: {2, time.Second / 2, "queued error"}, 3: {3, 3 * time.Second, "queued done"}, 34: {34, turnTime + time.Second/2, "queued error"}} {
			if ends[question] != want {
				t.Errorf("question %d: %v, want %v", question, ends[question], want)
			}
		}
		if s.most != 1 {
			t.Errorf("%d searches at a time", s.most)
		}
		if _, err := turns.Search(t.Context(), retrieve.Query{}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		end1, _ := turns.(answer.TurnTaker).Turn(t.Context())
		defer end1()
		if _, err := turns.(answer.TurnTaker).Turn(t.Context()); !isProblem(err, "too_many_questions") {
			t.Errorf("passages that wait too long to be read: %v", err)
		}
	})
}
