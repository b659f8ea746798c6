package answer

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"ibid/answer/prompt"
)

// A phrasebook has the greetings and thanks of a language, and what Ibid says to
// them without a model.
type phrasebook struct{ language, reply, phrases string }

func phrasebooks() []phrasebook {
	return []phrasebook{
		{"en", "Ask me something: I answer from the documents, and name the sources.",
			"hi|hello|hey|hi there|hello there|good morning|good afternoon|good evening|how are you|thanks|thank you|thx|" +
				"many thanks|thanks a lot|thank you very much|great thanks|ok thanks|okay thanks|bye|goodbye"},
		{"de", "Stellen Sie eine Frage: Ich antworte aus den Dokumenten und nenne die Quellen.",
			"hallo|guten tag|guten morgen|guten abend|moin|servus|danke|danke schön|vielen dank|tschüss|auf wiedersehen"},
		{"fr", "Posez une question : je réponds à partir des documents, avec les sources.",
			"bonjour|bonsoir|salut|merci|merci beaucoup|au revoir"},
		{"es", "Haga una pregunta: respondo con lo que dicen los documentos y cito las fuentes.",
			"hola|buenos días|buenas tardes|buenas noches|gracias|muchas gracias|adiós"},
		{"it", "Faccia una domanda: rispondo in base ai documenti e cito le fonti.",
			"ciao|buongiorno|buonasera|grazie|grazie mille|arrivederci"},
		{"pt", "Faça uma pergunta: respondo com base nos documentos e indico as fontes.",
			"olá|oi|bom dia|boa tarde|boa noite|obrigado|obrigada"},
		{"nl", "Stel een vraag: ik antwoord uit de documenten en noem de bronnen.",
			"hoi|goedemorgen|goedemiddag|goedenavond|bedankt|dank je|dank u"},
	}
}

// smallTalk returns the language of a text that only greets or thanks; empty if it
// may ask something.
func smallTalk(text string) string {
	words := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }), " ")
	for _, b := range phrasebooks() {
		if slices.Contains(strings.Split(b.phrases, "|"), words) && !strings.ContainsFunc(text, unicode.IsNumber) {
			return b.language
		}
	}
	return ""
}

// chatTokens is room for a sentence.
const chatTokens = 80

// chat replies to small talk without a search: with the model's words, or where it
// has none with a fixed sentence.
func (r *asking) chat(ctx context.Context, language string) error {
	i := slices.IndexFunc(phrasebooks(), func(b phrasebook) bool { return b.language == language })
	said := phrasebooks()[i].reply
	if r.Model != nil {
		r.writer.Question = r.question.Text
		p, err := r.write(RoleChat, prompt.Slots{})
		if err != nil {
			return err
		}
		p.MaxTokens = chatTokens
		c := r.call(p)
		err = c.collect(ctx, r.Model)
		r.addUsage(c)
		switch text := strings.TrimSpace(string(c.text)); {
		case err != nil && (r.NoFallback || ctx.Err() != nil):
			return err
		case err == nil && c.finish == "stop" && text != "":
			said = text
		}
	}
	if r.emit(Unanswered{Reason: talk, Text: said, Nearest: nil}) {
		r.finish()
	}
	return nil
}
