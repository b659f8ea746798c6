package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// A phrasebook has the page's texts in one language, by their English text. A text
// about a number n has a form for each plural category of the language; only those
// are in the English phrasebook. Texts that it lacks are shown in English.
type phrasebook struct {
	tag    language.Tag
	texts  map[string]phrase
	source json.RawMessage // of texts, for the scripts
}

// A phrase is a text, or several by plural category: "one", "few", "other" and so on.
type phrase map[plural.Form]string

var pluralForms = map[string]plural.Form{
	"zero": plural.Zero, "one": plural.One, "two": plural.Two, "few": plural.Few, "many": plural.Many, "other": plural.Other,
}

func (p *phrase) UnmarshalJSON(data []byte) error {
	*p = phrase{}
	var text string
	if json.Unmarshal(data, &text) == nil {
		(*p)[plural.Other] = text
		return nil
	}
	var texts map[string]string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	for category, text := range texts {
		form, ok := pluralForms[category]
		if !ok {
			return fmt.Errorf("%q is no plural category", category)
		}
		(*p)[form] = text
	}
	return nil
}

// pageLanguages are those with a file in the folder words. The first is used for
// readers of other languages.
var pageLanguages = []string{"en", "ar", "de", "es", "fr", "ja", "zh"}

// loadPhrasebooks reads the phrasebooks of the page's languages.
func loadPhrasebooks() ([]*phrasebook, error) {
	var books []*phrasebook
	for _, name := range pageLanguages {
		book := &phrasebook{tag: language.Make(name)}
		var err error
		if book.source, err = embedded.ReadFile("words/" + name + ".json"); err == nil {
			err = json.Unmarshal(book.source, &book.texts)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the page's words in language %s: %w", name, err)
		}
		books = append(books, book)
	}
	return books, nil
}

// text returns a text with its values, given as names and values: text("Page {n}",
// "n", 3). The value n chooses the plural form.
func (b *phrasebook) text(english string, values ...any) string {
	form := plural.Other
	var replacements []string
	for i := 0; i+1 < len(values); i += 2 {
		name, value := fmt.Sprint(values[i]), fmt.Sprint(values[i+1])
		if n, err := strconv.Atoi(value); err == nil && name == "n" {
			form = plural.Cardinal.MatchPlural(b.tag, n, 0, 0, 0, 0)
		}
		replacements = append(replacements, "{"+name+"}", value)
	}
	text, ok := b.texts[english][form]
	if !ok {
		if text, ok = b.texts[english][plural.Other]; !ok {
			text = english
		}
	}
	return strings.NewReplacer(replacements...).Replace(text)
}

// functions are what the templates call to write in this language.
func (b *phrasebook) functions() template.FuncMap {
	return template.FuncMap{"t": b.text, "language": b.tag.String, "direction": b.direction,
		"phrases": func() json.RawMessage { return b.source }}
}

// direction is the direction of the script.
func (b *phrasebook) direction() string {
	if script, _ := b.tag.Script(); script.String() == "Arab" || script.String() == "Hebr" {
		return "rtl"
	}
	return "ltr"
}
