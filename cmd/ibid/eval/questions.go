package eval

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Question asks for an answer that can be checked.
type Question struct {
	ID   string
	Text string
	// Answers are texts of which at least one stands in a right answer.
	Answers []string
	// Documents are where the answer stands.
	Documents []string
	// Kind is what the set calls the question; empty when it has no name for it.
	Kind string
}

// Answerable says whether there is an answer; a question without one is rightly
// refused.
func (q Question) Answerable() bool { return len(q.Answers)+len(q.Documents) > 0 }

// ReadQuestions reads questions in the format of Ibid's sample library: a JSON
// object a line with id, question, and, where there is an answer, answers and
// documents; kind where the question has one.
func ReadQuestions(fsys fs.FS, name string) ([]Question, error) {
	var questions []Question
	ids := linesOf("id")
	err := eachLine(fsys, name, func(n int, line []byte) error {
		var q struct {
			ID        id       `json:"id"`
			Question  string   `json:"question"`
			Answers   []string `json:"answers"`
			Documents []string `json:"documents"`
			Kind      string   `json:"kind"`
		}
		if err := decode(line, &q); err != nil {
			return err
		}
		if strings.TrimSpace(q.Question) == "" {
			return errors.New(`its "question" is missing or empty`)
		}
		if err := ids.add(string(q.ID), n); err != nil {
			return err
		}
		for field, texts := range map[string][]string{"answers": q.Answers, "documents": q.Documents} {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" }) {
				return fmt.Errorf("one of its %q is empty", field)
			}
		}
		questions = append(questions, Question{string(q.ID), q.Question, q.Answers, q.Documents, q.Kind})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s is empty: it holds a question a line", name)
	}
	return questions, nil
}

// Questions gives the queries of a set as questions, and how many it left out
// because the set does not say whether they have an answer. Their documents are
// the relevant ones.
func (s *Set) Questions() (questions []Question, left int) {
	for _, query := range s.Queries {
		q := Question{ID: query.ID, Text: query.Text, Kind: "answerable"}
		for document, grade := range s.Grades[query.ID] {
			if grade > 0 {
				q.Documents = append(q.Documents, document)
			}
		}
		slices.Sort(q.Documents)
		switch {
		case query.Unanswerable:
			q.Kind, q.Documents = "unanswerable", nil
		case len(q.Documents) == 0:
			left++
			continue
		default:
			q.Answers = query.Answers
		}
		questions = append(questions, q)
	}
	return questions, left
}

// Holds says whether an answer stands in a text as whole words, without regard
// to case, white space and emphasis marks: 8 is not found in 180. In scripts
// that put no space between words any place will do.
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
		if edge(text, start) && edge(text, end) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
}

// edge says whether a word can end before a place of a text, or begin there.
func edge(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return !inWord(before) || !inWord(after) || unspaced(before) || unspaced(after)
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// unspaced says whether a letter is of a script without spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold lowers the case, drops emphasis marks and makes every run of white space
// one space.
func fold(s string) string {
	s = strings.NewReplacer("*", "", "’", "'", "\u00a0", " ").Replace(strings.ToLower(s))
	return strings.Join(strings.Fields(s), " ")
}

// WordRecall is the share of the words of an answer that stand in the text, for
// answers too long to stand there as they are; the best of the answers counts,
// and 0 stands for none. In scripts without spaces every character is a word.
func WordRecall(text string, answers []string) float64 {
	best := 0.0
	for _, a := range answers {
		have := make(map[string]int)
		for _, w := range splitWords(text) {
			have[w]++
		}
		wanted, hits := splitWords(a), 0
		for _, w := range wanted {
			if have[w] > 0 {
				have[w]--
				hits++
			}
		}
		best = max(best, Share(hits, len(wanted)))
	}
	return best
}

func splitWords(s string) []string {
	var words []string
	start := -1
	s = strings.ToLower(s)
	for i, r := range s {
		word := inWord(r)
		if start >= 0 && (!word || unspaced(r)) {
			words = append(words, s[start:i])
			start = -1
		}
		switch {
		case word && unspaced(r):
			words = append(words, string(r))
		case word && start < 0:
			start = i
		}
	}
	if start >= 0 {
		words = append(words, s[start:])
	}
	return words
}
