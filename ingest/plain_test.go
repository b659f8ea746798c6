package ingest

import (
	"ibid/ingest/charset"
	"ibid/ingest/child"
	"ibid/ingest/format"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestPlainFormatsRefuse(t *testing.T) {
	deep := 200_000
	checkRefusals(t, new(Reader), []refusal{
		{"a.json", `{"a":"` + strings.Repeat("x", 32<<20) + `"}`, false, "line 1 is 32 MB long"},
		{"a.jsonl", "{}\n" + strings.Repeat("x", 32<<20+1), false, "line 2 is 32 MB long"},
		{"a.json", strings.Repeat("[", deep) + strings.Repeat("]", deep), false, "more than 128 deep"},
		{"a.jsonl", strings.Repeat("[", deep) + strings.Repeat("]", deep), false, "line 1: lists and objects"},
		{"a.xml", strings.Repeat("<a>", deep), false, "more than 256 deep"},
		{"a.ipynb", strings.Repeat("[", deep), false, "not a valid notebook"},
		{"a.txt", strings.Repeat("x", 20<<20), false, "no words in it: it repeats the character x"},
		{"a.min.js", "var a=1;" + strings.Repeat("function b(){return a}", 1000), true, "minified"},
		{"a.css", strings.Repeat("a{color:red}", 1000), true, "minified"},
		{"b.js", "const data = \"" + strings.Repeat("x", 6000) + "\"\n" + strings.Repeat("let a = 1\n", 5000), false, ""},
	})
}

// TestLinesOfTheFile checks that the line number of every chunk is the line of its text.
func TestLinesOfTheFile(t *testing.T) {
	names, err := filepath.Glob("testdata/read/*")
	must(t, err)
	known := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".golden") || strings.HasSuffix(name, ".pdf") {
			continue
		}
		data, err := os.ReadFile(name)
		must(t, err)
		doc, err := new(Reader).Read(t.Context(), path.Base(name), data)
		if err != nil || doc.Lines == nil {
			continue
		}
		src, err := charset.Decode(data, "")
		must(t, err)
		lines := strings.Split(strings.ReplaceAll(format.Clean(src), "\\_", "_"), "\n")
		last := 0
		for _, c := range split(t.Context(), doc, 30, 60) {
			if c.Line == 0 {
				continue
			}
			known++
			if c.Line > len(lines) {
				t.Fatalf("%s: line %d of %d lines", name, c.Line, len(lines))
			}
			near := strings.ToLower(strings.Join(lines[c.Line-1:min(len(lines), c.Line+2)], "\n"))
			if !slices.ContainsFunc(firstWords(c.Text), func(word string) bool { return strings.Contains(near, word) }) {
				t.Errorf("%s: line %d is %q, but the chunk begins with %q", name, c.Line, lines[c.Line-1], child.FirstLine(c.Text, 60))
			}
			if c.Line < last-10 { // a comment precedes its name in the file
				t.Errorf("%s: line %d follows line %d", name, c.Line, last)
			}
			last = c.Line
		}
	}
	if known < 60 {
		t.Errorf("only %d chunks have a line, want at least 60", known)
	}
}

// firstWords returns the first few words of a text.
func firstWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return words[:min(len(words), 8)]
}
