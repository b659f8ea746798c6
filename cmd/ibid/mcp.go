package main

import (
	"context"
	"errors"
	"io"

	"ibid/retrieve"
	"ibid/web"
)

type mcpCmd struct {
	Collection []string `help:"Collection that clients may read; repeatable; default: all." placeholder:"NAME"`
	PublicURL  string   `help:"Server with the same documents, for links to sources; default: no links." name:"public-url" placeholder:"URL"`
	logConfig
	citeConfig
	rerankConfig
	modelConfig
	storeConfig
}

// Run serves the Model Context Protocol until standard input ends. Only the
// protocol goes to standard output.
func (c *mcpCmd) Run(ctx context.Context, s surroundings) (err error) {
	lib, answerer, err := openAnswerer(ctx, c.storeConfig, c.rerankConfig, c.modelConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	for _, name := range c.Collection {
		if err := lib.refuseEmpty(ctx, retrieve.Filter{Collection: name}); err != nil {
			return err
		}
	}
	return web.ServeMCP(ctx, web.Options{
		Asker: answerer, Summarizer: answerer,
		Searcher: lib.Index, Library: lib.Index, Citing: c.options(), PublicURL: c.PublicURL, Version: version(),
		Logger: newLogger(s.stderr, c.LogLevel, false),
	}, c.Collection, io.NopCloser(s.stdin), unclosed{s.stdout})
}

// unclosed is a writer whose Close does nothing.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
