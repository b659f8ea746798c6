package main

import (
	"bufio"
	"encoding/json"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// A question has the fields that the writer needs of those in data/README.md.
type question struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"`
	errors   errors
}

// errors are how often the model errs. Errors depend on the question and the
// sentence only, so they are the same for every tool.
type errors struct {
	verdicts int    // wrong ones in ten
	misled   int    // of six off-topic sentences that resemble the question, those quoted
	alike    bool   // asked again, it errs again
	seed     string // changes which
}

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

const (
	mostParts  = 4  // statements of an answer
	longest    = 60 // words of a statement
	short      = 5  // letters of an answer that may be found anywhere
	outOfRange = 99 // a label that no passage has
)

// A writer is the scripted model: it quotes sentences that contain an answer, and
// some that do not.
type writer struct {
	questions map[string]question
	errors    errors

	mu      sync.Mutex
	written map[string][]part // by the text, to recognise drafts
}

// A part is a statement of an answer.
type part struct {
	text  string  // without full stop
	marks [][]int // labels, by pair of brackets; nil: not cited
	found bool    // a passage contains it
}

// written is the record of one call of the writer.
type written struct {
	Tool   string   `json:"tool"`
	Judge  bool     `json:"judge"`
	Plain  string   `json:"plain"`  // the answer without citations; empty for a verdict, a refusal or an unchanged draft
	Quoted []string `json:"quoted"` // its statements that a passage contains
	Marks  int      `json:"marks"`  // labels
	Wrong  int      `json:"wrong"`  // labels that no passage has
}

func (w *writer) reply(p prompt) (string, written) {
	s := written{Tool: p.tool, Judge: p.judge}
	q := w.questions[fold(p.question)]
	q.Question, q.errors = p.question, w.errors
	if p.statement != "" {
		return map[bool]string{true: "yes", false: "no"}[q.belongs(p)], s
	}
	if p.judge {
		if len(p.passages) > 0 && q.verdict(p.passages[0].text) {
			return "yes", s
		}
		return "no\nIt does not say what is asked for.", s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	draft, known := w.written[fold(p.draft)]
	if !known && p.draft != "" && p.draft != p.nothing {
		draft = []part{{text: strings.TrimSuffix(p.draft, ".")}}
	}
	next := q.extend(draft, p.passages)
	switch {
	case p.structured:
		return w.structured(q, p, next, s)
	case len(next) > len(draft):
	case len(draft) == 0:
		return p.nothing, s
	case p.unchanged != "":
		return p.unchanged, s
	}
	return w.write(next, p, s)
}

// structured replies as LlamaIndex's structured_answer_filtering requires.
func (w *writer) structured(q question, p prompt, parts []part, s written) (string, written) {
	text := p.nothing
	if len(parts) > 0 {
		text, s = w.write(parts, p, s)
	}
	satisfied := slices.ContainsFunc(p.passages, func(x passage) bool { return q.verdict(x.text) })
	object, err := json.Marshal(struct {
		Satisfied bool   `json:"query_satisfied"`
		Answer    string `json:"answer"`
	}{satisfied, text})
	if err != nil {
		panic(err) // a bool and a string
	}
	if !satisfied {
		s.Plain, s.Quoted = "", nil
	}
	return string(object), s
}

// write returns the text of an answer and remembers it as a possible draft.
func (w *writer) write(parts []part, p prompt, s written) (string, written) {
	var text, plain []string
	for _, part := range parts {
		statement := part.text + "."
		plain = append(plain, statement)
		if part.found {
			s.Quoted = append(s.Quoted, part.text)
		}
		if len(part.marks) > 0 && p.cite != nil {
			statement = p.cite(part.text, part.marks)
			for _, label := range slices.Concat(part.marks...) {
				s.Marks++
				if label == outOfRange {
					s.Wrong++
				}
			}
		}
		text = append(text, statement)
	}
	whole := strings.Join(text, " ")
	s.Plain = strings.Join(plain, " ")
	w.written[fold(whole)] = parts
	return whole, s
}

func (q question) extend(draft []part, passages []passage) []part {
	next := slices.Clone(draft)
	for _, x := range passages {
		sentence := q.choose(x.text)
		same := func(part part) bool { return fold(part.text) == fold(sentence) }
		if sentence != "" && len(next) < mostParts && !slices.ContainsFunc(next, same) {
			next = append(next, part{sentence, [][]int{{x.label}}, true})
		}
	}
	if len(draft) > 0 || len(next) == 0 {
		return next
	}
	// What real models do to citations, each with a fifth of the questions.
	last := &next[len(next)-1]
	own, first := last.marks[0][0], passages[0].label
	switch hash(q.Question) % 5 {
	case 0: // a label that no passage has
		last.marks = append(last.marks, []int{outOfRange})
	case 1: // the same label twice
		last.marks = append(last.marks, []int{own})
	case 2: // two labels in one pair of brackets
		if first != own {
			last.marks = [][]int{{first, own}}
		}
	case 3: // brackets that are not citations
		next = append(next, part{text: "In the list this is `row[2]`, as [the notes](notes.md) have it"})
	}
	return next
}

// choose returns the sentence of a passage that the model quotes: one with the
// answer, or one that misleads it; empty if there is none.
func (q question) choose(text string) string {
	sentences := split(text)
	if answer, ok := q.holding(sentences); ok {
		return answer
	}
	near, score := q.nearest(sentences)
	if score >= 2 && int(hash(q.errors.seed+q.Question+fold(near))%6) < q.errors.misled {
		return near
	}
	return ""
}

func (q question) verdict(text string) bool {
	sentences := split(text)
	sentence, right := q.holding(sentences)
	if !right {
		sentence, _ = q.nearest(sentences)
	}
	return right != q.errs("verdict"+q.Question+fold(sentence))
}

// belongs is the verdict on a statement: whether it holds an answer, as one of the
// passages does, if there are any.
func (q question) belongs(p prompt) bool {
	holds := func(text string) bool {
		_, ok := q.holding(split(text))
		return ok
	}
	right := holds(p.statement) && (len(p.passages) == 0 ||
		slices.ContainsFunc(p.passages, func(x passage) bool { return holds(x.text) }))
	time := "first"
	if p.again && !q.errors.alike {
		time = "second"
	}
	return right != q.errs(time+q.Question+fold(p.statement))
}

// errs reports whether a verdict is wrong.
func (q question) errs(what string) bool { return int(hash(q.errors.seed+what)%10) < q.errors.verdicts }

// holding returns the sentence that contains one of the answers. Short answers
// such as "1961" occur elsewhere too, so they count only in a passage that shares
// a word with the question.
func (q question) holding(sentences []string) (string, bool) {
	_, shared := q.nearest(sentences)
	with := slices.DeleteFunc(slices.Clone(sentences), func(sentence string) bool {
		return !slices.ContainsFunc(q.Answers, func(answer string) bool {
			answer = words(answer)
			return strings.Contains(" "+words(sentence)+" ", " "+answer+" ") && (shared > 0 || len(answer) > short)
		})
	})
	best, _ := q.nearest(with)
	return best, len(with) > 0
}

// nearest returns the first sentence with the most words of the question, and
// their number.
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
	blocks = regexp.MustCompile(`\n\s*\n|\n\s*[-*|#]|\n(?:[^\n]*,){3}|\n[^\n]*\|`)
	stops  = regexp.MustCompile(`[.!?]\s+`)
)

// split splits a text into sentences and lines of lists and tables.
func split(text string) (sentences []string) {
	for _, block := range splitAt(blocks, text) {
		for _, sentence := range splitAt(stops, block) {
			fields := strings.Fields(strings.Trim(sentence, "#*-|>. \n\t"))
			fields = fields[:min(longest, len(fields))]
			if len(fields) > 2 {
				sentences = append(sentences, strings.TrimRight(strings.Join(fields, " "), "."))
			}
		}
	}
	return sentences
}

// splitAt splits a text after the first byte of each match, and drops nothing.
func splitAt(pattern *regexp.Regexp, text string) (pieces []string) {
	from := 0
	for _, at := range pattern.FindAllStringIndex(text, -1) {
		pieces = append(pieces, text[from:at[0]+1])
		from = at[0] + 1
	}
	return append(pieces, text[from:])
}

// stems returns the first five letters of the longer words of a text.
func stems(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Fields(words(text)) {
		if runes := []rune(word); len(runes) > 3 && !slices.Contains(common, word) {
			found[string(runes[:min(5, len(runes))])] = true
		}
	}
	return found
}

var common = strings.Fields(`what when where which does have with from that this there their they your much many long
	need must about into will would could should school`)

// words returns the words of a text in lower case, separated by single spaces.
func words(text string) string {
	isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), isOther), " ")
}

func fold(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64() >> 7 // the low bits of FNV are the weakest
}

// A prompt is a tool's request, independent of its wording and layout.
type prompt struct {
	layout
	judge      bool // asks for a verdict on its only passage, or on a statement
	statement  string
	again      bool // in other words
	structured bool // asks for a JSON object with query_satisfied and answer
	question   string
	draft      string // the answer to improve, if any
	passages   []passage
}

type passage struct {
	label int
	text  string
}

// A layout is how a tool's prompts are recognised and read.
type layout struct {
	tool     string
	contains []string // all of them
	passages *regexp.Regexp
	drafts   *regexp.Regexp
	// cite writes a statement with citations in the form that the prompt asks for,
	// one per pair of brackets; nil if it asks for none.
	cite func(statement string, marks [][]int) string
	// nothing is the reply if there is no answer, unchanged the one that keeps the
	// draft; without it the draft is repeated.
	nothing, unchanged string
}

const dontKnow = "I don't know."

// layouts are those of answer/prompt (the last one, too), langchain_peer.py, haystack_peer.py,
// LlamaIndex's CitationQueryEngine and Refine, and txtai. The first match counts.
var layouts = []layout{
	{"ibid", []string{"<evidence "}, regexp.MustCompile(`(?s)<evidence \w+>\n\[(\d+)\] [^\n]*\n(.*?)\n</evidence \w+>`),
		regexp.MustCompile(`(?s)<answer \w+>\n(.*?)\n</answer \w+>`),
		func(s string, marks [][]int) string { return s + "." + brackets(marks) }, "NO ANSWER", "NO CHANGE"},
	{"langchain", []string{"<document id=", "†source】"}, documents, drafts, citeLangChain, dontKnow, ""},
	{"haystack", []string{"<document id="}, documents, drafts, citeBrackets, dontKnow, ""},
	{"llamaindex", []string{"numbered sources of information"}, nil,
		regexp.MustCompile(`(?s)an existing answer: (.*)Below are several numbered sources`), citeBrackets, dontKnow, ""},
	{"llamaindex", []string{"\nNew Context: "}, regexp.MustCompile(`(?s)\nNew Context: ()(.*)\nQuery: `),
		regexp.MustCompile(`(?s)\nOriginal Answer: (.*)\nNew Answer:`), nil, dontKnow, ""},
	{"llamaindex", []string{"Context information is below."}, regexp.MustCompile(`(?s)-{21}\n()(.*)\n-{21}\n`), drafts, nil, dontKnow, ""},
	{"txtai", []string{"question: ", "\ncontext: "}, regexp.MustCompile(`(?s)question: [^\n]*\ncontext: ()(.*)$`), drafts, nil, dontKnow, ""},
	{"ibid", []string{"You check a statement"}, documents, drafts, nil, "", ""}, // and no evidence
}

var (
	documents = regexp.MustCompile(`(?s)<document id=(\d+)>\n(.*?)\n</document>`)
	drafts    = regexp.MustCompile(`(?s)<answer>\n(.*?)\n</answer>`)
	asked     = regexp.MustCompile(`(?m)^(?:Question|Query|question): (.*)$`)
	stated    = regexp.MustCompile(`(?m)^Statement: (.*)$`)
	source    = regexp.MustCompile(`(?m)^Source (\d+):\n`)
)

// parse reads a prompt. An unknown one has no question.
func parse(system, user string) prompt {
	i := slices.IndexFunc(layouts, func(l layout) bool {
		return !slices.ContainsFunc(l.contains, func(s string) bool { return !strings.Contains(system+user, s) })
	})
	if i < 0 {
		return prompt{}
	}
	p := prompt{layout: layouts[i]}
	p.judge = p.tool == "ibid" && strings.HasPrefix(system, "You decide whether")
	if m := stated.FindStringSubmatch(user); m != nil && strings.HasPrefix(system, "You check a statement") {
		p.judge, p.statement, p.again = true, m[1], strings.Contains(user, "of use to a reader")
	}
	p.structured = p.cite == nil && strings.Contains(system+user, "query_satisfied")
	if found := asked.FindAllStringSubmatch(user, -1); found != nil {
		p.question = found[len(found)-1][1]
	}
	if m := p.layout.drafts.FindStringSubmatch(user); m != nil {
		p.draft = m[1]
	}
	if p.layout.passages == nil {
		p.passages = sources(user)
		return p
	}
	for _, m := range p.layout.passages.FindAllStringSubmatch(user, -1) {
		p.passages = append(p.passages, passage{number(m[1]), m[2]})
	}
	return p
}

// sources returns the passages of a CitationQueryEngine, after its example.
func sources(user string) (found []passage) {
	_, text, _ := strings.Cut(user, "Now it's your turn.")
	places := source.FindAllStringSubmatchIndex(text, -1)
	for i, at := range places {
		end := strings.LastIndex(text, "\n------\n")
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		found = append(found, passage{number(text[at[2]:at[3]]), text[at[1]:end]})
	}
	return found
}

func citeBrackets(s string, marks [][]int) string { return s + " " + brackets(marks) + "." }

func citeLangChain(s string, marks [][]int) string {
	for _, label := range slices.Concat(marks...) {
		s += " 【" + strconv.Itoa(label) + "†source】"
	}
	return s + "."
}

func brackets(marks [][]int) (text string) {
	for _, labels := range marks {
		var numbers []string
		for _, label := range labels {
			numbers = append(numbers, strconv.Itoa(label))
		}
		text += "[" + strings.Join(numbers, ", ") + "]"
	}
	return text
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
