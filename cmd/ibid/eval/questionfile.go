package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// ExampleQuestion is a line of a file of questions.
const ExampleQuestion = `{"question": "When is the office open?", "words": ["nine to five"], "documents": ["about.md"]}`

// maxMalformed is the largest number of malformed lines that an error names.
const maxMalformed = 50

// ReadQuestions reads a file of questions: a JSON object per line, with the
// fields that README.md lists. Blank lines and lines that begin with // or # are
// skipped. The error names every malformed line. Unknown are the names of unknown
// fields, sorted.
func ReadQuestions(fsys fs.FS, name string) (questions []Question, unknown []string, err error) {
	ids := make(lineOf)
	strange := make(map[string]bool)
	var malformed []error
	err = eachLine(fsys, name, func(n int, line []byte) error {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("//")) || line[0] == '#' {
			return nil
		}
		q, fields, err := parseQuestion(line)
		if q.ID == "" {
			q.ID = fmt.Sprintf("line %d", n)
		}
		if err == nil {
			err = ids.add("id", q.ID, n)
		}
		if err != nil {
			malformed = append(malformed, fmt.Errorf("%s:%d: %w", name, n, err))
			return nil
		}
		for _, field := range fields {
			strange[field] = true
		}
		questions = append(questions, q)
		return nil
	})
	if more := len(malformed) - maxMalformed; more > 0 {
		malformed = append(malformed[:maxMalformed], fmt.Errorf("and %d more lines of %s", more, name))
	}
	if err := errors.Join(append(malformed, err)...); err != nil {
		return nil, nil, err
	}
	if len(questions) == 0 {
		return nil, nil, fmt.Errorf("%s is empty: it needs a question per line, such as %s", name, ExampleQuestion)
	}
	return questions, slices.Sorted(maps.Keys(strange)), nil
}

// fieldNames are the names of a question's fields, in any case.
var fieldNames = [...]string{"id", "question", "kind", "worded", "answer", "answers", "words", "documents", "pages", "quotes", "answerable"}

// A list is a JSON list, or one of its items.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '[' && string(b) != "null" {
		b = slices.Concat([]byte("["), b, []byte("]"))
	}
	if json.Unmarshal(b, (*[]T)(l)) != nil {
		return fmt.Errorf("%w: %s", errList, clip(string(b)))
	}
	return nil
}

var errList = errors.New("a value of the wrong type in a list")

// parseQuestion parses a line, and returns the names of its unknown fields.
func parseQuestion(line []byte) (q Question, unknown []string, err error) {
	var l struct {
		ID                                id
		Question, Kind, Worded, Answer    string
		Answers, Words, Documents, Quotes list[string]
		Pages                             list[list[int]]
		Answerable                        *bool
	}
	var object map[string]json.RawMessage
	if err := cmp.Or(decode(line, &object), decode(line, &l)); err != nil {
		return q, nil, err
	}
	for key := range object {
		if !slices.Contains(fieldNames[:], strings.ToLower(key)) {
			unknown = append(unknown, clip(key))
		}
	}
	q = Question{
		ID: string(l.ID), Text: strings.TrimSpace(l.Question), Kind: l.Kind, Worded: l.Worded, Expected: l.Answer,
		Answers: l.Answers, Words: l.Words, Documents: l.Documents, Quotes: l.Quotes,
	}
	if q.Text == "" {
		return q, nil, errors.New(`"question" is missing or empty`)
	}
	if slices.Contains(slices.Concat(q.Answers, q.Words, q.Documents, q.Quotes), "") {
		return q, nil, errors.New("one of the texts in a list is empty")
	}
	if l.Answerable != nil {
		q.HasAnswer, q.Unanswerable = *l.Answerable, !*l.Answerable
		if q.Unanswerable && len(q.Answers)+len(q.Words)+len(q.Documents)+len(q.Quotes) > 0 {
			return q, nil, errors.New(`"answerable" is false, but there is a right answer: remove one`)
		}
	}
	q.Pages, err = rightPages(l.Pages, len(q.Documents))
	return q, unknown, err
}

// rightPages returns the right pages by document: any number of pages of one, or
// an entry for each of several, which may be null.
func rightPages(entries list[list[int]], documents int) ([][]int, error) {
	var pages [][]int
	for _, entry := range entries {
		pages = append(pages, entry)
	}
	all := slices.Concat(pages...)
	switch {
	case len(all) == 0:
		return nil, nil
	case slices.Min(all) < 1:
		return nil, errors.New(`"pages" are counted from 1`)
	case documents == 0:
		return nil, errors.New(`"pages" needs "documents": say which document the pages belong to`)
	case documents == 1:
		return [][]int{all}, nil
	case len(pages) != documents:
		return nil, fmt.Errorf(`"pages" must be a list with one entry for each of the %d documents, null if unknown`, documents)
	}
	return pages, nil
}
