package answer

import (
	"cmp"

	"ibid/retrieve"
)

// The reasons of Unanswered.
const (
	nothingFound    = "nothing_found"
	nothingRelevant = "nothing_relevant"
	noAnswer        = "no_answer"
	talk            = "small_talk"

	// uncertain is no reason of Unanswered: it is noAnswer where nothing but the
	// confidence says so.
	uncertain = "uncertain"
)

// refusal is the sentence that states a reason, in the language of the question
// if it is one of refusals, else in English.
func refusal(reason, question string) string {
	said, ok := refusals()[retrieve.Language(question)]
	if !ok {
		said = refusals()["en"]
	}
	return cmp.Or(map[string]string{nothingFound: said[0], nothingRelevant: said[1], uncertain: said[3]}[reason], said[2])
}

// refusals are the sentences by language: nothing was found, nothing is
// relevant, there is no answer, and there may be none.
func refusals() map[string][4]string {
	return map[string][4]string{
		"en": {"There is nothing about this in the documents.", "The documents do not seem to be about this.",
			"The documents do not say.",
			"The documents may not answer this."},
		"de": {"In den Dokumenten steht nichts dazu.", "Die Dokumente scheinen nicht davon zu handeln.", "Die Dokumente sagen es nicht.",
			"Die Dokumente beantworten das vielleicht nicht."},
		"fr": {"Il n'y a rien à ce sujet dans les documents.", "Les documents ne semblent pas traiter de ce sujet.",
			"Les documents ne le disent pas.",
			"Les documents n'y répondent peut-être pas."},
		"es": {"No hay nada sobre esto en los documentos.", "Los documentos no parecen tratar de esto.", "Los documentos no lo dicen.",
			"Puede que los documentos no respondan a esto."},
		"it": {"Nei documenti non c'è nulla al riguardo.", "I documenti non sembrano trattare di questo.", "I documenti non lo dicono.",
			"I documenti potrebbero non rispondere a questo."},
		"pt": {"Não há nada sobre isto nos documentos.", "Os documentos não parecem tratar disto.", "Os documentos não o dizem.",
			"Os documentos talvez não respondam a isto."},
		"nl": {"Er staat hierover niets in de documenten.", "De documenten lijken hier niet over te gaan.",
			"De documenten zeggen het niet.",
			"De documenten geven hier misschien geen antwoord op."},
		"sv": {"Det finns inget om detta i dokumenten.", "Dokumenten verkar inte handla om detta.", "Dokumenten säger inget om det.",
			"Dokumenten kanske inte svarar på detta."},
		"da": {"Der står ikke noget om dette i dokumenterne.", "Dokumenterne ser ikke ud til at handle om dette.",
			"Dokumenterne siger det ikke.",
			"Dokumenterne besvarer måske ikke dette."},
		"no": {"Det står ingenting om dette i dokumentene.", "Dokumentene ser ikke ut til å handle om dette.",
			"Dokumentene sier det ikke.",
			"Dokumentene svarer kanskje ikke på dette."},
		"pl": {"W dokumentach nie ma nic na ten temat.", "Dokumenty nie wydają się dotyczyć tego tematu.", "Dokumenty tego nie mówią.",
			"Dokumenty mogą na to nie odpowiadać."},
		"ru": {"В документах об этом ничего нет.", "Похоже, документы не об этом.", "В документах этого не сказано.",
			"Возможно, документы на это не отвечают."},
		"uk": {"У документах про це нічого немає.", "Схоже, документи не про це.", "У документах цього не сказано.",
			"Можливо, документи на це не відповідають."},
		"tr": {"Belgelerde bununla ilgili bir şey yok.", "Belgeler bununla ilgili görünmüyor.", "Belgeler bunu söylemiyor.",
			"Belgeler bunu yanıtlamıyor olabilir."},
		"zh": {"文档中没有与此相关的内容。", "这些文档似乎与此无关。", "文档中没有说明。",
			"文档可能没有回答这个问题。"},
		"ja": {"文書にはこれに関する記述がありません。", "文書はこの件に関するものではないようです。", "文書には書かれていません。",
			"文書にはこの答えがないかもしれません。"},
		"ko": {"문서에 이에 관한 내용이 없습니다.", "문서는 이에 관한 것이 아닌 것 같습니다.", "문서에 나와 있지 않습니다.",
			"문서에 이에 대한 답이 없을 수 있습니다."},
	}
}
