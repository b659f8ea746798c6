package weaviate

import (
	"context"
	"errors"

	"ibid/retrieve"
)

const analysisKind = "analysis"

// renew stores anew the documents whose terms another version's analysis made:
// each as a generation of its own, so that what is searched is whole all the
// time. Where it is broken off the next start goes on.
func (e *Engine) renew(ctx context.Context, renewing func(documents int)) error {
	var done int
	if _, err := e.wire.item(ctx, analysisKind, "", &done); err != nil {
		return err
	}
	if done == retrieve.Analysis {
		return nil
	}
	var old []*document
	err := e.list(ctx, retrieve.Filter{}, maxResults, func(d *document) {
		if d.Analysis != retrieve.Analysis {
			old = append(old, d)
		}
	})
	if err != nil {
		return err
	}
	if len(old) > 0 && renewing != nil {
		renewing(len(old))
	}
	for _, d := range old {
		// One that is gone, or has another content now, needs nothing.
		if err := e.Rename(ctx, d.ID, &d.Document); err != nil && !errors.Is(err, retrieve.ErrNotFound) && !errors.Is(err, errContent) {
			return err
		}
	}
	return e.exclusive(ctx, task{Name: "analysis"}, func(ctx context.Context, _ *hold) (bool, error) {
		return false, e.wire.putItem(ctx, item{kind: analysisKind, data: retrieve.Analysis})
	})
}

// errContent says that a document cannot be renamed.
var errContent = errors.New("the file has another content")
