package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
)

// A Question has an answer that can be checked. All fields except Text may be empty; figures
// that need an empty field skip the question.
type Question struct {
	ID   string `json:"id"`
	Text string `json:"question"`
	// Kind and Worded are labels by which readers of the JSON report may group.
	Kind   string `json:"kind,omitempty"`
	Worded string `json:"worded,omitempty"`
	// Unanswerable means that the documents do not contain an answer, so refusing is right.
	Unanswerable bool `json:"unanswerable,omitempty"`
	// HasAnswer means that the documents contain an answer, which need not be known.
	HasAnswer bool `json:"has_answer,omitempty"`
	// A right answer contains at least one of Answers and all of Words.
	Answers []string `json:"answers,omitempty"`
	Words   []string `json:"words,omitempty"`
	// Expected is a right answer in prose, for readers of the trace.
	Expected string `json:"expected,omitempty"`
	// Documents contain the answer.
	Documents []string `json:"documents,omitempty"`
	// Quotes are texts of the documents that contain the answer.
	Quotes []string `json:"quotes,omitempty"`
}

// Open reports whether nothing is known about the answer. Other questions are rightly refused
// if they are Unanswerable.
func (q Question) Open() bool {
	known := len(q.Answers)+len(q.Words) > 0 || q.HasPlace() || q.HasAnswer || q.Unanswerable || q.Expected != ""
	return !known
}

// HasPlace reports whether the place of the answer is known.
func (q Question) HasPlace() bool { return len(q.Documents)+len(q.Quotes) > 0 }

// Holds reports whether a text contains an answer as whole words, ignoring case,
// white space and emphasis marks: 180 does not contain 8. Scripts without spaces
// between words match anywhere.
func Holds(text, answer string) bool {
	text, answer = fold(text), fold(answer)
	if answer == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], answer)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(answer)
		if isWordEdge(text, start) && isWordEdge(text, end) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
}

// minProse is the length in bytes above which an answer is prose, which other texts do not repeat
// verbatim.
const minProse = 60

// Resembles reports whether a text has more than half of the words of a prose answer, each at
// least as often.
func Resembles(text, answer string) bool {
	if len(answer) <= minProse {
		return false
	}
	words := func(s string) []string {
		return strings.FieldsFunc(fold(s), func(r rune) bool { return !isWordPart(r) })
	}
	left := make(map[string]int)
	for _, w := range words(text) {
		left[w]++
	}
	wanted, hits := words(answer), 0
	for _, w := range wanted {
		if left[w]--; left[w] >= 0 {
			hits++
		}
	}
	return Share(hits, len(wanted)) > .5
}

func isWordEdge(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return !isWordPart(before) || !isWordPart(after) || marker.IsUnspaced(before) || marker.IsUnspaced(after)
}

func isWordPart(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// fold returns s in lower case, without emphasis marks, and with each run of
// white space replaced by one space.
func fold(s string) string {
	s = strings.NewReplacer("*", "", "’", "'", "\u00a0", " ").Replace(strings.ToLower(s))
	return strings.Join(strings.Fields(s), " ")
}

// ExampleQuestion is a line of a file of questions.
const ExampleQuestion = `{"question": "When is the office open?", "words": ["nine to five"], "documents": ["about.md"]}`

// ReadQuestions reads a file of questions: a JSON object per line, with the
// fields that README.md lists. Blank lines and lines that begin with // or # are
// skipped.
func ReadQuestions(fsys fs.FS, name string) (questions []Question, err error) {
	lineOf := make(map[string]int)
	err = eachLine(fsys, name, func(n int, line []byte) error {
		if bytes.HasPrefix(line, []byte("//")) || line[0] == '#' {
			return nil
		}
		q, err := parseQuestion(line)
		q.ID = cmp.Or(q.ID, fmt.Sprintf("line %d", n))
		if err == nil && lineOf[q.ID] > 0 {
			err = fmt.Errorf("the id %.60q is in line %d already", q.ID, lineOf[q.ID])
		}
		lineOf[q.ID] = n
		questions = append(questions, q)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(questions) == 0:
		return nil, fmt.Errorf("%s is empty: it needs a question per line, such as %s", name, ExampleQuestion)
	}
	return questions, nil
}

// A questionLine is a line of a file of questions. Its pages are only for people who read the
// file.
type questionLine struct {
	ID                                id
	Question, Kind, Worded, Answer    string
	Answers, Words, Documents, Quotes texts
	Pages                             json.RawMessage
	Answerable                        *bool
}

func parseQuestion(line []byte) (q Question, err error) {
	var l questionLine
	strict := json.NewDecoder(bytes.NewReader(line))
	strict.DisallowUnknownFields() // an unknown field may be a typing error
	if err := cmp.Or(decode(line, &l), strict.Decode(&l)); err != nil {
		return q, err
	}
	q = Question{
		ID: string(l.ID), Text: strings.TrimSpace(l.Question), Kind: l.Kind, Worded: l.Worded, Expected: l.Answer,
		Answers: l.Answers, Words: l.Words, Documents: l.Documents, Quotes: l.Quotes,
	}
	if q.Text == "" {
		return q, errors.New(`"question" is missing or empty`)
	}
	if slices.Contains(slices.Concat(q.Answers, q.Words, q.Documents, q.Quotes), "") {
		return q, errors.New("one of the texts in a list is empty")
	}
	if l.Answerable != nil {
		q.HasAnswer, q.Unanswerable = *l.Answerable, !*l.Answerable
		if q.Unanswerable && (len(q.Answers)+len(q.Words) > 0 || q.HasPlace()) {
			return q, errors.New(`"answerable" is false, but there is a right answer: remove one`)
		}
	}
	return q, nil
}
