package openai

import (
	"context"

	"github.com/sashabaranov/go-openai"
)

// maxModels bounds a list of models, in bytes; a large provider's list has
// hundreds of kilobytes.
const maxModels = 8 << 20

// Models lists the names of the server's models. Its errors are of type
// [*Error]; many servers have no such list, and the error is
// [NotFound].
func Models(ctx context.Context, o Options) ([]string, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	defer u.http.CloseIdleConnections()
	var list openai.ModelsList
	if failed := u.retry(ctx, u.o.Retries, func(ctx context.Context) *Error {
		return (&request{upstream: u}).requestObject(ctx, "/models", "the list of models", nil, maxModels, &list)
	}); failed != nil {
		return nil, failed
	}
	names := make([]string, len(list.Models))
	for i, m := range list.Models {
		names[i] = m.ID
	}
	return names, nil
}
