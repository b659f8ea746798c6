package web

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// A chatTask is what a chat page asks for by itself, such as a title: it is about the
// conversation, and no question to the documents.
type chatTask struct {
	member string // of the JSON object that the page expects; "" for a title as text
	prompt string
}

// What tells tasks from questions: the form of a reply to Open WebUI, and LibreChat's
// words before a conversation.
var (
	taskForm  = regexp.MustCompile(`\{\s*"(title|tags|follow_ups|queries|text|prompt)":`)
	titleTask = regexp.MustCompile(`^Provide a [^\n]*\btitle\b[^\n]*\n+Conversation:\n`)
)

// taskOf returns the task in the last message of a request, by its shape: that of Open
// WebUI (a form for the reply and the conversation) or of LibreChat.
func taskOf(messages []chatMessage) (chatTask, bool) {
	if len(messages) == 0 || messages[len(messages)-1].Role != "user" {
		return chatTask{}, false
	}
	prompt := strings.TrimSpace(messages[len(messages)-1].Content.text)
	form := taskForm.FindStringSubmatch(prompt)
	switch {
	case strings.HasPrefix(prompt, "### Task:\n") && strings.Contains(prompt, "<chat_history>") && form != nil:
		return chatTask{form[1], prompt}, true
	case titleTask.MatchString(prompt):
		return chatTask{"", prompt}, true
	}
	return chatTask{}, false
}

// doTask has the model do a task, or does it by rule where the caller may not ask
// the model itself: the shape of a task does not limit what it asks for.
func (o *openAI) doTask(c echo.Context, r *chatRequest, t chatTask, body []byte) error {
	if o.relaysTo(c, o.upstream.Model()) {
		return o.relay(c, body)
	}
	w := &v1Reply{asked: &v1Ask{model: r.Model}, requestID: c.Response().Header().Get(echo.HeaderXRequestID), created: time.Now(),
		why: "stop"}
	w.content.WriteString(t.byRule())
	encoder := &chatEncoder{includeUsage: r.StreamOptions.IncludeUsage}
	if !r.Stream {
		return reply(c, http.StatusOK, encoder.whole(w))
	}
	w.out = newEventStream(c.Response(), func(error) {})
	defer w.out.close()
	if err := encoder.end(w); err != nil {
		return readerGone(err)
	}
	return nil
}

// maxTitle is the length of a title, in bytes.
const maxTitle = 60

// byRule does a task without a model: a title is the first question of the
// conversation, and nothing is suggested or completed.
func (t *chatTask) byRule() string {
	title := "Conversation"
	if asked := regexp.MustCompile(`(?i)(?:^|\n)USER:\s*([^\n]+)`).FindStringSubmatch(t.prompt); asked != nil {
		title = strings.TrimRight(strings.TrimSpace(asked[1]), "?.! ")
	}
	if len(title) > maxTitle {
		title = clip(title, maxTitle)
		if space := strings.LastIndexByte(title, ' '); space > 0 {
			title = title[:space]
		}
		title += "…"
	}
	var v any
	switch t.member {
	case "":
		return title
	case "title", "prompt":
		v = title
	case "text":
		v = ""
	case "tags":
		v = []string{"General"} // as Open WebUI asks for where there is too little to tell
	default:
		v = []string{}
	}
	b, err := json.Marshal(map[string]any{t.member: v})
	if err != nil { // strings
		panic(err)
	}
	return string(b)
}
