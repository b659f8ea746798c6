package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ibid/cite"
)

// TestMCPOnStandardStreams starts the program with the official client, which must get the
// answer that 'ibid ask' gives. Standard output must have nothing but the protocol.
func TestMCPOnStandardStreams(t *testing.T) {
	t.Parallel()
	data := ingested(t, hours)
	const question = "When does the chart room open?"
	want := printed[cite.Answer](t, data, "ask", "--json", question)
	var said bytes.Buffer
	cmd := command(t.Context(), data, "mcp", "--public-url", "https://docs.example.org")
	cmd.Stderr = &said
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd},
		nil)
	must(t, err)
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]string{"question": question}})
	if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != want.Text {
		t.Fatalf("CallTool = %+v, %v; want %s", r, err, want.Text)
	}
	b, err := json.Marshal(r.StructuredContent)
	must(t, err)
	var got cite.Answer
	if err := json.Unmarshal(b, &got); err != nil || len(got.Sources) != len(want.Sources) || !strings.HasPrefix(got.Sources[0].Link,
		"https://docs.example.org/documents/") {
		t.Errorf("sources = %+v, %v; want %+v", got.Sources, err, want.Sources)
	}
	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != len(hours) {
		t.Errorf("ListResources = %+v, %v", list, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 || said.Len() > 0 {
		t.Errorf("exit code = %d, want 0; stderr = %q", code, said.String())
	}
	if _, errs, code := ibid(t, data, "mcp", "--collection", "none"); code != exitFailed ||
		!strings.Contains(errs, "ingest --collection none") {
		t.Errorf("collection without documents: exit code = %d: %s", code, errs)
	}
}
