package main

import (
	"context"
	"errors"
	"io"

	"ibid/retrieve"
	"ibid/web"
)

type mcpCmd struct {
	Collection []string `help:"Collection that may be read, and no other; may be repeated. Unset: all." placeholder:"NAME"`
	PublicURL  string   `help:"Address of a server for the same documents, for links to sources; unset: no links." name:"public-url" placeholder:"URL"`
	logConfig
	citeConfig
	rerankConfig
	modelConfig
	storeConfig
}

// Run serves the Model Context Protocol until standard input ends. Nothing but
// the protocol goes to standard output.
func (c *mcpCmd) Run(ctx context.Context, s surroundings) (err error) {
	citing, err := c.citing()
	if err != nil {
		return err
	}
	options, err := c.index(c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	lib, err := openLibrary(ctx, c.storeConfig, options, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	for _, name := range c.Collection {
		if any, err := lib.Holds(ctx, retrieve.Filter{Collection: name}); err != nil {
			return err
		} else if !any {
			return lib.refuseEmpty(ctx, c.placeConfig, retrieve.Filter{Collection: name})
		}
	}
	answerer, err := lib.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	err = web.ServeMCP(ctx, web.Options{
		Asker: answerer, Searcher: lib.Index, Library: lib.Index, Citing: citing, PublicURL: c.PublicURL, Version: version(),
		Logger: c.logger(s.stderr, false),
	}, c.Collection, io.NopCloser(s.stdin), unclosed{s.stdout})
	return err
}

// unclosed is a writer that is not ours to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
