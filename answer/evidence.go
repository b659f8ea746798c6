package answer

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// Evidence is one passage as a prompt shows it. Its methods are the slots of
// document.tmpl; each gives text in which nothing can pass for a label or end
// a fence.
//
// A slot that the document does not have is a [*SlotError], found before any
// model is asked. Where it need not be there, the template looks first:
//
//	{{define "document"}}{{.Title}}{{if .Has "page"}}, page {{.Page}}{{end}}, by {{.Meta "author"}}
//	{{.Text}}{{end}}
//
// What a document says of itself is reached by Meta alone, so that no key of
// it, whatever its name, takes the place of another slot.
type Evidence struct {
	label   int
	passage retrieve.Passage
	text    string
	sample  bool // has every slot
}

// evidence makes a passage fit to stand in a prompt under a label.
func evidence(label int, p retrieve.Passage) Evidence {
	return Evidence{label: label, passage: p, text: strings.TrimSpace(inert(p.Text))}
}

// Label is what the model cites the passage by.
func (e Evidence) Label() int { return e.label }

// Text is the passage itself, as much of it as the prompt has room for.
func (e Evidence) Text() string { return e.text }

// Title is the document's title, or its path where it has none.
func (e Evidence) Title() string {
	return cmp.Or(oneLine(e.passage.Title), e.Path(), e.Document())
}

// Path is where the document lies in the folder it was read from.
func (e Evidence) Path() string { return oneLine(e.passage.Path) }

// Document is the document's id: the name of its folder and its path.
func (e Evidence) Document() string { return oneLine(e.passage.Document) }

// Heading is the path of headings above the passage, without the title.
func (e Evidence) Heading() (string, error) {
	return e.slot("heading", oneLine(trimTitle(e.passage.Title, e.passage.Heading)))
}

// Page is the page that the passage begins on, counted from 1.
func (e Evidence) Page() (int, error) {
	if e.passage.Page == 0 {
		_, err := e.slot("page", "")
		return 0, err
	}
	return e.passage.Page, nil
}

// Meta is what the document says of itself under a key, such as "author" or
// "date", in one line.
func (e Evidence) Meta(key string) (string, error) {
	return e.slot(key, oneLine(e.passage.Meta[key]))
}

// Has tells whether the document has a slot: one of the others by its name in
// small letters, such as "heading" or "page", or else a key of [Evidence.Meta].
func (e Evidence) Has(slot string) bool {
	var err error
	switch slot {
	case "label", "text", "title", "path", "document":
	case "heading":
		_, err = e.Heading()
	case "page":
		_, err = e.Page()
	default:
		_, err = e.Meta(slot)
	}
	return err == nil
}

func (e Evidence) slot(name, value string) (string, error) {
	if value == "" && !e.sample {
		return "", &SlotError{Document: e.passage.Document, Slot: name}
	}
	return value, nil
}

// A SlotError says that a prompt template shows a slot which a document lacks.
type SlotError struct {
	Document string // id
	Slot     string // "heading", "page" or a key of the document's metadata
}

func (e *SlotError) Error() string {
	return fmt.Sprintf("the document %q has no %q, which a prompt template shows: put it into the document, or let the template look first with {{if .Has %[2]q}}", e.Document, e.Slot)
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
			unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
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
		case unicode.Is(unicode.M, r), r == '\u200c', r == '\u200d': // changes little or nothing of how a digit looks
		case unicode.IsSpace(r), strings.ContainsRune("^,;:=-–—，；、\"'", r):
		case strings.ContainsRune("iIdDsS", r):
		default:
			return false
		}
	}
	return digits
}
