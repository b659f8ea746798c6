package answer

import (
	"strings"
	"testing"
)

const rules = "9.1 Session sheets are kept for three years and incident reports for ten years. The chairman signs each report on 4 May. " +
	"No boat leaves the harbour after sunset. Guests pay 12.5 marks a night. They are free in winter.\n\n" +
	"- moorings: 120 marks\n- dogs on a lead\n\n" +
	"| Crane | 30 marks |\n| Slip | 4 marks |\n"

// asked returns how often a judge that always says no was asked about the statements of
// an answer from rules, and what was shown.
func asked(t *testing.T, question, answer string) (calls int, got transcript) {
	library := passages(rules)
	library[0].Scores.Lexical, library[0].Scores.Dense = .1, .1
	m := byRole(map[Role][]string{RoleAnswer: {answer}, RoleJudge: {"yes"}, RoleVerify: {"no"}})
	s := &script{reply: func(p Prompt) (string, error) {
		if p.Role == RoleVerify {
			calls++
		}
		return m(p)
	}}
	got = read((&Answerer{Retriever: library, Model: s, Unproved: UnprovedMark, Parallel: 1}).Ask(t.Context(), Question{Text: question}))
	if got.err != nil {
		t.Errorf("%q: %v", answer, got.err)
	}
	return calls, got
}

// Code clears a statement only where a passage has the whole of it, and nothing else in
// the sentence. With each of the others the judge is asked.
func TestClearedByCode(t *testing.T) {
	for _, test := range []struct {
		asks       bool
		statements []string
	}{
		{true, []string{
			"Incident reports are kept for three years.[1]", "Session sheets are kept for ten years.[1]", "Incident reports are burned.[1]",
			"Incident reports were abolished ten years ago.[1]", "Session sheets: burned.", "A boat leaves the harbour after sunset.[1]",
			"The chairman signs each report on 5 May.[1]", "The treasurer signs each report on 4 May.[1]", "Guests pay 125 marks a night.[1]",
			"The chairman signs no report on 4 May.[1]", "The chairman signs each report.[1]", "Yes, the chairman signs each report on 4 May.[1]",
			"Members pay 12.5 marks a night.[1]", "They are free in winter.[1]", "Does the chairman sign each report on 4 May?[1]",
			"| Crane | 4 marks[1] |",
			"| what | fee in winter |\n|---|---|\n| Crane | 30 marks[1] |",
			"Forbidden:\n\n- dogs on a lead[1]", "Boats leave the harbour before sunset.[1]",
		}},
		{false, []string{
			"9.1 Session sheets are kept for three years and incident reports for ten years.[1]",
			"Session sheets are kept for three years and incident reports for ten years.",
			"**The chairman signs each report on 4 May.**[1]", "the chairman signs each report on 4 May[1].",
			"No boat leaves the harbour after sunset[1].",
			"- The chairman signs each report on 4 May.[1]", "“Guests pay 12.5 marks a night.”[1]", "Guests pay 12.5 marks a night.[1]",
			"1. No boat leaves the harbour after sunset.[1]", "| crane | rules |\n|---|---|\n| Crane | 30 marks[1] |",
			"These are the rules:\n\n- dogs on a lead[1]", "- moorings: 120 marks[1]",
		}},
	} {
		for _, statement := range test.statements {
			calls, got := asked(t, "What are the rules for reports, boats, guests and the crane?", statement)
			if calls > 0 != test.asks || test.asks && !strings.Contains(got.String(), "Verdict:marked") {
				t.Errorf("%q: asked %d times\n%s", statement, calls, got)
			}
			if !test.asks && !strings.Contains(got.String(), "Verdict:cleared By:code") {
				t.Errorf("%q: not reported as cleared\n%s", statement, got)
			}
		}
	}
}

// What leads, asks or heads, is short or in code is proved where it states something that
// the question does not.
func TestStatesSomething(t *testing.T) {
	const quote = "Guests pay 12.5 marks a night.[1]"
	for _, test := range []struct {
		asks bool
		text []string
	}{
		{true, []string{
			"They are burned after two days by the chairman, with these exceptions:\n\n- " + quote, "## They are burned after two days\n\n" + quote,
			quote + " Did you know that the chairman burns them after two days?", quote + " No helmet needed.", quote + " Members pay nothing.",
			"主席两天后烧毁报告，只有以下例外：\n\n- " + quote, "主席两天后烧毁报告：\n\n- " + quote, "## 主席两天后烧毁报告\n\n" + quote,
			quote + " 你知道主席两天后烧毁报告吗？", "議長は二日後に報告書を焼却しますが、次の例外があります：\n\n- " + quote,
			"ประธานเผารายงานหลังจากสองวัน ยกเว้นดังต่อไปนี้:\n\n- " + quote,
			quote + " `They are burned after two days.`", "## The chairman burns the reports\n\n" + quote,
			"These are burned after two days:\n\n- " + quote,
		}},
		{false, []string{
			"Here are the fees for a night in the harbour:\n\n- " + quote, "## Fees of moorings in May\n\n" + quote, "**Fees**\n\n" + quote,
			"The fees for guests and moorings are as follows:\n\n- " + quote, "Good question! " + quote, "Happy to help! " + quote,
			quote + " I hope this helps!", quote + " Would you like to know more about the crane?", quote + " Anything else?",
			quote + " Let me know if you need the fees of the slip.", "## How long are incident reports kept?\n\n" + quote,
			"| what it is | fee |\n|---|---|\n| Crane | 30 marks[1] |",
			"以下是客人的费用：\n\n- " + quote, "费用如下：\n\n- " + quote, "## 五月的停泊费\n\n" + quote, quote + " 您还想了解什么？",
			"料金は次のとおりです：\n\n- " + quote, "## 五月の料金\n\n" + quote, "ค่าธรรมเนียมมีดังนี้:\n\n- " + quote,
		}},
	} {
		for _, text := range test.text {
			_, got := asked(t, "How long are incident reports kept, and what do guests pay? 客人 ค่าธรรมเนียม", text)
			if asks := strings.Count(got.String(), "verified {") > 1; asks != test.asks || unlabelled(got.text) != unlabelled(text) {
				t.Errorf("%q: %t\n%s", text, asks, got)
			}
		}
	}
}

func unlabelled(text string) string { return strings.ReplaceAll(text, "[1]", "") }
