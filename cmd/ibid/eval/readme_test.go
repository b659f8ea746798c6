package eval

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// README.md documents every field, and its examples can be read.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	must(t, err)
	readme := string(b)
	examples := regexp.MustCompile("(?s)<<'END'\n(.*?)\nEND\n").FindStringSubmatch(readme)
	if examples == nil {
		t.Fatal("no examples")
	}
	questions, err := ReadQuestions(files("q.jsonl", examples[1]), "q.jsonl")
	if err != nil || len(questions) < 6 {
		t.Errorf("%d questions, %v", len(questions), err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[questionLine]()) {
		if !strings.Contains(readme, "`"+strings.ToLower(f.Name)+"`") {
			t.Errorf("the field %s is not documented", f.Name)
		}
	}
}
