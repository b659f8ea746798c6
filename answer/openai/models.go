package openai

import (
	"context"

	"github.com/sashabaranov/go-openai"
)

// maxModels bounds a list of models, in bytes; a large provider's has some
// hundred kilobytes.
const maxModels = 8 << 20

// Models lists the names of the server's models. Its errors are of type
// [*Error]; many servers have no such list, which is [NotFound].
func Models(ctx context.Context, o Options) ([]string, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	defer u.http.CloseIdleConnections()
	var list openai.ModelsList
	if err := u.attempts(ctx, u.o.Retries, func(ctx context.Context) *Error {
		ctx, cancel := context.WithTimeoutCause(ctx, u.o.FirstToken, &limit{"the list of models", u.o.FirstToken, flagFirstToken})
		defer cancel()
		var err error
		if list, err = u.api(&request{upstream: u, most: maxModels}).ListModels(ctx); err != nil {
			return u.failed(ctx, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Models))
	for i, m := range list.Models {
		names[i] = m.ID
	}
	return names, nil
}
