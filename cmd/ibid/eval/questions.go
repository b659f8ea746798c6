package eval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Question has an answer that can be checked. All fields except Text may be
// empty; what is not known is not measured.
type Question struct {
	ID   string `json:"id"`
	Text string `json:"question"`
	// Kind is any label; results are counted per kind.
	Kind string `json:"kind,omitempty"`
	// Worded says whose words the question uses: "own" for those of the documents,
	// or "other". It is not measured; readers of the JSON report may count by it.
	Worded string `json:"worded,omitempty"`
	// Unanswerable means that the documents have no answer and refusing is right.
	Unanswerable bool `json:"unanswerable,omitempty"`
	// HasAnswer means that the documents have an answer, even if nothing else is known.
	HasAnswer bool `json:"has_answer,omitempty"`
	// A right answer contains at least one of Answers and all of Words.
	Answers []string `json:"answers,omitempty"`
	Words   []string `json:"words,omitempty"`
	// Expected is a right answer in prose. Answers are compared with it only if
	// there are neither Answers nor Words.
	Expected string `json:"expected,omitempty"`
	// Documents contain the answer; Pages[i] are the right pages of Documents[i],
	// counted from 1, nil for any page. Pages is nil or as long as Documents.
	Documents []string `json:"documents,omitempty"`
	Pages     [][]int  `json:"pages,omitempty"`
	// Quotes are texts of the documents that contain the answer.
	Quotes []string `json:"quotes,omitempty"`
}

// Answerable reports whether anything other than Expected is known by which to
// recognise a right answer. Other questions are rightly refused.
func (q Question) Answerable() bool {
	return !q.Unanswerable && len(q.Answers)+len(q.Words)+len(q.Documents)+len(q.Quotes) > 0
}

// Open reports whether nothing is known about the answer.
func (q Question) Open() bool {
	return !q.Unanswerable && !q.HasAnswer && !q.Answerable() && q.Expected == ""
}

// Questions returns the queries of a set as questions, and the number of queries
// left out because the set does not say whether they have an answer.
func (s *Set) Questions() (questions []Question, left int) {
	for _, query := range s.Queries {
		q := Question{ID: query.ID, Text: query.Text, Kind: "answerable", Answers: query.Answers}
		for document, grade := range s.Grades[query.ID] {
			if grade > 0 {
				q.Documents = append(q.Documents, document)
			}
		}
		slices.Sort(q.Documents)
		if query.Unanswerable {
			q.Kind, q.Answers, q.Documents, q.Unanswerable = "unanswerable", nil, nil, true
		} else if q.Documents == nil {
			left++
			continue
		}
		questions = append(questions, q)
	}
	return questions, left
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

// isWordEdge reports whether a word can begin or end at an offset of a text.
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

// WordRecall returns the share of the words of an answer that a text contains,
// for the best of the answers, or 0 if there are none. It is for answers too long
// to be found verbatim. In scripts without spaces, each character is a word.
func WordRecall(text string, answers []string) float64 {
	best := 0.0
	for _, a := range answers {
		left := make(map[string]int)
		for _, w := range splitWords(text) {
			left[w]++
		}
		wanted, hits := splitWords(a), 0
		for _, w := range wanted {
			if left[w] > 0 {
				left[w]--
				hits++
			}
		}
		best = max(best, Share(hits, len(wanted)))
	}
	return best
}

func splitWords(s string) []string {
	var spaced strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case !inWord(r):
			spaced.WriteByte(' ')
		case isUnspaced(r):
			spaced.WriteString(" " + string(r) + " ")
		default:
			spaced.WriteRune(r)
		}
	}
	return strings.Fields(spaced.String())
}
