package answer_test

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// chatFaults are faults of the scripted server, of every kind.
var chatFaults = []openaitest.Fault{
	"", openaitest.RateLimit, openaitest.RateLimitLong, openaitest.Quota, openaitest.ServerError, openaitest.Overloaded,
	openaitest.BadRequest, openaitest.ContextLength, openaitest.ContentFilter, openaitest.Unauthorized, openaitest.NoModel,
	openaitest.NoStreamOptions, openaitest.Redirect, openaitest.HeaderStall, openaitest.HangUp, openaitest.NotHTTP,
	openaitest.HugeHeader, openaitest.HTML, openaitest.ErrorString, openaitest.Empty, openaitest.HugeBody, openaitest.ShortBody,
	openaitest.LongBody, openaitest.FirstTokenStall, openaitest.KeepAliveForever, openaitest.MiddleStall, openaitest.Reset,
	openaitest.ResetFirst, openaitest.NoFinish, openaitest.NoUsage, openaitest.PlainJSON, openaitest.HugeLine, openaitest.HugeText,
}

// Bad replies of a server that works.
const (
	cutByLength openaitest.Fault = "cut by its length"
	wordless    openaitest.Fault = "nothing but thoughts"
	nothing     openaitest.Fault = "an empty reply"
	filtered    openaitest.Fault = "finish_reason content_filter"
	toolCalls   openaitest.Fault = "finish_reason tool_calls"
)

// broken makes a bad reply.
func broken(r openaitest.Reply, fault openaitest.Fault) openaitest.Reply {
	switch fault {
	case cutByLength:
		r.Text, r.Finish = r.Text[:len(r.Text)/2], "length"
	case wordless:
		r.Text, r.Reasoning, r.Finish = "", "Let me think about the fee.", "length"
	case nothing:
		r.Text = ""
	case filtered:
		r.Text, r.Finish = r.Text[:len(r.Text)/2], "content_filter"
	case toolCalls:
		r.Text, r.Finish = r.Text[:len(r.Text)/2], "tool_calls"
	default:
		r.Fault = fault
	}
	return r
}

// otherReplies are the good replies of the roles that do not write the answer.
var otherReplies = map[string]string{
	"map":      "This part of the papers says that the fee is 100 marks a season.[1][2]",
	"collapse": "The parts say that the fee is 100 marks a season.[1][2]",
	"verify":   "yes",
	"judge":    "yes",
	"chat":     "Hello! Ask me about the harbour.",
}

// wholeReply returns the good reply of a role. No passage mentions gulls, so the judge is
// asked about them.
func wholeReply(role string) string {
	if reply, ok := otherReplies[role]; ok {
		return reply
	}
	text := "The " + role + " call says 100 marks a season, and gulls never pay because nobody can catch them.[1][2]"
	if role == "rerank" {
		text += "\nScore: 70"
	}
	return text
}

var wholeAnswer = regexp.MustCompile(`^The \w+ call says 100 marks a season, and gulls never pay because nobody can catch them\.$`)

// A place selects the calls that fail.
type place func(openaitest.Request) bool

// askFaulty asks a question, or for a summary, of a model whose replies fail at a place,
// and describes the fault of the events, or returns "".
func askFaulty(t *testing.T, strategy string, fault openaitest.Fault, at place) (roles []string, problem string) {
	way, how, _ := strings.Cut(strategy, ", ")
	wider := how == "wider"
	h := &openaitest.Handler{Huge: 8 << 20}
	h.Reply = func(r openaitest.Request) openaitest.Reply {
		reply := openaitest.Reply{Text: wholeReply(r.Role)}
		if wider && r.N == 1 {
			reply.Text = "NO ANSWER"
		}
		if r.Role == "verify" && !strings.Contains(r.User, "gulls never pay because nobody can catch them.") {
			reply.Text = "no" // fall back to the beginning of the cut reply
		}
		if at(r) {
			return broken(reply, fault)
		}
		return reply
	}
	a := &answer.Answerer{Retriever: twelvePassages()[:2], Model: piped(t, h, -1), Gate: answer.GateOff, StepTokens: 1, Parallel: 1}
	topK := 0
	switch how {
	case "proved":
		a.Gate, a.Unproved = answer.GateAuto, answer.UnprovedDrop
	case "judged":
		a.Gate, a.Unproved = answer.GateModel, answer.UnprovedDrop
	case "wider":
		a.Retriever, topK, a.Gate, a.StepTokens = twelvePassages(), 2, answer.GateScore, 0
	}
	events := a.Ask(t.Context(), answer.Question{Text: "What is the mooring fee?", Strategy: way, TopK: topK})
	summary, ok := strings.CutPrefix(way, "summarize ")
	if ok {
		events = a.Summarize(t.Context(), answer.Summary{Passages: twelvePassages()[:2], Strategy: summary})
	}
	fellBack, missed := false, false
	watched := func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if f, is := e.(answer.Fallback); is {
				fellBack = f.Reason != "" && !ok
			}
			if w, is := e.(answer.Warning); is {
				missed = missed || strings.Contains(w.Message, "could be read")
			}
			if !yield(e, err) {
				return
			}
		}
	}
	problem = judgeStream(watched, func(text string) bool {
		if fellBack { // fall back to quotes
			return text != ""
		}
		return wholeAnswer.MatchString(strings.TrimSpace(markers.ReplaceAllString(text, "")))
	})
	for _, x := range h.Exchanges() {
		roles = append(roles, x.Role)
	}
	if wider && missed && problem == refused {
		problem = "" // the model found no answer in the first passages, and a warning says that the others were not read
	}
	return roles, problem
}

const refused = "the answer is refused, though no model said that it found none"

var markers = regexp.MustCompile(`\[\d+\](\(id=\d*\))?`)

// TestEveryFaultInEveryStrategy plays the faults of a model's server, and other
// bad replies, to every strategy, also where a judge checks its statements: at each
// call, at each of a judge, at each other, at the first, and at the last.
// The result is a whole answer, the beginning of one that says so, or an error of
// a known kind in place of an answer. Nothing follows the end, and nothing is
// left running.
func TestEveryFaultInEveryStrategy(t *testing.T) {
	strategies := []string{"summarize refine", "summarize map-reduce", "refine, judged", "refine, wider"}
	for _, strategy := range answer.Strategies() {
		if strategy != "auto" && strategy != "extract" {
			strategies = append(strategies, strategy, strategy+", proved")
		}
	}
	for _, strategy := range strategies {
		var roles []string
		synctest.Test(t, func(t *testing.T) {
			roles, _ = askFaulty(t, strategy, "", func(openaitest.Request) bool { return false })
		})
		_, how, _ := strings.Cut(strategy, ", ")
		if len(roles) == 0 || slices.Contains(roles, "verify") != (how == "proved" || how == "judged") ||
			slices.Contains(roles, "judge") != (how == "judged") || how == "wider" && len(roles) != 2 {
			t.Fatalf("%s: roles of the calls = %q", strategy, roles)
		}
		for _, fault := range datatest.Pick(t, append(slices.Clone(chatFaults), cutByLength, wordless, nothing, filtered, toolCalls)) {
			for name, at := range map[string]place{
				"at every call":            func(openaitest.Request) bool { return true },
				"at every call of a judge": func(r openaitest.Request) bool { return r.Role == "verify" || r.Role == "judge" },
				"at all others":            func(r openaitest.Request) bool { return r.Role != "verify" && r.Role != "judge" },
				"at the first call":        func(r openaitest.Request) bool { return r.N == 1 },
				"at the last call":         func(r openaitest.Request) bool { return r.N == len(roles) },
			} {
				synctest.Test(t, func(t *testing.T) {
					if _, problem := askFaulty(t, strategy, fault, at); problem != "" {
						t.Errorf("%s, fault %q %s: %s", strategy, fault, name, problem)
					}
				})
			}
		}
	}
}

// TestEveryFaultInSmallTalk checks that a greeting is answered by the model's complete
// reply or by a fixed sentence.
func TestEveryFaultInSmallTalk(t *testing.T) {
	for _, fault := range datatest.Pick(t, append(slices.Clone(chatFaults), cutByLength, wordless, nothing, filtered, toolCalls)) {
		synctest.Test(t, func(t *testing.T) {
			h := &openaitest.Handler{Huge: 8 << 20}
			h.Reply = func(r openaitest.Request) openaitest.Reply {
				return broken(openaitest.Reply{Text: wholeReply(r.Role)}, fault)
			}
			text := ""
			a := &answer.Answerer{Retriever: twelvePassages(), Model: piped(t, h, -1)}
			for e, err := range a.Ask(t.Context(), answer.Question{Text: "hi"}) {
				must(t, err)
				if said, is := e.(answer.Unanswered); is {
					text += said.Text
				}
			}
			if whole := wholeReply("chat"); text == "" || text != whole && strings.HasPrefix(whole, text) || fault == "" && text != whole {
				t.Errorf("fault %q: reply = %q", fault, text)
			}
		})
	}
}

// judgeStream reads a stream to its end and describes its fault, or returns "". whole
// reports whether a text is a complete answer.
func judgeStream(events iter.Seq2[answer.Event, error], whole func(string) bool) (problem string) {
	text, incomplete, ended := "", "", false
	for e, err := range events {
		if ended {
			return fmt.Sprintf("%v, %v after the end", e, err)
		}
		if err != nil {
			ended = true
			if known := (*openai.Error)(nil); !errors.As(err, &known) && !strings.Contains(err.Error(), "before anything in it could be shown") &&
				!strings.Contains(err.Error(), "content filter") && !strings.Contains(err.Error(), "reply is empty") {
				return fmt.Sprintf("an error of no known kind: %v", err)
			}
			if text != "" {
				return fmt.Sprintf("an error after the text %q: %v", text, err)
			}
			continue
		}
		switch e := e.(type) {
		case answer.Text:
			if incomplete != "" {
				return fmt.Sprintf("the text %q after the end of the answer", e.Text)
			}
			text += e.Text
		case answer.Incomplete:
			if incomplete != "" {
				return "it is said twice that the answer is incomplete"
			}
			if incomplete = e.Reason; incomplete == "" {
				return "nothing says why the answer is incomplete"
			}
		case answer.Unanswered:
			return refused
		case answer.Usage:
			ended = true
			if incomplete == "" && !whole(text) {
				return fmt.Sprintf("shown as complete: %q", text)
			}
		}
	}
	if !ended {
		return "it has no end"
	}
	return ""
}
