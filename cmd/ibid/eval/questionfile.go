package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxMalformed is how many malformed lines of a file an error names.
const maxMalformed = 50

// ReadQuestions reads a file of questions: a JSON object a line, with the fields
// that README.md tells of. Blank lines and those that begin with // or # are
// passed over. Where lines are malformed, the error names each with its number.
// Unknown are the names of fields that say nothing here, sorted.
func ReadQuestions(fsys fs.FS, name string) (questions []Question, unknown []string, err error) {
	ids := linesOf("id")
	strange := make(map[string]bool)
	var malformed []error
	err = eachLine(fsys, name, func(n int, line []byte) error {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("//")) || line[0] == '#' {
			return nil
		}
		q, fields, err := readQuestion(line)
		if err == nil {
			if q.ID == "" {
				q.ID = fmt.Sprintf("line %d", n)
			}
			err = ids.add(q.ID, n)
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
		return nil, nil, fmt.Errorf("%s is empty: it holds a question a line, such as %s", name, ExampleQuestion)
	}
	return questions, slices.Sorted(maps.Keys(strange)), nil
}

// ExampleQuestion is a line of a file of questions.
const ExampleQuestion = `{"question": "When is the office open?", "words": ["nine to five"], "documents": ["about.md"]}`

// fieldNames are the fields of a question, by the names they go by.
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

// readQuestion reads one line, and gives the names of its fields that are none
// of a question.
func readQuestion(line []byte) (q Question, unknown []string, err error) {
	var object map[string]json.RawMessage
	if err := decode(line, &object); err != nil {
		return q, nil, err
	}
	fields := make(map[string]json.RawMessage)
	as := make(map[string]string) // the name that a field goes by here
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fieldNames[strings.ToLower(strings.TrimSpace(key))]
		switch {
		case !known:
			unknown = append(unknown, clip(key))
		case bytes.Equal(object[key], []byte("null")):
		case as[field] != "":
			return q, nil, fmt.Errorf("its %q and its %q are the same field: give one", as[field], clip(key))
		default:
			fields[field], as[field] = object[key], clip(key)
		}
	}
	read := func(field string, to *[]string) {
		if err == nil && fields[field] != nil {
			if *to, err = readTexts(fields[field]); err != nil {
				err = fmt.Errorf("its %q %w", as[field], err)
			}
		}
	}
	var ids, text, kinds, worded, prose []string
	read("id", &ids)
	read("question", &text)
	read("kind", &kinds)
	read("worded", &worded)
	read("answer", &prose)
	read("answers", &q.Answers)
	read("words", &q.Words)
	read("documents", &q.Documents)
	read("quotes", &q.Quotes)
	if err != nil {
		return q, nil, err
	}
	for _, one := range []struct {
		name string
		of   []string
		to   *string
	}{{"id", ids, &q.ID}, {"question", text, &q.Text}, {"kind", kinds, &q.Kind}, {"worded", worded, &q.Worded}} {
		if len(one.of) > 1 {
			return q, nil, fmt.Errorf("its %q holds %d texts: give one", one.name, len(one.of))
		}
		*one.to = strings.Join(one.of, "")
	}
	if q.Text == "" {
		return q, nil, errors.New(`its "question" is missing or empty`)
	}
	switch {
	case len(prose) == 1:
		q.Expected = prose[0]
	case q.Answers == nil: // several answers, any of which is right
		q.Answers = prose
	case len(prose) > 1:
		return q, nil, fmt.Errorf("its %q holds %d texts, and it has \"answers\" too: give one of them", as["answer"], len(prose))
	}
	if q.Pages, err = readPages(fields["pages"], len(q.Documents)); err != nil {
		return q, nil, err
	}
	if b := fields["answerable"]; b != nil {
		answerable, err := readBool(b)
		if err != nil {
			return q, nil, err
		}
		if !answerable && q.Answerable() {
			return q, nil, errors.New(`its "answerable" is false, and yet it says how a right answer is known: take one out`)
		}
		q.Unanswerable, q.HasAnswer = !answerable, answerable
	}
	return q, unknown, nil
}

// readTexts reads a text or a number, or a list of them, in lists of lists too.
// Empty ones are an error but in an empty list.
func readTexts(b json.RawMessage) (all []string, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	var add func(v any) error
	add = func(v any) error {
		switch v := v.(type) {
		case string:
			if strings.TrimSpace(v) == "" {
				return errors.New("is empty, or holds an empty text")
			}
			all = append(all, strings.TrimSpace(v))
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

// readPages reads a page, or a list of them: one for each of several documents,
// of one document any number. In the place of a page may stand null or a list.
func readPages(b json.RawMessage, documents int) ([][]int, error) {
	if b == nil {
		return nil, nil
	}
	if documents == 0 {
		return nil, errors.New(`it has "pages" and no "documents": say of which document they are`)
	}
	wrong := fmt.Errorf(`its "pages" are not page numbers, counted from 1: %s`, clip(string(b)))
	page := func(b json.RawMessage) (int, error) {
		n, err := strconv.Atoi(strings.Trim(string(b), `" `))
		if err != nil || n < 1 {
			return 0, wrong
		}
		return n, nil
	}
	list := func(b json.RawMessage) (pages []int, err error) {
		var items []json.RawMessage
		if bytes.Equal(b, []byte("null")) {
			return nil, nil
		}
		if json.Unmarshal(b, &items) != nil {
			items = []json.RawMessage{b}
		}
		for _, item := range items {
			n, err := page(item)
			if err != nil {
				return nil, err
			}
			pages = append(pages, n)
		}
		return pages, nil
	}
	if documents == 1 {
		var items []json.RawMessage
		if json.Unmarshal(b, &items) == nil && len(items) == 1 {
			b = items[0]
		}
		pages, err := list(b)
		if err != nil || pages == nil {
			return nil, err
		}
		return [][]int{pages}, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil || len(items) != documents {
		return nil, fmt.Errorf(`its "pages" must be a list with one entry for each of its %d documents, null where there is none`, documents)
	}
	all := make([][]int, documents)
	for i, item := range items {
		var err error
		if all[i], err = list(item); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(all, func(pages []int) bool { return pages != nil }) {
		return nil, nil
	}
	return all, nil
}

func readBool(b json.RawMessage) (bool, error) {
	switch strings.ToLower(strings.Trim(string(b), `" `)) {
	case "true", "yes":
		return true, nil
	case "false", "no":
		return false, nil
	}
	return false, fmt.Errorf(`its "answerable" is neither true nor false: %s`, clip(string(b)))
}
