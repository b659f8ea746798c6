package answer

import (
	"strings"
	"testing"
)

// A refusal is in the language of the question, and its reason is the same in all.
func TestRefusalLanguage(t *testing.T) {
	seen := map[string]string{}
	for question, want := range map[string]string{
		"What does a pizza cost?":                          "The documents do not say.",
		"pizza":                                            "The documents do not say.",
		"Wie viel kostet eine Pizza in der Bar?":           "Die Dokumente sagen es nicht.",
		"Quel est le prix d'une pizza dans le port ?":      "Les documents ne le disent pas.",
		"¿Cuánto cuesta una pizza en el puerto?":           "Los documentos no lo dicen.",
		"Quanto costa una pizza nella città del porto?":    "I documenti non lo dicono.",
		"Quanto custa uma pizza na cidade do porto?":       "Os documentos não o dizem.",
		"Hoeveel kost een pizza in de haven?":              "De documenten zeggen het niet.",
		"Hur mycket kostar det att äta en pizza i hamnen?": "Dokumenten säger inget om det.",
		"Ile kosztuje pizza i jak się ją robi?":            "Dokumenty tego nie mówią.",
		"Сколько стоит пицца в порту?":                     "В документах этого не сказано.",
		"Скільки коштує піца і де її можна купити?":        "У документах цього не сказано.",
		"Bu şehirde bir pizza ne kadar?":                   "Belgeler bunu söylemiyor.",
		"比萨饼多少钱？":                                          "文档中没有说明。",
		"ピザはいくらですか。":                                       "文書には書かれていません。",
		"피자는 얼마입니까?":                                       "문서에 나와 있지 않습니다.",
	} {
		m := &script{reply: byRole(map[Role][]string{RoleAnswer: {"NO ANSWER"}})}
		got := read((&Answerer{Retriever: three, Model: m, Gate: GateOff}).Ask(t.Context(), Question{Text: question}))
		if all := got.String(); !strings.Contains(all, want) || !strings.Contains(all, "no_answer") {
			t.Errorf("%s: want %q, got\n%s", question, want, all)
		}
		for _, reason := range []string{nothingFound, nothingRelevant, noAnswer} {
			text := refusal(reason, question)
			if before := seen[text]; before != "" && before != want+reason {
				t.Errorf("%q is said for two reasons or in two languages", text)
			}
			seen[text] = want + reason
		}
	}
}
