package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ibid/retrieve"
)

type reembedCmd struct {
	JSON bool `help:"Print a JSON object." name:"json"`
	storeConfig
}

// Run puts every stored chunk into the space of the embedder in use.
func (c *reembedCmd) Run(ctx context.Context, s surroundings) (err error) {
	embedder, err := c.embedder(ctx, s.getenv)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	last := -1
	err = retrieve.Reembed(ctx, store, embedder, func(done, total int) {
		if percent := done * 100 / max(total, 1); percent/10 != last {
			last = percent / 10
			fmt.Fprintf(s.stderr, "embedded %d of %d chunks\n", done, total)
		}
	})
	if err != nil {
		return fmt.Errorf("embedding %s anew with %s: %w; what was done is kept, run it again to go on", c.placeConfig, embedder.Space(), err)
	}
	if c.JSON {
		member, name := c.named()
		return json.NewEncoder(s.stdout).Encode(map[string]string{member: name, "space": embedder.Space()})
	}
	_, err = fmt.Fprintf(s.stdout, "everything in %s is embedded with %s\n", c.placeConfig, embedder.Space())
	return err
}
