package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
)

// A jsonOutput is a request for an answer in JSON: as the text of the reply, or as the
// arguments of a tool call.
type jsonOutput struct {
	name    string // of the schema or the tool
	tool    bool
	param   string // request parameter that asks for it
	raw     json.RawMessage
	schema  *jsonschema.Resolved
	choices []*jsonOutput // tools from which the model chooses; nil if there is only one
}

// chatResponseFormat is the form of an answer. The Responses API has the members of
// json_schema at this level.
type chatResponseFormat struct {
	Type       string       `json:"type"` // "text", "json_object" or "json_schema"
	JSONSchema *namedSchema `json:"json_schema,omitempty"`
	namedSchema
}

type namedSchema struct {
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// A v1Tool is a tool that a client offers. It is called only if the request demands it; the
// answer is then its arguments.
type v1Tool struct {
	Type     string        `json:"type"`
	Function *toolFunction `json:"function,omitempty"`
	toolFunction
	fileSearch
}

// fileSearch has the members of a file_search tool, which selects a collection.
type fileSearch struct {
	Stores  []string        `json:"vector_store_ids,omitempty"`
	Filters json.RawMessage `json:"filters,omitempty"` // not supported
}

// toolFunction is a function. The Responses API has its members at the level of the tool.
type toolFunction struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// isOutput reports whether a function receives the final result, by the name or the description
// that pydantic-ai gives it.
func (f toolFunction) isOutput() bool {
	return f.Name == "final_result" || strings.HasPrefix(f.Name, "final_result_") ||
		strings.HasSuffix(f.Description, "The final response which ends this conversation")
}

// A toolChoice says which tools to call. The Responses API has the members of allowed_tools
// at this level.
type toolChoice struct {
	v1Tool
	allowedTools
	Allowed *allowedTools `json:"allowed_tools"`
}

type allowedTools struct {
	Mode  string   `json:"mode"` // "auto" or "required"
	Tools []v1Tool `json:"tools"`
}

func (t *v1Tool) function() toolFunction {
	if t.Function != nil {
		return *t.Function
	}
	return t.toolFunction
}

// outputOf returns the JSON that a request asks for, by its format or by the tool to call, or
// nil for text.
func outputOf(f chatResponseFormat, param string, tools []v1Tool, choice json.RawMessage) (*jsonOutput, error) {
	chosen, err := chosenTools(tools, choice)
	if err != nil {
		return nil, err
	}
	var among []*jsonOutput
	for _, tool := range chosen {
		out, err := newOutput(tool.Name, true, "tool_choice", tool.Parameters)
		if err != nil {
			return nil, err
		}
		among = append(among, out)
	}
	switch len(among) {
	case 0:
	case 1:
		return among[0], nil
	default:
		return &jsonOutput{tool: true, param: "tool_choice", choices: among}, nil
	}
	named := f.namedSchema
	if f.JSONSchema != nil {
		named = *f.JSONSchema
	}
	switch f.Type {
	case "", "text":
		return nil, nil
	case "json_object":
		named = namedSchema{"answer", json.RawMessage(`{"type":"object"}`)}
	case "json_schema":
		if len(named.Schema) == 0 {
			return nil, badValue(param, "%s has no schema", param)
		}
	default:
		return nil, badValue(param, "the type of %s is %.40q: use text, json_object or json_schema", param, f.Type)
	}
	return newOutput(named.Name, false, param, named.Schema)
}

// chosenTools returns the tools that may be called if the request requires a call, or nil if the
// answer may be text.
func chosenTools(tools []v1Tool, choice json.RawMessage) ([]toolFunction, error) {
	var word string
	var named toolChoice
	if json.Unmarshal(choice, &word) != nil && unmarshal(choice, &named) != nil {
		return nil, nil // no choice given
	}
	if named.Type == "allowed_tools" {
		if named.Allowed != nil {
			named.allowedTools = *named.Allowed
		}
		word = named.Mode
		tools = slices.DeleteFunc(slices.Clone(tools), func(t v1Tool) bool {
			return !slices.ContainsFunc(named.Tools, func(a v1Tool) bool { return a.function().Name == t.function().Name })
		})
	}
	if named.Type == "custom" {
		word, tools = "required", nil // its input is not JSON
	}
	var functions, outputs []toolFunction
	for _, t := range tools {
		f := t.function()
		switch {
		case named.Type == "function" && f.Name == named.function().Name:
			return []toolFunction{f}, nil
		case t.Type == "function":
			functions = append(functions, f)
			if f.isOutput() {
				outputs = append(outputs, f)
			}
		}
	}
	switch {
	case named.Type == "function":
		return nil, badValue("tool_choice", "there is no tool %.40q in tools", named.function().Name)
	case word != "required":
		return nil, nil
	case len(outputs) > 0:
		return outputs, nil
	case len(functions) == 1 && len(tools) == 1:
		return functions, nil
	case slices.ContainsFunc(tools, func(t v1Tool) bool { return t.Type == "file_search" }):
		return nil, nil // every answer uses the search anyway
	}
	return nil, unsupported("tool_choice", `answers come from documents and call no tools: omit tool_choice, or offer a single `+
		`function, whose arguments are then the answer`)
}

// oldDraft matches the $schema of drafts that are treated as draft-07.
var oldDraft = regexp.MustCompile(`/draft-0[3-7]/`)

func newOutput(name string, tool bool, param string, raw json.RawMessage) (*jsonOutput, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	var all jsonschema.Schema
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, badValue(param, "the schema cannot be read; it must be an object of JSON Schema, true or false: %v", err)
	}
	if oldDraft.MatchString(all.Schema) {
		all.Schema = "http://json-schema.org/draft-07/schema#"
	} else {
		all.Schema = "" // the default, 2020-12
	}
	schema, err := all.Resolve(nil) // external references are not allowed
	if err != nil {
		return nil, badValue(param, "the schema cannot be used: %v", err)
	}
	if t := unknownType(&all); t != "" {
		return nil, badValue(param, "the schema cannot be used: JSON has no type %.40q", t)
	}
	return &jsonOutput{name: name, tool: tool, param: param, raw: raw, schema: schema}, nil
}

// unknownType returns a type in a schema that JSON does not have, so that no value could
// match it, or "".
func unknownType(s *jsonschema.Schema) string {
	for _, t := range append(slices.Clone(s.Types), s.Type) {
		switch t {
		case "", "null", "boolean", "object", "array", "number", "integer", "string":
		default:
			return t
		}
	}
	var within []*jsonschema.Schema
	for _, field := range reflect.ValueOf(*s).Fields() {
		switch f := field.Interface().(type) {
		case *jsonschema.Schema:
			within = append(within, f)
		case []*jsonschema.Schema:
			within = append(within, f...)
		case map[string]*jsonschema.Schema:
			within = slices.AppendSeq(within, maps.Values(f))
		}
	}
	for _, s := range within {
		if s == nil {
			continue
		}
		if t := unknownType(s); t != "" {
			return t
		}
	}
	return ""
}

// check returns the JSON in a model's reply, or an error if it does not match the schema.
func (o *jsonOutput) check(said string) (string, error) {
	if _, after, thought := strings.Cut(said, "</think>"); thought {
		said = after
	}
	said = strings.TrimSpace(said)
	if fenced, ok := strings.CutPrefix(said, "```"); ok {
		_, fenced, _ = strings.Cut(fenced, "\n")
		said = strings.TrimSpace(strings.TrimSuffix(fenced, "```"))
	}
	var v any
	if err := json.Unmarshal([]byte(said), &v); err != nil {
		return "", fmt.Errorf("it is not JSON: %w", err)
	}
	return said, o.schema.Validate(v)
}

func turn(role, content string) answer.Turn { return answer.Turn{Role: role, Content: content} }

// fillJSON replaces an answer with JSON that the model writes from it. Every citation then
// covers all of the JSON. The model sees the answer, but not the documents. If the question
// is unanswered, the reply is a refusal.
func (m upstreamModel) fillJSON(ctx context.Context, r *v1Reply, a cite.Answer) error {
	if !a.Answered || a.Incomplete {
		r.refused, r.annotations = true, nil
		return nil
	}
	said := turn("user", "The question:\n"+r.asked.question.Question+"\n\nThe answer:\n"+a.Text)
	if style := r.asked.question.Style; style != "" { // clients describe the keys there
		said.Content = "The instructions for the form of the JSON, which add nothing to what the answer says:\n" + style + "\n\n" + said.Content
	}
	out, err := m.chooseTool(ctx, r.asked.output, said, &r.usage)
	if err != nil {
		return err
	}
	turns := []answer.Turn{turn("system", "You turn an answer into JSON by a JSON schema. Use only what the answer says: "+
		"add nothing of your own, and leave empty or null what it does not say. Leave out the numbers in square brackets, which are "+
		"citations. Reply with the JSON alone.\n\nThe schema:\n"+string(out.raw)), said}
	whole, err := m.writeJSON(ctx, append(turns, r.asked.feedback...), out, &r.usage)
	if err != nil {
		return err
	}
	r.asked.output = out
	r.setJSON(whole)
	return nil
}

// validationFeedback matches the message that pydantic-ai sends after invalid JSON.
var validationFeedback = regexp.MustCompile("(?s)^(Validation feedback:\n.+|\\d+ validation errors?:\n```json\n.+\n```)\n\n" +
	`Fix the errors and try again\.$`)

// stripFeedback removes invalid replies, each with the feedback to it, from the end of a
// conversation whose answer should be JSON, since feedback is not a question.
func (a *v1Ask) stripFeedback(messages []chatMessage) []chatMessage {
	for n := len(messages); a.output != nil && n >= 3; n = len(messages) {
		said, wrong := messages[n-2], messages[n-1]
		if said.Role != "assistant" || wrong.Role != "user" || !validationFeedback.MatchString(wrong.Content.text) {
			break
		}
		if len(a.feedback) == 0 { // the last reply includes earlier corrections
			a.feedback = []answer.Turn{turn("assistant", said.Content.text), turn("user", wrong.Content.text)}
		}
		messages = messages[:n-2]
	}
	return messages
}

// chooseTool lets the model choose one of the tools for an answer.
func (m upstreamModel) chooseTool(ctx context.Context, out *jsonOutput, said answer.Turn, usage *chatUsage) (*jsonOutput, error) {
	if out.choices == nil {
		return out, nil
	}
	var names []string
	var forms strings.Builder
	for _, one := range out.choices {
		names = append(names, one.name)
		fmt.Fprintf(&forms, "\n\n%s:\n%s", one.name, one.raw)
	}
	choice, err := newOutput("choice", false, out.param, mustEncode(map[string]any{"type": "object", "required": []string{"name"},
		"properties": map[string]any{"name": map[string]any{"enum": names}}}))
	if err != nil {
		return nil, err
	}
	whole, err := m.writeJSON(ctx, []answer.Turn{turn("system", "You choose the form that an answer fits best, by the JSON schemas of the "+
		"forms. Reply with its name, as JSON alone: {\"name\": \"...\"}\n\nThe forms:"+forms.String()), said}, choice, usage)
	if err != nil {
		return nil, err
	}
	chosen, err := decodeStored[toolFunction](json.RawMessage(whole))
	return out.choices[max(0, slices.Index(names, chosen.Name))], err
}

// writeJSON lets the model write JSON. The model may repair invalid JSON once.
func (m upstreamModel) writeJSON(ctx context.Context, turns []answer.Turn, out *jsonOutput, usage *chatUsage) (string, error) {
	constrained, repaired := true, false
	for {
		said, err := m.complete(ctx, turns, out, constrained, usage)
		if rejected := (*openai.Error)(nil); constrained && errors.As(err, &rejected) && rejected.Kind == openai.Rejected {
			constrained = false // the model's server does not support the schema
			continue
		}
		if err != nil {
			return "", err
		}
		whole, wrong := out.check(said)
		if wrong == nil {
			return whole, nil
		}
		if repaired {
			return "", problem(http.StatusUnprocessableEntity, "schema_missed",
				"the model did not write JSON that fits the schema, and could not repair it: ask again, or with a simpler schema").withCause(wrong)
		}
		repaired = true
		turns = append(turns, turn("assistant", said), turn("user", fmt.Sprintf("That does not fit the schema: %v\n\nReply with the "+
			"corrected JSON alone.", wrong)))
	}
}

// setJSON sets the content of a reply. Each source is cited for all of it.
func (r *v1Reply) setJSON(whole string) {
	r.content.Reset()
	r.content.WriteString(whole)
	if r.asked.output.tool {
		r.finishReason = "tool_calls"
	}
	r.annotations = nil
	for _, c := range r.shown {
		r.annotations = append(r.annotations, chatAnnotation{"url_citation", urlCitation{End: utf8.RuneCountInString(whole), URL: c.Link,
			Title: titleOf(c)}, c.Number})
	}
}

// complete calls the model, and adds to usage.
func (m upstreamModel) complete(ctx context.Context, turns []answer.Turn, out *jsonOutput, constrained bool,
	usage *chatUsage) (string, error) {
	request := map[string]any{"model": m.Model(), "messages": turns}
	if constrained {
		request["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": out.name, "schema": out.raw}}
	}
	from, err := m.Chat(ctx, mustEncode(request))
	if err != nil {
		return "", err
	}
	defer from.Body.Close()
	whole, err := io.ReadAll(from.Body)
	if err != nil {
		return "", err
	}
	var reply struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage chatUsage `json:"usage"`
	}
	if err := json.Unmarshal(whole, &reply); err != nil || len(reply.Choices) == 0 {
		return "", problem(http.StatusUnprocessableEntity, "schema_missed", "the model's server sent a reply without a choice: "+
			"ask again").withCause(err)
	}
	usage.Prompt, usage.Completion = usage.Prompt+reply.Usage.Prompt, usage.Completion+reply.Usage.Completion
	usage.Total = usage.Prompt + usage.Completion
	return reply.Choices[0].Message.Content, nil
}
