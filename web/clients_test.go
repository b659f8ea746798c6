package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// A clientSchema is the part of a schema from which the clients' types are made.
type clientSchema struct {
	Ref        string                  `json:"$ref"`
	Type       string                  `json:"type"`
	Items      *clientSchema           `json:"items"`
	AnyOf      []clientSchema          `json:"anyOf"`
	Enum       []json.RawMessage       `json:"enum"`
	Required   []string                `json:"required"`
	Properties map[string]clientSchema `json:"properties"`
}

// clientTypes are the schemas for which the clients have named types.
var clientTypes = []string{"Answer", "AskRequest", "Change", "Citation", "Closest", "Collection", "DocumentInfo", "Judged",
	"Passage", "Run",
	"Source", "SourcePassage", "Turn"}

// nullable returns the schema that may also be null, or the schema itself.
func (s clientSchema) nullable() clientSchema {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		return s.AnyOf[0]
	}
	return s
}

// name returns the type that a schema refers to, if the clients name it.
func (s clientSchema) name() string {
	if name := strings.TrimPrefix(s.Ref, "#/components/schemas/"); slices.Contains(clientTypes, name) {
		return name
	}
	return ""
}

func (s clientSchema) values(separator string) string {
	var b []byte
	for i, v := range s.Enum {
		if i > 0 {
			b = append(b, separator...)
		}
		b = append(b, v...)
	}
	return string(b)
}

// scriptColumns is the width of the lines of types.d.ts.
const scriptColumns = 100

// TestClientTypes compares the types of the clients with openapi.json; -update writes them. A
// client must have fewer than 260 lines without them.
func TestClientTypes(t *testing.T) {
	b, err := os.ReadFile("openapi.json")
	must(t, err)
	var api struct {
		Components struct{ Schemas map[string]clientSchema }
	}
	must(t, json.Unmarshal(b, &api))
	var py, ts strings.Builder
	py.WriteString("# Generated from openapi.json: go test ./web -run TestClientTypes -update\n\nfrom __future__ import annotations\n\n" +
		"from typing import Any, Literal, TypedDict\n\n")
	ts.WriteString("// Generated from openapi.json: go test ./web -run TestClientTypes -update\n")
	for _, name := range clientTypes {
		schema := api.Components.Schemas[name]
		fmt.Fprintf(&py, "class %s(TypedDict, total=False):\n", name)
		fmt.Fprintf(&ts, "export interface %s {", name)
		column := scriptColumns
		for _, member := range slices.Sorted(maps.Keys(schema.Properties)) {
			p, optional := schema.Properties[member], "?"
			if slices.Contains(schema.Required, member) {
				optional = ""
			}
			if member != "from" { // a keyword
				fmt.Fprintf(&py, "    %s: %s\n", member, pythonType(p))
			}
			next := fmt.Sprintf(" %s%s: %s;", member, optional, scriptType(p))
			if column += len(next); column > scriptColumns {
				ts.WriteString("\n ")
				column = len(next) + 1
			}
			ts.WriteString(next)
		}
		ts.WriteString("\n}\n")
	}
	for file, want := range map[string]string{"py/ibid/types.py": py.String(), "js/types.d.ts": ts.String()} {
		datatest.Golden(t, filepath.Join("clients", file), want)
	}
	files := map[string][]string{"py": {"ibid/__init__.py"}, "js": {"index.js", "index.d.ts"}}
	for client, parts := range files {
		lines := 0
		for _, part := range parts {
			b, err := os.ReadFile(filepath.Join("clients", client, part))
			must(t, err)
			lines += strings.Count(string(b), "\n")
		}
		if lines >= 260 {
			t.Errorf("client in %s has %d lines, want fewer than 260", client, lines)
		}
	}
}

func pythonType(s clientSchema) string {
	s = s.nullable()
	switch simple := map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[s.Type]; {
	case s.name() != "":
		return s.name()
	case len(s.Enum) > 0:
		return "Literal[" + s.values(", ") + "]"
	case s.Type == "array" && s.Items != nil:
		return "list[" + pythonType(*s.Items) + "]"
	case s.Type == "object", s.Ref != "":
		return "dict[str, Any]"
	case simple != "":
		return simple
	}
	return "Any"
}

func scriptType(s clientSchema) string {
	s = s.nullable()
	switch {
	case s.name() != "":
		return s.name()
	case len(s.Enum) > 0:
		return s.values(" | ")
	case s.Type == "array" && s.Items != nil && len(s.Items.Enum) > 0:
		return "(" + scriptType(*s.Items) + ")[]"
	case s.Type == "array" && s.Items != nil:
		return scriptType(*s.Items) + "[]"
	case s.Type == "object", s.Ref != "":
		return "Record<string, any>"
	case s.Type == "integer":
		return "number"
	case s.Type == "string", s.Type == "number", s.Type == "boolean":
		return s.Type
	}
	return "any"
}
