package answer

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"text/template"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

//go:embed prompts/*.tmpl
var embedded embed.FS

// Prompts are the templates that the requests to a model are written from.
//
// Each of the files named after a [Role] (judge.tmpl, answer.tmpl …), and
// summarize.tmpl and extend.tmpl, which take the place of answer.tmpl and
// refine.tmpl where a text is summarized, defines the templates "system" and "user"; evidence.tmpl defines "evidence",
// which the others use to show documents. Their slots are those of [Slots].
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
}

// Evidence is one passage as a prompt shows it.
type Evidence struct {
	Label   int
	Title   string
	Heading string
	Page    int // 0 where the document has no pages
	Text    string
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
// a slot that does not exist is an error here and not in the middle of an answer.
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
	evidence, err := read("evidence.tmpl")
	if err != nil {
		return nil, err
	}
	p := &Prompts{of: map[string]*template.Template{}}
	for _, own := range templates {
		name := own + ".tmpl"
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		t, err := template.New(name).Option("missingkey=error").Parse(text)
		if err == nil {
			_, err = t.New("evidence.tmpl").Parse(evidence)
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %s does not parse: %w", name, err)
		}
		p.of[own] = t
		sample := Slots{Evidence: []Evidence{{}}, Parts: []string{""}, History: []Turn{{}}}
		if _, err := p.fill(own, "", sample); err != nil {
			return nil, err
		}
	}
	return p, nil
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

// evidence makes a passage fit to stand in a prompt under a label.
func evidence(label int, p retrieve.Passage) Evidence {
	return Evidence{
		Label:   label,
		Title:   oneLine(p.Title),
		Heading: oneLine(trimTitle(p.Title, p.Heading)),
		Page:    p.Page,
		Text:    strings.TrimSpace(inert(p.Text)),
	}
}

// trimTitle takes the document's title off the front of a heading path.
func trimTitle(title, heading string) string {
	if heading == title {
		return ""
	}
	return strings.TrimPrefix(heading, title+ingest.HeadingSeparator)
}

func oneLine(s string) string { return strings.Join(strings.Fields(inert(s)), " ") }

// inert makes text of unknown origin harmless in a prompt: characters that
// cannot be seen are taken out, and brackets that could be read as a label
// become round ones.
func inert(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // the last two join letters in some scripts
			return r
		case r == utf8.RuneError,
			unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r),
			unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, s)
	s = roundLabels(s)
	if len(marker.Labels(s, maxForgedLabel)) > 0 {
		s = strings.NewReplacer("[", "(", "]", ")", "【", "(", "】", ")").Replace(s)
	}
	return s
}

// maxForgedLabel is above any label that an answer can hold.
const maxForgedLabel = 1 << 20

// maxLabelBytes bounds how far a bracket is looked for its other half.
const maxLabelBytes = 256

// roundLabels puts round brackets in the place of square ones around what may
// be read as a label: numbers with separators between them, in any script, and
// the seed form's "[NUMBER]". Other bracketed text stays.
func roundLabels(s string) string {
	if !strings.ContainsAny(s, "[【［〔") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != '[' && r != '【' && r != '［' && r != '〔' {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		inner := s[i+n:]
		if len(inner) > maxLabelBytes {
			inner = inner[:maxLabelBytes]
		}
		end := strings.IndexAny(inner, "[]【】［］〔〕")
		closer, closing := utf8.RuneError, 0
		if end >= 0 {
			closer, closing = utf8.DecodeRuneInString(inner[end:])
		}
		if !strings.ContainsRune("]】］〕", closer) || !labelLike(inner[:end]) {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		b.WriteByte('(')
		b.WriteString(inner[:end])
		b.WriteByte(')')
		i += n + end + closing
	}
	return b.String()
}

// labelLike tells whether the inside of a pair of brackets could be read as
// the number of a source.
func labelLike(s string) bool {
	if strings.EqualFold(strings.TrimSpace(s), "number") {
		return true
	}
	digits := false
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Nd, r):
			digits = true
		case unicode.IsSpace(r), strings.ContainsRune("^,;:=-–—，；、\"'", r):
		case strings.ContainsRune("iIdDsS", r):
		default:
			return false
		}
	}
	return digits
}

// newNonce makes the mark of a request's fences.
func newNonce() string { return strings.ToLower(rand.Text()[:12]) }
