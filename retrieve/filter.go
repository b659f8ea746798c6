package retrieve

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	bcp47 "golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// A Filter narrows a search to documents that match all its fields. A zero field
// matches every document.
type Filter struct {
	Collection string `json:"collection,omitempty"`
	Root       string `json:"root,omitempty"`
	// Document is the id of one document.
	Document string `json:"document,omitempty"`
	// Documents, unless empty, are the ids of the documents that match.
	Documents []string `json:"documents,omitempty"`
	// Digests, unless empty, are the digests of the files that match. Requests cannot set it.
	Digests []string `json:"-"`
	// PathPrefix is compared with the path inside the root.
	PathPrefix string `json:"path_prefix,omitempty"`
	Format     string `json:"format,omitempty"`
	// Tags must all be among the document's tags, ignoring case.
	Tags []string `json:"tags,omitempty"`
	// Author contains words that must all occur in the names of the document's authors, in any
	// order, ignoring case and accents.
	Author string `json:"author,omitempty"`
	// Language matches a language that the document's metadata names, or a more specific one: "de"
	// matches "de-AT".
	Language LanguageTag `json:"language,omitempty"`
	// Since and Until are the first and last day of the documents' dates. A document without a date
	// matches neither.
	Since Date `json:"since,omitempty"`
	Until Date `json:"until,omitempty"`
	// Collections, unless empty, are the collections that the caller may access; the document must
	// be in one of them. Requests cannot set it.
	Collections []string `json:"-"`
}

// IsZero reports whether the filter matches every document.
func (f Filter) IsZero() bool { return f.Equal(Filter{}) }

// Equal reports whether two filters have equal fields.
func (f Filter) Equal(g Filter) bool {
	return f.Collection == g.Collection && f.Root == g.Root && f.Document == g.Document && slices.Equal(f.Digests, g.Digests) &&
		f.PathPrefix == g.PathPrefix && f.Format == g.Format && f.Author == g.Author &&
		f.Language == g.Language && f.Since == g.Since && f.Until == g.Until &&
		slices.Equal(f.Tags, g.Tags) && slices.Equal(f.Documents, g.Documents) && slices.Equal(f.Collections, g.Collections)
}

// Matches reports whether the filter matches a document with these labels.
func (f Filter) Matches(d *DocumentInfo, l Labels) bool {
	return (f.Collection == "" || f.Collection == d.Collection) &&
		(len(f.Collections) == 0 || slices.Contains(f.Collections, d.Collection)) &&
		(f.Root == "" || f.Root == d.Root) &&
		(f.Document == "" || f.Document == d.ID) &&
		(len(f.Digests) == 0 || slices.Contains(f.Digests, d.Digest)) &&
		(len(f.Documents) == 0 || slices.Contains(f.Documents, d.ID)) &&
		(f.Format == "" || f.Format == d.Format) &&
		(f.PathPrefix == "" || strings.HasPrefix(norm.NFC.String(d.Path), norm.NFC.String(f.PathPrefix))) && // macOS decomposes names
		f.matchesLabels(l)
}

// matchesLabels reports whether the filter includes a document with these labels.
func (f Filter) matchesLabels(l Labels) bool {
	return (f.Since == "" || l.Date != "" && l.Date.compare(f.Since) >= 0) &&
		(f.Until == "" || l.Date != "" && l.Date.compare(f.Until) <= 0) &&
		!slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(l.Tags, foldTag(tag)) }) &&
		(f.Language == "" || slices.ContainsFunc(l.Languages, f.Language.includes)) &&
		(f.Author == "" || l.hasAuthor(f.Author))
}

// Labels are the values of a document's metadata that a [Filter] compares.
type Labels struct {
	// Date is the document's "date", or its "updated" if "date" is missing or unreadable.
	Date      Date
	Tags      []string // in lower case, without "#"
	Authors   []string // the words of the authors' names, in lower case without accents
	Languages []LanguageTag
}

// LabelsOf reads the labels of a document's metadata.
func LabelsOf(meta map[string]string) Labels {
	var l Labels
	for tag := range strings.FieldsFuncSeq(meta["tags"], func(r rune) bool { return r == ',' || r == ';' }) {
		if tag = foldTag(tag); tag != "" {
			l.Tags = append(l.Tags, tag)
		}
	}
	for _, key := range []string{"date", "updated"} {
		if l.Date == "" {
			l.Date = readDate(meta[key])
		}
	}
	l.Authors = nameWords(meta["author"])
	for tag := range strings.FieldsFuncSeq(meta["language"], func(r rune) bool { return r == ',' || r == ';' }) {
		if t := languageTag(tag); t != "" {
			l.Languages = append(l.Languages, t)
		}
	}
	return l
}

// hasAuthor reports whether all words of the name are among the authors' names.
func (l Labels) hasAuthor(name string) bool {
	words := nameWords(name)
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(l.Authors, w) })
}

func nameWords(names string) []string {
	return strings.FieldsFunc(fold(names), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) })
}

// A LanguageTag is the shortest BCP 47 tag of a language: "de", "pt-BR". Any other text, such as a
// language's name, is kept in lower case.
type LanguageTag string

// UnmarshalText reads a tag in any case, of two or three letters, with hyphens or
// underscores: "deu" and "DE" are "de".
func (t *LanguageTag) UnmarshalText(text []byte) error {
	*t = languageTag(string(text))
	return nil
}

func languageTag(s string) LanguageTag {
	s = strings.TrimSpace(s)
	tag, err := bcp47.Parse(s)
	if err != nil {
		return LanguageTag(strings.ToLower(s))
	}
	return LanguageTag(tag.String())
}

// includes reports whether the other tag is equal or more specific (RFC 4647, 3.3.1).
func (t LanguageTag) includes(other LanguageTag) bool {
	return t == other || strings.HasPrefix(string(other), string(t)+"-")
}

func foldTag(tag string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(tag), "#"))
}

// A Date is a day, a month or a year, written 2024-03-31, 2024-03 or 2024; empty if there is no
// date. A month or year matches any of its days: a document dated 2024 matches both until
// 2024-03-31 and since 2024-03-31.
type Date string

const dateLayout = "2006-01-02"

// ParseDate parses a date in one of its three forms, or the day of an RFC 3339
// time. The error is a [*DateError].
func ParseDate(s string) (Date, error) {
	for _, layout := range []string{dateLayout, "2006-01", "2006"} {
		if _, err := time.Parse(layout, s); err == nil {
			return Date(s), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return Date(t.Format(dateLayout)), nil
	}
	return "", &DateError{Text: s}
}

// A DateError reports that a text is not a [Date].
type DateError struct{ Text string }

func (e *DateError) Error() string {
	return fmt.Sprintf("invalid date %.40q: write it as 2024-03-31, 2024-03 or 2024", e.Text)
}

// UnmarshalText parses a date like [ParseDate], except that an empty text is an empty date.
func (d *Date) UnmarshalText(text []byte) (err error) {
	*d = ""
	if len(text) > 0 {
		*d, err = ParseDate(string(text))
	}
	return err
}

// compare orders two dates by the parts that both of them have.
func (d Date) compare(to Date) int {
	n := min(len(d), len(to))
	return strings.Compare(string(d[:n]), string(to[:n]))
}

// readDate reads a date that begins with the year, and ignores a time and zone after it. It returns
// "" for any other text.
func readDate(s string) Date {
	parts := datedFirst.FindStringSubmatch(s)
	if parts == nil {
		return ""
	}
	date := parts[1]
	for _, part := range parts[2:] {
		if part != "" {
			date += fmt.Sprintf("-%02s", part)
		}
	}
	d, _ := ParseDate(date) // empty if the calendar has no such day
	return d
}

var datedFirst = regexp.MustCompile(`^\s*([0-9]{4})(?:[-/.]?([0-9]{2})|[-/.]([0-9]))?(?:[-/.]?([0-9]{2})|[-/.]([0-9]))?(?:$|[^0-9])`)
