package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

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
// documents, come out on the terminal without a control character. What other faces
// show is looked at in package web.
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
	data, folder := t.TempDir(), t.TempDir()
	hostileFolder(t, folder, all)
	// Some are no documents at all.
	if out, errs, code := ibid(t, data, "ingest", folder); code != exitDone && code != exitPartial ||
		strings.Count(out, "added ") < 4*len(all) {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	ask := func(question string, flags ...string) {
		t.Helper()
		out, errs, code := ibid(t, data, append([]string{"ask", question}, flags...)...)
		if code != 0 && !strings.Contains(errs, "incomplete") {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		if out != printable(out) || errs != printable(errs) {
			t.Errorf("%q: there is a control in %q or %q", question, out, errs)
		}
	}
	flags := []string{"--model", "m", "--base-url", model, "--gate", "model", "--context-tokens", "16384"}
	for n := range texts {
		ask(fmt.Sprintf("What does case number %d say of the chart room?", n), flags...)
	}
	for _, question := range []string{"When does the chart room open?", "What is hostile about the chart room?",
		"Which cell, heading, title and name has the chart room?"} {
		ask(question, flags...)
		ask(question) // without a model documents are quoted
	}
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
