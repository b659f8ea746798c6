package answer

import (
	"crypto/rand"
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

//go:embed prompts/*.tmpl
var embedded embed.FS

// Prompts are the templates that the requests to a model are written from.
//
// Each of the files named after a [Role] (judge.tmpl, answer.tmpl …), and
// summarize.tmpl and extend.tmpl, which take the place of answer.tmpl and
// refine.tmpl where a text is summarized, defines the templates "system" and
// "user"; their slots are those of [Slots]. They show passages by the template
// "evidence" of evidence.tmpl, which fences each and gives its label, and that
// by the template "document" of document.tmpl, whose slots are the methods of
// [Evidence]. Those that write what is read show the template "style" of
// style.tmpl.
type Prompts struct{ of map[string]*template.Template }

// Slots are what a prompt template may show. All text in them is made safe
// beforehand: invisible characters are gone, and bracketed numbers in
// documents stand in round brackets, so that they cannot pass for labels.
type Slots struct {
	// Question is empty where a text is summarized.
	Question string
	// Nonce is a mark that nobody can foresee, new for each request. Fences
	// around quoted material carry it, so that no document can close one.
	Nonce string
	// Evidence is what this request shows.
	Evidence []Evidence
	// First is the label of the first piece of evidence, or the first label
	// in Parts.
	First int
	// Draft is the answer so far (refine only), with its labels.
	Draft string
	// Parts are partial answers, or partial summaries, with their labels
	// (collapse and combine only).
	Parts []string
	// Words is about how many words the reply should have; 0 says nothing.
	Words int
	// History holds the turns before the question (condense only).
	History []Turn
	// Style is how whoever asks wants the reply to sound (answer, refine,
	// combine and rerank only); empty says nothing.
	Style string
}

// DefaultPrompts gives the prompts that Ibid comes with.
func DefaultPrompts() *Prompts { return defaultPrompts() }

var defaultPrompts = sync.OnceValue(func() *Prompts {
	p, err := ParsePrompts(nil)
	if err != nil {
		panic("answer: the prompts that are part of the program: " + err.Error())
	}
	return p
})

// ParsePrompts reads the prompts from a folder; a file that the folder lacks
// is the one Ibid comes with. Each template is tried on sample slots, so that
// a slot that cannot exist is an error here and not in the middle of an answer,
// and so is a prompt that does not show what it is about. A template of a name
// that is none of theirs would never be read: that is an error too.
func ParsePrompts(folder fs.FS) (*Prompts, error) {
	read := func(name string) (string, error) {
		if folder != nil {
			b, err := fs.ReadFile(folder, name)
			if err == nil {
				return string(b), nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("reading the prompt %s: %w", name, err)
			}
		}
		b, err := embedded.ReadFile("prompts/" + name)
		return string(b), err
	}
	shared := []string{"evidence.tmpl", "document.tmpl", "style.tmpl"}
	if err := checkNames(folder, shared); err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, name := range shared {
		var err error
		if texts[name], err = read(name); err != nil {
			return nil, err
		}
	}
	p := &Prompts{of: map[string]*template.Template{}}
	for _, own := range templates {
		name := own + ".tmpl"
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		t, err := template.New(name).Option("missingkey=error").Parse(text)
		for _, name := range shared {
			if err == nil {
				_, err = t.New(name).Parse(texts[name])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s does not parse: %w", name, err)
		}
		p.of[own] = t
		if err := p.try(own); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkNames refuses templates in a folder that have a name of their own.
func checkNames(folder fs.FS, shared []string) error {
	if folder == nil {
		return nil
	}
	known := slices.Clone(shared)
	for _, own := range templates {
		known = append(known, own+".tmpl")
	}
	files, err := fs.Glob(folder, "*.tmpl")
	if err != nil {
		return fmt.Errorf("listing the prompts: %w", err)
	}
	for _, name := range files {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s is not the name of a prompt: they are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// try fills in a template with samples: with everything that it may show, of a
// question and of a summary, and with as little as there may be.
func (p *Prompts) try(name string) error {
	const mark = "x7sample"
	all := Slots{
		Question: mark + "question", Nonce: sampleNonce, First: 1, Draft: mark + "draft", Parts: []string{mark + "part"}, Words: 100,
		Evidence: []Evidence{{label: 1, sample: true, text: mark + "evidence", passage: retrieve.Passage{
			Title: "title", Path: "path", Chunk: ingest.Chunk{Document: "document", Heading: "heading", Page: 1},
		}}},
		History: []Turn{{Role: "user", Content: mark + "history"}},
	}
	summary := all
	summary.Question = ""
	lacks := (*SlotError)(nil)
	for _, s := range []Slots{{Evidence: []Evidence{{}}}, summary, all} {
		out, err := p.fill(name, "", s)
		if errors.As(err, &lacks) {
			continue // some documents have it
		}
		if err != nil {
			return err
		}
		for _, what := range subjects(name) {
			if s.Draft != "" && !strings.Contains(out.System+out.User, mark+what) {
				return fmt.Errorf("prompt %s.tmpl does not show the text of the %s: neither by itself nor by a template that it uses", name, what)
			}
		}
	}
	return nil
}

// subjects are what a prompt must show to be of any use.
func subjects(name string) []string {
	switch name {
	case string(RoleCollapse), string(RoleCombine):
		return []string{"part"}
	case string(RoleCondense):
		return []string{"history"}
	case string(RoleRefine), promptExtend:
		return []string{"evidence", "draft"}
	}
	return []string{"evidence"}
}

// templates are the names of the prompts.
var templates = []string{
	string(RoleJudge), string(RoleAnswer), string(RoleRefine), string(RoleCondense),
	string(RoleMap), string(RoleCollapse), string(RoleCombine), string(RoleRerank),
	promptSummarize, promptExtend,
}

func (p *Prompts) write(role Role, s Slots) (Prompt, error) { return p.fill(string(role), role, s) }

// fill fills in the template of that name for a call of the role.
func (p *Prompts) fill(name string, role Role, s Slots) (Prompt, error) {
	out := Prompt{Role: role}
	for _, part := range []struct {
		name string
		to   *string
	}{{"system", &out.System}, {"user", &out.User}} {
		var b strings.Builder
		if err := p.of[name].ExecuteTemplate(&b, part.name, s); err != nil {
			return Prompt{}, fmt.Errorf("prompt %s.tmpl: %w", name, err)
		}
		*part.to = b.String()
	}
	return out, nil
}

// around is what the prompts write around a piece of evidence: its fence, its
// label and all that "document" shows but the text.
func (p *Prompts) around(e Evidence) (string, error) {
	e.text = ""
	var b strings.Builder
	if err := p.of[string(RoleAnswer)].ExecuteTemplate(&b, "evidence", Slots{Nonce: sampleNonce, Evidence: []Evidence{e}}); err != nil {
		return "", fmt.Errorf("prompt evidence.tmpl: %w", err)
	}
	return b.String(), nil
}

// sampleNonce stands where a prompt is measured, so that a text is packed in
// the same way each time.
const sampleNonce = "k3x9q2m7w5pz"

// newNonce makes the mark of a request's fences.
func newNonce() string { return strings.ToLower(rand.Text()[:12]) }
