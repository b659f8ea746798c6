package eval

import (
	"bytes"
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

// fieldNames maps the accepted names of a question's fields to their canonical
// names.
var fieldNames = map[string]string{
	"id": "id", "_id": "id",
	"question": "question", "query": "question", "text": "question",
	"kind": "kind", "type": "kind",
	"answerable": "answerable",
	"answers":    "answers",
	"words":      "words", "contains": "words", "must_contain": "words",
	"answer": "answer", "expected": "answer", "expected_answer": "answer",
	"documents": "documents", "document": "documents",
	"pages": "pages", "page": "pages",
	"quotes": "quotes", "quote": "quotes",
	"worded": "worded",
}

// parseQuestion parses a line, and returns the names of its unknown fields.
func parseQuestion(line []byte) (q Question, unknown []string, err error) {
	var object map[string]json.RawMessage
	if err := decode(line, &object); err != nil {
		return q, nil, err
	}
	fields := make(map[string]json.RawMessage)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fieldNames[strings.ToLower(strings.TrimSpace(key))]
		switch {
		case !known:
			unknown = append(unknown, clip(key))
		case string(object[key]) == "null":
		case fields[field] != nil:
			return q, nil, fmt.Errorf("%q is given twice, under two names", field)
		default:
			fields[field] = object[key]
		}
	}
	var ids, text, kinds, worded, prose []string
	for _, f := range []struct {
		name string
		to   *[]string
		most int // 0: any number
	}{
		{"id", &ids, 1}, {"question", &text, 1}, {"kind", &kinds, 1}, {"worded", &worded, 1}, {"answer", &prose, 0},
		{"answers", &q.Answers, 0}, {"words", &q.Words, 0}, {"documents", &q.Documents, 0}, {"quotes", &q.Quotes, 0},
	} {
		if fields[f.name] == nil {
			continue
		}
		if *f.to, err = parseTexts(fields[f.name]); err != nil {
			return q, nil, fmt.Errorf("%q %w", f.name, err)
		}
		if n := len(*f.to); f.most > 0 && n > f.most {
			return q, nil, fmt.Errorf("%q has %d texts: give one", f.name, n)
		}
	}
	one := func(texts []string) string { return strings.Join(texts, "") }
	q.ID, q.Text, q.Kind, q.Worded = one(ids), one(text), one(kinds), one(worded)
	if q.Text == "" {
		return q, nil, errors.New(`"question" is missing or empty`)
	}
	switch {
	case len(prose) == 1:
		q.Expected = prose[0]
	case q.Answers == nil: // several answers, any of which is right
		q.Answers = prose
	case len(prose) > 1:
		return q, nil, fmt.Errorf(`"answer" has %d texts and there is "answers" too: give one of them`, len(prose))
	}
	if q.Pages, err = parsePages(fields["pages"], len(q.Documents)); err != nil {
		return q, nil, err
	}
	if b := fields["answerable"]; b != nil {
		q.HasAnswer, q.Unanswerable = isWord(b, "true", "yes"), isWord(b, "false", "no")
		switch {
		case !q.HasAnswer && !q.Unanswerable:
			return q, nil, fmt.Errorf(`"answerable" is neither true nor false: %s`, clip(string(b)))
		case q.Unanswerable && len(q.Answers)+len(q.Words)+len(q.Documents)+len(q.Quotes) > 0:
			return q, nil, errors.New(`"answerable" is false, but there is a right answer: remove one`)
		}
	}
	return q, unknown, nil
}

// isWord reports whether a JSON value is one of some words, quoted or not.
func isWord(b json.RawMessage, words ...string) bool {
	return slices.Contains(words, strings.ToLower(strings.Trim(string(b), `" `)))
}

// parseTexts parses a text or a number, or a list of them, which may be nested.
// Empty texts are an error.
func parseTexts(b json.RawMessage) (all []string, err error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var add func(v any) error
	add = func(v any) error {
		switch v := v.(type) {
		case string:
			v = strings.TrimSpace(v)
			if v == "" {
				return errors.New("is empty, or contains an empty text")
			}
			all = append(all, v)
		case json.Number:
			all = append(all, v.String())
		case []any:
			for _, x := range v {
				if err := add(x); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("is neither a text nor a list of texts: %s", clip(string(b)))
		}
		return nil
	}
	return all, add(v)
}

// parsePages parses the right pages: any number of pages of one document, or an
// entry for each of several. An entry is a page, a list of pages or null.
func parsePages(b json.RawMessage, documents int) (pages [][]int, err error) {
	if b == nil {
		return nil, nil
	}
	var entries []json.RawMessage
	isList := json.Unmarshal(b, &entries) == nil
	switch {
	case documents == 0:
		return nil, errors.New(`"pages" needs "documents": say which document the pages belong to`)
	case documents == 1 && (!isList || len(entries) != 1):
		entries = []json.RawMessage{b}
	case len(entries) != documents:
		return nil, fmt.Errorf(`"pages" must be a list with one entry for each of the %d documents, null if unknown`, documents)
	}
	pages = make([][]int, documents)
	some := false
	for i, entry := range entries {
		texts := []string(nil)
		if string(entry) != "null" {
			texts, err = parseTexts(entry)
		}
		for _, text := range texts {
			n, wrong := parseGrade(text)
			if err == nil && (wrong != nil || n < 1) {
				err = errors.New("not a page number")
			}
			pages[i] = append(pages[i], n)
			some = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`"pages" are not page numbers, counted from 1: %s`, clip(string(b)))
	}
	if !some {
		return nil, nil
	}
	return pages, nil
}
