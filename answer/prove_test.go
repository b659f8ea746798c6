package answer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ibid/answer/replay"
	"ibid/cite/support"
	"ibid/data/datatest"
	"ibid/retrieve"
)

// An answer from proofLibrary.
const fee, crane = "The mooring fee is 120 marks.[1]", "The crane lifts boats on Mondays in May.[2]"
const half = "Members of the club pay half of it.[3]"

var spelledOut = strings.NewReplacer("FEE", fee, "CRANE", crane, "HALF", half).Replace

// proofLibrary has passages about two subjects, none of which is certainly about the fee.
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

// proving is a model that writes an answer and doubts statements by their words, when the
// judge is first asked and when it is asked with other words.
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
	for _, test := range datatest.Table[struct {
		Name, Answer, First, Again string
		How                        Unproved
		Gate                       GateKind
		Calls                      int // JudgeCalls
		Text, Event                string
	}](t, "testdata/tables.txt", "proofs") {
		t.Run(test.Name, func(t *testing.T) {
			test.Text = spelledOut(test.Text)
			m := proving([]string{spelledOut(test.Answer)}, test.First, test.Again)
			a := &Answerer{Retriever: proofLibrary(), Model: m, Gate: test.Gate, Unproved: test.How, JudgeCalls: test.Calls}
			if test.How == "" {
				a.Unproved = UnprovedDrop
			}
			got := read(a.Ask(t.Context(), Question{Text: "mooring fee"}))
			if got.err != nil || got.text != test.Text || !strings.Contains(got.String(), test.Event) {
				t.Errorf("text = %q, want %q and %s in\n%s", got.text, test.Text, test.Event, got)
			}
			if strings.Contains(got.String(), "warning") && !strings.Contains(test.Event, "none") && !strings.Contains(test.Event, "warning") {
				t.Errorf("unexpected warning; want %s in\n%s", test.Event, got)
			}
		})
	}
}

// TestNothingProved checks that if no statement of an answer is proved, more passages are
// read, and then the question is refused.
func TestNothingProved(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/tables.txt", "nothing proved") {
		m := proving([]string{"Sure! The crane lifts boats on Mondays in May.[2]", row[0]}, "crane", "crane")
		if strings.Contains(row[0], "length") {
			m.finish = "length"
		}
		library := proofLibrary()
		library = append(library[1:2:2], library[2], library[0])
		got := read((&Answerer{Retriever: nearest(library), Model: m, Unproved: UnprovedDrop}).Ask(t.Context(), Question{Text: "mooring fee"}))
		if got.err != nil || !strings.Contains(got.String(), row[1]) || strings.Contains(got.text, "Sure") ||
			!strings.Contains(got.String(), "unproved") {
			t.Errorf("want %s in\n%s", row[1], got)
		}
		if got.text == "" && !strings.Contains(got.String(), "used=0") {
			t.Errorf("a refusal counts used passages\n%s", got)
		}
	}
}

// TestHeldReplyRepeated checks that a reply that breaks off is requested once more if no
// reader has seen any of it.
func TestHeldReplyRepeated(t *testing.T) {
	for _, test := range datatest.Table[struct {
		How                  Unproved
		Cut, Text            string
		Answering, Breakings int
		Incomplete           bool
	}](t, "testdata/tables.txt", "replies that break off") {
		answering := 0
		test.Text = spelledOut(test.Text)
		m := proving([]string{fee}, "", "")
		reply := m.reply
		m.reply = func(p Prompt) (string, error) {
			if p.Role == RoleAnswer {
				if answering++; answering <= test.Breakings {
					return spelledOut(test.Cut), errDown
				}
			}
			return reply(p)
		}
		got := read((&Answerer{Retriever: proofLibrary(), Model: m, Unproved: test.How}).Ask(t.Context(), Question{Text: "mooring fee"}))
		if (got.err != nil) != (test.Text == "") || got.text != test.Text || answering != test.Answering ||
			strings.Contains(got.String(), "\nincomplete ") != test.Incomplete {
			t.Errorf("%s, %q: %d answers, want %d with %q in\n%s", test.How, test.Cut, answering, test.Answering, test.Text, got)
		}
	}
}

// TestRevisionProved checks that the revision of a draft is shown sentence by sentence, as
// it is proved. If the revision is cut, all of it is withdrawn, and the proved draft is the
// answer.
func TestRevisionProved(t *testing.T) {
	for _, test := range datatest.Table[struct{ Name, Refined, Doubted, Revision, Text string }](t, "testdata/tables.txt", "revisions") {
		t.Run(test.Name, func(t *testing.T) {
			write := byRole(map[Role][]string{RoleAnswer: {fee + " " + crane}, RoleRefine: {spelledOut(test.Refined)}})
			m := proving(nil, test.Doubted, test.Doubted)
			verify := m.reply
			m.reply = func(p Prompt) (string, error) {
				if p.Role == RoleAnswer || p.Role == RoleRefine {
					return write(p)
				}
				return verify(p)
			}
			a := &Answerer{Retriever: proofLibrary(), Model: m, Unproved: UnprovedDrop, StepTokens: 100, AnswerCalls: 3}
			revision, text, stale, revised := "", "", 0, false
			shown := fee + " " + half + " " + crane // the longest revision, sentence by sentence
			for e, err := range a.Ask(t.Context(), Question{Text: "mooring fee"}) {
				must(t, err)
				switch e := e.(type) {
				case Revision:
					if revision += e.Text; e.Cut {
						revision = ""
					} else if !strings.HasPrefix(shown, revision) {
						t.Errorf("revision %q is not a prefix of the expected one", revision)
					}
					revised = revised || strings.HasPrefix(revision, spelledOut(test.Revision))
					if text != "" {
						t.Errorf("revision after the text %q", text)
					}
				case Text:
					text += e.Text
				case Verified:
					if test.Name == "cut" && strings.Contains(e.Statement, "half") {
						stale++
					}
				}
			}
			if !revised && test.Doubted == "" || strings.TrimSpace(text) != spelledOut(test.Text) || stale > 0 {
				t.Errorf("revised = %t, text = %q, %d verdicts on the cut revision", revised, text, stale)
			}
		})
	}
}

// TestProofResumed checks that a resumed proof repeats no completed call.
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
		t.Errorf("text = %q, want %q in\n%s", got.text, want, got)
	}
	for _, p := range whole.calls {
		if ended[p] {
			t.Errorf("repeated call: %s %s", p.Role, p.User)
		}
	}
	if len(whole.calls) == 0 || len(ended) != 2 {
		t.Errorf("%d calls were completed before the interruption, %d after it; want 2 and some", len(ended), len(whole.calls))
	}
	third := proving([]string{answer}, "", "")
	if again := ask(third); len(third.calls) > 0 || again.text != got.text {
		t.Errorf("third run: %d calls, text = %q", len(third.calls), again.text)
	}
}

// A farEncoder gives only texts with one of its words a high cosine.
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

// TestCompare checks that the encoder changes the support of a statement's quotes, but not
// that of a verbatim or contradicting quote.
func TestCompare(t *testing.T) {
	passages := proofLibrary()
	find := func(statement, near string) (quotes []support.Quote) {
		for _, p := range passages {
			quotes = append(quotes, Prover().Find(statement, support.Passage{Text: p.Text, Title: p.Title}))
		}
		a := &Answerer{Encoder: func() retrieve.Encoder { return farEncoder(near) }}
		c := &comparer{finder: &finder{Answerer: a}, ctx: t.Context(), passages: passages}
		c.addSecondScores(statement, quotes)
		return quotes
	}
	const painting = "Each spring the owners paint their boats."
	near, far := find(painting, "March")[1], find(painting, "nothing")[1]
	if near.Support < .7 || near.Verdict != support.Supported || far.Support > .2 || far.Verdict != support.Weak {
		t.Errorf("support of the near quote = %+v, of the far one = %+v", near, far)
	}
	for statement, verdict := range map[string]support.Verdict{
		"Boats are painted in March by their owners.": support.Quoted, "Boats are not painted in March by their owners.": support.Weak,
		"Im März streichen die Eigner ihre Boote.": support.Weak,
	} {
		for _, word := range []string{"March", "nothing"} {
			if q := find(statement, word)[1]; q.Verdict != verdict {
				t.Errorf("%q: verdict = %+v, want %v", statement, q, verdict)
			}
		}
	}
}
