package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/ingest"
)

// chatRequest is the body of POST /v1/chat/completions, except for what is ignored:
// clients cannot change how the model is asked, by temperature for instance.
type chatRequest struct {
	Model               string            `json:"model"`
	Messages            []chatMessage     `json:"messages"`
	Stream              bool              `json:"stream"`
	StreamOptions       streamOptions     `json:"stream_options"`
	N                   *int              `json:"n"`
	Stop                stops             `json:"stop"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	Tools               []json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	Functions           []json.RawMessage `json:"functions"`
	FunctionCall        json.RawMessage   `json:"function_call"`
	Modalities          []string          `json:"modalities"`
	ResponseFormat      responseFormat    `json:"response_format"`
	// Store false means that no record of the answer is kept.
	Store *bool `json:"store"`
}

type (
	streamOptions struct {
		// IncludeUsage adds a last chunk with the usage, and without a choice.
		IncludeUsage bool `json:"include_usage"`
	}
	responseFormat struct {
		Type string `json:"type"` // "text" alone
	}
)

// chatMessage is one message of a conversation.
type chatMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message, and the types of its parts that are no text.
type content struct {
	text   string
	others []string
}

func (t *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		var text *string
		if err := json.Unmarshal(b, &text); err != nil {
			return badValue("messages", "the content of a message is a text, or a list of parts with a type")
		}
		if text != nil {
			t.text = *text
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return badValue("messages", "the content of a message is a text, or a list of parts with a type")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" || p.Type == "input_text" {
			texts = append(texts, p.Text)
		} else {
			t.others = append(t.others, p.Type)
		}
	}
	t.text = strings.Join(texts, "\n")
	return nil
}

// maxStops is how many stop sequences a request may have, as in OpenAI's API.
const maxStops = 4

// stops are the sequences before which an answer is cut: a text, or a list.
type stops []string

func (s *stops) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		b = slices.Concat([]byte("["), b, []byte("]"))
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil || len(many) > maxStops {
		return badValue("stop", "stop is a text, or a list of at most %d", maxStops)
	}
	*s = slices.DeleteFunc(many, func(stop string) bool { return stop == "" })
	return nil
}

// Only the end of a conversation is read.
const (
	maxTurns        = 20
	maxHistoryBytes = 64 << 10
	maxStyleBytes   = 16 << 10
)

// question turns a conversation into a question: the last message of the user, with
// the earlier turns as history and the messages of the system and of developers
// as style.
func (r *chatRequest) question() (askRequest, error) {
	q := askRequest{Record: r.Store}
	if err := r.check(); err != nil {
		return q, err
	}
	last := -1
	var style []string
	for i, m := range r.Messages {
		switch m.Role {
		case "user":
			last = i
		case "system", "developer":
			if text := strings.TrimSpace(m.Content.text); text != "" {
				style = append(style, text)
			}
		case "assistant", "tool", "function":
		default:
			return q, badValue("messages", "messages[%d].role is %.40q: use system, developer, user or assistant", i, m.Role)
		}
	}
	if last < 0 {
		return q, badValue("messages", "there is no user message: the last one is the question")
	}
	asked := r.Messages[last].Content
	if len(asked.others) > 0 {
		return q, invalidField("messages", "unsupported_content", "a part of the question has the type %.40q: only text is supported; "+
			"add documents to the library and ask about them", asked.others[0])
	}
	if strings.TrimSpace(asked.text) == "" {
		return q, badValue("messages", "the last user message is empty: it is the question")
	}
	q.Question = asked.text
	q.Style = clip(strings.Join(style, "\n\n"), maxStyleBytes)
	room := maxHistoryBytes
	for i := last - 1; i >= 0 && len(q.History) < maxTurns && room > 0; i-- {
		m := r.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			continue
		}
		text := m.Content.text
		if m.Role == "assistant" {
			text = withoutSources(text)
		}
		if text = clip(strings.TrimSpace(text), room); text != "" {
			q.History = append([]answer.Turn{{Role: m.Role, Content: text}}, q.History...)
			room -= len(text)
		}
	}
	return q, nil
}

// check refuses what is not supported, where ignoring it would change the meaning.
func (r *chatRequest) check() error {
	wants := func(choice json.RawMessage) bool { return string(choice) != `"none"` }
	switch {
	case r.N != nil && *r.N != 1:
		return unsupported("n", "n is %d, and a question has one answer here: leave it out", *r.N)
	case len(r.Tools) > 0 && wants(r.ToolChoice):
		return unsupported("tools", `answers here come from documents, and call no tools: leave tools out, or set tool_choice to "none"`)
	case len(r.Functions) > 0 && wants(r.FunctionCall):
		return unsupported("functions",
			`answers here come from documents, and call no functions: leave functions out, or set function_call to "none"`)
	case r.ResponseFormat.Type != "" && r.ResponseFormat.Type != "text":
		return unsupported("response_format", "answers here are text with citations, and no JSON: leave response_format out, or ask the "+
			"model itself by its own name")
	}
	for _, m := range r.Modalities {
		if m != "text" {
			return unsupported("modalities", "answers here are text, and no %.40q: leave modalities out", m)
		}
	}
	for name, most := range map[string]*int{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens} {
		if most != nil && *most < 1 {
			return badValue(name, "%s is %d: give 1 or more, or leave it out", name, *most)
		}
	}
	return nil
}

// maxAnswer is how many tokens the answer may have; 0 for any number.
func (r *chatRequest) maxAnswer() int {
	most := 0
	for _, n := range []*int{r.MaxTokens, r.MaxCompletionTokens} {
		if n != nil && (most == 0 || *n < most) {
			most = *n
		}
	}
	return most
}

// clip cuts a text to at most most bytes, between characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// uncited ends an answer without sources: clients of the OpenAI API have no other
// sign of it.
const uncited = "\n\n(No source bears this out.)"

// withoutSources removes from an earlier answer what was added for the client: the
// links of its numbers, and the list of sources at its end.
func withoutSources(text string) string {
	text = strings.TrimSuffix(strings.TrimRight(text, " \n"), uncited)
	list := regexp.MustCompile(`(?:\n+- \[\d+\] [^\n]*)+\s*$`)
	link := regexp.MustCompile(`\[(\[\d+\])\]\([^)\s]*\)`)
	return link.ReplaceAllString(list.ReplaceAllString(text, ""), "$1")
}

// The replies of POST /v1/chat/completions.
type (
	completion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []chatChoice `json:"choices"`
		Usage   *chatUsage   `json:"usage,omitzero"`
		chatSources
	}
	chatChoice struct {
		Index   int        `json:"index"`
		Message *chatSaid  `json:"message,omitempty"`
		Delta   *chatDelta `json:"delta,omitempty"`
		Probs   any        `json:"logprobs"` // null: never known
		Finish  *string    `json:"finish_reason"`
	}
	chatSaid struct {
		Role        string       `json:"role"`
		Content     string       `json:"content"`
		Refusal     any          `json:"refusal"` // null: a refusal for lack of evidence is an answer too
		Annotations []annotation `json:"annotations"`
	}
	chatDelta struct {
		Role        string       `json:"role,omitempty"`
		Content     *string      `json:"content,omitempty"`
		Annotations []annotation `json:"annotations,omitempty"`
	}
	chatUsage struct {
		Prompt     int           `json:"prompt_tokens"`
		Completion int           `json:"completion_tokens"`
		Total      int           `json:"total_tokens"`
		Details    *usageDetails `json:"completion_tokens_details,omitempty"`
	}
	usageDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	}
	// chatSources are the sources in other forms that clients know: addresses by
	// number, as Perplexity has them, and with quotes, as Open WebUI shows them.
	chatSources struct {
		Citations []string   `json:"citations,omitzero"`
		Sources   []uiSource `json:"sources,omitzero"`
	}
	uiSource struct {
		Source   uiSourceName     `json:"source"`
		Document []string         `json:"document"`
		Metadata []uiSourceDetail `json:"metadata"`
	}
	uiSourceName struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	uiSourceDetail struct {
		Source string `json:"source"`
		Name   string `json:"name"`
		Page   int    `json:"page,omitempty"`
	}
)

// complete replies with the answer of a task in the form of the OpenAI API.
func (o *openAI) complete(c echo.Context, r *chatRequest, t task) (err error) {
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	l, err := o.begin(c, t, false, cancel)
	if err != nil {
		return err
	}
	ended, cut := errPanicked, false
	defer func() {
		o.storeOutcome(ctx, l, ended)
		if l.recorder != nil && cut {
			// Nobody resumes what was cut because the client wanted no more.
			err = errors.Join(err, o.ledger.End(context.WithoutCancel(ctx), l.ID))
		}
	}()

	w := &chatReply{request: r, links: o.links, head: completion{
		ID: "chatcmpl-" + c.Response().Header().Get(echo.HeaderXRequestID), Created: time.Now().Unix(),
		Model: r.Model, Object: "chat.completion"}}
	w.text = &linkedText{stops: r.Stop, maxTokens: r.maxAnswer(), links: o.links, write: w.write, sources: map[int]cite.Cited{}}
	if r.Stream {
		w.head.Object = "chat.completion.chunk"
		w.out = newEventStream(c.Response(), cancel)
		defer w.out.close()
	}
	citing := o.citing(c)
	citing.Places = true
	whole, err := o.collectEvents(l, tee(o.events(ctx, l, t, citing), w.add), nil)
	if cut = errors.Is(err, errEnough); cut {
		l.keep, err = false, nil
	}
	if _, ended = o.endAnswer(ctx, l, err, w.out); ended != nil {
		if w.out.failure() != nil {
			return ended
		}
		err = fmt.Errorf("answering: %w", ended)
		if w.out.begun() {
			return errors.Join(err, w.out.write(v1ErrorEvent(problemOf(c, err))))
		}
		return err
	}
	usage := w.usage(t.request.(askRequest), whole.Usage)
	if err := w.end(whole.Answer); err != nil {
		return err
	}
	if w.out == nil {
		return reply(c, http.StatusOK, w.whole(usage))
	}
	if err := w.endStream(usage); err != nil {
		return readerGone(err)
	}
	return nil
}

func v1ErrorEvent(p *Problem) []byte {
	_, e := toV1(p)
	data, err := json.Marshal(e)
	if err != nil { // strings
		panic(err)
	}
	return fmt.Appendf(nil, "data: %s\n\n", data)
}

// A chatReply writes the reply of POST /v1/chat/completions.
type chatReply struct {
	request *chatRequest
	links   bool
	head    completion
	text    *linkedText
	out     *eventStream // nil for a reply in one piece

	content     bytes.Buffer // of a reply in one piece
	began       bool
	reason      string // why the answer is incomplete; empty if it is not
	fellBack    bool
	finish      string
	annotations []annotation
	chatSources
}

func (w *chatReply) add(e answer.Event) error {
	switch e := e.(type) {
	case cite.Cited:
		w.text.sources[e.Number] = e
	case cite.Placed:
		w.text.neutral.numbers = append(w.text.neutral.numbers, e)
	case answer.Text:
		return w.text.append(e.Text)
	case answer.Unanswered:
		return w.text.append(e.Text)
	case answer.Incomplete:
		w.reason = e.Reason
	case answer.Fallback:
		w.fellBack = true
	}
	return nil
}

func (w *chatReply) write(piece string) error {
	if w.out == nil {
		w.content.WriteString(piece)
		return nil
	}
	d := chatDelta{Content: &piece}
	if !w.began {
		w.began = true
		d.Role = "assistant"
	}
	return w.sendChunk(chatChoice{Delta: &d}, chatSources{})
}

// end ends the text: with what was held back, why it is incomplete, and the list of sources.
func (w *chatReply) end(a cite.Answer) error {
	w.finish = "stop"
	err := w.text.close()
	switch {
	case errors.Is(err, errEnough):
		w.finish, err = w.text.cut, nil
	case err != nil:
		return err
	case w.reason != "":
		w.finish = "length"
		err = w.text.addRaw(fmt.Sprintf("\n\n(The answer is incomplete: %s)", strings.TrimRight(rewrite.MarkdownText(w.reason), ".")))
	case w.fellBack:
		err = w.text.addRaw("\n\n(The model gave no answer, so sentences of the documents are quoted.)")
	}
	if err != nil {
		return err
	}
	shown := w.text.shownSources()
	switch {
	case w.text.cut != "":
	case len(shown) > 0:
		err = w.text.addRaw(w.list(shown))
	case a.Answered && w.reason == "":
		err = w.text.addRaw(uncited)
	}
	if err != nil {
		return err
	}
	w.annotations = w.text.annotations
	w.chatSources = sourcesOf(shown, a.Sources)
	return nil
}

func (w *chatReply) list(shown []cite.Cited) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, c := range shown {
		fmt.Fprintf(&b, "\n- [%d] ", c.Number)
		title := rewrite.MarkdownText(titleOf(c))
		if w.links && c.Link != "" {
			fmt.Fprintf(&b, "[%s](%s)", title, linkTarget(c.Link))
		} else {
			b.WriteString(title)
		}
	}
	return b.String()
}

func titleOf(c cite.Cited) string {
	if title := strings.Join(strings.Fields(rewrite.Neutral(c.Title)), " "); title != "" {
		return title
	}
	return rewrite.Neutral(c.Document)
}

// sourcesOf returns the shown sources in the forms of other clients.
func sourcesOf(shown []cite.Cited, all []cite.Source) chatSources {
	out := chatSources{Citations: []string{}, Sources: []uiSource{}}
	for _, c := range shown {
		out.Citations = append(out.Citations, c.Link)
		u := uiSource{Source: uiSourceName{ID: c.Link, Name: titleOf(c), URL: c.Link}}
		for _, s := range all {
			if s.Number != c.Number {
				continue
			}
			for _, p := range s.Passages {
				if p.Quote != "" {
					u.Document = append(u.Document, rewrite.Neutral(p.Quote))
					u.Metadata = append(u.Metadata, uiSourceDetail{Source: c.Link, Name: titleOf(c), Page: p.Page})
				}
			}
		}
		if len(u.Document) == 0 {
			u.Document, u.Metadata = []string{titleOf(c)}, []uiSourceDetail{{Source: c.Link, Name: titleOf(c)}}
		}
		out.Sources = append(out.Sources, u)
	}
	return out
}

func (w *chatReply) usage(q askRequest, u answer.Usage) chatUsage {
	out := chatUsage{Prompt: u.PromptTokens, Completion: u.CompletionTokens}
	if u.ReasoningTokens > 0 {
		out.Details = &usageDetails{u.ReasoningTokens}
	}
	if u.PromptTokens+u.CompletionTokens == 0 {
		out.Prompt = ingest.CountTokens(q.Question) + ingest.CountTokens(q.Style)
		for _, t := range q.History {
			out.Prompt += ingest.CountTokens(t.Content)
		}
		out.Completion = ingest.CountTokens(string(w.text.text[:w.text.sent]))
	}
	out.Total = out.Prompt + out.Completion
	return out
}

func (w *chatReply) whole(u chatUsage) completion {
	r := w.head
	said := chatSaid{Role: "assistant", Content: w.content.String(), Annotations: append([]annotation{}, w.annotations...)}
	r.Choices = []chatChoice{{Message: &said, Finish: &w.finish}}
	r.Usage, r.chatSources = &u, w.chatSources
	return r
}

func (w *chatReply) endStream(u chatUsage) error {
	if !w.began {
		if err := w.write(""); err != nil {
			return err
		}
	}
	if err := w.sendChunk(chatChoice{Delta: &chatDelta{Annotations: w.annotations}, Finish: &w.finish}, w.chatSources); err != nil {
		return err
	}
	if w.request.StreamOptions.IncludeUsage {
		r := w.head
		r.Choices, r.Usage = []chatChoice{}, &u
		if err := w.send(r); err != nil {
			return err
		}
	}
	return w.out.write([]byte("data: [DONE]\n\n"))
}

func (w *chatReply) sendChunk(choice chatChoice, sources chatSources) error {
	r := w.head
	r.Choices, r.chatSources = []chatChoice{choice}, sources
	return w.send(r)
}

func (w *chatReply) send(r completion) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a chunk: %w", err)
	}
	return w.out.write(fmt.Appendf(nil, "data: %s\n\n", data))
}
