package web

import (
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/feature/plural"

	"ibid/data/datatest"
)

// pageTexts returns the texts that templates and scripts show, by their English words.
func pageTexts(t *testing.T) []string {
	t.Helper()
	calls := map[string]*regexp.Regexp{
		".js":   regexp.MustCompile(`\b(?:t|parts)\(("(?:[^"\\]|\\.)*")`),
		".html": regexp.MustCompile(`(?:\{\{|\()t ("(?:[^"\\]|\\.)*")`),
	}
	var texts []string
	err := fs.WalkDir(embedded, ".", func(name string, _ fs.DirEntry, err error) error {
		call := calls[path.Ext(name)]
		if err != nil || call == nil {
			return err
		}
		src, err := embedded.ReadFile(name)
		for _, m := range call.FindAllSubmatch(src, -1) {
			text, quoteErr := strconv.Unquote(string(m[1]))
			if quoteErr != nil {
				t.Errorf("%s: unquoting %s: %v", name, m[1], quoteErr)
			}
			texts = append(texts, text)
		}
		return err
	})
	must(t, err)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// TestPhrasebooks checks that each language has exactly the page's texts, with the same
// values and the necessary plural forms.
func TestPhrasebooks(t *testing.T) {
	texts := pageTexts(t)
	if len(texts) < 200 {
		t.Fatalf("only %d texts found, want at least 200", len(texts))
	}
	books, err := loadPhrasebooks()
	must(t, err)
	words, err := embedded.ReadFile("words.json")
	must(t, err)
	all, err := decodeStored[map[string]map[string]any](words)
	must(t, err)
	for text, phrases := range all {
		for name := range phrases {
			if !slices.Contains(pageLanguages, name) {
				t.Errorf("%q is not a language of the page: %q", name, text)
			}
		}
	}
	inflected := books[0].texts
	value := regexp.MustCompile(`\{\w+\}`)
	values := func(s string) []string {
		v := value.FindAllString(s, -1)
		slices.Sort(v)
		return v
	}
	for _, book := range books {
		for text, phrase := range book.texts {
			if !slices.Contains(texts, text) {
				t.Errorf("%s: no page shows %q", book.tag, text)
			}
			for category, words := range phrase {
				if !slices.Contains(slices.Collect(maps.Values(pluralCategories)), category) || words == "" {
					t.Errorf("%s: %q has the words %q for %q", book.tag, text, words, category)
				}
				if got := values(words); !slices.Equal(got, values(text)) && (category == "other" || category == "many") {
					t.Errorf("%s: %q has the values %q", book.tag, words, got)
				}
			}
			if phrase["other"] == "" {
				t.Errorf("%s: %q has no form for any number", book.tag, text)
			}
		}
		for _, text := range texts {
			phrase, ok := book.texts[text]
			if !ok && book != books[0] {
				t.Errorf("%s: %q is missing", book.tag, text)
			}
			if _, counts := inflected[text]; !counts || len(phrase) == 1 && book != books[0] {
				continue // one form for all numbers
			}
			for n := range 200 {
				category := pluralCategories[plural.Cardinal.MatchPlural(book.tag, n, 0, 0, 0, 0)]
				if phrase[category] == "" {
					t.Errorf("%s: %q has no form for %d", book.tag, text, n)
					break
				}
			}
		}
	}
}

// TestPageLanguage checks that the browser's languages choose the page's; the default is
// English.
func TestPageLanguage(t *testing.T) {
	h := newHandler(t, nil)
	none := map[string]string{"de": "<h1>Nicht gefunden</h1>", "ar": "<h1>غير موجود</h1>", "en": "<p>There is no document &#34;nix.md&#34;"}
	for accept, want := range none {
		if w := call(h, "GET", "/documents/nix.md", "", "Accept-Language", accept, "Accept", "text/html"); w.Code != http.StatusNotFound ||
			!strings.Contains(w.Body.String(), want) || accept != "en" && strings.Contains(w.Body.String(), "There is no") {
			t.Errorf("%s: status = %d, want 404 and %s in %s", accept, w.Code, want, w.Body)
		}
	}
	for _, row := range datatest.Rows(t, "testdata/rows/tables.txt", "languages") {
		for _, page := range []string{"/", "/documents", "/nowhere"} {
			w := call(h, "GET", page, "", "Accept-Language", row[0], "Accept", "text/html")
			if !strings.Contains(w.Body.String(), "<html "+row[1]+">") {
				t.Errorf("%s, %q: want %s in\n%.200s", page, row[0], row[1], w.Body)
			}
			if !slices.Contains(w.Header().Values("Vary"), "Accept-Language") {
				t.Errorf("%s, %q: Vary = %q", page, row[0], w.Header().Values("Vary"))
			}
		}
	}
}

func TestPhraseText(t *testing.T) {
	books, err := loadPhrasebooks()
	must(t, err)
	byName := map[string]*phrasebook{}
	for _, b := range books {
		byName[b.tag.String()] = b
	}
	for _, c := range datatest.Table[struct {
		Language string
		N        int
		Want     string
	}](t, "testdata/rows/tables.txt", "phrases") {
		if got := byName[c.Language].translate("{n} pages", "n", c.N); got != c.Want {
			t.Errorf("%s, %d: translation = %q, want %q", c.Language, c.N, got, c.Want)
		}
	}
}
