package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A prompt is what a tool asked, whichever way it words and lays out that.
type prompt struct {
	tool     string
	judge    bool // asks for a verdict on its one passage
	question string
	draft    string // the answer to improve; empty when there is none
	passages []passage
	// cite writes marks behind a statement in the way the prompt asks for, each
	// of one label or more; nil when it asks for none.
	cite func(statement string, marks [][]int) string
	// nothing is what the prompt asks for when there is no answer, and
	// unchanged when the draft stays as it is; empty repeats the draft.
	nothing, unchanged string
	structured         bool // asks for a JSON object with query_satisfied and answer
}

type passage struct {
	label int
	text  string
}

const dontKnow = "I don't know."

var (
	ibidEvidence = regexp.MustCompile(`(?s)<evidence \w+>\n\[(\d+)\] [^\n]*\n(.*?)\n</evidence \w+>`)
	ibidDraft    = regexp.MustCompile(`(?s)<answer \w+>\n(.*?)\n</answer \w+>`)
	document     = regexp.MustCompile(`(?s)<document id=(\d+)>\n(.*?)\n</document>`)
	draft        = regexp.MustCompile(`(?s)<answer>\n(.*?)\n</answer>`)
	askedLine    = regexp.MustCompile(`(?m)^(?:Question|Query): (.*)$`)
	source       = regexp.MustCompile(`(?m)^Source (\d+):\n`)
	between      = regexp.MustCompile(`(?s)-{21}\n(.*)\n-{21}\n`)
	newContext   = regexp.MustCompile(`(?s)\nNew Context: (.*)\nQuery: `)
	original     = regexp.MustCompile(`(?s)\nOriginal Answer: (.*)\nNew Answer:`)
	existing     = regexp.MustCompile(`(?s)an existing answer: (.*)Below are several numbered sources`)
	plain        = regexp.MustCompile(`(?s)question: ([^\n]*)\ncontext: (.*)$`)
)

// read finds out which tool asks, and what. A prompt that it does not know has
// no question.
func read(system, user string) prompt {
	switch {
	case strings.Contains(user, "<evidence "):
		return readIbid(system, user)
	case strings.Contains(user, "<document id="):
		return readDocuments(system, user)
	case strings.Contains(user, "numbered sources of information"):
		return readSources(user)
	case strings.Contains(user, "Context information is below."), strings.Contains(user, "\nNew Context: "):
		return readContext(system, user)
	case plain.MatchString(user):
		m := plain.FindStringSubmatch(user)
		return prompt{tool: "txtai", question: m[1], passages: []passage{{0, m[2]}}, nothing: dontKnow}
	}
	return prompt{}
}

// readIbid reads the prompts of answer/prompts.
func readIbid(system, user string) prompt {
	return prompt{
		tool: "ibid", judge: strings.HasPrefix(system, "You decide whether"),
		question: lastLine(user), draft: firstOf(ibidDraft, user), passages: labelled(ibidEvidence, user),
		cite:    func(s string, marks [][]int) string { return s + "." + brackets(marks) },
		nothing: "NO ANSWER", unchanged: "NO CHANGE",
	}
}

// readDocuments reads the prompts of langchain_peer.py and haystack_peer.py.
func readDocuments(system, user string) prompt {
	p := prompt{
		tool: "haystack", question: lastLine(user), draft: firstOf(draft, user), passages: labelled(document, user),
		cite:    func(s string, marks [][]int) string { return s + " " + brackets(marks) + "." },
		nothing: dontKnow,
	}
	if strings.Contains(system+user, "†source】") {
		p.tool, p.cite = "langchain", func(s string, marks [][]int) string {
			for _, label := range slices.Concat(marks...) {
				s += " 【" + strconv.Itoa(label) + "†source】"
			}
			return s + "."
		}
	}
	return p
}

// readSources reads the prompts of LlamaIndex's CitationQueryEngine.
func readSources(user string) prompt {
	p := prompt{
		tool: "llamaindex", question: lastLine(user), draft: firstOf(existing, user), nothing: dontKnow,
		cite: func(s string, marks [][]int) string { return s + " " + brackets(marks) + "." },
	}
	_, sources, _ := strings.Cut(user, "Now it's your turn.")
	places := source.FindAllStringSubmatchIndex(sources, -1)
	for i, at := range places {
		end := strings.LastIndex(sources, "\n------\n")
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		p.passages = append(p.passages, passage{number(sources[at[2]:at[3]]), sources[at[1]:end]})
	}
	return p
}

// readContext reads the prompts of LlamaIndex's Refine.
func readContext(system, user string) prompt {
	text := firstOf(between, user)
	if text == "" {
		text = firstOf(newContext, user)
	}
	question := askedLine.FindStringSubmatch(user)
	p := prompt{tool: "llamaindex", draft: firstOf(original, user), passages: []passage{{0, text}}, nothing: dontKnow}
	if question != nil {
		p.question = question[1]
	}
	p.structured = strings.Contains(system+user, "query_satisfied")
	return p
}

func lastLine(user string) string {
	found := askedLine.FindAllStringSubmatch(user, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}

func firstOf(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func labelled(pattern *regexp.Regexp, text string) (found []passage) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, passage{number(m[1]), m[2]})
	}
	return found
}

// brackets writes marks as [1], those of several labels as [1, 2].
func brackets(marks [][]int) (text string) {
	for _, labels := range marks {
		var words []string
		for _, label := range labels {
			words = append(words, strconv.Itoa(label))
		}
		text += "[" + strings.Join(words, ", ") + "]"
	}
	return text
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0 // more digits than a label has
	}
	return n
}
