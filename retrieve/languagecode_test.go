package retrieve

import "testing"

func TestLanguageCode(t *testing.T) {
	for text, want := range map[string]string{
		"": "en", "What does a mooring cost?": "en", "mooring fee": "en", "Leonardo da Vinci": "en", "A320 C++": "en",
		"Wie hoch ist die Gebühr für das Boot?":              "de",
		"Quel est le prix d'une place dans le port ?":        "fr",
		"¿Cuánto cuesta el amarre de un barco en el puerto?": "es",
		"Сколько стоит стоянка для лодки?":                   "ru",
		"停泊费是多少？":                                            "zh",
		"係留料はいくらですか。":                                        "ja",
		"東京の人口":                                              "ja",
		"계류 요금은 얼마입니까?":                                      "ko",
		"What does the word 港 mean?":                         "en",
	} {
		if got := Language(text); got != want {
			t.Errorf("%q is detected as %s, want %s", text, got, want)
		}
	}
}
