package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"ibid/cite/rewrite"
	"ibid/ingest"
)

//go:embed static templates words.json
var embedded embed.FS

// staticRoute is the route for the page's static files.
const staticRoute = "/static/*"

// contentTypes are the types of the static files, since the tables of operating systems
// differ.
var contentTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// serveStatic serves a static file. Every path is safe: an embedded file system contains only
// its own files.
func serveStatic(c echo.Context) error {
	name := c.Param("*")
	body, err := embedded.ReadFile("static/" + name)
	if err != nil {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, contentTypes[path.Ext(name)])
	h.Set("ETag", fmt.Sprintf(`"%.8x"`, sha256.Sum256(body)))
	// Browsers revalidate each file, so that modules of two versions never mix.
	h.Set(echo.HeaderCacheControl, "no-cache")
	if name == "widget.js" { // for pages of other sites
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	return serveContent(c, body)
}

func compressReplies(next echo.HandlerFunc) echo.HandlerFunc {
	return middleware.GzipWithConfig(middleware.GzipConfig{
		Skipper: func(c echo.Context) bool { return c.Request().Header.Get("Range") != "" },
	})(next)
}

// pages renders the templates inside the frame, in the languages of the page.
type pages struct {
	address   address
	languages language.Matcher
	byName    []map[string]*template.Template // by index of the language
}

// loadPages reads the templates, in which the function options returns o.
func loadPages(a address, o *Options) (*pages, error) {
	p := &pages{address: a}
	books, err := loadPhrasebooks()
	if err != nil {
		return nil, err
	}
	var tags []language.Tag
	for _, book := range books {
		tags = append(tags, book.tag)
		p.byName = append(p.byName, map[string]*template.Template{})
	}
	p.languages = language.NewMatcher(tags)
	for _, name := range []string{"home", "viewer", "documents", "problem", "key"} {
		t, err := template.New("frame.html").Funcs(template.FuncMap{"link": Link, "size": formatSize, "sentence": asSentence,
			"options": func() *Options { return o }, "version": func() string { return strings.TrimPrefix(o.Version, "ibid ") }}).
			Funcs(books[0].templateFuncs()).ParseFS(embedded, "templates/frame.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		for i, book := range books {
			if p.byName[i][name], err = t.Clone(); err != nil {
				return nil, err
			}
			p.byName[i][name].Funcs(book.templateFuncs())
		}
	}
	return p, nil
}

// A frame has the parts that every page shares.
type frame struct {
	Heading string // of the page; empty on the home page
	Prefix  string // path prefix of links, without a trailing slash
	Model   string // name of the model that writes answers; empty if answers are quoted
	Failing bool   // the model failed on the last question
	MaySet  bool   // the caller may choose settings
	// Shelves maps the roots of uploads to the new names of renamed collections. The id of a
	// document, and so every link to it, keeps the collection's first name.
	Shelves map[string]string
}

// Name returns the id of a document as shown to people, with the collection's current name.
func (f frame) Name(id string) string {
	root, path, _ := strings.Cut(id, "/")
	return rewrite.VisibleName(cmp.Or(f.Shelves[root], root) + "/" + path)
}

type homePage struct {
	frame
	documents *documents
	MayChange bool   // the caller may add documents
	Caller    string // callerMark
}

// Modules returns the scripts to preload.
func (homePage) Modules() []string {
	return []string{"actions.js", "answer.js", "blocks.js", "board.js", "collections.js", "conversation.js", "copy.js", "dom.js",
		"history.js", "library.js", "past.js", "peek.js", "reader.js", "remedy.js", "sheet.js", "sites.js", "source.js", "stream.js",
		"upload.js", "words.js"}
}

func (p *homePage) show(c echo.Context) error {
	home, err := *p, error(nil)
	ctx := c.Request().Context()
	if home.frame, err = p.documents.frame(ctx, ""); err != nil {
		return err
	}
	home.MayChange = p.documents.mayChange(ctx)
	home.Caller = callerMark(holderFrom(ctx))
	return p.documents.pages.send(c, http.StatusOK, "home", home)
}

// callerMark returns the id of a caller, under which a browser stores the history and the
// rejected uploads; empty if no keys guard the server.
func callerMark(caller *holder) string {
	if caller == nil {
		return ""
	}
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(caller.key.ID+"\n"+caller.user)))
}

type viewerPage struct {
	frame
	shownDocument
	Link      string // to the document, without a place
	Elsewhere bool   // another server has the file
	// Before and After are links to the previous and the next page.
	Before, After string
	Outline       []heading
	Key           []keyPassage
	Summarizes    bool   // a model can summarize the document
	Find          string // words to search for
}

// FoundMore reports whether there may be more places than the list has.
func (p viewerPage) FoundMore() bool { return len(p.Found) == maxFound }

// Fetched reports whether the document was fetched from a web address.
func (p viewerPage) Fetched() bool { return ingest.IsAddress(p.Original) }

type documentsPage struct {
	frame
	documentList
	Next      string // query for the next page; empty on the last page
	MayChange bool   // the caller may add and delete documents
	Caller    string // callerMark
}

type problemPage struct {
	frame
	Problem *Problem
}

func (p *pages) frame(heading string) frame {
	return frame{Heading: heading, Prefix: p.address.prefix()}
}

// frame returns the frame of a page for a caller.
func (d *documents) frame(ctx context.Context, heading string) (frame, error) {
	f, caller := d.pages.frame(heading), holderFrom(ctx)
	f.Model, f.Failing = d.model(ctx), d.modelDetail() != ""
	f.MaySet = caller == nil || caller.maySet()
	f.Shelves = map[string]string{}
	if d.catalog.folders == nil {
		return f, nil
	}
	roots, err := d.catalog.folders.Roots(ctx)
	if err != nil {
		return f, fmt.Errorf("listing the collections with uploads: %w", err)
	}
	for _, r := range roots {
		if r.Name != r.Collection {
			f.Shelves[r.Name] = r.Collection
		}
	}
	return f, nil
}

// send renders a page completely before sending it, so that an error never leaves half a
// page.
func (p *pages) send(c echo.Context, status int, name string, data any) error {
	c.Response().Header().Add(echo.HeaderVary, "Accept-Language")
	// An invalid header is ignored.
	wanted, _, _ := language.ParseAcceptLanguage(c.Request().Header.Get("Accept-Language"))
	_, i, _ := p.languages.Match(wanted...)
	var b bytes.Buffer
	if err := p.byName[i][name].Execute(&b, data); err != nil {
		return fmt.Errorf("rendering the page %s: %w", name, err)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Blob(status, echo.MIMETextHTMLCharsetUTF8, b.Bytes())
}

func formatSize(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + " kB"
	default:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + " MB"
	}
}

// asSentence makes an error's text a sentence for people.
func asSentence(words string) string {
	first, n := utf8.DecodeRuneInString(words)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(words[n:], ".") + "."
}

// openapiDocument describes every route. It is written by hand; TestOpenAPI compares it with
// the routes and with the types of requests and replies.
//
//go:embed openapi.json
var openapiDocument []byte

func sendOpenAPI(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return serveContent(c, openapiDocument)
}

// A phrasebook has the page's texts in one language, by their English text. A text about a
// number n has a form for each plural category; the English phrasebook has only such texts.
// Missing texts are shown in English.
type phrasebook struct {
	tag    language.Tag
	texts  map[string]phrase
	source json.RawMessage // the texts as JSON, for the scripts
}

// A phrase is a text, or several by plural category: "one", "few", "other" and so on.
type phrase map[string]string

var pluralCategories = map[plural.Form]string{
	plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other",
}

func (p *phrase) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*p = phrase{"other": text}
		return nil
	}
	return json.Unmarshal(data, (*map[string]string)(p))
}

// pageLanguages are the languages of words.json. The first is the default.
var pageLanguages = []string{"en", "ar", "de", "es", "fr", "ja", "zh"}

// loadPhrasebooks reads the phrasebooks of the page's languages.
func loadPhrasebooks() ([]*phrasebook, error) {
	words, err := embedded.ReadFile("words.json")
	if err != nil {
		return nil, err
	}
	var texts map[string]map[string]json.RawMessage // by English text and language
	if err := json.Unmarshal(words, &texts); err != nil {
		return nil, fmt.Errorf("reading the page's words: %w", err)
	}
	var books []*phrasebook
	for _, name := range pageLanguages {
		source := map[string]json.RawMessage{}
		for text, phrases := range texts {
			if phrase, ok := phrases[name]; ok {
				source[text] = phrase
			}
		}
		book := &phrasebook{tag: language.Make(name)}
		if book.source, err = json.Marshal(source); err == nil {
			err = json.Unmarshal(book.source, &book.texts)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the page's words in language %s: %w", name, err)
		}
		books = append(books, book)
	}
	return books, nil
}

// translate returns a text with its values, given as names and values: text("Page {n}", "n",
// 3). The value n selects the plural form.
func (b *phrasebook) translate(english string, values ...any) string {
	category := "other"
	var replacements []string
	for i := 0; i+1 < len(values); i += 2 {
		name, value := fmt.Sprint(values[i]), fmt.Sprint(values[i+1])
		if n, err := strconv.Atoi(value); err == nil && name == "n" {
			category = pluralCategories[plural.Cardinal.MatchPlural(b.tag, n, 0, 0, 0, 0)]
		}
		replacements = append(replacements, "{"+name+"}", value)
	}
	phrase := b.texts[english]
	return strings.NewReplacer(replacements...).Replace(cmp.Or(phrase[category], phrase["other"], english))
}

// templateFuncs returns the functions for templates in this language.
func (b *phrasebook) templateFuncs() template.FuncMap {
	return template.FuncMap{"t": b.translate, "language": b.tag.String, "direction": b.direction,
		"phrases": func() json.RawMessage { return b.source }}
}

// direction returns the direction of the script.
func (b *phrasebook) direction() string {
	if script, _ := b.tag.Script(); script.String() == "Arab" || script.String() == "Hebr" {
		return "rtl"
	}
	return "ltr"
}
