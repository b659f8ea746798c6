package web

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// TestDeletedConversation checks that the log of a key keeps the lines of a deleted
// conversation, without its texts.
func TestDeletedConversation(t *testing.T) {
	l := newLedger()
	k := newKeyed(t, func(o *Options) { o.KeepAnswers, o.Ledger = time.Hour, l })
	for _, request := range []string{"POST /api/ask", "POST /api/ask", "DELETE /api/conversations/c"} {
		method, path, _ := strings.Cut(request, " ")
		k.send(t, method, path, `{"question":"pizza","conversation":"c"}`, "Authorization: Bearer "+k.write)
	}
	words := ""
	kept, err := l.Records(t.Context(), retrieve.DeletedBy("writer"), retrieve.Record{}, 10)
	for _, r := range kept {
		words += string(r.Spec) + string(r.Events)
	}
	if err != nil || words != "{}{}" {
		t.Errorf("%d lines are left, with the texts %q, err = %v", len(kept), words, err)
	}
}

// slowSearch takes a second for each search, and counts concurrent searches.
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

// TestTurns checks that one search runs at a time, in order, that waiting questions get
// events, and that a question ends if its reader leaves or it waits too long.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowSearch{shelf: newShelf()}
		turns := LimitSearches(s, 1)
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
					t.Errorf("question %d: places = %s, want %s", i, places, want)
				}
				ended <- end{i, time.Since(start), events[0].kind + " " + events[len(events)-1].kind}
			}()
			synctest.Wait()
			if i == 0 { // the interval avoids a timeout at the moment when a turn begins
				time.Sleep(time.Second / 2)
			}
		}
		leave()
		ends := make([]end, 35)
		for range ends {
			e := <-ended
			ends[e.question] = e
		}
		// The third has left, so the later ones are served a second earlier.
		for question, want := range map[int]end{0: {0, time.Second, "text done"}, 1: {1, 2 * time.Second, "queued done"},
			2: {2, time.Second / 2, "queued error"}, 3: {3, 3 * time.Second, "queued done"}, 34: {34, turnTime + time.Second/2, "queued error"}} {
			if ends[question] != want {
				t.Errorf("question %d: ended with %v, want %v", question, ends[question], want)
			}
		}
		if s.most != 1 {
			t.Errorf("%d concurrent searches, want 1", s.most)
		}
		if _, err := turns.Search(t.Context(), retrieve.Query{}); err != nil {
			t.Errorf("search afterwards: %v", err)
		}
		end1, _ := turns.(answer.TurnTaker).WaitTurn(t.Context())
		defer end1()
		if _, err := turns.(answer.TurnTaker).WaitTurn(t.Context()); !isProblem(err, "too_many_questions") {
			t.Errorf("turn that waits too long: err = %v, want too_many_questions", err)
		}
	})
}
