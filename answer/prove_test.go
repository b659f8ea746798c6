package answer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ibid/answer/replay"
	"ibid/cite/support"
	"ibid/retrieve"
)

// What is answered from proofLibrary.
const fee, crane = "The mooring fee is 120 marks.[1]", "The crane lifts boats on Mondays in May.[2]"
const half = "Members of the club pay half of it.[3]"

// proofLibrary has passages about two subjects, none of which is surely about the fee.
func proofLibrary() found {
	f := passages("The mooring fee is 120 marks.",
		"The crane lifts boats on Mondays in May. Boats are painted in March by their owners.",
		"Members of the club pay half of it. Ice covers the bay in winter.")
	for i := range f {
		f[i].Title = "Fee"
		f[i].Scores.Lexical, f[i].Scores.Dense = .1, .1
	}
	return f
}

// proving writes an answer, and doubts statements by their words: what the judge is
// asked first, and in other words.
func proving(answers []string, first, again string) *script {
	write := byRole(map[Role][]string{RoleAnswer: answers, RoleJudge: {"yes"}})
	return &script{cut: byRune, reply: func(p Prompt) (string, error) {
		if p.Role != RoleVerify {
			return write(p)
		}
		doubted := first
		if strings.Contains(p.User, "of use to a reader") {
			doubted = again
		}
		_, statement, _ := strings.Cut(p.User, "\nStatement: ")
		statement, _, _ = strings.Cut(statement, "\n")
		if doubted != "" && strings.Contains(statement, doubted) {
			return "No, it does not", nil
		}
		return "yes", nil
	}}
}

func TestProof(t *testing.T) {
	for _, test := range []struct {
		name, answer, first, again string
		how                        Unproved
		gate                       GateKind
		calls                      int // JudgeCalls
		text, event                string
	}{
		{name: "cleared", answer: fee + " " + crane, text: fee + " " + crane, event: "Verdict:cleared By:model"},
		{name: "one no", answer: fee + " " + crane, first: "crane", text: fee + " " + crane, event: "Calls:2"},
		{name: "two noes", answer: fee + " " + crane, first: "crane", again: "crane", text: fee, event: "Verdict:dropped By:model"},
		{name: "a yes is not enough", answer: fee + " " + half, again: "half", text: fee,
			event: "Verdict:dropped By:model Found:0 Idle:[] Calls:2"},
		{name: "the first falls", answer: crane + "\n\n" + fee, first: "crane", again: "crane", text: fee},
		{name: "marked", how: UnprovedMark, answer: fee + " " + crane, first: "crane", again: "crane", text: fee + " " + crane,
			event: "Verdict:marked"},
		{name: "marked, without the source that was found", how: UnprovedMark, first: "painted", again: "painted",
			answer: fee + " Boats are painted in March by their owners.", text: fee + " Boats are painted in March by their owners.",
			event: "Verdict:marked By:model Found:0"},
		{name: "marked, with all of its labels", how: UnprovedMark, first: "Ice", again: "Ice", answer: fee + " Ice covers the bay.[3][1]",
			text: fee + " Ice covers the bay.[3][1]", event: "Verdict:marked By:model Found:0 Idle:[]"},
		{name: "off", how: UnprovedOff, answer: fee + " " + crane, first: "crane", again: "crane", text: fee + " " + crane},
		{name: "no judge", gate: GateScore, answer: fee + " " + crane, first: "crane", again: "crane", text: fee + " " + crane},
		{name: "no budget", calls: 1, answer: half + " " + crane, first: "crane", again: "crane", text: half + " " + crane},
		{name: "another subject", answer: fee + " Napoleon is a mooring fee of 120 marks.[1]", first: "Napoleon", again: "Napoleon", text: fee},
		{name: "as Ibid would quote", answer: fee + " " + crane, first: "fee", again: "fee", text: fee + " " + crane},
		{name: "in small letters", answer: fee + " the crane lifts boats on Mondays.[2]", first: "crane", again: "crane", text: fee},
		{name: "found", answer: "The mooring fee is 120 marks.", text: fee, event: "Found:1"},
		{name: "found without a judge", gate: GateScore, answer: "| what | fee |\n|---|---|\n| the mooring fee | 120 marks |",
			text: "| what | fee |\n|---|---|\n| the mooring fee | 120 marks[1] |"},
		{name: "an idle label", answer: "The mooring fee is 120 marks.[1][3]", text: "The mooring fee is 120 marks.[1][0](id=)",
			event: "Idle:[3]"},
		{name: "an offer", answer: fee + " I hope this helps!", first: "hope", again: "hope", text: fee + " I hope this helps!"},
		{name: "two bear it out", answer: "The mooring fee is 120 marks, and members of the club pay half of it.[1][3]",
			text: "The mooring fee is 120 marks, and members of the club pay half of it.[1][3]"},
		{name: "a source comes later", answer: "Good question, gulls. " + fee, text: "Good question, gulls. " + fee},
		{name: "found without a gate", gate: GateOff, answer: "The mooring fee is 120 marks. Gulls sing at noon.",
			text: "The mooring fee is 120 marks.[1] Gulls sing at noon.", event: "Found:1"},
		{name: "no source without a gate", gate: GateOff, answer: "Gulls sing at noon.", text: "Gulls sing at noon."},
		{name: "a quote alone", answer: "> The mooring fee is 120 marks.", text: "> The mooring fee is 120 marks.[1]", event: "Found:1"},
		{name: "a quote of nothing", answer: "> The moon is made of cheese.", event: "unanswered {Reason:no_answer"},
		{name: "code alone", answer: "```\nthe crane lifts boats on Mondays\n```", text: "```\nthe crane lifts boats on Mondays\n```\n[2](id=2)",
			event: "Found:2"},
		{name: "code with a reference", answer: "```\ngulls sing\n```\n\n[2]", text: "```\ngulls sing\n```\n\n[2]"},
		{name: "code of its own", answer: "```\ngulls sing\n```", text: "```\ngulls sing\n```", event: "in none of the passages"},
		{name: "code", answer: fee + "\n\n```\nthe crane\n```", first: "crane", again: "crane", text: fee + "\n\n```\nthe crane\n```"},
		{name: "a list", answer: "These are known:\n\n- the mooring fee, 120 marks[1]\n- the crane[2]\n", first: "crane", again: "crane",
			text: "These are known:\n\n- the mooring fee, 120 marks[1]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := proving([]string{test.answer}, test.first, test.again)
			a := &Answerer{Retriever: proofLibrary(), Model: m, Gate: test.gate, Unproved: test.how, JudgeCalls: test.calls}
			if test.how == "" {
				a.Unproved = UnprovedDrop
			}
			got := read(a.Ask(t.Context(), Question{Text: "mooring fee"}))
			if got.err != nil || got.text != test.text || !strings.Contains(got.String(), test.event) {
				t.Errorf("want %q and %s in\n%s", test.text, test.event, got)
			}
			if strings.Contains(got.String(), "warning") && !strings.Contains(test.event, "none") {
				t.Errorf("%s", got)
			}
		})
	}
}

// Where nothing is left of an answer, Ibid looks wider, and then refuses.
func TestNothingProved(t *testing.T) {
	for answer, want := range map[string]string{
		"The mooring fee is 120 marks.[1]":               `text "The mooring fee is 120 marks.[1]"`,
		"Sure! The crane is for rent.[1]":                "unanswered {Reason:no_answer",
		"Gulls sing at noon.":                            "unanswered {Reason:no_answer", // the judge agrees, but there is no source
		"Gulls sing at noon, and cut by its length":      "unanswered {Reason:no_answer",
		"The mooring fee is 120 marks.[1] Its length is": `text "The mooring fee is 120 marks.[1]"`, // without the last words
	} {
		m := proving([]string{"Sure! The crane lifts boats on Mondays in May.[2]", answer}, "crane", "crane")
		if strings.Contains(answer, "length") {
			m.finish = "length"
		}
		library := proofLibrary()
		library = append(library[1:2:2], library[2], library[0])
		got := read((&Answerer{Retriever: nearest(library), Model: m, Unproved: UnprovedDrop}).Ask(t.Context(), Question{Text: "mooring fee"}))
		if got.err != nil || !strings.Contains(got.String(), want) || strings.Contains(got.text, "Sure") ||
			!strings.Contains(got.String(), "unproved") {
			t.Errorf("want %s in\n%s", want, got)
		}
		if got.text == "" && !strings.Contains(got.String(), "used=0") {
			t.Errorf("a refusal uses passages\n%s", got)
		}
	}
}

// A reply that breaks off is asked for once more if nobody has seen any of it yet.
func TestHeldReplyRepeated(t *testing.T) {
	for _, test := range []struct {
		how                  Unproved
		cut, text            string
		answering, breakings int
		incomplete           bool
	}{
		{UnprovedDrop, "The mooring fee is", fee, 2, 1, false},
		{UnprovedDrop, "Hello, gulls. The mooring", fee, 2, 1, false},
		{UnprovedDrop, "The mooring fee is 120", "", 2, 2, false},
		{UnprovedDrop, fee + " " + crane + " Members of the club pay half", fee + " " + crane, 1, 1, true},
		{UnprovedDrop, fee + " Members of the club[3] pay half", fee + " Members of the club[3] pay half", 1, 1, true},
		{UnprovedOff, "The mooring fee is", "The mooring fee is", 1, 1, true},
	} {
		answering := 0
		m := proving([]string{fee}, "", "")
		reply := m.reply
		m.reply = func(p Prompt) (string, error) {
			if p.Role == RoleAnswer {
				if answering++; answering <= test.breakings {
					return test.cut, errDown
				}
			}
			return reply(p)
		}
		got := read((&Answerer{Retriever: proofLibrary(), Model: m, Unproved: test.how}).Ask(t.Context(), Question{Text: "mooring fee"}))
		if (got.err != nil) != (test.text == "") || got.text != test.text || answering != test.answering ||
			strings.Contains(got.String(), "\nincomplete ") != test.incomplete {
			t.Errorf("%s, %q: %d answers, want %d with %q in\n%s", test.how, test.cut, answering, test.answering, test.text, got)
		}
	}
}

// What refines a draft is shown sentence by sentence, as it is proved. If it is
// cut, all of it is taken back: the draft is proved, and is the answer.
func TestRevisionProved(t *testing.T) {
	for _, test := range []struct{ name, refined, doubted, revision, text string }{
		{"whole", fee + " " + half + " " + crane, "", fee, fee + " " + half + " " + crane}, // more where the judge was fast
		{"dropped", crane + " " + fee + " " + half, "crane", "", fee + " " + half},
		{"cut", fee + " " + half + " Boats are<down>", "", fee, fee + " " + crane},
		{"nothing proved", crane, "crane", "", fee},
	} {
		t.Run(test.name, func(t *testing.T) {
			write := byRole(map[Role][]string{RoleAnswer: {fee + " " + crane}, RoleRefine: {test.refined}})
			m := proving(nil, test.doubted, test.doubted)
			verify := m.reply
			m.reply = func(p Prompt) (string, error) {
				if p.Role == RoleAnswer || p.Role == RoleRefine {
					return write(p)
				}
				return verify(p)
			}
			a := &Answerer{Retriever: proofLibrary(), Model: m, Unproved: UnprovedDrop, StepTokens: 100, AnswerCalls: 3}
			revision, text, stale, revised := "", "", 0, false
			shown := fee + " " + half + " " + crane // at most, sentence by sentence
			for e, err := range a.Ask(t.Context(), Question{Text: "mooring fee"}) {
				must(t, err)
				switch e := e.(type) {
				case Revision:
					if revision += e.Text; e.Cut {
						revision = ""
					} else if !strings.HasPrefix(shown, revision) {
						t.Errorf("the revision %q", revision)
					}
					revised = revised || strings.HasPrefix(revision, test.revision)
					if text != "" {
						t.Errorf("a revision after the text %q", text)
					}
				case Text:
					text += e.Text
				case Verified:
					if test.name == "cut" && strings.Contains(e.Statement, "half") {
						stale++
					}
				}
			}
			if !revised && test.doubted == "" || strings.TrimSpace(text) != test.text || stale > 0 {
				t.Errorf("revised %t, the text %q, %d verdicts of what was cut", revised, text, stale)
			}
		})
	}
}

// A proof that is resumed repeats no call that has ended.
func TestProofResumed(t *testing.T) {
	const answer = "The mooring fee is 120 marks.[1] The crane lifts boats on Mondays in May.[2] Members of the club pay half of it.[3]"
	journal := &memoryJournal{replies: map[string][]byte{}}
	ask := func(m Model) transcript {
		a := &Answerer{Retriever: proofLibrary(), Model: m, Unproved: UnprovedDrop, Parallel: 1}
		return read(a.Ask(t.Context(), Question{Text: "mooring fee",
			Recorder: &replay.Recorder{ID: "r", Secret: []byte("s"), Journal: journal}}))
	}
	ended := map[Prompt]bool{}
	down := proving([]string{answer}, "crane", "crane")
	reply := down.reply
	down.reply = func(p Prompt) (string, error) {
		if p.Role == RoleVerify && len(ended) > 1 {
			return "", errors.New("the server has gone")
		}
		ended[p] = true
		return reply(p)
	}
	ask(down)
	whole := proving([]string{answer}, "crane", "crane")
	got := ask(whole)
	if want := "The mooring fee is 120 marks.[1] Members of the club pay half of it.[3]"; got.text != want {
		t.Errorf("want %q in\n%s", want, got)
	}
	for _, p := range whole.calls {
		if ended[p] {
			t.Errorf("asked again: %s %s", p.Role, p.User)
		}
	}
	if len(whole.calls) == 0 || len(ended) != 2 {
		t.Errorf("%d calls had ended, %d were left", len(ended), len(whole.calls))
	}
	third := proving([]string{answer}, "", "")
	if again := ask(third); len(third.calls) > 0 || again.text != got.text {
		t.Errorf("%d calls, %q", len(third.calls), again.text)
	}
}

// A farEncoder finds that only texts with a word of it are near.
type farEncoder string

func (farEncoder) EmbedQuestion(context.Context, string) ([]float32, error) {
	return []float32{1, 0}, nil
}

func (e farEncoder) EmbedPassages(_ context.Context, texts []string, _ int) (rows [][]float32, _ error) {
	for _, text := range texts {
		if strings.Contains(text, string(e)) {
			rows = append(rows, []float32{1, 0})
		} else {
			rows = append(rows, []float32{0, 1})
		}
	}
	return rows, nil
}

func (farEncoder) Knows(language string) bool { return language == "en" }
func (farEncoder) PassageTokens() int         { return 128 }
func (farEncoder) Candidates() int            { return 30 }
func (farEncoder) Space() string              { return "far/2" }

// TestCompare checks that the encoder moves the support of a statement's quotes, except
// of its own words and of what contradicts it.
func TestCompare(t *testing.T) {
	passages := proofLibrary()
	find := func(statement, near string) (quotes []support.Quote) {
		for _, p := range passages {
			quotes = append(quotes, Prover().Find(statement, support.Passage{Text: p.Text, Title: p.Title}))
		}
		p := &proof{asking: &asking{Answerer: &Answerer{Encoder: func() retrieve.Encoder { return farEncoder(near) }}}, ctx: t.Context(),
			passages: passages}
		p.compare(statement, quotes)
		return quotes
	}
	const painting = "Each spring the owners paint their boats."
	near, far := find(painting, "March")[1], find(painting, "nothing")[1]
	if near.Support < .7 || near.Verdict != support.Supported || far.Support > .2 || far.Verdict != support.Weak {
		t.Errorf("supports %+v and %+v", near, far)
	}
	for statement, verdict := range map[string]support.Verdict{
		"Boats are painted in March by their owners.": support.Quoted, "Boats are not painted in March by their owners.": support.Weak,
		"Im März streichen die Eigner ihre Boote.": support.Weak,
	} {
		for _, word := range []string{"March", "nothing"} {
			if q := find(statement, word)[1]; q.Verdict != verdict {
				t.Errorf("%q: %+v", statement, q)
			}
		}
	}
}
