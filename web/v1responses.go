package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
)

// responseRequest is the body of POST /v1/responses. Other members are ignored.
type responseRequest struct {
	v1Request
	// Input is the question, or a conversation whose last user message is the question.
	Input        responseInput `json:"input"`
	Instructions string        `json:"instructions"`
	// Previous is the id of an earlier response to the same key. Its conversation is the
	// history.
	Previous     string             `json:"previous_response_id"`
	Conversation json.RawMessage    `json:"conversation"`
	Prompt       json.RawMessage    `json:"prompt"`
	Background   bool               `json:"background"`
	MaxTokens    *integer           `json:"max_output_tokens"`
	Text         responseTextFormat `json:"text"`
	// Metadata is repeated in the response.
	Metadata map[string]string `json:"metadata"`
}

// responseTextFormat is the form of a response's text.
type responseTextFormat struct {
	Format chatResponseFormat `json:"format,omitzero"`
}

// responseInput is a text, or a list of messages and other items.
type responseInput []responseItem

// responseItem is an item of a conversation: a message, or a reference to one. Items
// of other types are ignored.
type responseItem struct {
	Type string `json:"type,omitempty"` // empty means "message"
	ID   string `json:"id,omitempty"`
	chatMessage
}

func (in *responseInput) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*in = responseInput{{chatMessage: chatMessage{"user", content{text: text}}}}
		return nil
	}
	return unmarshal(b, (*[]responseItem)(in))
}

// responses answers the last message of the input.
func (o *openAI) responses(c echo.Context) error {
	var r responseRequest
	if _, err := decode(c, &r); err != nil {
		return renameField("input", err)
	}
	collection, itself, err := o.library.collectionOf(c, r.Model)
	given := func(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }
	switch {
	case err != nil:
		return err
	case itself:
		return onlyChat(r.Model)
	case r.Background:
		return unsupported("background", "responses in the background are not supported: omit background, or use POST /api/runs")
	case given(r.Conversation), given(r.Prompt):
		return unsupported("conversation", "conversations and prompts are not stored here: send input and previous_response_id instead")
	}
	messages, err := o.messagesOf(c, &r)
	if err != nil {
		return err
	}
	a := v1Ask{v1Request: r.v1Request, messages: messages, format: r.Text.Format, formatParam: "text",
		limits: map[string]*integer{"max_output_tokens": r.MaxTokens}}
	return renameField("input", o.converse(c, &a, collection, &responseEncoder{request: &r}))
}

// messagesOf returns the conversation: the instructions, the conversation up to the previous
// response, and the input.
func (o *openAI) messagesOf(c echo.Context, r *responseRequest) ([]chatMessage, error) {
	messages := []chatMessage{{"system", content{text: r.Instructions}}}
	if r.Previous != "" {
		turns, err := o.turnsOf(c, r.Previous)
		if err != nil {
			return nil, err
		}
		if turns == nil {
			return nil, badValue("previous_response_id", "there is no response %.60q of this key: it has no record, or the record has expired; "+
				"send the conversation as input", r.Previous)
		}
		for _, t := range turns {
			messages = append(messages, chatMessage{t.Role, content{text: t.Content}})
		}
	}
	for _, item := range r.Input {
		switch item.Type {
		case "", "message":
			messages = append(messages, item.chatMessage)
		case "item_reference":
			turns, err := o.turnsOf(c, item.ID)
			if err != nil {
				return nil, err
			}
			if len(turns) > 0 {
				messages = append(messages, chatMessage{"assistant", content{text: turns[len(turns)-1].Content}})
			}
		}
	}
	return messages, nil
}

// turnsOf returns the conversation up to a response, by the id of the response or of its
// message. It returns nil if the caller has no such response.
func (o *openAI) turnsOf(c echo.Context, id string) ([]answer.Turn, error) {
	record, err := o.recordOf(c, id)
	if record == nil {
		return nil, err
	}
	return record.turns()
}

// recordOf returns the record of a response, or nil if the caller has no such response.
func (o *openAI) recordOf(c echo.Context, id string) (*answerRecord, error) {
	_, run, _ := strings.Cut(id, "_")
	live, record, err := o.records.find(c, run)
	if isProblem(err, "run_not_found") || live != nil && !live.keep {
		return nil, nil
	}
	if err != nil || record.by != callerID(c) || record.Kind != kindName(askKind) || record.Answer == nil {
		return nil, err
	}
	return record, nil
}

// showResponse replies with an earlier response as text. Instructions and JSON are not
// recorded.
func (o *openAI) showResponse(c echo.Context) error {
	if c.QueryParam("stream") == "true" {
		return unsupported("stream", "a response that has ended cannot be streamed: omit stream")
	}
	id := c.Param("id")
	record, err := o.recordOf(c, id)
	if err != nil {
		return err
	}
	if record == nil || id != "resp_"+record.ID {
		return problem(http.StatusNotFound, "not_found",
			"there is no response %.60q of this key: it has no record, or the record has expired", id).withField("response_id")
	}
	asked, err1 := decodeStored[askRequest](record.Request)
	whole, err2 := decodeStored[cite.Answer](record.Answer)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	r := &v1Reply{asked: new(v1Ask), runID: record.ID, created: record.Started, links: o.links, fellBack: whole.Fallback != ""}
	r.asked.Model = everything
	if asked.Collection != "" {
		r.asked.Model += "/" + asked.Collection
	}
	if whole.Incomplete {
		r.reason = whole.Reason
	}
	r.text = &linkedText{links: o.links, write: r.write}
	r.text.setAnswer(whole)
	for _, e := range record.log { // their links were made before the quotes were known
		if e.kind == "cited" {
			c, err := decodeStored[cite.Cited](e.data)
			if err != nil {
				return err
			}
			r.text.sources[c.Number] = c
		}
	}
	if err := errors.Join(r.text.append(whole.Text), r.close(asked, whole)); err != nil {
		return err
	}
	return reply(c, http.StatusOK, (&responseEncoder{request: &responseRequest{}}).wholeReply(r))
}

// The reply of POST /v1/responses.
type (
	response struct {
		ID           string              `json:"id"`
		Object       string              `json:"object"`
		CreatedAt    int64               `json:"created_at"`
		Status       string              `json:"status"` // "in_progress", "completed", "incomplete" or "failed"
		Error        *responseFault      `json:"error"`
		Missing      *responseIncomplete `json:"incomplete_details"`
		Instructions *string             `json:"instructions"`
		MaxTokens    *integer            `json:"max_output_tokens"`
		Model        string              `json:"model"`
		Previous     *string             `json:"previous_response_id"`
		ToolChoice   json.RawMessage     `json:"tool_choice"`
		Text         responseTextFormat  `json:"text"`
		Tools        []v1Tool            `json:"tools"` // empty, since no tools are called
		Store        bool                `json:"store"`
		// Parallel is false, since at most one tool is called.
		Parallel bool              `json:"parallel_tool_calls"`
		Metadata map[string]string `json:"metadata"`
		Output   []responseOutput  `json:"output"`

		Unsupported []unsupportedSentence `json:"unsupported,omitempty"`
		Usage       *responseUsage        `json:"usage"`
	}
	responseFault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	responseIncomplete struct {
		Reason string `json:"reason"` // always "max_output_tokens"
	}
	// responseOutput is a message or a call of the only tool.
	responseOutput struct {
		Type      string         `json:"type"` // "message" or "function_call"
		ID        string         `json:"id"`
		Status    string         `json:"status"`
		Role      string         `json:"role,omitempty"`
		Content   []responsePart `json:"content,omitzero"`
		CallID    string         `json:"call_id,omitempty"`
		Name      string         `json:"name,omitempty"`
		Arguments *string        `json:"arguments,omitempty"`
	}
	responsePart struct {
		Type        string               `json:"type"` // "output_text" or "refusal"
		Text        *string              `json:"text,omitempty"`
		Annotations []responseAnnotation `json:"annotations,omitzero"`
		Logprobs    []string             `json:"logprobs,omitzero"` // empty
		Refusal     *string              `json:"refusal,omitempty"`
	}
	// responseAnnotation is an annotation. Each number has a url_citation, whose indices
	// count characters (Unicode code points); the first number of each source has a
	// file_citation, too.
	responseAnnotation struct {
		Type  string `json:"type"`
		Start *int   `json:"start_index,omitempty"`
		End   *int   `json:"end_index,omitempty"`
		URL   string `json:"url,omitempty"`
		Title string `json:"title,omitempty"`
		// FileID is the document's id in GET /v1/files.
		FileID   string `json:"file_id,omitempty"`
		Filename string `json:"filename,omitempty"`
		Index    *int   `json:"index,omitempty"`
	}
	responseUsage struct {
		Input         int                  `json:"input_tokens"`
		InputDetails  responseInputDetails `json:"input_tokens_details"`
		Output        int                  `json:"output_tokens"`
		OutputDetails chatUsageDetails     `json:"output_tokens_details"`
		Total         int                  `json:"total_tokens"`
	}
	responseInputDetails struct {
		Cached int `json:"cached_tokens"` // 0: unknown
	}
)

// responseEvent is an event of a streamed response, with the members of its type.
type responseEvent struct {
	Type      string              `json:"type"`
	Sequence  int                 `json:"sequence_number"`
	Response  *response           `json:"response,omitempty"`
	Output    *int                `json:"output_index,omitempty"`
	ItemID    string              `json:"item_id,omitempty"`
	Item      *responseOutput     `json:"item,omitempty"`
	Content   *int                `json:"content_index,omitempty"`
	Part      *responsePart       `json:"part,omitempty"`
	Delta     *string             `json:"delta,omitempty"`
	Logprobs  []string            `json:"logprobs,omitzero"`
	Text      *string             `json:"text,omitempty"`
	Refusal   *string             `json:"refusal,omitempty"`
	Arguments *string             `json:"arguments,omitempty"`
	NoteIndex *int                `json:"annotation_index,omitempty"`
	Note      *responseAnnotation `json:"annotation,omitempty"`
}

// responseEncoder writes answers in the form of POST /v1/responses.
type responseEncoder struct {
	request   *responseRequest
	sequence  int
	sentNotes int // number of the text's annotations already sent
	notes     []responseAnnotation
	announced bool // the events that begin a message were sent
}

func (e *responseEncoder) head(r *v1Reply, status string) *response {
	out := &response{ID: "resp_" + r.name(), Object: "response", CreatedAt: r.created.Unix(), Status: status, Model: r.asked.Model,
		MaxTokens: e.request.MaxTokens, ToolChoice: e.request.ToolChoice, Text: e.request.Text, Tools: []v1Tool{},
		Store: r.runID != "", Output: []responseOutput{}, Metadata: e.request.Metadata}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	if len(out.ToolChoice) == 0 || string(out.ToolChoice) == "null" {
		out.ToolChoice = json.RawMessage(`"auto"`)
	}
	if out.Text.Format.Type == "" {
		out.Text.Format.Type = "text"
	}
	if e.request.Instructions != "" {
		out.Instructions = &e.request.Instructions
	}
	if e.request.Previous != "" {
		out.Previous = &e.request.Previous
	}
	return out
}

// name returns the suffix of the ids of a response and its message.
func (r *v1Reply) name() string {
	if r.runID != "" {
		return r.runID
	}
	return r.requestID
}

func (e *responseEncoder) wholeReply(r *v1Reply) any {
	e.addNotes(r)
	return e.endedResponse(r)
}

// endedResponse returns the complete response.
func (e *responseEncoder) endedResponse(r *v1Reply) *response {
	out := e.head(r, "completed")
	if r.finishReason == "length" {
		out.Status, out.Missing = "incomplete", &responseIncomplete{"max_output_tokens"}
	}
	u := r.usage
	out.Usage = &responseUsage{Input: u.Prompt, Output: u.Completion, Total: u.Total}
	if u.Details != nil {
		out.Usage.OutputDetails = *u.Details
	}
	out.Output, out.Unsupported = []responseOutput{e.output(r, out.Status)}, r.unsupported
	return out
}

// output returns the only item of a response.
func (e *responseEncoder) output(r *v1Reply, status string) responseOutput {
	text, refusal, calls := r.messageParts()
	switch {
	case calls != nil:
		return responseOutput{Type: "function_call", ID: "fc_" + r.name(), Status: status, CallID: calls[0].ID,
			Name: calls[0].Function.Name, Arguments: &calls[0].Function.Arguments}
	case refusal != nil:
		return e.message(r, status, responsePart{Type: "refusal", Refusal: refusal})
	}
	return e.message(r, status, responsePart{Type: "output_text", Text: text, Annotations: append([]responseAnnotation{}, e.notes...),
		Logprobs: []string{}})
}

func (e *responseEncoder) message(r *v1Reply, status string, parts ...responsePart) responseOutput {
	return responseOutput{Type: "message", ID: "msg_" + r.name(), Status: status, Role: "assistant",
		Content: append([]responsePart{}, parts...)}
}

// addNotes adds the new annotations of the text, and returns them.
func (e *responseEncoder) addNotes(r *v1Reply) []responseAnnotation {
	known := len(e.notes)
	all := r.text.annotations
	if r.asked.output != nil {
		all = r.annotations
	}
	for ; e.sentNotes < len(all); e.sentNotes++ {
		a := all[e.sentNotes]
		e.notes = append(e.notes, responseAnnotation{Type: a.Type, Start: &a.URL.Start, End: &a.URL.End, URL: a.URL.URL, Title: a.URL.Title})
		first := true
		for _, earlier := range all[:e.sentNotes] {
			first = first && earlier.number != a.number
		}
		if document := r.text.sources[a.number].Document; first && document != "" {
			e.notes = append(e.notes, responseAnnotation{Type: "file_citation", FileID: fileID(document), Filename: document, Index: &a.URL.Start})
		}
	}
	return e.notes[known:]
}

func (e *responseEncoder) send(r *v1Reply, ev responseEvent) error {
	ev.Sequence = e.sequence
	e.sequence++
	return r.out.writeEvent(ev.Type, ev)
}

// sendAll sends events about the only item of the response, and its only part.
func (e *responseEncoder) sendAll(r *v1Reply, item responseOutput, events ...responseEvent) error {
	for _, ev := range events {
		ev.Output = new(int)
		if ev.Item == nil {
			ev.ItemID = item.ID
			if item.Type == "message" {
				ev.Content = new(int)
			}
		}
		if err := e.send(r, ev); err != nil {
			return err
		}
	}
	return nil
}

// begin sends the events that precede the text.
func (e *responseEncoder) begin(r *v1Reply) error {
	if e.sequence > 0 {
		return nil
	}
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := e.send(r, responseEvent{Type: kind, Response: e.head(r, "in_progress")}); err != nil {
			return err
		}
	}
	return nil
}

func (e *responseEncoder) sendPiece(r *v1Reply, text string) error {
	if err := e.begin(r); err != nil {
		return err
	}
	item := e.message(r, "in_progress")
	var events []responseEvent
	if !e.announced {
		e.announced = true
		part := responsePart{Type: "output_text", Text: new(string), Annotations: []responseAnnotation{}, Logprobs: []string{}}
		events = append(events, responseEvent{Type: "response.output_item.added", Item: &item},
			responseEvent{Type: "response.content_part.added", Part: &part})
	}
	events = append(events, responseEvent{Type: "response.output_text.delta", Delta: &text, Logprobs: []string{}})
	at := len(e.notes)
	for i, n := range e.addNotes(r) {
		index := at + i
		events = append(events, responseEvent{Type: "response.output_text.annotation.added", Note: &n, NoteIndex: &index})
	}
	return e.sendAll(r, item, events...)
}

func (e *responseEncoder) sendEnd(r *v1Reply) error {
	text, refusal, calls := r.messageParts()
	if err := e.begin(r); err != nil {
		return err
	}
	if text != nil && (r.asked.output != nil || !e.announced) { // the text was not sent yet
		if err := e.sendPiece(r, *text); err != nil {
			return err
		}
	}
	whole := e.endedResponse(r)
	item := whole.Output[0]
	first := item
	first.Status = "in_progress"
	var events []responseEvent
	switch {
	case calls != nil:
		first.Arguments = new(string)
		events = []responseEvent{{Type: "response.output_item.added", Item: &first},
			{Type: "response.function_call_arguments.delta", Delta: item.Arguments},
			{Type: "response.function_call_arguments.done", Arguments: item.Arguments}}
	case refusal != nil:
		first.Content = []responsePart{}
		events = []responseEvent{{Type: "response.output_item.added", Item: &first},
			{Type: "response.content_part.added", Part: &responsePart{Type: "refusal", Refusal: new(string)}},
			{Type: "response.refusal.delta", Delta: refusal}, {Type: "response.refusal.done", Refusal: refusal},
			{Type: "response.content_part.done", Part: &item.Content[0]}}
	default:
		events = []responseEvent{{Type: "response.output_text.done", Text: text, Logprobs: []string{}},
			{Type: "response.content_part.done", Part: &item.Content[0]}}
	}
	if err := e.sendAll(r, item, append(events, responseEvent{Type: "response.output_item.done", Item: &item})...); err != nil {
		return err
	}
	return e.send(r, responseEvent{Type: "response." + whole.Status, Response: whole})
}

func (e *responseEncoder) sendError(r *v1Reply, p *Problem) error {
	if err := e.begin(r); err != nil {
		return err
	}
	out := e.head(r, "failed")
	_, fault := v1ErrorOf(p)
	code := "server_error"
	if p.Status == http.StatusTooManyRequests {
		code = "rate_limit_exceeded"
	}
	out.Error = &responseFault{code, fault.Error.Message}
	return e.send(r, responseEvent{Type: "response.failed", Response: out})
}
