package eval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Question asks for an answer that can be checked. All but the text may be
// empty: what is not known is not measured.
type Question struct {
	ID   string `json:"id"`
	Text string `json:"question"`
	// Kind is what the set calls the question; empty when it has no name for it.
	Kind string `json:"kind,omitempty"`
	// Worded says whose words it is asked in: those of the documents, or others.
	// Nothing is measured by it; who reads the outcomes may count by it.
	Worded string `json:"worded,omitempty"`
	// Unanswerable says that there is no answer, and the question is rightly refused.
	Unanswerable bool `json:"unanswerable,omitempty"`
	// HasAnswer says that there is one, whether anything is known of it or not.
	HasAnswer bool `json:"has_answer,omitempty"`
	// Answers are texts of which at least one stands in a right answer, Words
	// those that all do.
	Answers []string `json:"answers,omitempty"`
	Words   []string `json:"words,omitempty"`
	// Expected is a right answer in prose. What is written is compared with it
	// only where there are neither Answers nor Words.
	Expected string `json:"expected,omitempty"`
	// Documents are where the answer stands; Pages[i] the pages of
	// Documents[i], counted from 1, nil where any will do. Pages is nil or as
	// long as Documents.
	Documents []string `json:"documents,omitempty"`
	Pages     [][]int  `json:"pages,omitempty"`
	// Quotes are passages of the documents that hold the answer.
	Quotes []string `json:"quotes,omitempty"`
}

// Answerable says whether there is something to tell a right answer by, its
// prose left aside; a question without is rightly refused.
func (q Question) Answerable() bool {
	return !q.Unanswerable && len(q.Answers)+len(q.Words)+len(q.Documents)+len(q.Quotes) > 0
}

// Open says whether nothing is known of the answer, nor that there is none.
func (q Question) Open() bool {
	return !q.Unanswerable && !q.HasAnswer && !q.Answerable() && q.Expected == ""
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
			q.Kind, q.Documents, q.Unanswerable = "unanswerable", nil, true
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
