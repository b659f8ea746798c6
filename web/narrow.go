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

// Handlers get only wrappers that see no more than the key in their context may
// see, so that a new route cannot forget to check. Where keys guard the server a
// context without a key sees nothing.

var errNoHolder = errors.New("there is no key in the context: a public route, or work that lost its request's context, may not read " +
	"the library")

// reach returns the collections that a context may see, none for all.
func reach(ctx context.Context) ([]string, error) {
	caller := holderFrom(ctx)
	if caller == nil {
		return nil, errNoHolder
	}
	return caller.key.Collections, nil
}

// within restricts a filter to what its context's key may see.
func within(ctx context.Context, f retrieve.Filter) (retrieve.Filter, error) {
	var err error
	f.Collections, err = reach(ctx)
	return f, err
}

// narrow wraps everything that reads documents. The drawer and the originals need no
// wrapper: they get documents that the library has returned.
func (o *Options) narrow() {
	o.Asker, o.Searcher, o.Library = narrowAsker{o.Asker}, narrowSearcher{o.Searcher}, narrowLibrary{o.Library}
	if o.Summarizer != nil {
		o.Summarizer = narrowSummarizer{o.Summarizer}
	}
	if o.Uploads != nil {
		o.Uploads = narrowUploads{o.Uploads, o.UploadCollection}
	}
}

type narrowAsker struct{ Asker }

func (n narrowAsker) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	var err error
	if q.Filter, err = within(ctx, q.Filter); err != nil {
		return func(yield func(answer.Event, error) bool) { yield(nil, err) }
	}
	return untilEnded(ctx, n.Asker.Ask(ctx, q))
}

type narrowSummarizer struct{ Summarizer }

func (n narrowSummarizer) Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return untilEnded(ctx, n.Summarizer.Summarize(ctx, s))
}

// untilEnded passes events on until their context's key is revoked: its former
// holder must not see how the answer broke off.
func untilEnded(ctx context.Context, events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if cause := (*Problem)(nil); errors.As(context.Cause(ctx), &cause) {
				yield(nil, cause)
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
	if err := n.check(ctx, id); err != nil {
		return nil, err
	}
	return n.Library.Document(ctx, id)
}

// check fails unless the caller may see a document. Listing it, unlike Holds, does
// not evict the filters of searches from the engine's cache.
func (n narrowLibrary) check(ctx context.Context, id string) error {
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

// narrowUploads are uploads to one collection.
type narrowUploads struct {
	Uploads
	collection string
}

// check fails unless the caller may see the collection of the uploads.
func (n narrowUploads) check(ctx context.Context) error {
	collections, err := reach(ctx)
	if err == nil && len(collections) > 0 && !slices.Contains(collections, n.collection) {
		err = &Problem{Status: http.StatusForbidden, Code: "outside_key",
			Detail: "uploads are added to a collection that this key may not use: use a key for it, or one for all collections"}
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
