package sentence

import "testing"

func TestStates(t *testing.T) {
	for text, want := range map[string]bool{
		"Let me know if you need anything else.":                               false,
		"I hope this helps!":                                                   false,
		"**I hope this answers your question.**":                               false,
		"Please don’t hesitate to ask if you have any other questions.":        false,
		"If you have any further questions, feel free to ask.":                 false,
		"Ich hoffe, das hilft Ihnen weiter!":                                   false,
		"Wenn Sie weitere Fragen haben, lassen Sie es mich wissen.":            false,
		"N’hésitez pas à me demander si vous avez d’autres questions.":         false,
		"Espero que esto le ayude.":                                            false,
		"如果您还有其他问题，请随时告诉我。":                                                    false,
		"希望这对您有帮助！":                                                            false,
		"お役に立てれば幸いです。":                                                         false,
		"Let me know if you need anything else: the fee is due in April.":      true,
		"I hope this helps, since the fee is 120 marks.":                       true,
		"Let the harbour master know if you need a longer berth.":              true,
		"Do not hesitate to ask the harbour master for a berth.":               true,
		"Bei weiteren Fragen steht Ihnen das Hafenbüro zur Verfügung.":         true,
		"Feel free to use the boats of the club on Mondays.":                   true,
		"If you have any complaint, send it to the harbour office in writing.": true,
	} {
		if got := States(text, text, text); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
