package openaitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// chat replies to a chat request.
func (x *exchange) chat() {
	whole := x.wholeReply()
	if x.reply.Fault != "" && x.playFault(whole) {
		return
	}
	if x.Stream && x.reply.Fault != PlainJSON {
		x.stream()
		return
	}
	tokens := Split(x.reply.Text)
	if x.wait(x.firstTokenDelay() + time.Duration(max(0, len(tokens)-1))*x.tokenDelay()) {
		x.w.Header().Set("Content-Type", "application/json")
		x.write(whole)
		x.Sent = len(tokens)
	}
}

func (x *exchange) firstTokenDelay() time.Duration { return cmp.Or(x.reply.FirstToken, x.h.FirstToken) }

func (x *exchange) tokenDelay() time.Duration { return cmp.Or(x.reply.PerToken, x.h.PerToken) }

func (x *exchange) finishReason() string { return cmp.Or(x.reply.Finish, "stop") }

func (x *exchange) usage() map[string]int {
	prompt := cmp.Or(x.reply.PromptTokens, x.Tokens)
	out := len(Split(x.reply.Text)) + len(Split(x.reply.Reasoning))
	return map[string]int{"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out}
}

// wholeReply is the reply in one JSON object.
func (x *exchange) wholeReply() string {
	message := map[string]any{"role": "assistant", "content": x.reply.Text}
	if x.reply.Reasoning != "" {
		if x.reply.ReasoningField != "" {
			message[x.reply.ReasoningField] = x.reply.Reasoning
		} else {
			message["content"] = x.thoughts() + x.reply.Text
		}
	}
	return encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", x.N), "object": "chat.completion", "model": x.model(), "usage": x.usage(),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": x.finishReason()}},
	})
}

// thoughts returns the reasoning as a part of the text.
func (x *exchange) thoughts() string {
	if x.reply.thinking {
		return "<think>" + x.reply.Reasoning
	}
	return "<think>" + x.reply.Reasoning + "</think>\n\n"
}

// A delta is the field and the text of one token.
type delta struct{ field, text string }

func (x *exchange) deltas() []delta {
	var out []delta
	add := func(field, text string) {
		for _, token := range Split(text) {
			out = append(out, delta{field, token})
		}
	}
	if x.reply.Reasoning != "" {
		if x.reply.ReasoningField != "" {
			add(x.reply.ReasoningField, x.reply.Reasoning)
		} else {
			add("content", x.thoughts())
		}
	}
	add("content", x.reply.Text)
	return out
}

// stream replies by server-sent events.
func (x *exchange) stream() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.Header().Set("Cache-Control", "no-cache")
	x.w.WriteHeader(200)
	fault := x.reply.Fault
	if x.playBefore(fault) {
		return
	}
	after := cmp.Or(x.reply.After, 3)
	deltas := x.deltas()
	for i, d := range deltas {
		pause := x.tokenDelay()
		if i == 0 {
			pause = x.firstTokenDelay()
		}
		if !x.wait(pause) || x.Gone {
			return
		}
		if i == after && x.playMiddle(fault, d) {
			return
		}
		x.data(x.chunk(map[string]any{d.field: d.text}, nil))
		x.Sent++
	}
	if len(deltas) <= after && x.playMiddle(fault, delta{"content", " and so on"}) {
		return
	}
	x.data(x.chunk(map[string]any{}, x.finishReason()))
	if x.Usage && fault != NoUsage {
		x.data(encode(map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": x.usage()}))
	}
	x.data("[DONE]")
}

// playBefore plays a fault before the first token, and reports whether that ended the
// reply.
func (x *exchange) playBefore(fault Fault) bool {
	switch fault {
	case FirstTokenStall:
		x.write("\n")
		x.stall()
	case KeepAliveForever:
		for x.wait(time.Millisecond) && !x.Gone {
			x.write(": keep-alive\n\n")
		}
	case ResetFirst:
		x.write("data: {")
		x.cutConnection("")
	case HugeLine:
		x.writeHuge(`data: {"choices":[{"index":0,"delta":{"content":"`, "a", "\"}}]}\n\n")
	case HugeText:
		chunk := "data: " + x.chunk(map[string]any{"content": strings.Repeat("lorem ", 1000)}, nil) + "\n\n"
		x.writeHuge("", chunk, "")
	default:
		return false
	}
	return true
}

// playMiddle plays a fault in place of the token d, and reports whether that ended
// the reply.
func (x *exchange) playMiddle(fault Fault, d delta) bool {
	next := "data: " + x.chunk(map[string]any{d.field: d.text}, nil)
	switch fault {
	case MiddleStall:
		x.stall()
	case Reset:
		x.write(next[:len(next)/2])
		x.cutConnection("")
	case NoFinish:
	default:
		return false
	}
	return true
}

func (x *exchange) chunk(delta map[string]any, finish any) string {
	return encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", x.N), "object": "chat.completion.chunk", "model": x.model(),
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

// data sends one event.
func (x *exchange) data(payload string) { x.write("data: " + payload + "\n\n") }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("openaitest: unreachable: " + err.Error()) // only maps, strings and numbers come here
	}
	return string(b)
}
