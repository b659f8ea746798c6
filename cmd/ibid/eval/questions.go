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
	"unicode"
	"unicode/utf8"
)

// A Question has an answer that can be checked. All fields except Text may be
// empty; figures that need an empty one leave the question out.
type Question struct {
	ID   string `json:"id"`
	Text string `json:"question"`
	// Kind and Worded are labels by which readers of the JSON report may count.
	Kind   string `json:"kind,omitempty"`
	Worded string `json:"worded,omitempty"`
	// Unanswerable means that the documents have no answer and refusing is right.
	Unanswerable bool `json:"unanswerable,omitempty"`
	// HasAnswer means that the documents have an answer, even if nothing else is known.
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

// Answerable reports whether anything other than Expected is known by which to
// recognise a right answer. Other questions are rightly refused.
func (q Question) Answerable() bool {
	return !q.Unanswerable && (len(q.Answers)+len(q.Words) > 0 || q.placed())
}

// Open reports whether nothing is known about the answer.
func (q Question) Open() bool {
	return !q.Unanswerable && !q.HasAnswer && !q.Answerable() && q.Expected == ""
}

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

// minProse is the length in bytes from which an answer is prose, which no text has
// word for word.
const minProse = 60

// resembles reports whether a text has more than half of the words of an answer in
// prose, each as often.
func resembles(text, answer string) bool {
	if len(answer) <= minProse {
		return false
	}
	words := func(s string) []string { return strings.FieldsFunc(fold(s), func(r rune) bool { return !inWord(r) }) }
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
	return !inWord(before) || !inWord(after) || isUnspaced(before) || isUnspaced(after)
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// isUnspaced reports whether a letter belongs to a script without spaces between
// words.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold returns s in lower case, without emphasis marks, and with each run of
// white space replaced by one space.
func fold(s string) string {
	s = strings.NewReplacer("*", "", "’", "'", "\u00a0", " ").Replace(strings.ToLower(s))
	return strings.Join(strings.Fields(s), " ")
}

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

// fieldNames are the names of a question's fields, in any case. The pages are for
// readers of the file.
var fieldNames = [...]string{
	"id", "question", "kind", "worded", "answer", "answers", "words", "documents", "pages", "quotes", "answerable",
}

// parseQuestion parses a line, and returns the names of its unknown fields.
func parseQuestion(line []byte) (q Question, unknown []string, err error) {
	var l struct {
		ID                                id
		Question, Kind, Worded, Answer    string
		Answers, Words, Documents, Quotes texts
		Answerable                        *bool
	}
	var object map[string]json.RawMessage
	if err := cmp.Or(decode(line, &object), decode(line, &l)); err != nil {
		return q, nil, err
	}
	for key := range object {
		if !slices.Contains(fieldNames[:], strings.ToLower(key)) {
			unknown = append(unknown, fmt.Sprintf("%.60s", key))
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
		if q.Unanswerable && (len(q.Answers)+len(q.Words) > 0 || q.placed()) {
			return q, nil, errors.New(`"answerable" is false, but there is a right answer: remove one`)
		}
	}
	return q, unknown, nil
}
