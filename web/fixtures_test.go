package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

var must = datatest.Must

// hostile is the title of a hostile document.
const hostile = `<script>alert("x")</script> & 'quotes' ` + "\x1b[31mred\x1b[0m" + `<img src=x onerror=alert(1)>`

// shelf is a small library in memory. Documents can name their collection in their
// metadata.
type shelf []*ingest.Document

func newShelf() shelf {
	mooring := "Moorings\n\nThe mooring fee is 240 crowns a season. It is due on 1 April.\n\nWinter storage\n\nBoats may stay ashore from " +
		"October to March. Storage costs 90 crowns.\n"
	guide := "The harbour office opens at eight.\nIt closes at six.\n\nDogs are welcome on the pier.\n"
	evil := "Before " + hostile + " after.\n"
	doc := func(path, title, format, text string) *ingest.Document {
		return &ingest.Document{ID: "club/" + path, Root: "club", Path: path, Title: title, Format: format,
			Digest: strings.Repeat("ab", 28) + fmt.Sprintf("%08x", len(path)), Text: text}
	}
	m := doc("handbook/mooring.md", "Moorings", "markdown", mooring)
	second := strings.Index(mooring, "Winter")
	m.Sections = []ingest.Section{{Heading: "Moorings", Level: 1, Start: 0, End: second}, {Heading: "Winter storage", Level: 2, Start: second,
		End: len(mooring)}}
	g := doc("guide.pdf", "Harbour guide", "pdf", guide)
	cut := strings.Index(guide, "Dogs")
	g.Pages = []ingest.Page{{Number: 1, Start: 0, End: cut}, {Number: 2, Start: cut, End: len(guide)}}
	return shelf{g, m,
		doc(`odd/100% <b>"né"</b> #1?.txt`, hostile, "text", evil),
		doc("odd/empty.txt", "empty.txt", "text", ""),
	}
}

func (s shelf) Document(_ context.Context, id string) (*ingest.Document, error) {
	for _, d := range s {
		if d.ID == id {
			return d, nil
		}
	}
	return nil, fmt.Errorf("document %q: %w", id, retrieve.ErrNotFound)
}

func (s shelf) Documents(_ context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	var out []retrieve.DocumentInfo
	for _, d := range s {
		info := retrieve.DocumentInfo{Document: *d, Collection: cmp.Or(d.Meta["collection"], "default"), Chunks: 1, Pages: len(d.Pages),
			Bytes: len(d.Text)}
		if f.Matches(&info, retrieve.LabelsOf(d.Meta)) {
			out = append(out, info)
		}
	}
	return out, nil
}

func (s shelf) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	list, err := s.Documents(ctx, f)
	return len(list) > 0, err
}

// passage returns the passage of a document that has exactly these words.
func (s shelf) passage(id, words string) retrieve.Passage {
	for i, d := range s {
		if start := strings.Index(d.Text, words); d.ID == id && start >= 0 {
			p := retrieve.Passage{Root: d.Root, Path: d.Path, Title: d.Title, Format: d.Format, Digest: d.Digest, Score: .5,
				Scores: retrieve.Scores{Dense: .5, BM25: 3, Lexical: .5, Coverage: .75}}
			p.Chunk = ingest.Chunk{ID: fmt.Sprintf("%s#%d", id, start), Document: id, Ordinal: i + 1, Start: start, End: start + len(words),
				Text: words}
			for _, pg := range d.Pages {
				if start >= pg.Start && start < pg.End {
					p.Page = pg.Number
				}
			}
			for _, sec := range d.Sections {
				if start >= sec.Start && start < sec.End {
					p.Heading = sec.Heading
				}
			}
			return p
		}
	}
	panic("the words are not in " + id)
}

// script is an Asker with the steps of each question: it sends an event, ends the stream
// with an error, or calls a func(context.Context) error.
type script map[string][]any

func (s script) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for _, step := range s[q.Text] {
			var e answer.Event
			var err error
			switch step := step.(type) {
			case answer.Event:
				e = step
			case error:
				err = step
			case func(context.Context) error:
				if err = step(ctx); err == nil {
					continue
				}
			default:
				panic(fmt.Sprintf("a %T in the script", step))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (s shelf) judged(p retrieve.Passage, d answer.Decision, reason string) answer.Judged {
	return answer.Judged{Passage: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page,
		Decision: d, By: "score", Reason: reason, Chance: .5, Scores: p.Scores}
}

var errBroken = errors.New("reading the index: secret/path is gone")

// newScript returns the answers of the tests.
func newScript(s shelf) script {
	fee := s.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")
	office := s.passage("club/guide.pdf", "The harbour office opens at eight.")
	dogs := s.passage("club/guide.pdf", "Dogs are welcome on the pier.")
	evil := s.passage(`club/odd/100% <b>"né"</b> #1?.txt`, s[2].Text)
	found := []retrieve.Passage{fee, office, dogs}
	looked := []any{
		answer.Retrieved{Question: "What is the mooring fee?", Passages: found},
		s.judged(fee, answer.Relevant, "covers mooring fee"),
		s.judged(office, answer.Relevant, "covers harbour"),
		s.judged(dogs, answer.Irrelevant, "does not cover mooring, fee"),
		answer.Kept{Passages: []retrieve.Passage{fee, office}},
	}
	usage := answer.Usage{Looked: 3, Used: 2, Took: 250}
	failed := func(kind openai.Kind) []any {
		return []any{fmt.Errorf("writing the answer: %w", &openai.Error{Kind: kind, Server: "http://127.0.0.1:11434/v1", Model: "tiny"})}
	}
	return script{
		"model unreachable": failed(openai.Down), "model auth": failed(openai.Unauthorized), "model timeout": failed(openai.TimedOut),
		"doubted": slices.Concat(looked, []any{
			answer.Text{Text: "The mooring fee is 240 crowns a season.[1]\n\nThe moon is made of **green** cheese."}, usage}),
		"What is the mooring fee?": slices.Concat(looked, []any{
			answer.Text{Text: "The mooring fee is 240 crowns a season.[1] "},
			answer.Text{Text: "The harbour office opens at eight.["}, answer.Text{Text: "2]"}, usage}),
		"drafted": slices.Concat(looked, []any{
			answer.Draft{Step: 1, Text: "The mooring fee "}, answer.Draft{Step: 1, Text: "is 240 crowns.[1]", Labels: []int{1}, Final: true},
			answer.Warning{Message: "the model's server cut the prompt"},
			answer.Text{Text: "The mooring fee is 240 crowns a season.[1]"}, usage}),
		"pizza": {answer.Retrieved{Question: "pizza", Passages: found},
			s.judged(fee, answer.Irrelevant, "does not cover pizza"),
			answer.Unanswered{Reason: "nothing_relevant", Text: "The documents do not say.", Nearest: []retrieve.Passage{dogs}},
			answer.Usage{Looked: 1, Took: 10}},
		"tea": {answer.Retrieved{Question: "tea", Passages: found}, s.judged(dogs, answer.Relevant, "covers tea"),
			answer.Unanswered{Reason: "no_answer", Text: "The documents may not answer this.", Nearest: []retrieve.Passage{dogs},
				Closest: []answer.Closest{{Document: dogs.Document, Title: dogs.Title, Text: dogs.Text, Passage: dogs},
					{Document: dogs.Document, Title: dogs.Title, Text: office.Text, Passage: office}}},
			answer.Usage{Looked: 1, Took: 10}},
		"evil": {answer.Retrieved{Question: "evil", Passages: []retrieve.Passage{evil}},
			s.judged(evil, answer.Relevant, hostile), answer.Kept{Passages: []retrieve.Passage{evil}},
			answer.Text{Text: hostile + ".[1]"}, answer.Usage{Looked: 1, Used: 1}},
		"cut short": slices.Concat(looked, []any{answer.Text{Text: "The mooring fee is 240 crowns a season.[1]"},
			answer.Incomplete{Reason: "the model's server closed the connection"}, usage}),
		"breaks at once": {errBroken},
		"breaks later":   slices.Concat(looked, []any{answer.Text{Text: "The mooring fee"}, errBroken}),
		"panics":         {func(context.Context) error { panic("at the disco") }},
		"gone":           {fmt.Errorf("reading a passage: %w", retrieve.ErrNotFound)},
		"store away":     {fmt.Errorf("read the revision: postgres://db.example.org:5432/library: %w", retrieve.ErrUnavailable)},
		"index away":     {fmt.Errorf("search: %w", retrieve.ErrIndexUnavailable)},
		"index building": {fmt.Errorf("search: %w", &retrieve.BuildingError{Done: 34, Total: 779})},
		"other space":    {&retrieve.SpaceError{Stored: "old/1", Wanted: "new/2"}},
	}
}

func (s shelf) Search(_ context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	if q.Text != "mooring" {
		return nil, nil
	}
	return []retrieve.Passage{s.passage("club/handbook/mooring.md", "The mooring fee is 240 crowns a season.")}, nil
}

// newOptions returns the options of a server for the shelf and the script.
func newOptions() Options {
	s := newShelf()
	return Options{Asker: newScript(s), Searcher: s, Library: s, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Addr: "127.0.0.1:8080", Version: "0.0.0-test", KeyRate: 1_000_000, Metrics: NewMetrics(), Answers: new(Answers),
		Summarizer: digest{new(answer.Summary)}, Ledger: newLedger(), Settings: &panel{}, Drawer: noDrawer{}, Originals: files{},
		Upstream: noUpstream{}, Model: func(context.Context) string { return "" },
		Indexing: func() Indexing { return Indexing{0, 0, true} }, Reachable: func(context.Context) error { return nil },
		Figures: func(context.Context) (StoreFigures, error) { return StoreFigures{}, nil },
		Encoded: func() (int, int) { return 0, 0 }, SelfTest: func(context.Context) string { return "" },
		Troubles: func() []ingest.Change {
			return []ingest.Change{{Document: "club/scan.pdf", Root: "club", Path: "scan.pdf", Action: ingest.Failed,
				Reason: "no text in it: a scan?"}}
		}}
}

// newHandler returns a server with the options, after change.
func newHandler(t testing.TB, change func(*Options)) *echo.Echo {
	t.Helper()
	o := newOptions()
	if change != nil {
		change(&o)
	}
	if o.Sites == nil {
		o.Sites = noSites{}
	}
	e, err := New(o)
	must(t, err)
	// Wait for the ledger before ServeHTTP returns, since tests read it next.
	e.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			defer func() { _ = o.Answers.waitStored(context.WithoutCancel(c.Request().Context()), 0) }()
			return next(c)
		}
	})
	return e
}

// oneFolder has uploads of one collection, in the root uploads.
type oneFolder struct {
	made
	Uploads
}

func (f oneFolder) CollectionUploads(_ context.Context, collection string) (Uploads, error) {
	return f.Uploads, ingest.CheckCollection(collection)
}

func (f oneFolder) RootUploads(_ context.Context, root string) (Uploads, string, error) {
	if root != "uploads" {
		return nil, "", fs.ErrNotExist
	}
	return f.Uploads, "default", nil
}

// noSites is a server without web sites.
type noSites struct{ Sites }

func (noSites) SiteStates() []SiteState { return nil }

// noDrawer is a server without PDFium.
type noDrawer struct{ Drawer }

func (noDrawer) CanDraw(context.Context, string) bool { return false }

// noUpstream is a server without a model.
type noUpstream struct{ Upstream }

func (noUpstream) Model() string { return "" }
