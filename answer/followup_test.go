package answer

import "testing"

func TestFollowUp(t *testing.T) {
	for _, test := range []struct{ before, question, want string }{
		{"What does adult membership cost in 2025?", "and in 2024?", "and in 2024? adult membership cost"},
		{"What does adult membership cost in 2025?", "What about juniors?", "What about juniors? adult membership cost 2025"},
		{"Who repairs the long jetty?", "When does he work?", "When does he work? repairs long jetty"},
		{"Who repairs the long jetty?", "When is the office open?", "When is the office open?"},
		{"Wer repariert den langen Steg?", "Und wann?", "Und wann? repariert langen Steg"},
		{"¿Cuánto cuesta el curso de vela?", "¿Y para niños?", "¿Y para niños? cuesta curso vela"},
		{"Сколько стоит курс для взрослых?", "А для детей?", "А для детей? стоит курс взрослых"},
		{"", "and in 2024?", "and in 2024?"},
	} {
		var history []Turn
		if test.before != "" {
			history = []Turn{{"user", test.before}, {"assistant", "412 euros."}}
		}
		if got := followUp(test.question, history); got != test.want {
			t.Errorf("%q after %q: got %q, want %q", test.question, test.before, got, test.want)
		}
	}
}
