package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// withKey adds a key to requests.
type withKey struct {
	key string
	http.RoundTripper
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if k.key != "" {
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	return k.RoundTripper.RoundTrip(r)
}

// mcpOptions returns the options of newHandler.
func mcpOptions(t *testing.T, change func(*Options)) (o Options) {
	t.Helper()
	newHandler(t, func(made *Options) {
		if change != nil {
			change(made)
		}
		o = *made
	})
	return o
}

// faces returns a transport for each way to use the protocol. Over HTTP the client sends
// the key; pipes have no keys, so the collections are set.
func faces(t *testing.T, o Options, key string, collections ...string) map[string]mcp.Transport {
	t.Helper()
	theirs, out := io.Pipe()
	in, ours := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- ServeMCP(ctx, o, collections, in, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	e, err := New(o)
	must(t, err)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return map[string]mcp.Transport{
		"pipes": &mcp.IOTransport{Reader: theirs, Writer: ours},
		"http": &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: withKey{key, transport}},
			MaxRetries: -1},
	}
}

// connectMCP begins a session in a version of the protocol; progress can be nil.
func connectMCP(t *testing.T, transport mcp.Transport, version string, progress func(string)) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(r.Params.Message)
			}
		},
	})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Errorf("closing: %v", err)
		}
	})
	return session
}

// mcpVersions are the newest version of the protocol, which has no sessions, and
// two that clients use.
var mcpVersions = [...]string{"2026-07-28", "2025-11-25", "2025-06-18"}

// callTool calls a tool and returns the text of its first content and the result.
func callTool(t *testing.T, s *mcp.ClientSession, tool, arguments string, into any) (string, *mcp.CallToolResult) {
	t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}
	params.SetProgressToken("working")
	r, err := s.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("calling %s %s: %v", tool, arguments, err)
	}
	if len(r.Content) == 0 {
		t.Fatalf("%s %s: result has no content", tool, arguments)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if into != nil && !r.IsError {
		b, err := json.Marshal(r.StructuredContent)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			t.Fatalf("decoding the result of %s %s: %v", tool, arguments, err)
		}
	}
	return text, r
}

// TestMCP checks that the official client gets the reply of POST /api/ask over
// each transport and version.
func TestMCP(t *testing.T) {
	t.Parallel()
	o := mcpOptions(t, nil)
	e, err := New(o)
	must(t, err)
	want := into[answered](t, call(e, "POST", "/api/ask", `{"question":"What is the mooring fee?"}`), 200)
	for _, version := range mcpVersions {
		for name, transport := range faces(t, o, "") {
			t.Run(name+" "+version, func(t *testing.T) {
				messages := make(chan string, 16)
				s := connectMCP(t, transport, version, func(m string) { messages <- m })
				tools, err := s.ListTools(t.Context(), nil)
				must(t, err)
				var names []string
				for _, tool := range tools.Tools {
					names = append(names, tool.Name)
					if a := tool.Annotations; a == nil || !a.ReadOnlyHint || a.DestructiveHint == nil || *a.DestructiveHint || tool.Description == "" {
						t.Errorf("annotations of %s = %+v, want only reading; description = %q", tool.Name, a, tool.Description)
					}
				}
				slices.Sort(names)
				datatest.Same(t, "tools", []string{"ask", "list_documents", "read_source", "search", "summarize"}, names)

				var a mcpAnswer
				text, r := callTool(t, s, "ask", `{"question":"What is the mooring fee?"}`, &a)
				if r.IsError || text != want.Text || a.Text != want.Text || !a.Answered || len(a.Sources) != len(want.Sources) {
					t.Errorf("answer %q with %d sources, want %q with %d", text, len(a.Sources), want.Text, len(want.Sources))
				}
				for i, source := range a.Sources {
					if source.Number != want.Sources[i].Number || len(source.Passages) == 0 ||
						source.Passages[0].Quote != want.Sources[i].Passages[0].Quote {
						t.Errorf("source = %+v, want %+v", source, want.Sources[i])
					}
					if linked := strings.HasPrefix(source.Link, "http://127.0.0.1:"); linked != (name == "http") {
						t.Errorf("link = %q", source.Link)
					}
				}
				if list := r.Content[1].(*mcp.TextContent).Text; !strings.Contains(list, "[1] Moorings (`club/handbook/mooring.md`)") ||
					!strings.Contains(list, "“The mooring fee is 240 crowns a season.”") {
					t.Errorf("list of sources = %q", list)
				}
				if link, ok := r.Content[2].(*mcp.ResourceLink); !ok || link.URI != resourceOf("club/handbook/mooring.md") {
					t.Errorf("first source = %+v", r.Content[2])
				}
				prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "answer", Arguments: map[string]string{"question": "Fees?"}})
				if err != nil || !strings.HasSuffix(prompt.Messages[0].Content.(*mcp.TextContent).Text, "\n\nFees?") {
					t.Errorf("prompt = %+v, %v", prompt, err)
				}
				for words, want := range map[string][]string{"club/h": {"club/handbook/mooring.md"}, "MOORING.": {"club/handbook/mooring.md"},
					"moorings": {"club/handbook/mooring.md"}, "no such": {}} {
					ids, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource",
						URI: documentURI + "{+id}"}, Argument: mcp.CompleteParamsArgument{Name: "id", Value: words}})
					if err != nil || !slices.Equal(ids.Completion.Values, want) {
						t.Errorf("completions of %q = %+v, %v", words, ids, err)
					}
				}
				var got []string // the client delivers progress late
				for range 5 {
					got = append(got, <-messages)
				}
				slices.Sort(got)
				datatest.Same(t, "progress", []string{"checked 1 of 3 passages", "checked 2 of 3 passages", "checked 3 of 3 passages",
					"found 3 passages", "writing the answer"}, got)

				_, r = callTool(t, s, "ask", `{"question":"pizza"}`, &a)
				if r.IsError || a.Answered || a.Reason != "nothing_relevant" || len(a.Nearest) != 1 {
					t.Errorf("refusal = %+v", a)
				}
				_, r = callTool(t, s, "ask", `{"question":"tea"}`, &a)
				guide := resourceOf("club/guide.pdf")
				if len(a.Closest) != 2 || a.Closest[1].Resource != guide || len(r.Content) != 3 || r.Content[2].(*mcp.ResourceLink).URI != guide {
					t.Errorf("closest passages = %+v, in %d parts", a.Closest, len(r.Content))
				}

				for _, source := range []string{"club/handbook/mooring.md", `club/odd/100% <b>"né"</b> #1?.txt`} {
					read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resourceOf(source)})
					must(t, err)
					if d, _ := newShelf().Document(t.Context(), source); !strings.HasPrefix(read.Contents[0].Text, d.Text[:7]) {
						t.Errorf("resource %s = %q", source, read.Contents[0].Text)
					}
				}
				if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ibid://documents/club/none.md"}); err == nil ||
					!strings.Contains(err.Error(), "not found") {
					t.Errorf("reading a missing document: err = %v, want not found", err)
				}
				if templates, err := s.ListResourceTemplates(t.Context(), nil); err != nil || len(templates.ResourceTemplates) != 1 {
					t.Errorf("templates = %+v, %v", templates, err)
				}
			})
		}
	}
}

// TestMCPTools checks the replies and errors of the tools.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	o := mcpOptions(t, nil)
	s := connectMCP(t, faces(t, o, "")["http"], "", nil)
	type toolCall struct {
		Tool      string
		Arguments json.RawMessage
		Failed    bool
		Want      string // in the text
	}
	long := json.RawMessage(`{"question":"` + strings.Repeat("a", MaxQuestion+1) + `"}`)
	for _, tt := range append(datatest.Lines[toolCall](t, "testdata/rows/mcp.jsonl"), toolCall{"ask", long, true, "shorten it"}) {
		text, r := func() (string, *mcp.CallToolResult) {
			defer func() {
				if strings.Contains(string(tt.Arguments), "panics") {
					_ = recover()
				}
			}()
			params := &mcp.CallToolParams{Name: tt.Tool, Arguments: tt.Arguments}
			r, err := s.CallTool(t.Context(), params)
			if err != nil {
				return err.Error(), &mcp.CallToolResult{IsError: true}
			}
			return r.Content[0].(*mcp.TextContent).Text, r
		}()
		if r.IsError != tt.Failed || !strings.Contains(text, tt.Want) {
			t.Errorf("%s %.60s: failed = %v, text = %.300q, want %q", tt.Tool, tt.Arguments, r.IsError, text, tt.Want)
		}
		if r.IsError && r.StructuredContent != nil {
			t.Errorf("%s %.60s: an error has the content %v", tt.Tool, tt.Arguments, r.StructuredContent)
		}
		if strings.Contains(text, "secret/path") || strings.ContainsAny(text, "\x1b") {
			t.Errorf("%s %.60s: reply shows a path or control character: %q", tt.Tool, tt.Arguments, text)
		}
	}
}

// TestMCPLines checks that a line that is no message is an error, and not the end.
func TestMCPLines(t *testing.T) {
	in, theirs := io.Pipe()
	ours, out := io.Pipe()
	served := make(chan error, 1)
	o := mcpOptions(t, nil)
	go func() { served <- errors.Join(ServeMCP(t.Context(), o, nil, in, out), out.Close()) }()
	replies := bufio.NewScanner(ours)
	for _, tt := range [][2]string{{"{bad", `"id":null,"error":{"code":-32700,`}, {"\n}", `"id":null,"error":{"code":-32700,`},
		{"7", `"code":-32600,`}, {`{"id":1,"method":"ping"}`, `"code":-32600,`}, {"null", `"code":-32600,`},
		{"[7]", `"code":-32600,`}, {"[]", `"code":-32600,`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `"id":1,"result":{}`}} {
		_, err := io.WriteString(theirs, tt[0]+"\n")
		must(t, err)
		if !replies.Scan() || !strings.Contains(replies.Text(), tt[1]) {
			t.Errorf("reply to %q = %s, %v; want %s", tt[0], replies.Text(), replies.Err(), tt[1])
		}
	}
	must(t, theirs.Close())
	must(t, <-served)
}

// TestMCPReadsAllOfADocument checks that the parts of a document add up to its text, and
// that none is large.
func TestMCPReadsAllOfADocument(t *testing.T) {
	for name, text := range map[string]string{
		"lines":    strings.Repeat("A line of text in a long document, größer.\n", 3000),
		"one line": strings.Repeat("größer", 20_000), "short": "é",
	} {
		t.Run(name, func(t *testing.T) {
			m := &mcpServer{catalog: &catalog{Library: shelf{{ID: "a/b", Root: "a", Path: "b", Title: "b", Text: text}}}}
			var whole strings.Builder
			for at := 0; at < len(text); {
				part, err := m.textAt(t.Context(), mcpPlace{Document: "a/b", Start: at})
				if err != nil || part.Start != at || part.End <= at || part.End-at > fromStart {
					t.Fatalf("part from %d = %d to %d, %v", at, part.Start, part.End, err)
				}
				whole.WriteString(part.Text)
				at = part.End
			}
			if whole.String() != text {
				t.Errorf("the parts have %d bytes, the document %d, or they differ", whole.Len(), len(text))
			}
			part, err := m.textAt(t.Context(), mcpPlace{Document: "a/b", Start: len(text) / 2, End: len(text)/2 + 1})
			if err != nil || part.End-part.Start > 2*aroundPlace+8 || !strings.Contains(part.Text, "⟦"+part.Quoted+"⟧") {
				t.Errorf("part around the middle: %d bytes, %v", part.End-part.Start, err)
			}
		})
	}
}

// TestMCPPages lists several pages of documents, each document once.
func TestMCPPages(t *testing.T) {
	t.Parallel()
	var many shelf
	for i := range 2*mcpPageSize + 5 {
		id := fmt.Sprintf("club/%04d.txt", i)
		many = append(many, &ingest.Document{ID: id, Root: "club", Path: id[5:], Title: id, Format: "text", Text: "a"})
	}
	s := connectMCP(t, faces(t, mcpOptions(t, func(o *Options) { o.Library = many }), "")["http"], "", nil)
	pages, cursor := 0, ""
	var ids []string
	for {
		list, err := s.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
		must(t, err)
		pages++
		for _, r := range list.Resources {
			ids = append(ids, r.Name)
		}
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); pages != 3 || n != len(many) {
		t.Errorf("%d documents on %d pages", n, pages)
	}
	if _, err := s.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "%%%"}); err == nil {
		t.Error("an invalid cursor is accepted")
	}
}

// stalled is an Asker whose answers stop until they are canceled.
type stalled struct {
	script
	begun, ended chan error
}

func newStalled() *stalled {
	w := &stalled{begun: make(chan error, 1), ended: make(chan error, 1)}
	w.script = script{"stall": {answer.Retrieved{Question: "stall"}, func(ctx context.Context) error {
		w.begun <- nil
		<-ctx.Done()
		w.ended <- context.Cause(ctx)
		return ctx.Err()
	}}}
	return w
}

// TestMCPCancel checks that every way to cancel a call stops the model.
func TestMCPCancel(t *testing.T) {
	t.Parallel()
	stops := func(t *testing.T, w *stalled, cancel func()) {
		t.Helper()
		<-w.begun
		cancel()
		<-w.ended
	}
	for _, version := range mcpVersions {
		for _, face := range []string{"pipes", "http"} {
			t.Run(face+" "+version, func(t *testing.T) {
				if face == "http" && version != mcpVersions[0] {
					return // a notification in another request: the call ends when its connection closes
				}
				w := newStalled()
				s := connectMCP(t, faces(t, mcpOptions(t, func(o *Options) { o.Asker = w }), "")[face], version, nil)
				ctx, cancel := context.WithCancel(t.Context())
				failed := make(chan error, 1)
				go func() {
					_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage(`{"question":"stall"}`)})
					failed <- err
				}()
				stops(t, w, cancel)
				if err := <-failed; !errors.Is(err, context.Canceled) {
					t.Errorf("call ended with %v, want context.Canceled", err)
				}
			})
		}
	}
	t.Run("key revoked", func(t *testing.T) {
		w, ring := newStalled(), newRing()
		key := ring.make(t, "reader", nil)
		s := connectMCP(t, faces(t, mcpOptions(t, func(o *Options) { o.Asker, o.Keys = w, ring }), key)["http"], "", nil)
		go func() {
			_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage(`{"question":"stall"}`)})
		}()
		stops(t, w, func() {
			must(t, ring.Revoke(t.Context(), "reader"))
		})
	})
}

// TestMCPReach checks that only the documents of a key's collections, or of the served
// ones, can be reached.
func TestMCPReach(t *testing.T) {
	t.Parallel()
	var asked retrieve.Filter
	ring := newRing()
	key := ring.make(t, "other", writingOnlyIn("other"))
	o := mcpOptions(t, func(o *Options) { o.Keys = ring })
	o.Searcher = searcherFunc(func(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
		asked = q.Filter
		return nil, nil
	})
	for name, transport := range faces(t, o, key, "other") {
		t.Run(name, func(t *testing.T) {
			s := connectMCP(t, transport, "", nil)
			list, err := s.ListResources(t.Context(), nil)
			if err != nil || len(list.Resources) != 0 {
				t.Errorf("resources = %+v, %v; want none", list, err)
			}
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resourceOf("club/guide.pdf")}); err == nil {
				t.Error("a document of another collection can be read")
			}
			for _, call := range [][2]string{{"read_source", `{"document":"club/guide.pdf"}`}, {"search", `{"question":"mooring"}`},
				{"search", `{"question":"mooring","collection":"default"}`}} {
				if text, r := callTool(t, s, call[0], call[1], nil); !r.IsError || strings.Contains(text, "pier") {
					t.Errorf("%s of another collection = %q, want an error", call, text)
				}
			}
		})
	}
	full := mcpOptions(t, func(o *Options) { o.Keys = newRing() })
	wrong := faces(t, full, "ibid_wrong", "default")["http"]
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	if _, err := client.Connect(t.Context(), wrong, nil); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("wrong key: err = %v, want Unauthorized", err)
	}
	if asked.Collections != nil {
		t.Errorf("a search without reachable documents was run: %+v", asked)
	}
}

type searcherFunc func(context.Context, retrieve.Query) ([]retrieve.Passage, error)

func (f searcherFunc) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	return f(ctx, q)
}

// TestMCPRequests checks requests over HTTP, most of them invalid.
func TestMCPRequests(t *testing.T) {
	e := newHandler(t, func(o *Options) { o.MaxAsks = 1 })
	type sent struct {
		Name, Method, Body string
		Header             []string
		Status             int
	}
	for _, tt := range append(datatest.Lines[sent](t, "testdata/rows/mcp_requests.jsonl"),
		sent{"large", "POST", `{"a":"` + strings.Repeat("a", MaxBody) + `"}`, nil, 413}) {
		w := call(e, tt.Method, "/mcp", tt.Body,
			append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, tt.Header...)...)
		if w.Code != tt.Status {
			t.Errorf("%s: status = %d, want %d: %s", tt.Name, w.Code, tt.Status, w.Body)
		}
		if tt.Status == 200 && (w.Header().Get("Cache-Control") != "no-store" ||
			w.Header().Get("Content-Security-Policy") != contentSecurityPolicy) {
			t.Errorf("%s: header = %v", tt.Name, w.Header())
		}
	}
}
