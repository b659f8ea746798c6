// Package data_test checks that the statements of the questions about the sample library are
// true.
package data_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
)

var must = datatest.Must

// question is a line of questions.jsonl; README.md describes its fields.
type question struct {
	ID         string   `json:"id"`
	Question   string   `json:"question"`
	Answer     string   `json:"answer"`
	Answers    []string `json:"answers"`
	Answerable *bool    `json:"answerable"`
	Documents  []string `json:"documents"`
	Pages      []*int   `json:"pages"`
	Kind       string   `json:"kind"`
	Worded     string   `json:"worded"`
}

func (q question) answerable() bool { return q.Kind != "off-topic" && q.Kind != "on-topic" }

func readQuestions(t *testing.T) []question {
	t.Helper()
	var all []question
	for i, line := range datatest.Lines[json.RawMessage](t, "questions.jsonl") {
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var q question
		must(t, dec.Decode(&q))
		if want := fmt.Sprintf("q%03d", i+1); q.ID != want {
			t.Errorf("questions.jsonl:%d: id %q, want %q", i+1, q.ID, want)
		}
		all = append(all, q)
	}
	return all
}

func TestQuestionsAreWellFormed(t *testing.T) {
	seen := map[string]string{}
	for _, q := range readQuestions(t) {
		if strings.TrimSpace(q.Question) == "" || q.Answer == "" {
			t.Errorf("%s: question or answer is empty", q.ID)
		}
		if other, ok := seen[plain(q.Question)]; ok {
			t.Errorf("%s asks the same as %s", q.ID, other)
		}
		seen[plain(q.Question)] = q.ID

		if (q.Answerable == nil) != q.answerable() || q.Answerable != nil && *q.Answerable {
			t.Errorf("%s (%s): \"answerable\" must be false exactly where there is no answer", q.ID, q.Kind)
		}
		if !q.answerable() {
			if len(q.Answers)+len(q.Documents)+len(q.Pages) > 0 || q.Worded != "" || q.Answer != "not in the library" {
				t.Errorf("%s (%s) must have no document, page, wording or answer but %q", q.ID, q.Kind, "not in the library")
			}
			continue
		}
		if !slices.Contains([]string{"single", "two-documents", "version", "table", "paraphrase"}, q.Kind) {
			t.Errorf("%s: unknown kind %q", q.ID, q.Kind)
		}
		if q.Worded != "own" && q.Worded != "other" {
			t.Errorf("%s: worded is %q, want own or other", q.ID, q.Worded)
		}
		if q.Kind == "two-documents" && len(q.Documents) < 2 {
			t.Errorf("%s: needs two documents but names %d", q.ID, len(q.Documents))
		}
		if len(q.Answers) == 0 || len(q.Documents) == 0 {
			t.Errorf("%s: no answers or no documents", q.ID)
		}
	}
}

func TestAnswersAreInTheirDocuments(t *testing.T) {
	for _, q := range readQuestions(t) {
		var texts []string
		for i, id := range q.Documents {
			text, pages := document(t, id)
			isPDF := strings.HasSuffix(id, ".pdf")
			switch {
			case isPDF && (len(q.Pages) != len(q.Documents) || q.Pages[i] == nil):
				t.Errorf("%s: there is no page for %s", q.ID, id)
				continue
			case isPDF && (*q.Pages[i] < 1 || *q.Pages[i] > len(pages)):
				t.Errorf("%s: %s has %d pages, not %d", q.ID, id, len(pages), *q.Pages[i])
				continue
			case isPDF:
				text = pages[*q.Pages[i]-1]
			case i < len(q.Pages) && q.Pages[i] != nil:
				t.Errorf("%s: page %d of %s, which has no pages", q.ID, *q.Pages[i], id)
			}
			texts = append(texts, text)
		}
		for _, a := range q.Answers {
			if !slices.ContainsFunc(texts, func(text string) bool { return eval.Holds(text, a) }) {
				t.Errorf("%s: %q is not in %v, on the named pages", q.ID, a, q.Documents)
			}
		}
		// Searches are measured by the first document, so it must contain an
		// answer, unless the answer needs two documents.
		if q.answerable() && q.Kind != "two-documents" && len(texts) > 0 &&
			!slices.ContainsFunc(q.Answers, func(a string) bool { return eval.Holds(texts[0], a) }) {
			t.Errorf("%s: none of %q is in the first document, %s", q.ID, q.Answers, q.Documents[0])
		}
	}
}

var (
	newPage = regexp.MustCompile(`<section class="page">`)
	hidden  = regexp.MustCompile(`(?s)<(script|style|head)\b.*?</(script|style|head)>`)
	tag     = regexp.MustCompile(`(?s)<[^>]*>`)
)

// document returns the plain text of a document of the library and, for a PDF, of each page. The
// text of a PDF comes from the PDF's source, where each page is a section, so that no PDF reader
// is needed.
func document(t *testing.T, id string) (text string, pages []string) {
	t.Helper()
	if !strings.HasPrefix(id, "library/") || !fs.ValidPath(id) {
		t.Fatalf("%q is not the id of a document of this library", id)
	}
	path := filepath.FromSlash(id)
	_, err := os.Stat(path)
	must(t, err)
	ext := filepath.Ext(path)
	if ext == ".pdf" {
		path = filepath.Join("pdf-sources", strings.TrimSuffix(filepath.Base(path), ext)+".html")
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	if !utf8.Valid(raw) {
		t.Fatalf("%s is not UTF-8", path)
	}
	if ext == ".pdf" {
		for _, page := range newPage.Split(string(raw), -1) {
			pages = append(pages, plain(untag(page)))
		}
		return strings.Join(pages, " "), pages
	}
	if ext == ".html" || ext == ".mdx" {
		return plain(untag(string(raw))), nil
	}
	return plain(string(raw)), nil
}

func untag(markup string) string {
	return html.UnescapeString(tag.ReplaceAllString(hidden.ReplaceAllString(markup, " "), " "))
}

// plain returns the text in lower case, without emphasis marks and with single spaces.
func plain(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(s, "*", ""))), " ")
}
