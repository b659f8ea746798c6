// Package prompt writes the requests to a model: it has the templates and their
// slots, and packs passages into the model's context window.
//
// [Parse] reads the templates, a [Writer] fills them in for one question and
// measures them in tokens, and [Writer.Pack] divides passages into batches that
// fit. The package calls no model, and reads no files except the given folder of
// templates.
package prompt

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"text/template"

	"ibid/ingest"
	"ibid/retrieve"
)

//go:embed *.tmpl
var embedded embed.FS

// The names of the prompts that several files use, each in a file NAME.tmpl.
const (
	Judge     = "judge"
	Answer    = "answer"
	Refine    = "refine"
	Condense  = "condense"
	Map       = "map"
	Collapse  = "collapse"
	Combine   = "combine"
	Verify    = "verify"
	Chat      = "chat"
	Translate = "translate"
	Suggest   = "suggest"
	Summarize = "summarize" // in place of Answer for a summary
	Extend    = "extend"    // in place of Refine for a summary
)

// names are the prompts: the embedded files except the shared ones.
var names = func() (names []string) {
	files, err := fs.Glob(embedded, "*.tmpl")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f, ".tmpl"); !slices.Contains(shared, name) {
			names = append(names, name)
		}
	}
	return names
}()

// shared are templates that the prompts use.
var shared = []string{"evidence", "document", "style"}

// subjects are the slots that prompts must show to be useful. Prompts that are not in the
// map must show evidence.
var subjects = map[string][]string{
	Refine: {"evidence", "draft"}, Extend: {"evidence", "draft"}, Condense: {"history"}, Collapse: {"part"}, Combine: {"part"},
	Chat: {}, Translate: {}, Verify: {"statement"},
}

// Templates are the templates that prompts are written from.
//
// Each prompt's file defines the templates "system" and "user" with the slots of
// [Slots]. They show passages by the template "evidence" of evidence.tmpl, which
// fences and labels each passage. It uses the template "document" of
// document.tmpl, whose slots are the methods of [Evidence]. Prompts whose reply the
// reader sees use the template "style" of style.tmpl.
type Templates struct{ byName map[string]*template.Template }

// Slots are the slots of a prompt template. All text in them is safe: invisible
// characters have been removed, and bracketed numbers in documents have round
// brackets, so that they cannot pass for labels.
type Slots struct {
	// Question is empty for a summary.
	Question string
	// Nonce is an unpredictable mark, new for each request. The fences around
	// quoted material carry it, so that no document can close one.
	Nonce string
	// Evidence has the passages that this request shows.
	Evidence []Evidence
	// First is the label of the first piece of evidence, or the first label
	// in Parts.
	First int
	// Draft is the answer so far, with its labels (refine and extend only).
	Draft string
	// Parts are partial answers or summaries, with their labels (collapse and
	// combine only).
	Parts []string
	// Words is about how many words, or questions (suggest), the reply should have; 0
	// if the model may choose.
	Words int
	// History holds the turns before the question (condense only).
	History []Turn
	// Language is the English name of the language to translate into (translate only).
	Language string
	// Statement is a sentence of an answer (verify only). Again asks in other words.
	Statement string
	Again     bool
	// Style says how the reply should sound (answer, refine, combine and rerank
	// only); it may be empty.
	Style string
}

// A Turn is one earlier message of a conversation.
type Turn struct {
	Role    string // "user" or "assistant"
	Content string
}

// Default returns the embedded templates.
func Default() *Templates { return defaultTemplates() }

var defaultTemplates = sync.OnceValue(func() *Templates {
	t, err := Parse(nil)
	if err != nil {
		panic("prompt: the embedded templates: " + err.Error())
	}
	return t
})

// Parse reads the templates from a folder, and the embedded file for each template
// that the folder lacks. It tries each template on sample slots and returns an error
// if one names an unknown slot or does not show its subject, or if the folder has a
// .tmpl file with another name, which would never be read.
func Parse(folder fs.FS) (*Templates, error) {
	if folder == nil {
		folder = embedded
	}
	files, err := fs.Glob(folder, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("listing the prompts: %w", err)
	}
	known := slices.Concat(shared, names)
	for _, file := range files {
		if !slices.Contains(known, strings.TrimSuffix(file, ".tmpl")) {
			return nil, fmt.Errorf("%s is not the name of a prompt: they are %s.tmpl", file, strings.Join(known, ".tmpl, "))
		}
	}
	texts := map[string]string{}
	for _, name := range shared {
		if texts[name], err = read(folder, name); err != nil {
			return nil, err
		}
	}
	p := &Templates{byName: map[string]*template.Template{}}
	for _, name := range names {
		text, err := read(folder, name)
		if err != nil {
			return nil, err
		}
		t, err := template.New(name + ".tmpl").Option("missingkey=error").Parse(text)
		for _, name := range shared {
			if err == nil {
				_, err = t.New(name + ".tmpl").Parse(texts[name])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s.tmpl does not parse: %w", name, err)
		}
		p.byName[name] = t
		if err := p.checkTemplate(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func read(folder fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(folder, name+".tmpl")
	if errors.Is(err, fs.ErrNotExist) {
		b, err = embedded.ReadFile(name + ".tmpl")
	}
	if err != nil {
		return "", fmt.Errorf("reading the prompt %s.tmpl: %w", name, err)
	}
	return string(b), nil
}

// checkTemplate fills in a template with samples: with all slots set, for a question and
// for a summary, and with as few as possible.
func (t *Templates) checkTemplate(name string) error {
	const mark = "x7sample"
	all := Slots{
		Question: mark + "question", Nonce: sampleNonce, First: 1, Draft: mark + "draft", Parts: []string{mark + "part"}, Words: 100,
		Statement: mark + "statement",
		Evidence: []Evidence{{label: 1, sample: true, text: mark + "evidence", passage: retrieve.Passage{
			Title: "title", Path: "path", Chunk: ingest.Chunk{Document: "document", Heading: "heading", Page: 1},
		}}},
		History: []Turn{{Role: "user", Content: mark + "history"}},
	}
	summary := all
	summary.Question = ""
	for _, s := range []Slots{{Evidence: []Evidence{{}}}, summary, all} {
		system, user, err := t.fill(name, s)
		if err != nil {
			return err
		}
		shown, ok := subjects[name]
		if !ok {
			shown = []string{"evidence"}
		}
		for _, subject := range shown {
			if s.Draft != "" && !strings.Contains(system+user, mark+subject) {
				return fmt.Errorf("prompt %s.tmpl does not show the text of the %s: neither by itself nor by a template that it uses", name, subject)
			}
		}
	}
	return nil
}

func (t *Templates) fill(name string, s Slots) (system, user string, err error) {
	var b [2]strings.Builder
	for i, part := range []string{"system", "user"} {
		if err := t.byName[name].ExecuteTemplate(&b[i], part, s); err != nil {
			return "", "", fmt.Errorf("prompt %s.tmpl: %w", name, err)
		}
	}
	return b[0].String(), b[1].String(), nil
}

// sampleNonce is the nonce of prompts that are only measured. It is constant, so that
// passages are always packed in the same way.
const sampleNonce = "k3x9q2m7"
