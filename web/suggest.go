package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/ingest"
	"ibid/retrieve"
)

// Limits on suggested questions.
const (
	maxSuggestions = 4
	// maxTried is the maximum number of candidates tried.
	maxTriedSuggestions = 24
	// maxSuggesting is the approximate number of documents that questions are taken from.
	maxSuggesting = 40
	// maxSuggestFrom is how many bytes of a document the model sees.
	maxSuggestFrom = 1500
	// maxSuggestionLists is how many lists are cached.
	maxSuggestionLists = 64
)

// suggestions finds questions that the documents answer.
type suggestions struct {
	library Library
	asker   Asker
	logger  *slog.Logger
	model   func(context.Context) string
	suggest func(ctx context.Context, passages []retrieve.Passage, n int) ([]string, error)
	lists   sync.Map // of questions, by a digest of the documents and the model
	cached  atomic.Int64
}

// suggestionList is the reply of GET /api/suggestions.
type suggestionList struct {
	// Questions are from headings and definitions or, with ?model=1, from the model; empty if
	// the model fails. Each of them is answered by quotes.
	Questions []string `json:"questions"`
	// Model means that a model can write questions.
	Model bool `json:"model"`
}

// list replies with questions about all documents, a collection or the documents in
// ?document=.
func (s *suggestions) list(c echo.Context) error {
	ctx, q := c.Request().Context(), c.QueryParams()
	f := retrieve.Filter{Collection: q.Get("collection"), Documents: q["document"]}
	all, err := s.library.Documents(ctx, f)
	if err != nil {
		return fmt.Errorf("listing the documents: %w", err)
	}
	writer := ""
	if s.suggest != nil {
		writer = s.model(ctx)
	}
	byModel := q.Has("model") && writer != ""
	digest := sha256.New()
	if byModel {
		fmt.Fprintf(digest, "%q\n", writer)
	}
	for _, d := range all {
		fmt.Fprintf(digest, "%q %q %q\n", d.ID, d.Digest, d.Collection)
	}
	key := [sha256.Size]byte(digest.Sum(nil))
	questions, ok := s.lists.Load(key)
	if !ok {
		questions, err = s.find(ctx, f, all, byModel)
		if byModel && err != nil && ctx.Err() == nil { // the page already has the other questions
			s.logger.Warn("the model could not write suggested questions", "error", err)
			return reply(c, http.StatusOK, suggestionList{[]string{}, true})
		}
		if err != nil {
			return err
		}
		if s.cached.Add(1)%maxSuggestionLists == 0 {
			s.lists.Clear()
		}
		s.lists.Store(key, questions)
	}
	return reply(c, http.StatusOK, suggestionList{questions.([]string), writer != ""})
}

// A suggestion is a question with the part of a document that should answer it. A question
// from the model has no document.
type suggestion struct{ text, document, part string }

// find tries questions of each kind and document in turn, and returns the ones that quotes can
// answer. The model writes one list for all documents.
func (s *suggestions) find(ctx context.Context, f retrieve.Filter, all []retrieve.DocumentInfo, byModel bool) ([]string, error) {
	kinds := make([][][]suggestion, 3) // per kind, the questions of each document
	var candidates []suggestion
	var openings []retrieve.Passage
	step := max(1, len(all)/maxSuggesting)
	for i := 0; i < len(all); i += step {
		doc, err := s.library.Document(ctx, all[i].ID)
		if errors.Is(err, retrieve.ErrNotFound) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("reading %q for suggestions: %w", all[i].ID, err)
		}
		if byModel {
			text := doc.Text[:runeStart(doc.Text, maxSuggestFrom)]
			openings = append(openings, retrieve.Passage{Chunk: ingest.Chunk{ID: doc.ID, Document: doc.ID, Text: text},
				Root: doc.Root, Path: doc.Path, Title: doc.Title, Format: doc.Format})
		} else {
			for kind, questions := range questionsOf(doc) {
				kinds[kind] = append(kinds[kind], questions)
			}
		}
	}
	if byModel {
		questions, err := s.suggest(ctx, openings, maxTriedSuggestions/2)
		if err != nil {
			return nil, err
		}
		for _, text := range questions {
			candidates = append(candidates, suggestion{text: text})
		}
	} else {
		candidates = interleave([][]suggestion{interleave(kinds[0]), interleave(kinds[1]), interleave(kinds[2])})
	}
	found, tried := []string{}, map[string]bool{}
	for _, q := range candidates {
		if tried[q.text] {
			continue
		}
		tried[q.text] = true
		ok, err := s.isAnswered(ctx, q, f)
		if err != nil {
			return nil, fmt.Errorf("testing the suggestion %q: %w", q.text, err)
		}
		if ok {
			found = append(found, q.text)
		}
		if len(found) == maxSuggestions || len(tried) == maxTriedSuggestions {
			break
		}
	}
	return found, nil
}

// interleave returns the first item of each list, then the second of each, and so on.
func interleave(lists [][]suggestion) (all []suggestion) {
	for turn, more := 0, true; more; turn++ {
		more = false
		for _, list := range lists {
			if turn < len(list) {
				all, more = append(all, list[turn]), true
			}
		}
	}
	return all
}

// firstLabel matches a quoted answer up to the label of its first source.
var firstLabel = regexp.MustCompile(`(?s)^(.*?)\[(\d+)\]`)

// isAnswered reports whether quotes answer a question. If the question has a document, the
// first quote must be the beginning of the part that it is about.
func (s *suggestions) isAnswered(ctx context.Context, q suggestion, f retrieve.Filter) (bool, error) {
	var kept []retrieve.Passage
	text := ""
	for e, err := range s.asker.Ask(ctx, answer.Question{Text: q.text, Strategy: "extract", Filter: f}) {
		if err != nil {
			return false, err
		}
		switch e := e.(type) {
		case answer.Kept:
			kept = e.Passages
		case answer.Text:
			text += e.Text
		case answer.Unanswered:
			return false, nil
		}
	}
	if q.document == "" {
		return text != "", nil
	}
	m := firstLabel.FindStringSubmatch(text)
	if m == nil {
		return false, nil
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n < 1 || n > len(kept) || kept[n-1].Document != q.document {
		return false, nil
	}
	words := func(text string) string {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
	}
	return !strings.HasSuffix(strings.TrimSpace(m[1]), "?") && strings.HasPrefix(words(q.part)+" ", words(m[1])+" "), nil
}

// definitions matches sentences that define something, with the question about it, by
// language.
var definitions = map[string]struct {
	said  *regexp.Regexp
	asked string
}{
	"en": {regexp.MustCompile(`(?m)(?:^|[.!?] )(?:(An?|The) )?(\pL[\pL' -]{2,30}?) (?:is|means) an? [^.!?\n]*`), "What is %s?"},
	"de": {regexp.MustCompile(`(?m)(?:^|[.!?] )(?:(Eine?|Der|Die|Das) )?(\pL[\pL' -]{2,30}?) ` +
		`(?:ist|bedeutet) eine? [^.!?\n]*`), "Was ist %s?"},
}

// listed matches the text of a section that is empty or begins with a list.
var listed = regexp.MustCompile(`^\s*([-*+•|>]|\d+[.)] |$)`)

// leadingNumber matches the number of a numbered heading.
var leadingNumber = regexp.MustCompile(`^[\d.()§ ]+`)

// aboutHeading has a question about a heading in each language. Apart from the heading, its
// words are not search terms.
var aboutHeading = map[string]string{
	"ar": "ماذا عن «%s»؟", "de": "Was gibt es zu „%s“?", "es": "¿Qué hay sobre «%s»?", "fr": "Qu'en est-il de « %s » ?",
	"ja": "「%s」とは？", "zh": "“%s”是什么？",
}

// questionsOf returns questions that a document may answer, by kind: headings that are
// questions, definitions, and other headings.
func questionsOf(d *ingest.Document) [3][]suggestion {
	var asked, defined, about []suggestion
	opening := d.Text[:runeStart(d.Text, window)]
	language := retrieve.Language(opening[:runeStart(opening, maxSuggestFrom)])
	form := cmp.Or(aboutHeading[language], "What about “%s”?")
	for _, section := range d.Sections {
		heading := strings.TrimSpace(leadingNumber.ReplaceAllString(section.Heading, ""))
		words := len(strings.Fields(heading))
		_, body, _ := strings.Cut(d.Text[section.Start:section.End], section.Heading)
		switch {
		case listed.MatchString(body):
			continue
		case strings.HasSuffix(heading, "?") && words > 2 && len(heading) < 100:
			asked = append(asked, suggestion{heading, d.ID, body})
			continue
		case heading == "" || heading == d.Title || section.Level < 2 || words < 2 || words > 5 || strings.ContainsAny(heading, ".:;"):
			continue
		}
		about = append(about, suggestion{fmt.Sprintf(form, heading), d.ID, body})
	}
	of, ok := definitions[language]
	if !ok {
		return [3][]suggestion{asked, nil, about}
	}
	for _, m := range of.said.FindAllStringSubmatch(opening, 8) {
		article, subject := strings.ToLower(m[1]), m[2]
		words := strings.Fields(subject)
		// A subject such as "this bread" contains a function word.
		if len(words) > 2 || len(retrieve.Terms("harbour "+subject)) != len(words)+1 {
			continue
		}
		if low := strings.ToLower(subject); article == "" && strings.Contains(opening, " "+low) {
			subject = low
		}
		subject = strings.TrimSpace(article + " " + subject)
		defined = append(defined, suggestion{fmt.Sprintf(of.asked, subject), d.ID, strings.TrimLeft(m[0], ".!? ")})
	}
	return [3][]suggestion{asked, defined, about}
}

// addSample uploads the sample library. It replies with the outcome for each file.
func (d *documents) addSample(c echo.Context) error {
	sample := addedSample{}
	uploads, err := d.catalog.folders.CollectionUploads(c.Request().Context(), d.catalog.uploads)
	if err != nil {
		return err
	}
	err = fs.WalkDir(d.sample, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(d.sample, name)
		if err != nil {
			return fmt.Errorf("reading the sample library: %w", err)
		}
		change, err := uploads.Add(c.Request().Context(), "sample/"+name, bytes.NewReader(text), nil)
		sample.Files = append(sample.Files, change)
		return err
	})
	return sendValue(c, http.StatusCreated, sample, err)
}

// addedSample is the reply of POST /api/sample.
type addedSample struct {
	Files []ingest.Change `json:"files"`
}
