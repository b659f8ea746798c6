package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"golang.org/x/tools/txtar"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// hostileTexts returns the texts of a model that obeys anybody.
func hostileTexts(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("../../web/testdata/injection/*.txt")
	must(t, err)
	codePoint := regexp.MustCompile(`\{U\+([0-9A-F]{4,6})\}`)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		must(t, err)
		for _, section := range a.Files {
			texts = append(texts, codePoint.ReplaceAllStringFunc(strings.TrimSuffix(string(section.Data), "\n"), func(s string) string {
				r, err := strconv.ParseInt(codePoint.FindStringSubmatch(s)[1], 16, 32)
				must(t, err)
				return string(rune(r))
			}))
		}
	}
	if len(texts) < 120 {
		t.Fatalf("only %d hostile texts", len(texts))
	}
	return texts
}

// A face is an interface that shows answers: it returns the output, by its
// place.
type face func(t *testing.T, at running, data, question string, flags []string) map[string]string

// faces are the interfaces that escape their output. Others send the words unchanged.
var faces = map[string]face{
	"terminal": terminalFace,
	"MCP":      mcpFace,
	"OpenAI":   openAIFace,
}

func terminalFace(t *testing.T, _ running, data, question string, flags []string) map[string]string {
	out, errs, code := ibid(t, data, append([]string{"ask", question}, flags...)...)
	if code != 0 && !strings.Contains(errs, "incomplete") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	return map[string]string{"output": out, "messages": errs}
}

func mcpFace(t *testing.T, at running, _, question string, _ []string) map[string]string {
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at.url + "/mcp", MaxRetries: -1}, nil)
	must(t, err)
	defer s.Close()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: map[string]string{"question": question}})
	must(t, err)
	words := map[string]string{}
	own := regexp.MustCompile(regexp.QuoteMeta(at.url) + `/documents/[!-~]*`)
	for i, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			words[fmt.Sprintf("content %d", i)] = own.ReplaceAllString(c.Text, "")
		case *mcp.ResourceLink: // its names are data, which no client renders
			if !own.MatchString(c.URI) && !strings.HasPrefix(c.URI, "ibid:") {
				t.Errorf("a link to %q", c.URI)
			}
		default:
			t.Errorf("content of the type %T", c)
		}
	}
	return words
}

func openAIFace(t *testing.T, at running, _, question string, _ []string) map[string]string {
	b, err := json.Marshal(question)
	must(t, err)
	words := map[string]string{}
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"ibid","stream":%t,"messages":[{"role":"user","content":%s}]}`, stream, b)
		status, _, reply := post(t, at.url+"/v1/chat/completions", "application/json", body)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, reply)
		}
		text := ""
		for line := range strings.Lines(string(reply)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
			if line == "" || line == "[DONE]" || strings.HasPrefix(line, ":") {
				continue
			}
			var c struct {
				Choices []struct {
					Message, Delta struct{ Content string }
				}
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			for _, choice := range c.Choices {
				text += choice.Message.Content + choice.Delta.Content
			}
		}
		// Links of our own, and no other.
		own := regexp.MustCompile(`\]\(` + regexp.QuoteMeta(at.url) + `/documents/[!-'*-~]*\)`)
		words[fmt.Sprintf("content, stream %t", stream)] = own.ReplaceAllString(text, ")")
	}
	return words
}

var caseAsked = regexp.MustCompile(`case number (\d+)`)

var evidenceText = regexp.MustCompile(`(?s)<evidence \w+>\n(.*?)\n</evidence \w+>`)

// obedient returns the reply of a model that repeats the last text it was given:
// of the case in the question, otherwise of the documents.
func obedient(texts []string, r openaitest.Request) string {
	if m := caseAsked.FindAllStringSubmatch(r.Prompt(), -1); m != nil {
		n, _ := strconv.Atoi(m[len(m)-1][1])
		return texts[n]
	}
	said := ""
	for _, m := range evidenceText.FindAllStringSubmatch(r.Prompt(), -1) {
		said += m[1] + "\n\n"
	}
	return said
}

// TestInjection runs the program with a model that obeys anybody. The words of the
// model, and the text, names, titles, headings, cells and metadata of hostile
// documents, come out of every face as mere words.
func TestInjection(t *testing.T) {
	t.Parallel()
	all := datatest.Pick(t, hostileTexts(t))
	texts := all
	if !datatest.Campaign() { // in one answer
		texts = []string{strings.Join(all, "\n\n")}
	}
	model := openaitest.Start(t, &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Func: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: "yes\n" + obedient(texts, r)}
		}},
		openaitest.Rule{Role: "refine", Reply: openaitest.Reply{Text: "NO CHANGE"}},
		openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: obedient(texts, r) + "\n\nThe chart room opens at nine [1]."}
		}},
	)})
	flags := []string{"--model", "m", "--base-url", model, "--gate", "model", "--context-tokens", "16384"}

	data, folder := t.TempDir(), t.TempDir()
	hostileFolder(t, folder, all)
	// Some are no documents at all.
	if out, errs, code := ibid(t, data, "ingest", folder); code != exitDone && code != exitPartial ||
		strings.Count(out, "added ") < 4*len(all) {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	server := start(t, data, flags...)
	plain := start(t, data) // without a model documents are quoted
	ready(t, server.url)

	looked := 0
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	tags := regexp.MustCompile(`<([a-z][a-z0-9]*)[^>]*`)
	harmless := strings.Fields("p em strong del code pre ul ol li h1 h2 h3 h4 h5 h6 hr br blockquote table thead tbody tr th td")
	check := func(t *testing.T, words map[string]string) {
		t.Helper()
		for where, w := range words {
			looked++
			if where == "output" || where == "messages" { // a terminal's
				if w != printable(w) {
					t.Errorf("%s has a control: %q", where, w)
				}
				continue
			}
			var page bytes.Buffer
			must(t, markdown.Convert([]byte(w), &page))
			for _, tag := range tags.FindAllStringSubmatch(page.String(), -1) {
				if !slices.Contains(harmless, tag[1]) {
					t.Errorf("%s has %s", where, tag[0])
				}
			}
		}
	}
	for name, face := range faces {
		t.Run(name, func(t *testing.T) {
			for n := range texts {
				check(t, face(t, server, data, fmt.Sprintf("What does case number %d say of the chart room?", n), flags))
			}
			for _, question := range []string{"When does the chart room open?", "What is hostile about the chart room?",
				"Which cell, heading, title and name has the chart room?"} {
				check(t, face(t, server, data, question, flags))
				check(t, face(t, plain, data, question, nil))
			}
		})
	}
	t.Logf("figure: %d hostile texts, as what the model says and as documents, by %d faces of the program: %d texts looked at, 0 with "+
		"more than words", len(all), len(faces), looked)
}

// hostileFolder writes documents that have the texts for words, headings,
// titles, names, cells and metadata.
func hostileFolder(t *testing.T, folder string, texts []string) {
	t.Helper()
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		must(t, err)
		return string(b)
	}
	var table bytes.Buffer
	table.WriteString("hostile,chart room\n")
	files := map[string]string{}
	for n, text := range texts {
		line := strings.Join(strings.Fields(text), " ")
		const opens = "\n\nThe chart room opens at nine, says hostile document "
		files[fmt.Sprintf("body-%d.md", n)] = "# Case\n\n" + text + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("heading-%d.md", n)] = "# " + line + "\n\n## " + line + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("title-%d.md", n)] = "---\ntitle: " + quoted(text) + "\nauthor: " + quoted(text) + "\ntags: [" + quoted(line) +
			"]\nurl: " + quoted("javascript:"+line) + "\n---\n" + opens + strconv.Itoa(n) + ".\n"
		files[fmt.Sprintf("page-%d.html", n)] = "<title>" + text + "</title><meta name=author content=" + quoted(line) + "><p>" + opens +
			strconv.Itoa(n) + ".</p>"
		name := strings.NewReplacer("/", "∕", "\x00", "", "\\", "∖").Replace(line)
		for len(name) > 200 {
			name = name[:len(name)-1]
		}
		files["names/"+strings.ToValidUTF8(strings.TrimLeft(name, ". "), "")+".txt"] = opens + strconv.Itoa(n) + ".\n"
		fmt.Fprintf(&table, "%s,\"%s\"\n", `"`+strings.ReplaceAll(text, `"`, `""`)+`"`, "The chart room opens at nine.")
	}
	files["table.csv"] = table.String()
	writeFiles(t, folder, files)
}
