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
	n := narrowed{*o}
	o.Asker, o.Searcher, o.Library = n, n, n
	if o.Summarizer != nil {
		o.Summarizer = n
	}
	if o.Uploads != nil {
		o.Uploads = n
	}
}

// narrowed are the parts of a server, for the keys in the contexts of their calls.
type narrowed struct{ all Options }

func (n narrowed) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	var err error
	if q.Filter, err = within(ctx, q.Filter); err != nil {
		return func(yield func(answer.Event, error) bool) { yield(nil, err) }
	}
	return untilEnded(ctx, n.all.Asker.Ask(ctx, q))
}

func (n narrowed) Summarize(ctx context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return untilEnded(ctx, n.all.Summarizer.Summarize(ctx, s))
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

func (n narrowed) Search(ctx context.Context, q retrieve.Query) (found []retrieve.Passage, err error) {
	if q.Filter, err = within(ctx, q.Filter); err == nil {
		found, err = n.all.Searcher.Search(ctx, q)
	}
	return found, err
}

func (n narrowed) Documents(ctx context.Context, f retrieve.Filter) (found []retrieve.DocumentInfo, err error) {
	if f, err = within(ctx, f); err == nil {
		found, err = n.all.Library.Documents(ctx, f)
	}
	return found, err
}

func (n narrowed) Holds(ctx context.Context, f retrieve.Filter) (found bool, err error) {
	if f, err = within(ctx, f); err == nil {
		found, err = n.all.Library.Holds(ctx, f)
	}
	return found, err
}

// Document fails unless the caller may see the document. Listing it, unlike Holds,
// does not evict the filters of searches from the engine's cache.
func (n narrowed) Document(ctx context.Context, id string) (*ingest.Document, error) {
	collections, err := reach(ctx)
	if err != nil {
		return nil, err
	}
	if len(collections) > 0 {
		found, err := n.all.Library.Documents(ctx, retrieve.Filter{Document: id, Collections: collections})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("document %q: %w", id, retrieve.ErrNotFound)
		}
	}
	return n.all.Library.Document(ctx, id)
}

func (n narrowed) mayUpload(ctx context.Context) error {
	collections, err := reach(ctx)
	if err == nil && len(collections) > 0 && !slices.Contains(collections, n.all.UploadCollection) {
		err = &Problem{Status: http.StatusForbidden, Code: "outside_key",
			Detail: "uploads are added to a collection that this key may not use: use a key for it, or one for all collections"}
	}
	return err
}

func (n narrowed) Add(ctx context.Context, name string, content io.Reader) (change ingest.Change, err error) {
	if err = n.mayUpload(ctx); err == nil {
		change, err = n.all.Uploads.Add(ctx, name, content)
	}
	return change, err
}

func (n narrowed) Reread(ctx context.Context, name string) (change ingest.Change, err error) {
	if err = n.mayUpload(ctx); err == nil {
		change, err = n.all.Uploads.Reread(ctx, name)
	}
	return change, err
}

func (n narrowed) Remove(ctx context.Context, name string) error {
	if err := n.mayUpload(ctx); err != nil {
		return err
	}
	return n.all.Uploads.Remove(ctx, name)
}
