package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/retrieve"
)

// A conversation is the questions that one key, or one of its users, asked under one id. It
// has no record of its own: the requests in the records of its answers name it.

const (
	// maxUserName is the longest name of a user, in characters.
	maxUserName = 200
	// maxConversationName is the longest name of a conversation, in characters.
	maxConversationName = 200
	// conversationTurns is the maximum number of earlier turns that a question is asked with.
	conversationTurns = 40
	// recordsAtOnce is how many records are read at a time.
	recordsAtOnce = 200
)

var conversationID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A conversationRef identifies a conversation among those of a key.
type conversationRef struct {
	// Conversation is its id, 1 to 64 letters, digits, "-" or "_".
	Conversation string `json:"conversation,omitempty"`
	// User is the person for whom the key asks. Each user has separate conversations and a
	// share of the key's questions.
	User string `json:"user,omitempty"`
}

func (t conversationRef) check() error {
	switch {
	case t.Conversation != "" && !conversationID.MatchString(t.Conversation):
		return invalidField("conversation", "bad_conversation", "%.80q is not an id of a conversation: give 1 to 64 letters, digits, '-' or '_'",
			t.Conversation)
	case utf8.RuneCountInString(t.User) > maxUserName:
		return invalidField("user", "bad_conversation", "the name of the user has more than %d characters: shorten it", maxUserName)
	}
	return nil
}

// conversationOf returns the conversation in an address. If a trusted proxy names the user, it
// is one of this user's conversations.
func conversationOf(c echo.Context) conversationRef {
	t := conversationRef{c.Param("id"), c.QueryParam("user")}
	if caller := holderFrom(c.Request().Context()); caller != nil {
		t.User = cmp.Or(caller.user, t.User)
	}
	return t
}

// storedQuestion returns the question in a stored request; a summary has none.
func storedQuestion(request []byte) askRequest {
	r, _ := decodeStored[askRequest](request) // empty for a request stored by another version
	return r
}

// previousTurns returns the turns before a question of a conversation, and the heading that
// the last answer cited. They are read from the records, unless the client sent a history.
func (s *recordStore) previousTurns(c echo.Context, r *askRequest) (turns []answer.Turn, citedUnder string, err error) {
	if err := cmp.Or(r.conversationRef.check(), checkConversationName(r.Name)); err != nil || r.Conversation == "" {
		return r.History, "", err
	}
	caller := holderFrom(c.Request().Context())
	if caller != nil && caller.user != "" {
		r.User = caller.user
	}
	switch {
	case caller != nil && caller.key.Public: // many people have this key, and any of them could name the conversation
		return nil, "", invalidField("conversation", "no_conversations",
			"this key is public and shared by many people: send the history instead of a conversation")
	case s.keep <= 0:
		return nil, "", invalidField("conversation", "no_conversations",
			"this server keeps no records and so no conversations: send the history instead")
	case r.Record != nil && !*r.Record:
		return nil, "", invalidField("record", "no_conversations", "a conversation is kept in its records: omit record or conversation")
	case r.History != nil: // a client that shows the conversation sends the history that it shows
		return r.History, "", nil
	}
	ctx := c.Request().Context()
	for stored, err := range s.list(ctx, callerID(c)) {
		if err != nil {
			return nil, "", err
		}
		asked := storedQuestion(stored.Spec)
		if stored.Kind != askKind || asked.conversationRef != r.conversationRef {
			continue
		}
		record, err := s.fullRecord(ctx, stored.ID)
		if isProblem(err, "run_not_found") || err == nil && record.Answer == nil {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		own, err1 := record.turns()
		said, err2 := decodeStored[cite.Answer](record.Answer)
		if err := errors.Join(err1, err2); err != nil {
			return nil, "", err
		}
		if turns == nil && len(said.Sources) > 0 && len(said.Sources[0].Passages) > 0 {
			citedUnder = said.Sources[0].Passages[0].Heading
		}
		if turns = append(own, turns...); asked.History != nil || len(turns) >= conversationTurns {
			break
		}
	}
	return turns[max(0, len(turns)-conversationTurns):], citedUnder, nil
}

// fullRecord returns a record with its events.
func (s *recordStore) fullRecord(ctx context.Context, id string) (*answerRecord, error) {
	stored, err := s.loadRecord(ctx, id)
	if err != nil {
		return nil, err
	}
	return recordWithEvents(stored)
}

// list returns all records of a caller, newest first and without events. It waits for the
// records of answers that have just ended.
func (s *recordStore) list(ctx context.Context, by string) iter.Seq2[retrieve.Record, error] {
	if err := s.live.waitStored(ctx, 0); err != nil {
		return func(yield func(retrieve.Record, error) bool) {
			yield(retrieve.Record{}, fmt.Errorf("waiting for records: %w", err))
		}
	}
	return recordsOf(ctx, s.ledger, by)
}

// recordsOf returns all records of a caller, newest first and without events.
func recordsOf(ctx context.Context, in retrieve.Archive, by string) iter.Seq2[retrieve.Record, error] {
	return func(yield func(retrieve.Record, error) bool) {
		page := make([]retrieve.Record, recordsAtOnce)
		for last := (retrieve.Record{}); len(page) == recordsAtOnce; {
			var err error
			if page, err = in.Records(ctx, by, last, recordsAtOnce); err != nil {
				yield(last, fmt.Errorf("listing the records: %w", err))
				return
			}
			for _, last = range page {
				if !yield(last, nil) {
					return
				}
			}
		}
	}
}

// turns returns the turns of the conversation up to and including this answer.
func (r *answerRecord) turns() ([]answer.Turn, error) {
	asked, err1 := decodeStored[askRequest](r.Request)
	said, err2 := decodeStored[answer.Text](r.Answer)
	return append(asked.History, answer.Turn{Role: "user", Content: asked.Question}, answer.Turn{Role: "assistant", Content: said.Text}),
		errors.Join(err1, err2)
}

// conversationHandlers serve conversations at /api/conversations.
type conversationHandlers struct {
	records *recordStore
	address address
}

// A listedConversation is an entry of GET /api/conversations.
type listedConversation struct {
	conversationRef
	Questions int       `json:"questions"`
	Name      string    `json:"name,omitempty"`
	First     string    `json:"first"` // the first question
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended"` // when its last answer ended
}

// listedConversations is the reply of GET /api/conversations.
type listedConversations struct {
	Conversations []*listedConversation `json:"conversations"`
}

// list lists the caller's conversations, most recently asked first: of all users, or of the
// user in ?user=.
func (h *conversationHandlers) list(c echo.Context) error {
	list, found := listedConversations{Conversations: []*listedConversation{}}, map[conversationRef]*listedConversation{}
	of := conversationOf(c).User
	one := of != "" || c.QueryParams().Has("user")
	for stored, err := range h.records.list(c.Request().Context(), callerID(c)) {
		if err != nil {
			return err
		}
		asked := storedQuestion(stored.Spec)
		t := asked.conversationRef
		if t.Conversation == "" || one && of != t.User {
			continue
		}
		if found[t] == nil {
			found[t] = &listedConversation{conversationRef: t, Ended: stored.Ended}
			list.Conversations = append(list.Conversations, found[t])
		}
		in := found[t]
		in.Questions++
		in.Name = cmp.Or(in.Name, asked.Name)
		in.First, in.Started = strings.TrimSpace(asked.Question), stored.Started
	}
	return reply(c, http.StatusOK, list)
}

// namedConversation is the body of PATCH /api/conversations/ID. An empty name restores the
// first question as the name.
type namedConversation struct {
	Name *string `json:"name"`
}

// rename stores a name in the records of a conversation.
func (h *conversationHandlers) rename(c echo.Context, given namedConversation) error {
	if given.Name == nil {
		return invalidField("name", "bad_conversation", "name is missing: give the conversation a name, or an empty name")
	}
	if err := checkConversationName(*given.Name); err != nil {
		return err
	}
	_, ids, err := h.runs(c)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context()) // the name must reach all records
	for _, id := range ids {
		stored, err := h.records.ledger.Record(ctx, id)
		if err == nil {
			asked := storedQuestion(stored.Spec)
			asked.Name = *given.Name
			stored.Spec = mustEncode(asked)
			err = h.records.ledger.KeepRecord(ctx, stored)
		}
		if err != nil && !errors.Is(err, retrieve.ErrNotFound) { // the record or one of its documents was deleted
			return fmt.Errorf("naming the conversation of the run %s: %w", id, err)
		}
	}
	return reply(c, http.StatusOK, given)
}

func checkConversationName(name string) error {
	if utf8.RuneCountInString(name) > maxConversationName {
		return invalidField("name", "bad_conversation", "the name of the conversation has more than %d characters: shorten it",
			maxConversationName)
	}
	return nil
}

// A shownConversation is the reply of GET /api/conversations/ID.
type shownConversation struct {
	conversationRef
	// Runs are the records of the answers, oldest first.
	Runs []*answerRecord `json:"runs"`
}

// show exports a conversation: each question with its complete answer.
func (h *conversationHandlers) show(c echo.Context) error {
	t, ids, err := h.runs(c)
	if err != nil {
		return err
	}
	shown := shownConversation{conversationRef: t, Runs: []*answerRecord{}}
	for _, id := range slices.Backward(ids) {
		record, err := h.records.fullRecord(c.Request().Context(), id)
		if isProblem(err, "run_not_found") { // deleted since it was listed
			continue
		}
		if err != nil {
			return err
		}
		record.setAddresses(h.address.base(c))
		shown.Runs = append(shown.Runs, record)
	}
	return reply(c, http.StatusOK, shown)
}

// remove deletes the records of a conversation, and stops its answers in progress on this server.
func (h *conversationHandlers) remove(c echo.Context) error {
	ctx := c.Request().Context()
	t := conversationOf(c)
	stopped := false
	for _, l := range h.records.live.list() {
		if l.By != callerID(c) || storedQuestion(l.Spec).conversationRef != t {
			continue
		}
		stopped = true
		l.cancel(errStopped)
		if err := l.waitSettled(ctx); err != nil {
			return fmt.Errorf("stopping a run: %w", err)
		}
		if err := h.records.forget(ctx, l.ID, l); err != nil {
			return err
		}
	}
	_, ids, err := h.runs(c)
	if p := (*Problem)(nil); stopped && errors.As(err, &p) && p.Status == http.StatusNotFound {
		err = nil
	}
	for _, id := range ids {
		if err = h.records.forget(ctx, id, nil); err != nil {
			break
		}
	}
	return sendNoContent(c, err)
}

// runs returns the conversation in an address, and the ids of its records, newest first.
func (h *conversationHandlers) runs(c echo.Context) (t conversationRef, ids []string, err error) {
	t = conversationOf(c)
	for stored, err := range h.records.list(c.Request().Context(), callerID(c)) {
		if err != nil {
			return t, nil, err
		}
		if t.Conversation != "" && storedQuestion(stored.Spec).conversationRef == t {
			ids = append(ids, stored.ID)
		}
	}
	if len(ids) == 0 {
		return t, nil, problem(http.StatusNotFound, "conversation_not_found",
			"there is no conversation %.80q of this key and user: give the user of the questions as ?user=; the records may also have expired",
			t.Conversation)
	}
	return t, ids, nil
}
