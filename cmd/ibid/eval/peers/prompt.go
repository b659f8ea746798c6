package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A prompt is what a tool asks, independent of its wording and layout.
type prompt struct {
	layout
	judge      bool // asks for a verdict on its only passage
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

// layouts are those of answer/prompt, langchain_peer.py, haystack_peer.py,
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
}

var (
	documents = regexp.MustCompile(`(?s)<document id=(\d+)>\n(.*?)\n</document>`)
	drafts    = regexp.MustCompile(`(?s)<answer>\n(.*?)\n</answer>`)
	asked     = regexp.MustCompile(`(?m)^(?:Question|Query|question): (.*)$`)
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
