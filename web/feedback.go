package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/cite"
	"ibid/retrieve"
)

// MaxComment is the longest comment on an answer, in characters.
const MaxComment = 4000

// feedbackRequest is the body of POST /api/feedback. Citation is an index into the answer's
// citations, from 0; if missing, the feedback is about the whole answer.
type feedbackRequest struct {
	Run      string   `json:"run"`
	Rating   integer  `json:"rating"`
	Comment  string   `json:"comment,omitempty"`
	Citation *integer `json:"citation,omitempty"`
}

// feedbackHandlers serve feedback at /api/feedback.
type feedbackHandlers struct{ records *recordStore }

// A feedbackEntry is one caller's feedback on an answer.
type feedbackEntry struct {
	feedbackRequest
	By string    `json:"by,omitempty"` // id of the caller's key
	At time.Time `json:"at"`
}

func entryOf(f retrieve.Feedback) feedbackEntry {
	e := feedbackEntry{feedbackRequest{Run: f.Run, Rating: integer(f.Rating), Comment: f.Comment}, f.By, f.At}
	if f.Citation >= 0 {
		e.Citation = new(integer(f.Citation))
	}
	return e
}

// recordFeedback stores the caller's feedback on an answer, replacing the caller's earlier feedback.
func (h *feedbackHandlers) recordFeedback(c echo.Context, given feedbackRequest) error {
	given.Comment = strings.TrimSpace(given.Comment)
	switch {
	case given.Run == "":
		return invalidField("run", "bad_feedback", `name the answer: {"run": ID}, from the header Ibid-Run`)
	case given.Rating != 1 && given.Rating != -1:
		return invalidField("rating", "bad_feedback", "rating is %d: give 1 or -1", given.Rating)
	case utf8.RuneCountInString(given.Comment) > MaxComment:
		return invalidField("comment", "bad_feedback", "the comment has more than %d characters: shorten it", MaxComment)
	}
	_, record, err := h.records.find(c, given.Run)
	if err != nil {
		return err
	}
	f := retrieve.Feedback{Run: given.Run, By: callerID(c), Citation: -1, Rating: int(given.Rating), Comment: given.Comment, At: time.Now()}
	if given.Citation != nil {
		var a cite.Answer
		if record.Answer != nil {
			if a, err = decodeStored[cite.Answer](record.Answer); err != nil {
				return err
			}
		}
		if f.Citation = int(*given.Citation); f.Citation < 0 || f.Citation >= len(a.Citations) {
			return problem(http.StatusNotFound, "no_citation", "citation is %d, and the answer has %d: give an index from 0", f.Citation,
				len(a.Citations)).withField("citation")
		}
	}
	return sendValue(c, http.StatusCreated, entryOf(f), h.records.ledger.KeepFeedback(c.Request().Context(), f))
}

// feedbackList is the reply of GET /api/feedback.
type feedbackList struct {
	Feedback []feedbackEntry `json:"feedback"`
	// Next is the value of ?after= for the next page; empty on the last page.
	Next string `json:"next,omitempty"`
}

// list lists the feedback of all callers, newest first: at most ?limit= entries after ?after=.
func (h *feedbackHandlers) list(c echo.Context) error {
	limit, err := limitOf(c, 100, 1, 1000)
	if err != nil {
		return err
	}
	var after int64
	if sent, ok := c.QueryParams()["after"]; ok {
		if after, err = strconv.ParseInt(sent[0], 10, 64); err != nil || len(sent) > 1 || after < 1 || after > 1<<53 {
			return invalid("bad_after", "after is %.40q: give the value of next in an earlier page", strings.Join(sent, ", "))
		}
	}
	if caller := holderFrom(c.Request().Context()); caller != nil && len(caller.writableCollections()) > 0 {
		return problem(http.StatusForbidden, "outside_key", "feedback may be about any collection: use a key for all of them")
	}
	found, err := h.records.ledger.Feedback(c.Request().Context(), after, limit+1)
	if err != nil {
		return fmt.Errorf("listing feedback: %w", err)
	}
	list := feedbackList{Feedback: []feedbackEntry{}}
	if len(found) > limit {
		found = found[:limit]
		list.Next = strconv.FormatInt(found[limit-1].Key, 10)
	}
	for _, f := range found {
		list.Feedback = append(list.Feedback, entryOf(f))
	}
	return reply(c, http.StatusOK, list)
}
