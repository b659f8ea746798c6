package eval

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// README.md documents every field and figure, and its examples can be read.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	must(t, err)
	readme := string(b)
	examples := regexp.MustCompile("(?s)<<'END'\n(.*?)\nEND\n").FindStringSubmatch(readme)
	if examples == nil {
		t.Fatal("no examples")
	}
	questions, unknown, err := ReadQuestions(files("q.jsonl", examples[1]), "q.jsonl")
	if err != nil || len(questions) < 6 || unknown != nil {
		t.Errorf("%d questions, %q, %v", len(questions), unknown, err)
	}
	for _, name := range fieldNames {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("the field %s is not documented", name)
		}
	}
	for _, c := range causes {
		if !strings.Contains(readme, "| `"+string(c)+"` |") {
			t.Errorf("the cause %s is not documented", c)
		}
	}
	for _, f := range KnownFigures() {
		if !strings.Contains(readme, "`"+f.Name+"`") {
			t.Errorf("the figure %s is not documented", f.Name)
		}
	}
}
