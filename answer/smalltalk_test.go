package answer

import (
	"strings"
	"testing"
)

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
		{"你好世界程序", "", "", 0},
		{"hello world program", "", "", 0},
		{"Hi 5", "", "", 0},
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
		if talked && got.closest == nil {
			t.Errorf("%s: a list of the event is null in JSON", test.text)
		}
	}
}
