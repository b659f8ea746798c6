package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
)

// chatRequest is the body of POST /v1/chat/completions. Other members are ignored, so clients
// cannot change the model's parameters, such as the temperature.
type chatRequest struct {
	v1Request
	Messages            []chatMessage      `json:"messages"`
	StreamOptions       chatStreamOptions  `json:"stream_options"`
	N                   integer            `json:"n"` // default 1
	MaxTokens           *integer           `json:"max_tokens"`
	MaxCompletionTokens *integer           `json:"max_completion_tokens"`
	Logprobs            bool               `json:"logprobs"`
	Functions           []json.RawMessage  `json:"functions"`
	FunctionCall        json.RawMessage    `json:"function_call"`
	Modalities          []string           `json:"modalities"`
	ResponseFormat      chatResponseFormat `json:"response_format"`
}

type chatStreamOptions struct {
	// IncludeUsage adds a last chunk with the usage and no choice.
	IncludeUsage bool `json:"include_usage"`
}

// chatMessage is one message of a conversation.
type chatMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message, and the types of its other parts.
type content struct {
	text       string
	otherTypes []string
}

func (t *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		var text *string
		if err := json.Unmarshal(b, &text); err != nil {
			return badValue("messages", "the content of a message must be a text, or a list of parts with a type")
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
	if err := unmarshal(b, &parts); err != nil {
		return badValue("messages", "the content of a message must be a text, or a list of parts with a type")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" || p.Type == "input_text" || p.Type == "output_text" {
			texts = append(texts, p.Text)
		} else {
			t.otherTypes = append(t.otherTypes, p.Type)
		}
	}
	t.text = strings.Join(texts, "\n")
	return nil
}

// Limits on the history: only the end of a conversation is read.
const (
	maxTurns        = 20
	maxHistoryBytes = 64 << 10
	maxStyleBytes   = 16 << 10
)

// conversation turns messages into a question: the last user message, with the earlier turns
// as history and the messages of the system and of developers as style.
func conversation(messages []chatMessage) (q askRequest, _ error) {
	last := -1
	var style []string
	for i, m := range messages {
		switch m.Role {
		case "user":
			last = i
		case "system", "developer":
			if text := stripContext(m.Content.text); text != "" {
				style = append(style, text)
			}
		case "assistant", "tool", "function":
		default:
			return q, badValue("messages", "messages[%d].role is %.40q: use system, developer, user or assistant", i, m.Role)
		}
	}
	if last < 0 {
		return q, badValue("messages", "there is no user message: send the question as the last user message")
	}
	asked := messages[last].Content
	if len(asked.otherTypes) > 0 {
		return q, invalidField("messages", "unsupported_content", "a part of the question has the type %.40q: only text is supported; "+
			"add documents to the library and ask about them", asked.otherTypes[0])
	}
	if q.Question = stripContext(asked.text); q.Question == "" {
		return q, badValue("messages", "the last user message is empty: send the question in it")
	}
	q.Style = strings.Join(style, "\n\n")
	q.Style = q.Style[:runeStart(q.Style, maxStyleBytes)]
	room := maxHistoryBytes
	for i := last - 1; i >= 0 && len(q.History) < maxTurns && room > 0; i-- {
		m := messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			continue
		}
		text := m.Content.text
		if m.Role == "assistant" {
			text = stripSources(text)
		}
		text = strings.TrimSpace(text)
		if text = text[:runeStart(text, room)]; text != "" {
			q.History = append([]answer.Turn{{Role: m.Role, Content: text}}, q.History...)
			room -= len(text)
		}
	}
	return q, nil
}

// contextForm matches the instructions and sources that Open WebUI puts before a question, or
// at the end of the system message, if the chat has a file, knowledge or a web search.
// queryForm matches the question repeated in the instructions.
var (
	contextForm = regexp.MustCompile(`(?s)(?:^|\n)### Task:\n.*<context>\s*<source .*</source>\s*</context>`)
	queryForm   = regexp.MustCompile(`(?s)^\s*<user_query>(.*?)</user_query>(.*)$`)
)

// stripContext returns the text of a message without the client's sources, since answers come
// only from the documents of the library.
func stripContext(text string) string {
	if at := contextForm.FindStringIndex(text); at != nil {
		before, rest := text[:at[0]], text[at[1]:]
		if found := queryForm.FindStringSubmatch(rest); found != nil {
			rest = cmp.Or(strings.TrimSpace(found[2]), found[1])
		}
		text = before + rest
	}
	return strings.TrimSpace(text)
}

var sourceForm = regexp.MustCompile(`<source id="(\d+)"`)

// ownSources counts the sources that Open WebUI has put before a question or into the system
// message. The page numbers Ibid's sources after them, so its [1] is a source of its own.
func ownSources(messages []chatMessage) (n int) {
	for _, m := range messages {
		for _, found := range sourceForm.FindAllStringSubmatch(contextForm.FindString(m.Content.text), -1) {
			if found[1] == strconv.Itoa(n+1) {
				n++
			}
		}
	}
	return n
}

// check rejects unsupported members that would change the meaning.
func (r *chatRequest) check() error {
	switch {
	case r.N != 1:
		return unsupported("n", "n is %d, but a question has one answer: omit n", r.N)
	case r.Logprobs:
		return unsupported("logprobs", "the probabilities of tokens are unknown: omit logprobs")
	case len(r.Functions) > 0 && bytes.HasPrefix(r.FunctionCall, []byte("{")):
		return unsupported("function_call", `answers come from documents and call no functions: omit function_call, or use `+
			`response_format`)
	}
	for _, m := range r.Modalities {
		if m != "text" {
			return unsupported("modalities", "answers are text, not %.40q: omit modalities", m)
		}
	}
	return nil
}

// isOpenWebUI reports whether a request comes from the page of Open WebUI, which always
// offers this tool. The page lists the sources that it finds in the events of a stream.
func isOpenWebUI(tools []v1Tool) bool {
	return slices.ContainsFunc(tools, func(t v1Tool) bool { return t.Function != nil && t.Function.Name == "get_current_timestamp" })
}

// minTokens returns the smallest of the limits, or 0 if there is no limit.
func minTokens(limits map[string]*integer) (least int, _ error) {
	for name, n := range limits {
		switch {
		case n == nil:
		case *n < 1:
			return 0, badValue(name, "%s is %d: give 1 or more, or omit it", name, *n)
		case least == 0 || int(*n) < least:
			least = int(*n)
		}
	}
	return least, nil
}

// uncited follows an answer without sources, since the OpenAI API has no field for this.
const uncited = "\n\n(No source supports this.)"

// stripSources removes the additions for the client from an earlier answer: the links of numbers
// and the list of sources.
func stripSources(text string) string {
	text = strings.TrimSuffix(strings.TrimRight(text, " \n"), uncited)
	list := regexp.MustCompile(`(?:\n+- \[\d+\] [^\n]*)+\s*$`)
	link := regexp.MustCompile(`\[(\[\d+\])\]\([^)\s]*\)`)
	return link.ReplaceAllString(list.ReplaceAllString(text, ""), "$1")
}

// The replies of POST /v1/chat/completions and POST /v1/completions.
type (
	chatCompletion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []chatChoice `json:"choices"`
		Usage   *chatUsage   `json:"usage,omitzero"`
		chatSources
		// Event is a source for the page of Open WebUI, which shows the quotes.
		Event *uiEvent `json:"event,omitempty"`
	}
	chatChoice struct {
		Index   int        `json:"index"`
		Message *chatReply `json:"message,omitempty"`
		Delta   *chatDelta `json:"delta,omitempty"`
		// Text is set in replies of POST /v1/completions.
		Text   *string `json:"text,omitempty"`
		Probs  any     `json:"logprobs"` // always null
		Finish *string `json:"finish_reason"`
	}
	chatReply struct {
		Role    string  `json:"role"`
		Content *string `json:"content"` // null with a tool call or a refusal
		// Refusal says that the documents do not answer, if the answer should be JSON.
		Refusal     *string          `json:"refusal"`
		Annotations []chatAnnotation `json:"annotations"`
		ToolCalls   []toolCall       `json:"tool_calls,omitempty"`
	}
	chatDelta struct {
		Role        string           `json:"role,omitempty"`
		Content     *string          `json:"content,omitempty"`
		Refusal     *string          `json:"refusal,omitempty"`
		Annotations []chatAnnotation `json:"annotations,omitempty"`
		ToolCalls   []toolCall       `json:"tool_calls,omitempty"`
	}
	chatUsage struct {
		Prompt     int               `json:"prompt_tokens"`
		Completion int               `json:"completion_tokens"`
		Total      int               `json:"total_tokens"`
		Details    *chatUsageDetails `json:"completion_tokens_details,omitempty"`
	}
	chatUsageDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	}
	// chatSources are the sources in forms that clients know: addresses by number, as in
	// Perplexity, and with quotes, as in Open WebUI.
	chatSources struct {
		Citations []string   `json:"citations,omitzero"`
		Sources   []uiSource `json:"sources,omitzero"`

		Unsupported []unsupportedSentence `json:"unsupported,omitempty"`
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
		// External makes Open WebUI show the name instead of the address.
		External bool `json:"external"`
	}
	uiEvent struct {
		Type string   `json:"type"` // "source"
		Data uiSource `json:"data"`
	}
	toolCall struct {
		Index    int        `json:"index"`
		ID       string     `json:"id"`
		Type     string     `json:"type"` // "function"
		Function calledTool `json:"function"`
	}
	calledTool struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	}
)

// chatEncoder writes answers in the form of POST /v1/chat/completions or, if plain, of POST
// /v1/completions.
type chatEncoder struct {
	plain        bool // write the form of POST /v1/completions
	includeUsage bool
	began        bool
}

func (e *chatEncoder) head(r *v1Reply, object string) chatCompletion {
	id := "chatcmpl-"
	switch {
	case e.plain:
		id, object = "cmpl-", "text_completion"
	case r.out != nil:
		object += ".chunk"
	}
	return chatCompletion{ID: id + r.requestID, Object: object, Created: r.created.Unix(), Model: r.asked.Model}
}

func (e *chatEncoder) sendPiece(r *v1Reply, text string) error {
	if e.plain {
		return e.send(r, chatChoice{Text: &text}, nil)
	}
	d := chatDelta{Content: &text}
	if !e.began {
		e.began = true
		d.Role = "assistant"
	}
	return e.send(r, chatChoice{Delta: &d}, nil)
}

func (e *chatEncoder) send(r *v1Reply, choice chatChoice, more func(*chatCompletion)) error {
	chunk := e.head(r, "chat.completion")
	chunk.Choices = []chatChoice{choice}
	if more != nil {
		more(&chunk)
	}
	return r.out.writeEvent("", chunk)
}

func (e *chatEncoder) wholeReply(r *v1Reply) any {
	out := e.head(r, "chat.completion")
	text, usage := r.content.String(), r.usage
	choice := chatChoice{Finish: &r.finishReason}
	if e.plain {
		choice.Text = &text
	} else {
		choice.Message = &chatReply{Role: "assistant", Annotations: append([]chatAnnotation{}, r.annotations...)}
		choice.Message.Content, choice.Message.Refusal, choice.Message.ToolCalls = r.messageParts()
	}
	out.Choices, out.Usage, out.chatSources = []chatChoice{choice}, &usage, r.chatSources()
	return out
}

// messageParts returns the message of a reply: a text, a refusal, or tool calls.
func (r *v1Reply) messageParts() (text, refusal *string, calls []toolCall) {
	said := r.content.String()
	switch {
	case r.refused:
		return nil, &said, nil
	case r.asked.output != nil && r.asked.output.tool:
		return nil, nil, []toolCall{{ID: "call_" + r.requestID, Type: "function", Function: calledTool{r.asked.output.name, said}}}
	}
	return &said, nil, nil
}

// sendEnd sends the sources and the end of a stream.
func (e *chatEncoder) sendEnd(r *v1Reply) error {
	if !e.began && !e.plain {
		d := chatDelta{Role: "assistant"}
		d.Content, d.Refusal, d.ToolCalls = r.messageParts()
		if err := e.send(r, chatChoice{Delta: &d}, nil); err != nil {
			return err
		}
	}
	sources := r.chatSources()
	last := chatChoice{Finish: &r.finishReason}
	if e.plain {
		last.Text = new(string)
	} else {
		last.Delta = &chatDelta{}
		if !r.asked.clientListsSources { // Open WebUI would show the titles as additional quotes
			last.Delta.Annotations = r.annotations
		}
		// Open WebUI takes the title of a source from the event that comes first.
		for _, s := range sources.Sources {
			if err := e.send(r, chatChoice{Delta: &chatDelta{}}, func(c *chatCompletion) { c.Event = &uiEvent{"source", s} }); err != nil {
				return err
			}
		}
	}
	if err := e.send(r, last, func(c *chatCompletion) { c.chatSources = sources }); err != nil {
		return err
	}
	if e.includeUsage {
		chunk := e.head(r, "chat.completion")
		chunk.Choices, chunk.Usage = []chatChoice{}, &r.usage
		if err := r.out.writeEvent("", chunk); err != nil {
			return err
		}
	}
	return r.out.write([]byte("data: [DONE]\n\n"))
}

func (*chatEncoder) sendError(r *v1Reply, p *Problem) error { return r.out.write(v1ErrorEvent(p)) }

func titleOf(c cite.Cited) string {
	return cmp.Or(oneLine(c.Title), rewrite.VisibleName(c.Document))
}

// chatSources returns the shown sources in the forms of other clients.
func (r *v1Reply) chatSources() chatSources {
	out := chatSources{Citations: []string{}, Sources: []uiSource{}, Unsupported: r.unsupported}
	for _, c := range r.shown {
		out.Citations = append(out.Citations, c.Link)
		u := uiSource{Source: uiSourceName{ID: c.Link, Name: titleOf(c), URL: c.Link}}
		for _, s := range r.sources {
			if s.Number != c.Number {
				continue
			}
			for _, p := range s.Passages {
				if p.Quote != "" {
					u.Document = append(u.Document, rewrite.Escape(p.Quote))
					u.Metadata = append(u.Metadata, uiSourceDetail{c.Link, titleOf(c), p.Page, true})
				}
			}
		}
		if len(u.Document) == 0 {
			u.Document, u.Metadata = []string{titleOf(c)}, []uiSourceDetail{{c.Link, titleOf(c), 0, true}}
		}
		out.Sources = append(out.Sources, u)
	}
	return out
}
