package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ibid/retrieve"
)

type forgetCmd struct {
	Root string `arg:"" help:"Name of the ingested folder: the first part of its documents' names."`
	JSON bool   `help:"Print a JSON object." name:"json"`
	storeConfig
}

// Run removes a root with all its documents.
func (c *forgetCmd) Run(ctx context.Context, s surroundings) (err error) {
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	n, err := store.DeleteRoot(ctx, c.Root)
	if errors.Is(err, retrieve.ErrNotFound) {
		roots, lerr := store.Roots(ctx)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		names := make([]string, len(roots))
		for i, r := range roots {
			names[i] = r.Name
		}
		if len(names) == 0 {
			return fmt.Errorf("there is no folder %q: nothing has been ingested into %s", c.Root, c.placeConfig)
		}
		return fmt.Errorf("there is no folder %q in %s; it has: %s", c.Root, c.placeConfig, strings.Join(names, ", "))
	}
	if err != nil {
		return fmt.Errorf("removing the folder %q: %w", c.Root, err)
	}
	if c.JSON {
		_, err = fmt.Fprintf(s.stdout, "{\"root\":%q,\"removed\":%d}\n", c.Root, n)
	} else {
		_, err = fmt.Fprintf(s.stdout, "removed %s with %s\n", printable(c.Root), counted(n, "document"))
	}
	return err
}
