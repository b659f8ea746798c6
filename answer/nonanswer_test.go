package answer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/data/datatest"
)

// The agreed words count with any emphasis and explanation; a sentence that only
// begins like them is an answer.
func TestNonAnswers(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "replies") {
		if got, _ := (nonAnswers{noAnswer: true, noChange: true}).reason(row[0]); got != row[1] {
			t.Errorf("%q is read as %q, want %q", row[0], got, row[1])
		}
	}
	if got, _ := (nonAnswers{}).reason("NO ANSWER"); got != "" {
		t.Errorf("not asked for, but read as %q", got)
	}
}

// A reply that turns out to be no answer was held back until then, and an early
// result never changes.
func TestHeldBack(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"NO ", "NO", " ", "CHANGE", "CHANGES", "ANSWER", "no change", "No answer", "**", "\"", "(", ")", ".", "!", "\n", ": ", " - ", "needed",
		" to the answer", " so far", " in the evidence",
		"unchanged", "n/a", "the existing answer ", "is ", "complete", " and ", "correct", "The fee", "[1]", "é", "。",
	})
	rapid.Check(t, func(rt *rapid.T) {
		reply := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(rt, "pieces"), "")
		n := nonAnswers{noAnswer: rapid.Bool().Draw(rt, "answer"), noChange: rapid.Bool().Draw(rt, "change")}
		want, _ := n.reason(reply)
		for i := range reply {
			reason, final := n.reason(reply[:i])
			if final && reason != want {
				rt.Fatalf("%q is %q for sure, but %q is %q", reply[:i], reason, reply, want)
			}
			if want != "" && !final && !n.possible(reply[:i]) {
				rt.Fatalf("%q is released, but %q is %q", reply[:i], reply, want)
			}
		}
	})
	if (nonAnswers{noAnswer: true}).possible("NO" + strings.Repeat("*", maxHeld)) {
		t.Error("more is held back than was said")
	}
}

// A refusal is in the language of the question, and its reason is the same in all.
func TestRefusalLanguage(t *testing.T) {
	seen := map[string]string{}
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "refusals") {
		question, want := row[0], row[1]
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
		got := read((&Answerer{Retriever: three, Model: m, Gate: GateOff}).Ask(t.Context(), Question{Text: question}))
		if all := got.String(); !strings.Contains(all, want) || !strings.Contains(all, "no_answer") {
			t.Errorf("%s: want %q, got\n%s", question, want, all)
		}
		for _, reason := range []string{nothingFound, nothingRelevant, noAnswer, "closest"} {
			text := refusal(reason, question)
			if before := seen[text]; before != "" && before != want+reason {
				t.Errorf("%q is said for two reasons or in two languages", text)
			}
			seen[text] = want + reason
		}
		if got, want := ClosestWords(refusal(noAnswer, question)), refusal("closest", question); got != want || got == "" {
			t.Errorf("%s: the closest passages come after %q, want %q", question, got, want)
		}
	}
}

func TestSmallTalk(t *testing.T) {
	for _, test := range []struct {
		text, model string // the model's reply; empty for none
		want        string
		calls       int
	}{
		{"Hi!", "", "Ask me something", 0},
		{"Vielen Dank.", "", "Stellen Sie eine Frage", 0},
		{"thanks :-)", "You are welcome.", "You are welcome.", 1},
		{"Good morning", "<down>", "Ask me something", 1},
		{"你好", "", "请提问", 0},
		{"ありがとう！", "", "質問をどうぞ", 0},
		{"شكراً", "", "اطرح", 0},
		{"Thank you so much!", "", "Ask me something", 0},
		{"Good day", "", "Ask me something", 0},
		{"Hi, how are you?", "", "Ask me something", 0},
		{"hi ibid", "", "Ask me something", 0},
		{"Hallo Ibid!", "", "Stellen Sie", 0},
		{"thanks, that helped", "", "Ask me something", 0},
		{"ok", "", "Ask me something", 0},
		{"OK.", "NO ANSWER", "Ask me something", 1},
		{"ok!", "You are welcome [2].", "Ask me something", 1},
		{"what can you do?", "I read documents.", "I read documents.", 1},
		{"help", "", "Ask me something", 0},
		{"Hi, what is the mooring fee?", "120 marks.[1]", "", 1},
		{"Hello, World!", "", "", 0},
		{"你好世界程序", "", "", 0},
		{"hello world program", "", "", 0},
		{"Hi 5", "", "", 0},
		{"Cheers!", "", "Ask me something", 0},
		{"Привет!", "", "Задайте вопрос", 0},
		{"mooring fee", "120 marks.[1]", "", 1},
	} {
		m := &script{reply: byRole(map[Role][]string{RoleChat: {test.model}, RoleAnswer: {test.model}})}
		a := &Answerer{Retriever: three}
		if test.model != "" {
			a.Model = m
		}
		got := read(a.Ask(t.Context(), Question{Text: test.text}))
		talked := strings.Contains(got.String(), "Reason:small_talk")
		if got.err != nil || talked != (test.want != "") || !strings.Contains(got.String(), test.want) || len(m.calls) != test.calls {
			t.Errorf("%s: want %q after %d calls, got %d and\n%s", test.text, test.want, test.calls, len(m.calls), got)
		}
		if talked && strings.Contains(got.String(), "retrieved") {
			t.Errorf("%s was searched for", test.text)
		}
		if strings.Contains(test.text, "Hi, what") && !strings.Contains(got.String(), "retrieved \"what is the mooring fee?\"") {
			t.Errorf("%s: the greeting is asked\n%s", test.text, got)
		}
		if talked && got.closest == nil {
			t.Errorf("%s: a list of the event is null in JSON", test.text)
		}
	}
}

// Small talk is known by its words, and is no question, however polite that is.
func TestSmallTalkWords(t *testing.T) {
	for language, texts := range map[string][2]string{
		"en": {"Thank you for your help|good morning everyone|ok great, thank you|thanks, that was useful|" +
			"Hello again, nice to meet you!|Perfect, that is exactly what I needed. Bye!",
			"Thank you letters|good morning meeting: when?|ok, and members?|" +
				"thanks, what about boats|Is it useful?|help with the crane"},
		"de": {"Danke, das war hilfreich|hallo zusammen|Vielen Dank für die schnelle Antwort!|" +
			"Super, danke dir|Guten Morgen, liebes Team|Alles klar, das hat mir sehr geholfen",
			"Danke, und was kostet ein Boot?|Hallo zusammen, wann ist die Versammlung|Hilfe bei Unfällen|" +
				"Gute Nacht Regel im Hafen|das war alles|noch einmal bitte"},
		"fr": {"Bonjour à tous|Merci pour votre aide, c'était très utile|Parfait, merci beaucoup !|" +
			"Ça va ?|Salut tout le monde|D'accord, bonne journée",
			"Merci de citer la règle|Bonjour, quels sont les tarifs ?|aide sociale|" +
				"bonne conduite|C'est utile pour qui ?|Salut au drapeau"},
		"es": {"Hola a todos|Muchas gracias por tu ayuda|Perfecto, muy amable|Gracias, me ha ayudado mucho|" +
			"Buenos días, ¿cómo estás?|Vale, hasta luego",
			"Hola, ¿cuánto cuesta?|ayuda económica|gracias por pagar cuándo|" +
				"Vale de descuento|¿Todos otra vez?|buenas prácticas"},
		"zh": {"谢谢你的帮助|大家好|太好了，非常感谢！|" +
			"好的，明白了|早上好，各位|再次感谢您的回答",
			"谢谢，会费是多少|你好，什么时候开门|帮助文档|" +
				"好的码头在哪里|早上几点开门|这是什么"},
	} {
		for i, all := range texts {
			for text := range strings.SplitSeq(all, "|") {
				want := map[int]string{0: language}[i]
				if got, _ := smallTalk(text); got != want {
					t.Errorf("%q is small talk in %q, want %q", text, got, want)
				}
			}
		}
	}
	long := strings.Repeat("thanks ", longestTalk)
	if got, _ := smallTalk(long + "again"); got != "" {
		t.Error("long texts are small talk")
	}
	if _, rest := smallTalk("Hallo zusammen! " + long + "mooring"); rest != long+"mooring" {
		t.Errorf("the rest is %q", rest)
	}
}
