package answer

import "ibid/retrieve"

// The reasons of Unanswered.
const (
	nothingFound    = "nothing_found"
	nothingRelevant = "nothing_relevant"
	noAnswer        = "no_answer"
)

// refusal is the sentence that tells of a reason, in the language of the
// question where it is one of those here, else in English.
func refusal(reason, question string) string {
	var found, relevant, answer string
	switch retrieve.Language(question) {
	case "de":
		found, relevant, answer = "In den Dokumenten steht nichts dazu.", "Die Dokumente scheinen nicht davon zu handeln.", "Die Dokumente sagen es nicht."
	case "fr":
		found, relevant, answer = "Il n'y a rien à ce sujet dans les documents.", "Les documents ne semblent pas traiter de ce sujet.", "Les documents ne le disent pas."
	case "es":
		found, relevant, answer = "No hay nada sobre esto en los documentos.", "Los documentos no parecen tratar de esto.", "Los documentos no lo dicen."
	case "it":
		found, relevant, answer = "Nei documenti non c'è nulla al riguardo.", "I documenti non sembrano trattare di questo.", "I documenti non lo dicono."
	case "pt":
		found, relevant, answer = "Não há nada sobre isto nos documentos.", "Os documentos não parecem tratar disto.", "Os documentos não o dizem."
	case "nl":
		found, relevant, answer = "Er staat hierover niets in de documenten.", "De documenten lijken hier niet over te gaan.", "De documenten zeggen het niet."
	case "sv":
		found, relevant, answer = "Det finns inget om detta i dokumenten.", "Dokumenten verkar inte handla om detta.", "Dokumenten säger inget om det."
	case "da":
		found, relevant, answer = "Der står ikke noget om dette i dokumenterne.", "Dokumenterne ser ikke ud til at handle om dette.", "Dokumenterne siger det ikke."
	case "no":
		found, relevant, answer = "Det står ingenting om dette i dokumentene.", "Dokumentene ser ikke ut til å handle om dette.", "Dokumentene sier det ikke."
	case "pl":
		found, relevant, answer = "W dokumentach nie ma nic na ten temat.", "Dokumenty nie wydają się dotyczyć tego tematu.", "Dokumenty tego nie mówią."
	case "ru":
		found, relevant, answer = "В документах об этом ничего нет.", "Похоже, документы не об этом.", "В документах этого не сказано."
	case "uk":
		found, relevant, answer = "У документах про це нічого немає.", "Схоже, документи не про це.", "У документах цього не сказано."
	case "tr":
		found, relevant, answer = "Belgelerde bununla ilgili bir şey yok.", "Belgeler bununla ilgili görünmüyor.", "Belgeler bunu söylemiyor."
	case "zh":
		found, relevant, answer = "文档中没有与此相关的内容。", "这些文档似乎与此无关。", "文档中没有说明。"
	case "ja":
		found, relevant, answer = "文書にはこれに関する記述がありません。", "文書はこの件に関するものではないようです。", "文書には書かれていません。"
	case "ko":
		found, relevant, answer = "문서에 이에 관한 내용이 없습니다.", "문서는 이에 관한 것이 아닌 것 같습니다.", "문서에 나와 있지 않습니다."
	default:
		found, relevant, answer = "There is nothing about this in the documents.", "The documents do not seem to be about this.", "The documents do not say."
	}
	switch reason {
	case nothingFound:
		return found
	case nothingRelevant:
		return relevant
	}
	return answer
}
