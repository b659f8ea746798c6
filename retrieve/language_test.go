package retrieve

import (
	"slices"
	"strings"
	"testing"
)

// TestLanguage asks in one form of a word and finds it in another, in every
// language that has a own stemmer besides English.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ code, question, text, common string }{
		{"da", "Hvor mange skibe er der i havnen?", "Skibet ligger ved kajen, og det er det største som havnen har set.", "havn skib"},
		{"de", "Wie teuer sind die Häuser in dieser Straße?", "Das Haus ist das älteste, und es steht an der Straße nach Norden.",
			"haus strass"},
		{"es", "¿Cuántas ciudades hay en la provincia?", "La ciudad es la más grande de las provincias del norte y no tiene puerto.",
			"ciudad provinci"},
		{"fi", "Mitä talossa on?", "Talot ovat vanhoja ja ne ovat meren rannalla, mutta niissä ei ole ketään.", "talo"},
		{"fr", "Quels sont les chevaux les plus rapides de l'élevage ?",
			"Le cheval est dans le pré, et il est le plus rapide de tous les élevages.", "cheval elevag rapid"},
		{"hu", "Hol van a házak kertje?", "A ház kertje nagy, és az utca végén van, de nem lehet bemenni.", "haz kert"},
		{"it", "Quante sono le città con i porti più grandi?", "Il porto è il più grande della regione e non è lontano dalla città.",
			"citt grand port"},
		{"nl", "Hoeveel huizen zijn er in de stad?", "Het huis dat in de steden van het noorden staat is niet van hem.", ""},
		{"no", "Hva slags båter er det i havna?", "Båten ligger ved kaia, og det er den eneste som ikke har seil.", "bat"},
		{"pt", "Quais são as cidades mais antigas do país?", "A cidade é a mais antiga dos países do sul e não tem porto.", "antig cidad pais"},
		{"ro", "Care sunt orașele din țară?", "Orașul este cel mai vechi din țară și nu are port.", "oras tar"},
		{"sv", "Hur många båtar är det i hamnen?", "Båten ligger vid kajen, och det är den enda som inte har segel i hamnarna.", "bat hamn"},
		{"tr", "Hangi evler bu şehirde?", "Ev çok eski ve bu şehir için önemli olan bir yer.", "ev sehir"},
		{"ru", "Какие суда стоят в порту?", "Судно стоит в портах, но это не последнее из них.", "порт сто"},
		{"ar", "ما هي المدن في هذه البلاد؟", "هذه المدن هي أكبر مدن البلاد في الشمال", "بلاد مدن"},
		{"el", "Ποια είναι τα λιμάνια της χώρας;", "Τα λιμάνια είναι στο νότο και η χώρα έχει πολλά", "λιμανια"},
		{"hi", "इस शहर में कितने लोग हैं?", "शहर में बहुत लोग हैं और यह बड़ा है", "लोग शहर"},
		{"zh", "这个城市有多少人？", "城市有一百万人", "人 城 城市 市 市有"},
	} {
		var a analyser
		a.read(c.question)
		if got := languageCodes[a.tally.language()]; got != c.code && c.code != "zh" {
			t.Errorf("%q is detected as %s", c.question, got)
		}
		var common []string
		found := flat(indexed(c.text))
		for _, w := range question(c.question) {
			term := w.term
			if w.own != "" {
				term = w.own
			}
			if slices.Contains(found, term) {
				common = append(common, term)
			}
		}
		slices.Sort(common)
		if got := strings.Join(slices.Compact(common), " "); got != c.common {
			t.Errorf("%s: %q and %q share %q, want %q", c.code, c.question, c.text, got, c.common)
		}
	}
}

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

// TestEnglishStaysEnglish: foreign names and lone letters make no other language.
func TestEnglishStaysEnglish(t *testing.T) {
	for _, text := range []string{
		"", "harbour fees", "van der Waals forces", "population of Rio de Janeiro", "plays by Lope de la Vega",
		"Who was Leonardo da Vinci?", "S. cerevisiae and E. coli", "non-infertile population of Los Angeles",
		"for (i = 0; i < n; i++) a[i] = b[i]", "In British men, haplogroup I decreases risk",
		"The Winter Soldier was made by die Brüder Russo and is set in Washington",
	} {
		var a analyser
		a.read(text)
		if got := a.tally.language(); got != english {
			t.Errorf("%q is detected as %s", text, languageCodes[got])
		}
	}
}

func TestFunctionWordTable(t *testing.T) {
	if languageCodes[english] != "en" || languageCodes[chinese] != "zh" || len(languageCodes) > 32 {
		t.Fatalf("the table has %v", languageCodes)
	}
	for code := range stemmers {
		if !slices.Contains(languageCodes, code) {
			t.Errorf("%s has a stemmer and no function words", code)
		}
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(functionWordTable) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		for _, w := range fields[1:] {
			if w != strings.ToLower(w) || seen[fields[0]+w] {
				t.Errorf("%s: %s is in capitals or there twice", fields[0], w)
			}
			seen[fields[0]+w] = true
		}
	}
}
