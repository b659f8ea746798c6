package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/cite"
	"ibid/retrieve"
)

// MaxComment is the longest comment on an answer, in bytes.
const MaxComment = 4000

// routeFeedback enters the routes of what people think of answers.
func (s *server) routeFeedback(e *echo.Echo, get func(string, echo.HandlerFunc)) {
	if s.Ledger == nil {
		return
	}
	e.POST("/api/feedback", s.giveFeedback)
	get("/api/feedback", s.listFeedback)
}

// feedbackRequest is the body of POST /api/feedback. Citation is the place of
// one in the answer's citations, 0-based; without it the whole answer is meant.
type feedbackRequest struct {
	Run      string `json:"run"`
	Rating   int    `json:"rating"`
	Comment  string `json:"comment,omitempty"`
	Citation *int   `json:"citation,omitempty"`
}

// A feedbackEntry is what one caller thinks of an answer.
type feedbackEntry struct {
	feedbackRequest
	By string    `json:"by,omitempty"` // id of the caller's key
	At time.Time `json:"at"`
}

func entryOf(f retrieve.Feedback) feedbackEntry {
	e := feedbackEntry{feedbackRequest{Run: f.Run, Rating: f.Rating, Comment: f.Comment}, f.By, f.At}
	if f.Citation >= 0 {
		e.Citation = &f.Citation
	}
	return e
}

// giveFeedback keeps what the caller thinks of an answer, in place of what the
// same caller thought of it before.
func (s *server) giveFeedback(c echo.Context) error {
	var r feedbackRequest
	if err := decode(c, &r); err != nil {
		return err
	}
	wrong := func(field, format string, args ...any) error {
		p := invalid("bad_feedback", format, args...)
		p.Field = field
		return p
	}
	r.Comment = strings.TrimSpace(r.Comment)
	switch {
	case r.Run == "":
		return wrong("run", `say which answer is meant: {"run": ID}, of the header Ibid-Run`)
	case r.Rating != 1 && r.Rating != -1:
		return wrong("rating", "rating is %d: give 1 or -1", r.Rating)
	case len(r.Comment) > MaxComment:
		return wrong("comment", "the comment has %d bytes and %d are the most: shorten it", len(r.Comment), MaxComment)
	}
	l, known, err := s.findRun(c, r.Run)
	if err != nil {
		return err
	}
	if l != nil {
		known = l.known()
	}
	f := retrieve.Feedback{Run: r.Run, By: caller(c), Citation: -1, Rating: r.Rating, Comment: r.Comment, At: time.Now()}
	if r.Citation != nil {
		var a struct {
			Citations []cite.Citation `json:"citations"`
		}
		if known.Answer != nil {
			if err := json.Unmarshal(known.Answer, &a); err != nil {
				return fmt.Errorf("reading the answer of the run %s: %w", r.Run, err)
			}
		}
		if f.Citation = *r.Citation; f.Citation < 0 || f.Citation >= len(a.Citations) {
			return wrong("citation", "citation is %d, and the answer has %d: give the place of one among them, from 0 on", f.Citation, len(a.Citations))
		}
	}
	if err := s.Ledger.KeepFeedback(c.Request().Context(), f); err != nil {
		return fmt.Errorf("keeping feedback: %w", err)
	}
	return reply(c, http.StatusCreated, entryOf(f))
}

// listedFeedback is the reply of GET /api/feedback.
type listedFeedback struct {
	Feedback []feedbackEntry `json:"feedback"`
	// Next is what to give as ?after= for those before these; empty on the last page.
	Next string `json:"next,omitempty"`
}

// listFeedback lists what all callers think, newest first: ?limit= of those
// before ?after=.
func (s *server) listFeedback(c echo.Context) error {
	limit, err := limitOf(c, 100, 1000)
	if err != nil {
		return err
	}
	var after int64
	if v := c.QueryParam("after"); v != "" {
		if after, err = strconv.ParseInt(v, 10, 64); err != nil || after < 1 {
			return invalid("bad_after", "after is %.40q: give the next of a page that was listed", v)
		}
	}
	if who := holderFrom(c.Request().Context()); who != nil && len(who.key.Collections) > 0 {
		return &Problem{Status: http.StatusForbidden, Code: "outside_key",
			Detail: "what is thought of answers may be about any collection: use a key for all of them"}
	}
	found, err := s.Ledger.Feedback(c.Request().Context(), after, limit+1)
	if err != nil {
		return fmt.Errorf("listing feedback: %w", err)
	}
	list := listedFeedback{Feedback: []feedbackEntry{}}
	if len(found) > limit {
		found = found[:limit]
		list.Next = strconv.FormatInt(found[limit-1].Key, 10)
	}
	for _, f := range found {
		list.Feedback = append(list.Feedback, entryOf(f))
	}
	return reply(c, http.StatusOK, list)
}
