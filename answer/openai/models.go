package openai

import "context"

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
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := u.attempts(ctx, u.o.Retries, func(ctx context.Context) *Error {
		ctx, cancel := context.WithTimeoutCause(ctx, u.o.FirstToken, &limit{"the list of models", u.o.FirstToken, flagFirstToken})
		defer cancel()
		return (&request{upstream: u, path: "/models"}).call(ctx, nil, maxModels, &list)
	}); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Data))
	for i, m := range list.Data {
		names[i] = m.ID
	}
	return names, nil
}
