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
		"If you'd like more details, let me know.":                             false,
		"Let me know which of the two you mean.":                               false,
		"Feel free to reach out if you need further assistance.":               false,
		"If you want, I can summarize the rules.":                              false,
		"Sagen Sie mir, ob Sie mehr wissen möchten.":                           false,
		"Melden Sie sich gerne, wenn Sie weitere Fragen haben.":                false,
		"Zögern Sie nicht, weitere Fragen zu stellen.":                         false,
		"Wenn Sie möchten, kann ich die Regeln zusammenfassen.":                false,
		"Si vous avez d'autres questions, n'hésitez pas à demander.":           false,
		"Dis-moi si tu veux en savoir plus.":                                   false,
		"Si necesita más información, hágamelo saber.":                         false,
		"Si tienes más preguntas, no dudes en preguntar.":                      false,
		"If you want a berth, ask the harbour office.":                         true,
		"Feel free to reach out to the harbour office for a berth.":            true,
		"Ask how this works at the office.":                                    true,
		"Melden Sie sich, wenn Sie den Hafen verlassen.":                       true,
		"Zögern Sie nicht, den Hafenmeister zu fragen.":                        true,
		"Fragen Sie einfach im Hafenbüro.":                                     true,
		"Si quieres una plaza, pregunta en la oficina.":                        true,
		"No dude en consultar al capitán del puerto.":                          true,
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
