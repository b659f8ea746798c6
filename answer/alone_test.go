package answer

import "testing"

func TestStandsAlone(t *testing.T) {
	for question, want := range map[string]bool{
		"When was Jules Verne born?":                         true,
		"What does a mooring for a Tarn 14 cost?":            true,
		"How deep is the harbour of Port Ellis at low tide?": true,
		"Where does the Tarn 14 lie in March?":               true,
		"Which ferries leave Port Ellis on Sundays":          true,

		"":                                  false,
		"And for members?":                  false,
		"What about Jules Verne and Paris?": false,
		"Verne?":                            false,
		"What does it cost?":                false,
		"What does the mooring cost?":       false, // whose?
		"How many members did the club have in 1990?":                 false, // which club?
		"Is Port Ellis much deeper today?":                            false, // than what?
		"Does Port Ellis open before noon too?":                       false,
		"When did she move to Port Ellis?":                            false,
		"How many boats lie there in May 2025?":                       false,
		"What else does Port Ellis charge members?":                   false,
		"Why? Because Port Ellis charges members?":                    false,
		"What's Port Ellis' opening time?":                            false,
		"What do members pay a season?":                               false, // for what?
		"What did Verne say?":                                         false, // on what?
		"Tell me more of Port Ellis and ferries":                      false,
		"Wie teuer ist ein Liegeplatz in Port Ellis für die Tarn 14?": false, // not English
		"Колько стоит стоянка для Tarn 14 в Port Ellis?":              false,
		"什么时候 Port Ellis 开门 2025?":                                    false,
	} {
		if got := standsAlone(question); got != want {
			t.Errorf("%q stands alone: %t", question, got)
		}
	}
}

// A standalone question costs no call.
func TestCondenseOnlyWhenNeeded(t *testing.T) {
	for question, want := range map[string]Role{"When was Jules Verne born?": RoleAnswer, "When was he born?": RoleCondense} {
		m := &script{reply: byRole(map[Role][]string{RoleCondense: {"When was Jules Verne born?"}, RoleAnswer: {"In 1828.[1]"}})}
		a := &Answerer{Retriever: three, Model: m, Gate: GateOff}
		got := read(a.Ask(t.Context(), Question{Text: question, History: []Turn{{"user", "Who wrote it?"}, {"assistant", "Jules Verne."}}}))
		if got.err != nil || m.calls[0].Role != want {
			t.Errorf("%q: the first call is for %s\n%s", question, m.calls[0].Role, got)
		}
	}
}
