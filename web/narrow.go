package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"ibid/answer"
	"ibid/ingest"
	"ibid/retrieve"
)

// What the handlers are given reaches no further than the key that their
// context holds: the narrowing is done once, here, and a new route cannot leave
// it out. Where keys guard the server a context without one reaches nothing.

// errNobody is met by a route that is public and reaches for documents.
var errNobody = errors.New("nobody's key is in the context: the library is not open to a public route, nor to work that has lost its request's context")

// reach gives the collections that a context may see, none for all.
func reach(ctx context.Context) ([]string, error) {
	who := holderFrom(ctx)
	if who == nil {
		return nil, errNobody
	}
	return who.key.Collections, nil
}

// within is a filter that reaches no further than its context's key.
func within(ctx context.Context, f retrieve.Filter) (retrieve.Filter, error) {
	var err error
	f.Collections, err = reach(ctx)
	return f, err
}

// narrow puts everything that reaches documents behind the keys.
func (o *Options) narrow() {
	library := narrowLibrary{o.Library}
	o.Asker, o.Searcher, o.Library = narrowAsker{o.Asker}, narrowSearcher{o.Searcher}, library
	if o.Summarizer != nil {
		o.Summarizer = narrowSummarizer{o.Summarizer}
	}
	if o.Uploads != nil {
		o.Uploads = narrowUploads{o.Uploads, o.UploadCollection}
	}
	if o.Drawer != nil {
		o.Drawer = narrowDrawer{o.Drawer, library}
	}
	if o.Originals != nil {
		o.Originals = narrowOriginals{o.Originals, library}
	}
}

type narrowAsker struct{ Asker }

func (n narrowAsker) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	var err error
	if q.Filter, err = within(ctx, q.Filter); err != nil {
		return func(yield func(answer.Event, error) bool) { yield(nil, err) }
	}
	return while(ctx, n.Asker.Ask(ctx, q))
}

type narrowSummarizer struct{ Summarizer }

func (n narrowSummarizer) Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return while(ctx, n.Summarizer.Summarize(ctx, s))
}

// while passes events on until the key of their context has ended: what is said
// of an answer that breaks off is not for its holder any more.
func while(ctx context.Context, events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if ended := (*Problem)(nil); errors.As(context.Cause(ctx), &ended) {
				yield(nil, ended)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

type narrowSearcher struct{ Searcher }

func (n narrowSearcher) Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error) {
	var err error
	if q.Filter, err = within(ctx, q.Filter); err != nil {
		return nil, err
	}
	return n.Searcher.Search(ctx, q)
}

type narrowLibrary struct{ Library }

func (n narrowLibrary) Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	f, err := within(ctx, f)
	if err != nil {
		return nil, err
	}
	return n.Library.Documents(ctx, f)
}

func (n narrowLibrary) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	f, err := within(ctx, f)
	if err != nil {
		return false, err
	}
	return n.Library.Holds(ctx, f)
}

func (n narrowLibrary) Document(ctx context.Context, id string) (*ingest.Document, error) {
	if err := n.in(ctx, id); err != nil {
		return nil, err
	}
	return n.Library.Document(ctx, id)
}

// in fails unless a document is in reach. A list of one leaves the filters of
// searches in the engine's memory, which a look for it would not.
func (n narrowLibrary) in(ctx context.Context, id string) error {
	collections, err := reach(ctx)
	if err != nil || len(collections) == 0 {
		return err
	}
	found, err := n.Library.Documents(ctx, retrieve.Filter{Document: id, Collections: collections})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("document %q: %w", id, retrieve.ErrNotFound)
	}
	return err
}

// narrowUploads are all of one collection.
type narrowUploads struct {
	Uploads
	collection string
}

// check says whether the uploads are in reach.
func (n narrowUploads) check(ctx context.Context) error {
	collections, err := reach(ctx)
	if err == nil && len(collections) > 0 && !slices.Contains(collections, n.collection) {
		err = &Problem{Status: http.StatusForbidden, Code: "outside_key",
			Detail: "what is sent goes into a collection that this key does not reach: use a key for it, or one for all collections"}
	}
	return err
}

func (n narrowUploads) Add(ctx context.Context, name string, content io.Reader) (ingest.Change, error) {
	if err := n.check(ctx); err != nil {
		return ingest.Change{}, err
	}
	return n.Uploads.Add(ctx, name, content)
}

func (n narrowUploads) Reread(ctx context.Context, name string) (ingest.Change, error) {
	if err := n.check(ctx); err != nil {
		return ingest.Change{}, err
	}
	return n.Uploads.Reread(ctx, name)
}

func (n narrowUploads) Remove(ctx context.Context, name string) error {
	if err := n.check(ctx); err != nil {
		return err
	}
	return n.Uploads.Remove(ctx, name)
}

type narrowDrawer struct {
	Drawer
	library narrowLibrary
}

func (n narrowDrawer) DrawPage(ctx context.Context, doc *ingest.Document, page int, quote string, width int) ([]byte, error) {
	if err := n.library.in(ctx, doc.ID); err != nil {
		return nil, err
	}
	return n.Drawer.DrawPage(ctx, doc, page, quote, width)
}

type narrowOriginals struct {
	Originals
	library narrowLibrary
}

func (n narrowOriginals) Original(ctx context.Context, doc *ingest.Document) ([]byte, error) {
	if err := n.library.in(ctx, doc.ID); err != nil {
		return nil, err
	}
	return n.Originals.Original(ctx, doc)
}

func (n narrowOriginals) Here(ctx context.Context, doc *ingest.Document) bool {
	return n.library.in(ctx, doc.ID) == nil && n.Originals.Here(ctx, doc)
}

// troubles are the files that the last sync could not take in. A key for some
// collections is told of none: what was not stored has no collection.
func (s *server) troubles(ctx context.Context) ([]ingest.Change, error) {
	if s.keys != nil {
		if collections, err := reach(ctx); err != nil || len(collections) > 0 {
			return nil, err
		}
	}
	return s.Troubles(), nil
}
