package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ibid/data/datatest"
)

// TestInjectionIntoClients makes a model send every hostile text around a citation of
// a document with that text and title: clients of the OpenAI API and of MCP receive
// only words and links to the viewer, however the text is cut.
func TestInjectionIntoClients(t *testing.T) {
	t.Parallel()
	random, cutsOf := datatest.Rand(t), 1
	if datatest.Campaign() {
		cutsOf = 20
	}
	texts := hostileTexts(t)
	var all shelf
	script := script{}
	for i, h := range texts {
		lib, evidence := hostileShelf(h.text)
		said := h.text + "[1]" + h.text + " [2] " + h.text
		cuts := [][]string{{said}, strings.Split(said, "")}
		for range cutsOf {
			at := random.IntN(len(said))
			cuts = append(cuts, []string{said[:at], said[at:]})
		}
		for n, pieces := range cuts {
			script[fmt.Sprintf("%d %d", i, n)] = hostileScript(lib, evidence, h.text, pieces)
		}
		all = append(all, lib...)
	}
	options := func(o *Options) { o.Library, o.Asker = all, script }
	handler := newHandler(t, options)
	session := connectMCP(t, faces(t, mcpOptions(t, options), "")["http"], mcpVersions[0], nil)
	for i, h := range texts {
		_, reply := callTool(t, session, "ask", fmt.Sprintf(`{"question":"%d 0"}`, i), nil)
		for _, c := range reply.Content {
			switch c := c.(type) {
			case *mcp.TextContent:
				if what := liveIn(viewerAddress.ReplaceAllString(c.Text, "")); what != "" {
					t.Errorf("%s, %s, over MCP: %s in %q", h.file, h.name, what, c.Text)
				}
			case *mcp.ResourceLink: // its name is data, which no client renders
				if !strings.HasPrefix(c.URI, "ibid:") && viewerAddress.ReplaceAllString(c.URI, "") != "" {
					t.Errorf("%s, %s, over MCP: a link to %q", h.file, h.name, c.URI)
				}
			default:
				t.Errorf("content of the type %T", c)
			}
		}
		first := ""
		for n := range 2 + cutsOf {
			content, last := chat(t, handler, fmt.Sprintf("%d %d", i, n), n%2 == 0)
			if first = cmp.Or(first, content); content != first {
				t.Errorf("%s, %s, cut %d: the text is %q, in one piece %q", h.file, h.name, n, content, first)
			}
			words := []string{content}
			for _, s := range last.Sources {
				words = append(words, s.Document...)
			}
			for _, text := range words {
				if what := liveIn(text); what != "" {
					t.Errorf("%s, %s: %s in %q", h.file, h.name, what, text)
				}
			}
			for _, u := range last.Citations {
				if !strings.HasPrefix(u, "http://127.0.0.1:8080/documents/") {
					t.Errorf("%s, %s: a source at %s", h.file, h.name, u)
				}
			}
		}
	}
}

// viewerAddress is an address of a document at a test server.
var viewerAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/documents/[!-~]*`)

// chat asks as a chat client does, and returns the Markdown that it would show
// and the last message or chunk.
func chat(t testing.TB, handler http.Handler, question string, stream bool) (content string, last completion) {
	t.Helper()
	w := v1(handler, fmt.Sprintf(`{"model":"ibid","stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, question))
	if !stream {
		last = into[completion](t, w, http.StatusOK)
		return *last.Choices[0].Message.Content, last
	}
	data, _ := chunks(t, w.Body.String())
	for _, d := range data {
		last = completion{}
		if err := json.Unmarshal([]byte(d), &last); err != nil {
			t.Fatalf("%v in %s", err, d)
		}
		if c := last.Choices[0].Delta.Content; c != nil {
			content += *c
		}
	}
	return content, last
}
