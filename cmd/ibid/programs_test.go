package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// scriptedModel is the model of the pages. It keeps every passage and always gives the same
// answer and the same summary, with the labels of its prompt.
func scriptedModel() *openaitest.Handler {
	label := regexp.MustCompile(`(?m)^\[(\d+)\]`)
	return &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Prompt: regexp.MustCompile(`^You summarize`), Func: func(r openaitest.Request) openaitest.Reply {
			text := ""
			for _, said := range []struct{ sentence, about string }{
				{"The wind limit for the Dunlin was lowered from 22 to 20 knots.", "wind limit for the Dunlin"},
				{" Adult membership is 155 (was 140).", "adult membership 155"},
			} {
				text += said.sentence
				for piece := range strings.SplitSeq(r.User, "<evidence ") {
					if m := label.FindString(piece); m != "" && strings.Contains(piece, said.about) {
						text += m
						break
					}
				}
			}
			return openaitest.Reply{Text: text}
		}},
		openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
			text := "A swinging mooring costs 412 euros."
			if m := label.FindString(r.User); m != "" {
				text += " " + m
			}
			return openaitest.Reply{Text: text}
		}},
	)}
}

// sameEveryTime returns output as the pages show it: with a fixed address, fixed ids and
// times, and four decimals, since further ones differ between processors.
func sameEveryTime(s string) string {
	for _, part := range []struct{ pattern, shown string }{
		{`http://127\.0\.0\.1:\d+`, "http://127.0.0.1:8080"},
		{`(?m)^id: [0-9a-z]{8}-(\d+)$`, "id: mwrg2xoy-$1"},
		{`("(?:id|run)": ?|/api/runs/|/\?run=)("?)[0-9a-z]{16}\b`, "${1}${2}dhinfcq6y7kqziba"},
		{`"(started|ended|at)":( ?)"20\d\d-[^"]*Z"`, `"$1":$2"2025-03-14T09:26:53Z"`},
		{`"took_ms":( ?)\d+`, `"took_ms":${1}12`},
		{`(\d\.\d{4})\d+`, "$1"},
	} {
		s = regexp.MustCompile(part.pattern).ReplaceAllString(s, part.shown)
	}
	return s
}

// TestPrograms runs the programs of the page about the API unchanged against a server with
// the sample library; each must print the block that follows it ('-update' rewrites it).
// .ci/clients runs those that need a client's package.
func TestPrograms(t *testing.T) {
	t.Parallel()
	const page = "web/API.md"
	library := filepath.Join(moduleRoot(t), "data", "library")
	alone := serve(t, t.TempDir(), library)
	withModel := serve(t, t.TempDir(), "--model", "scripted", "--base-url", openaitest.Start(t, scriptedModel()), library)
	ready(t, alone)
	ready(t, withModel)
	languages := map[string]struct {
		file    string
		command []string
	}{
		"python": {"program.py", []string{"python3"}},
		"js":     {"program.mjs", []string{"node"}},
		"go":     {"program.go", []string{"go", "run"}},
	}
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)))
	must(t, err)
	written := string(text)
	blocks := blocksOf(t, page)
	var programs []int
	for i, b := range blocks {
		if _, known := languages[b.kind]; known && !strings.Contains(b.text, "openai") && !strings.Contains(b.text, "modelcontextprotocol") {
			programs = append(programs, i)
		}
	}
	if len(programs) != 7 { // two in each language, and a bot
		t.Errorf("the page has %d programs, want 7", len(programs))
	}
	if !*datatest.Update {
		programs = datatest.Pick(t, programs)
	}
	for _, i := range programs {
		b, language := blocks[i], languages[blocks[i].kind]
		if _, err := exec.LookPath(language.command[0]); err != nil {
			t.Skipf("%s is not installed: its programs are skipped", language.command[0])
		}
		url := alone
		if strings.Contains(b.text, "/api/summarize") {
			url = withModel
		}
		name := filepath.Join(t.TempDir(), language.file)
		program := strings.ReplaceAll(b.text, "http://127.0.0.1:8080", url)
		if program == b.text {
			t.Errorf("%s:%d: program doesn't contain the address of the server", b.page, b.line)
		}
		must(t, os.WriteFile(name, []byte(program), 0o644))
		out, err := exec.CommandContext(t.Context(), language.command[0], append(language.command[1:], name)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d: running the program: %v\n%s", b.page, b.line, err, out)
			continue
		}
		if i+1 == len(blocks) || blocks[i+1].kind != "text" {
			t.Errorf("%s:%d: no output block follows the program, which prints\n%s", b.page, b.line, out)
			continue
		}
		said, got := blocks[i+1], sameEveryTime(string(out))
		if got != said.text && *datatest.Update {
			written = strings.Replace(written, b.text+shownAfter(said.text), b.text+shownAfter(got), 1)
		} else if got != said.text {
			t.Errorf("%s:%d: output =\n%s\nwant, as the page has it,\n%s", b.page, b.line, got, said.text)
		}
	}
	if *datatest.Update && written != string(text) {
		must(t, os.WriteFile(filepath.Join(moduleRoot(t), filepath.FromSlash(page)), []byte(written), 0o644))
	}
}

// shownAfter returns the page with this output after a program.
func shownAfter(printed string) string { return "```\n\n```text\n" + printed }

// TestPageNamesTheEvents checks that the page about the API names exactly the events of
// openapi.json.
func TestPageNamesTheEvents(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(moduleRoot(t), "web", "openapi.json"))
	must(t, err)
	var api struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct {
					Events map[string]any `json:"x-events"`
				}
			}
		}
	}
	must(t, json.Unmarshal(data, &api))
	described := slices.Sorted(maps.Keys(api.Paths["/api/ask"]["post"].Responses["200"].Content["text/event-stream"].Events))
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "web", "API.md"))
	must(t, err)
	_, table, _ := strings.Cut(string(text), "\n| event |")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for row := range strings.SplitSeq(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for i, part := range strings.Split(first, "`") {
			if i%2 == 1 {
				named = append(named, part)
			}
		}
	}
	slices.Sort(named)
	if len(named) == 0 || !slices.Equal(named, described) {
		t.Errorf("events on the page = %q, want %q as in openapi.json", named, described)
	}
}
