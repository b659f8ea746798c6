package main

import (
	"bufio"
	"encoding/json"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A question is a line of the file of questions; data/README.md has the fields.
type question struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"`
}

// readQuestions gives the questions by their folded text.
func readQuestions(name string) (map[string]question, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table := map[string]question{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, err
		}
		table[fold(q.Question)] = q
	}
	return table, lines.Err()
}

// How often the model errs. What it errs on follows from the question and the
// sentence, so that it is the same whichever tool shows the sentence.
const (
	wrongVerdict = 10 // one verdict in ten is the wrong one
	distracted   = 6  // one sentence in six that is off topic but sounds like the question is quoted
	mostParts    = 4  // statements of an answer
	longest      = 60 // words of a statement
	short        = 5  // letters of an answer that may stand anywhere
)

// A writer is the scripted model: it quotes sentences that hold an answer, and
// some that do not.
type writer struct {
	questions map[string]question

	mu      sync.Mutex
	written map[string]composed // by their text, to be found again as drafts
}

// A composed answer is a text with what it was made of.
type composed struct{ parts []part }

type part struct {
	text  string  // without its full stop
	marks [][]int // labels, by pairs of brackets; none: not cited
	found bool    // stands in a passage
}

// said is what the writer did in one call.
type said struct {
	Tool  string `json:"tool"`
	Judge bool   `json:"judge"`
	// Plain is what was written, without marks; empty when nothing was: a
	// verdict, no answer, no change.
	Plain string `json:"plain"`
	// Quoted are the statements that stand in a passage.
	Quoted []string `json:"quoted"`
	// Marks is the number of labels that were written, Wrong of those that
	// name no passage that was shown.
	Marks int `json:"marks"`
	Wrong int `json:"wrong"`
}

func (w *writer) reply(p prompt) (string, said) {
	s := said{Tool: p.tool, Judge: p.judge}
	asked := w.questions[fold(p.question)]
	asked.Question = p.question
	if p.judge {
		if len(p.passages) > 0 && asked.verdict(p.passages[0].text) {
			return "yes", s
		}
		return "no\nIt does not say what is asked for.", s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	draft, known := w.written[fold(p.draft)]
	if !known && p.draft != "" && p.draft != p.nothing {
		draft.parts = []part{{text: strings.TrimSuffix(p.draft, ".")}}
	}
	next := asked.extend(draft, p)
	if p.structured {
		return w.structured(asked, p, next, s)
	}
	if len(next.parts) == len(draft.parts) {
		switch {
		case len(draft.parts) == 0:
			return p.nothing, s
		case p.unchanged != "":
			return p.unchanged, s
		}
	}
	return w.write(next, p, s)
}

// structured answers as LlamaIndex's filter of answers wants it.
func (w *writer) structured(asked question, p prompt, next composed, s said) (string, said) {
	text := p.nothing
	if len(next.parts) > 0 {
		text, s = w.write(next, p, s)
	}
	satisfied := slices.ContainsFunc(p.passages, func(x passage) bool { return asked.verdict(x.text) })
	object, err := json.Marshal(struct {
		Satisfied bool   `json:"query_satisfied"`
		Answer    string `json:"answer"`
	}{satisfied, text})
	if err != nil {
		panic(err) // a truth and a text
	}
	if !satisfied {
		s.Plain, s.Quoted = "", nil
	}
	return string(object), s
}

// write gives the text of an answer and remembers it.
func (w *writer) write(c composed, p prompt, s said) (string, said) {
	var text, bare []string
	for _, part := range c.parts {
		bare = append(bare, part.text+".")
		if part.found {
			s.Quoted = append(s.Quoted, part.text)
		}
		if len(part.marks) == 0 || p.cite == nil {
			text = append(text, part.text+".")
			continue
		}
		text = append(text, p.cite(part.text, part.marks))
		for _, label := range slices.Concat(part.marks...) {
			s.Marks++
			if label == outOfRange {
				s.Wrong++
			}
		}
	}
	whole := strings.Join(text, " ")
	s.Plain = strings.Join(bare, " ")
	w.written[fold(whole)] = c
	return whole, s
}

// outOfRange is a label that names nothing.
const outOfRange = 99

// extend adds what the passages say to an answer.
func (q question) extend(draft composed, p prompt) composed {
	next := composed{slices.Clone(draft.parts)}
	for _, x := range p.passages {
		for _, sentence := range q.choose(x.text) {
			same := func(part part) bool { return fold(part.text) == fold(sentence) }
			if len(next.parts) < mostParts && !slices.ContainsFunc(next.parts, same) {
				next.parts = append(next.parts, part{sentence, [][]int{{x.label}}, true})
			}
		}
	}
	if len(draft.parts) == 0 && len(next.parts) > 0 {
		next.oddities(q, p)
	}
	return next
}

// oddities are what real models do to citations, each with a fifth of the
// questions: a label that names nothing, the same label twice, two labels in
// one pair of brackets, brackets that are no citation.
func (c *composed) oddities(q question, p prompt) {
	last := &c.parts[len(c.parts)-1]
	own, first := last.marks[0][0], p.passages[0].label
	switch hash(q.Question) % 5 {
	case 0:
		last.marks = append(last.marks, []int{outOfRange})
	case 1:
		last.marks = append(last.marks, []int{own})
	case 2:
		if first != own {
			last.marks = [][]int{{first, own}}
		}
	case 3:
		c.parts = append(c.parts, part{text: "In the list this is `row[2]`, as [the notes](notes.md) have it"})
	}
}

// choose gives the sentences of a passage that the model would quote: the one
// with the answer, or one that leads it astray.
func (q question) choose(text string) []string {
	sentences := split(text)
	if answer, ok := q.holding(sentences); ok {
		return []string{answer}
	}
	near, score := q.nearest(sentences)
	if score >= 2 && hash(q.Question+fold(near))%distracted == 0 {
		return []string{near}
	}
	return nil
}

// verdict is the model's word on whether a passage helps.
func (q question) verdict(text string) bool {
	sentences := split(text)
	sentence, right := q.holding(sentences)
	if !right {
		sentence, _ = q.nearest(sentences)
	}
	return right != (hash("verdict"+q.Question+fold(sentence))%wrongVerdict == 0)
}

// holding gives the sentence that holds one of the answers. Short answers, such
// as "1961", stand in other places too: they count in a passage that shares a
// word with the question.
func (q question) holding(sentences []string) (string, bool) {
	_, shared := q.nearest(sentences)
	var with []string
	for _, sentence := range sentences {
		inside := " " + words(sentence) + " "
		if slices.ContainsFunc(q.Answers, func(answer string) bool {
			answer = words(answer)
			return strings.Contains(inside, " "+answer+" ") && (shared > 0 || len(answer) > short)
		}) {
			with = append(with, sentence)
		}
	}
	if len(with) == 0 {
		return "", false
	}
	best, _ := q.nearest(with)
	return best, true
}

// nearest gives the sentence that shares most words with the question, the
// first of several, and how many it shares.
func (q question) nearest(sentences []string) (best string, most int) {
	wanted := stems(q.Question)
	for _, sentence := range sentences {
		n := 0
		for stem := range stems(sentence) {
			if wanted[stem] {
				n++
			}
		}
		if n > most || best == "" {
			best, most = sentence, n
		}
	}
	return best, most
}

var (
	blocks = regexp.MustCompile(`\n\s*\n|\n\s*[-*|#]|\n(?:[^\n]*,){3}`)
	stops  = regexp.MustCompile(`[.!?]\s+`)
)

// split cuts a text into sentences, and lines of lists and tables.
func split(text string) (sentences []string) {
	for _, block := range cut(blocks, text) {
		for _, sentence := range cut(stops, block) {
			fields := strings.Fields(strings.Trim(sentence, "#*-|>. \n\t"))
			if len(fields) > longest {
				fields = fields[:longest]
			}
			if len(fields) > 2 {
				sentences = append(sentences, strings.TrimRight(strings.Join(fields, " "), "."))
			}
		}
	}
	return sentences
}

// cut cuts a text before what a pattern finds; all of the text stays.
func cut(pattern *regexp.Regexp, text string) (pieces []string) {
	from := 0
	for _, at := range pattern.FindAllStringIndex(text, -1) {
		pieces = append(pieces, text[from:at[0]+1])
		from = at[0] + 1
	}
	return append(pieces, text[from:])
}

// stems are the longer words of a text, the first five letters of each.
func stems(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Fields(words(text)) {
		if runes := []rune(word); len(runes) > 3 && !slices.Contains(common, word) {
			found[string(runes[:min(5, len(runes))])] = true
		}
	}
	return found
}

var common = []string{"what", "when", "where", "which", "does", "have", "with", "from", "that", "this", "there", "their", "they", "your", "much", "many", "long", "need", "must", "about", "into", "will", "would", "could", "should", "school"}

// words are the words of a text in small letters, each with one space between.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}

// fold is a text without regard to case and white space.
func fold(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64() >> 7 // the low bits of FNV are the weakest
}
