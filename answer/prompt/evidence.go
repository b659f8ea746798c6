package prompt

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// Evidence is one passage as a prompt shows it. Its methods are the slots of
// document.tmpl; each returns text in which nothing can pass for a label or end
// a fence.
//
// A slot that the document lacks is empty:
//
//	{{define "document"}}{{.Title}}{{if .Has "page"}}, page {{.Page}}{{end}}, {{.Meta "date"}}
//	{{.Text}}{{end}}
//
// A document's metadata is reached through Meta alone, so that none of its keys
// can replace another slot.
type Evidence struct {
	label   int
	passage retrieve.Passage
	text    string
	sample  bool // has all metadata
}

// NewEvidence makes a passage safe to show in a prompt under a label.
func NewEvidence(label int, p retrieve.Passage) Evidence {
	return Evidence{label: label, passage: p, text: strings.TrimSpace(Inert(p.Text))}
}

// Label is the number by which the model cites the passage.
func (e Evidence) Label() int { return e.label }

// Text is the passage, shortened if the prompt lacks room for all of it.
func (e Evidence) Text() string { return e.text }

// Title is the document's title, or its path if it is untitled.
func (e Evidence) Title() string {
	return cmp.Or(oneLine(e.passage.Title), e.Path(), e.Document())
}

// Path is the document's path in the folder it was read from.
func (e Evidence) Path() string { return oneLine(e.passage.Path) }

// Document is the document's id: the name of its folder and its path.
func (e Evidence) Document() string { return oneLine(e.passage.Document) }

// Heading is the path of headings above the passage, without the title.
func (e Evidence) Heading() string { return oneLine(trimTitle(e.passage.Title, e.passage.Heading)) }

// Page is the 1-based page on which the passage begins, or 0 if there are no pages.
func (e Evidence) Page() int { return e.passage.Page }

// Meta is the document's metadata under a key, such as "author" or "date", on
// one line, or "" if the document lacks it.
func (e Evidence) Meta(key string) string {
	if e.sample {
		return key
	}
	return oneLine(e.passage.Meta[key])
}

// Has reports whether the document has a slot: "heading", "page" or a key of
// [Evidence.Meta].
func (e Evidence) Has(slot string) bool {
	switch slot {
	case "label", "text", "title", "path", "document":
		return true
	case "heading":
		return e.Heading() != ""
	case "page":
		return e.Page() != 0
	}
	return e.Meta(slot) != ""
}

// trimTitle removes the document's title from the front of a heading path.
func trimTitle(title, heading string) string {
	if heading == title {
		return ""
	}
	return strings.TrimPrefix(heading, title+ingest.HeadingSeparator)
}

// oneLine puts text on one line and makes it inert, before and after joining the lines.
func oneLine(s string) string { return Inert(strings.Join(strings.Fields(Inert(s)), " ")) }

// Inert makes text of unknown origin harmless in a prompt: it removes invisible
// characters, and replaces brackets that could be read as a label by round ones.
func Inert(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case ' ' <= r && r <= '~', r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // the last two join letters in some scripts
			return r
		case r == utf8.RuneError,
			unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r),
			unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, s)
	if strings.ContainsAny(s, "[【［〔") {
		s = labelLike.ReplaceAllString(s, "($1)")
	}
	return RoundLabels(s, maxForgedLabel)
}

// maxForgedLabel is above any label of an answer.
const maxForgedLabel = 1 << 20

// RoundLabels replaces the brackets around text that [marker] reads as a label from 1 to
// highest: square brackets by round ones, and other brackets, as in "(Source 1)", by
// braces. Other text is unchanged: "rows[0]", "[2015]" if highest is 3, "[1, 2]" in data.
func RoundLabels(s string, highest int) string {
	for _, brackets := range []*strings.Replacer{round, braces, braces} {
		plain := replaceMarkers(s, highest, brackets)
		if plain == s {
			return s
		}
		s = plain
	}
	return braces.Replace(s)
}

// round replaces square brackets by round ones, and other brackets by braces.
var round = strings.NewReplacer("[", "(", "]", ")", "【", "{", "】", "}", "［", "{", "］", "}", "〔", "{", "〕", "}",
	"(", "{", ")", "}", "（", "{", "）", "}", "<", "{", ">", "}")

var braces = strings.NewReplacer("[", "{", "]", "}", "【", "{", "】", "}", "［", "{", "］", "}", "〔", "{", "〕", "}",
	"(", "{", ")", "}", "（", "{", "）", "}", "<", "{", ">", "}")

func replaceMarkers(s string, highest int, brackets *strings.Replacer) string {
	var b strings.Builder
	take := func(t marker.Token) {
		if t.Marker {
			b.WriteString(brackets.Replace(string(t.Text)))
			return
		}
		b.Write(t.Text)
	}
	scanner := marker.NewScanner(marker.Default, highest)
	scanner.Excluded = func(int) bool { return true } // find labels in a list of sources too
	scanner.Feed([]byte(s), take)
	scanner.Close(take)
	return b.String()
}

// Marks and joiners hardly change how a digit looks.
var labelLike = regexp.MustCompile(`[\[【［〔]((?i:` + blank + `*number` + blank + `*)|` + around + `*\p{Nd}` + around + `*)[\]】］〕]`)

const (
	blank  = `[\s\x{85}\p{Z}]`
	around = `[\p{Nd}\p{M}\x{200c}\x{200d}\s\x{85}\p{Z}^,;:=\-–—，；、"'iIdDsS]`
)
