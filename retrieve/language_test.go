package retrieve

import (
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestLanguage asks in one form of a word and finds it in another, in every
// language that has a own stemmer besides English.
func TestLanguage(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/words.txt", "languages") {
		code, asked, text, shared := row[0], row[1], row[2], row[3]
		var a analyser
		a.read(asked)
		if got := languageCodes[a.tally.language()]; got != code && code != "zh" {
			t.Errorf("%q is detected as %s", asked, got)
		}
		var common []string
		found := flat(indexed(text))
		for _, w := range question(asked) {
			term := w.term
			if w.own != "" {
				term = w.own
			}
			if slices.Contains(found, term) {
				common = append(common, term)
			}
		}
		slices.Sort(common)
		if got := strings.Join(slices.Compact(common), " "); got != shared {
			t.Errorf("%s: %q and %q share %q, want %q", code, asked, text, got, shared)
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
