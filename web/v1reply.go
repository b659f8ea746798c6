package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
)

// A v1Request has the members that requests for answers share.
type v1Request struct {
	Model      string          `json:"model"`
	Stream     bool            `json:"stream"`
	Tools      []v1Tool        `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	// If Store is false, no record of the answer is kept.
	Store *bool `json:"store"`
}

// A v1Ask is a request of the OpenAI API for an answer, from any route.
type v1Ask struct {
	v1Request
	messages    []chatMessage
	format      chatResponseFormat
	formatParam string              // request parameter with the format
	limits      map[string]*integer // of tokens, by parameter

	question           askRequest    // the last message
	maxTokens          int           // 0 for any number
	output             *jsonOutput   // nil: the answer is text
	feedback           []answer.Turn // the last invalid JSON and the client's feedback on it
	clientListsSources bool          // the client lists the sources itself
	clientSources      int           // number of the client's sources, which it lists first
}

// A v1Encoder writes an answer in the form of one route.
type v1Encoder interface {
	// sendPiece sends a piece of a stream's text.
	sendPiece(r *v1Reply, text string) error
	// sendEnd sends the remaining events of a stream.
	sendEnd(r *v1Reply) error
	// sendError ends a stream that has begun with an error.
	sendError(r *v1Reply, p *Problem) error
	// wholeReply returns the reply in one piece.
	wholeReply(r *v1Reply) any
}

// A v1Reply is the reply to a request of the OpenAI API, with links, for an encoder.
type v1Reply struct {
	asked     *v1Ask
	encoder   v1Encoder
	requestID string
	runID     string // by which a later question can name the answer
	created   time.Time
	links     bool
	text      *linkedText
	out       *eventStream // nil for a reply in one piece

	content      bytes.Buffer
	reason       string // why the answer is incomplete, or ""
	fellBack     bool
	refused      bool   // the content explains why there is no JSON
	finishReason string // "stop", "length" or "tool_calls"
	annotations  []chatAnnotation
	shown        []cite.Cited
	sources      []cite.Source
	unsupported  []unsupportedSentence
	usage        chatUsage
	spent        callerTokens
}

// An unsupportedSentence is a sentence of the answer whose claim no citation supports, before
// it was escaped and linked. OpenAI's API has no such member.
type unsupportedSentence struct {
	Text   string `json:"text"`
	Reason string `json:"reason"` // see cite.Unsupported
}

// collectionOf returns the collection that a model answers from, or "" for all; itself is
// true for the model without documents.
func (l *v1Library) collectionOf(c echo.Context, model string) (collection string, itself bool, _ error) {
	collection, below := strings.CutPrefix(model, everything+"/")
	switch {
	case model == "":
		return "", false, badValue("model", "model is missing: %q answers from all documents, and GET /v1/models lists the others", everything)
	case model == everything:
		return "", false, nil
	case below && collection != "":
		return collection, false, l.checkCollection(c, collection)
	case l.mayRelay(c, model):
		return "", true, nil
	}
	return "", false, modelNotFound(model)
}

// converse does the task in a conversation, or answers its last message.
func (o *openAI) converse(c echo.Context, a *v1Ask, collection string, encoder v1Encoder) (err error) {
	if t, about := taskOf(a.messages); t != nil {
		return o.doTask(c, a, encoder, t, about)
	}
	if a.maxTokens, err = minTokens(a.limits); err != nil {
		return err
	}
	if a.output, err = outputOf(a.format, a.formatParam, a.Tools, a.ToolChoice); err != nil {
		return err
	}
	if a.question, err = conversation(a.stripFeedback(a.messages)); err != nil {
		return err
	}
	a.question.Record = a.Store
	if a.question.Collection, err = o.library.storeOf(c, a.Tools, collection); err != nil {
		return err
	}
	return o.answer(c, a, encoder)
}

// answer replies with the answer to a question in the form of an encoder.
func (o *openAI) answer(c echo.Context, a *v1Ask, encoder v1Encoder) error {
	if a.output != nil && o.upstream.Model() == "" {
		return unsupported(a.output.param, "the server has no model to write the JSON: omit %s, or start it with --model", a.output.param)
	}
	question := a.question
	if a.output != nil {
		question.Style = "" // the style is about the form of the JSON
	}
	t, err := o.asking.askTask(c, question)
	if err != nil {
		return err
	}
	t.once = true
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	l, err := o.answering.beginRun(c, t, false, cancel)
	if err != nil {
		return err
	}
	r := &v1Reply{asked: a, encoder: encoder, requestID: c.Response().Header().Get(echo.HeaderXRequestID), runID: l.ID, created: time.Now(),
		links: o.links}
	r.text = &linkedText{maxTokens: a.maxTokens, links: o.links, before: a.clientSources, write: r.write, sources: map[int]cite.Cited{}}
	if a.output != nil {
		r.text.maxTokens = 0 // JSON cannot be cut
	}
	if a.Stream {
		r.out = newEventStream(c.Response(), cancel)
		defer r.out.close()
	}
	ctx = context.WithValue(ctx, callerTokensKey{}, &r.spent)
	whole, _, ended := o.answering.runTask(ctx, l, t, o.answering.citeOptions(o.answering.address.base(c)), r.out, r.add)
	stopped := func() bool { // by the server, in which case the stream still gets its end
		return r.out.hasBegun() && r.out.failure() == nil && errors.Is(ended, context.Canceled) && causeOf(ctx, ended) == nil
	}
	if stopped() {
		r.reason, whole.Incomplete, ended = "the server stopped", true, nil
	}
	if ended == nil {
		if ended = r.close(t.request.(askRequest), whole.Answer); ended == nil && a.output != nil {
			ended = o.upstream.fillJSON(ctx, r, whole.Answer)
		}
	}
	if stopped() { // while the model wrote the JSON
		r.refused, r.annotations, r.finishReason, ended = true, nil, "length", nil
		r.content.WriteString("\n\n(There is no JSON: the server stopped)")
	}
	return r.finish(c, ended)
}

// finish sends the end of a reply, or the error of the answer.
func (r *v1Reply) finish(c echo.Context, ended error) error {
	switch {
	case ended != nil && r.out.failure() != nil:
		return readerGone(r.out.failure())
	case ended != nil:
		err := fmt.Errorf("answering: %w", ended)
		if r.out.hasBegun() {
			return errors.Join(err, r.encoder.sendError(r, problemOf(c, err)))
		}
		return err
	case r.out == nil:
		return reply(c, http.StatusOK, r.encoder.wholeReply(r))
	}
	if err := r.encoder.sendEnd(r); err != nil {
		return readerGone(err)
	}
	return nil
}

func (r *v1Reply) add(e answer.Event) error {
	switch e := e.(type) {
	case cite.Cited:
		r.text.sources[e.Number] = e
	case answer.Kept:
		r.text.escaper.Unknown = cite.UnknownAddresses(e.Passages)
	case cite.Placed:
		r.text.numbers = append(r.text.numbers, e)
	case answer.Text:
		r.text.escaper.Plain = e.Plain
		return r.text.append(e.Text)
	case answer.Unanswered:
		return r.text.append(e.Text)
	case answer.Incomplete:
		r.reason = e.Reason
	case answer.Fallback:
		r.fellBack = true
	}
	return nil
}

func (r *v1Reply) write(piece string) error {
	r.content.WriteString(piece)
	if r.out == nil || r.asked.output != nil {
		return nil
	}
	return r.encoder.sendPiece(r, piece)
}

// close ends the text: it sends the pending text, the reason if the answer is incomplete, and
// the list of sources.
func (r *v1Reply) close(q askRequest, a cite.Answer) error {
	r.finishReason, r.sources = "stop", a.Sources
	for _, s := range a.Unsupported {
		r.unsupported = append(r.unsupported, unsupportedSentence{a.Text[s.TextStart:s.TextEnd], s.Reason})
	}
	err := r.text.close()
	switch {
	case errors.Is(err, errEnough):
		r.finishReason, err = "length", nil
	case err != nil:
		return err
	case r.reason != "":
		r.finishReason = "length"
		err = r.text.addRaw(fmt.Sprintf("\n\n(The answer is incomplete: %s)", strings.TrimRight(rewrite.EscapeTitle(r.reason), ".")))
	case r.fellBack:
		err = r.text.addRaw("\n\n(Sentences of the documents are quoted instead of an answer by the model.)")
	}
	if err != nil {
		return err
	}
	r.shown, r.annotations = r.text.shownSources(), nil
	switch {
	case r.text.cut:
	case len(r.shown) > 0:
		if !r.asked.clientListsSources {
			err = r.text.addRaw(r.text.list(r.shown, func(int) string { return "" }))
		}
	case a.Answered && r.reason == "":
		err = r.text.addRaw(uncited)
	case len(a.Closest) > 0 && r.asked.output == nil:
		err = r.text.addRaw("\n\n" + answer.ClosestWords(a.Text) + quotations(a.Closest, r.links))
	}
	r.annotations, r.usage = r.text.annotations, r.usageOf(q, a.Usage)
	return err
}

func (r *v1Reply) usageOf(q askRequest, u answer.Usage) chatUsage {
	if u == (answer.Usage{}) { // the answer was cut off
		u.PromptTokens, u.CompletionTokens = int(r.spent.prompt.Load()), int(r.spent.completion.Load())
	}
	out := chatUsage{Prompt: u.PromptTokens, Completion: u.CompletionTokens}
	if u.ReasoningTokens > 0 {
		out.Details = &chatUsageDetails{u.ReasoningTokens}
	}
	if u.PromptTokens+u.CompletionTokens == 0 {
		out.Prompt = ingest.CountTokens(q.Question) + ingest.CountTokens(q.Style)
		for _, t := range q.History {
			out.Prompt += ingest.CountTokens(t.Content)
		}
		out.Completion = ingest.CountTokens(string(r.text.text[:r.text.sent]))
	}
	out.Total = out.Prompt + out.Completion
	return out
}
