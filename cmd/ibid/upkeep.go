package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
	"ibid/retrieve/library"
	"ibid/retrieve/state"
)

// upkeepConfig has the flags shared by commands that maintain a library.
type upkeepConfig struct {
	placeConfig
	JSON bool `help:"Print a JSON object." name:"json"`
}

// explain adds the exit code for damage to err, or says what to do if there is no library.
func (c upkeepConfig) explain(err error) error {
	if errors.Is(err, state.ErrDamaged) {
		return &exitError{exitDamage, err}
	}
	if c.remote() {
		return err
	}
	if info, missing := os.Stat(c.Data); missing == nil && !info.IsDir() {
		return usageError("%s is a file: name a data directory with --data", c.Data)
	}
	if !c.exists() {
		return usageError("there is no library in %s: name its data directory with --data, or make one with 'ibid ingest FOLDER'", c.Data)
	}
	return err
}

// location returns the data directory, or the address of the store.
func (c upkeepConfig) location(s surroundings) (string, error) {
	place, err := c.open(s)
	return cmp.Or(place.URL, place.Data), err
}

type verifyCmd struct {
	Index bool `help:"Compare the search index with the library instead: the index of $IBID_INDEX, if set." noenv:""`
	upkeepConfig
}

// Run checks a library without changing it.
func (c *verifyCmd) Run(ctx context.Context, s surroundings) error {
	if c.Index {
		if !c.remote() && !c.exists() {
			return c.explain(fs.ErrNotExist)
		}
		return c.withStore(ctx, s, func(store *state.Store) error { return c.checkIndex(ctx, s, store) })
	}
	address, err := c.location(s)
	if err != nil {
		return err
	}
	checking := newMeter(s.stderr, "documents checked", 0)
	r, err := state.Verify(ctx, address, c.stateOptions(s), checking.update)
	checking.clear()
	if err == nil {
		err = c.setAside(ctx, s, r.Damaged)
	}
	if err != nil {
		return c.explain(err)
	}
	return c.printReport(s, r, "", "no damage in "+c.String())
}

func (c *verifyCmd) checkIndex(ctx context.Context, s surroundings, store *state.Store) error {
	place, repair, err := c.findIndex(ctx, s, store)
	if err != nil {
		return err
	}
	checking := newMeter(s.stderr, "documents checked", 0)
	r, err := library.CheckIndex(ctx, place, store, checking.update)
	checking.clear()
	if err != nil {
		err = fmt.Errorf("comparing the search index with %s: %w", c.placeConfig, err)
		if errors.Is(err, retrieve.ErrIndexDamaged) {
			return &exitError{exitDamage, fmt.Errorf("%w: %s", err, repair)}
		}
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the search index of %s: %s compared, %s\n", c.placeConfig, countOf(r.Documents, "document"), countOf(r.Chunks, "chunk"))
	for _, d := range r.Differing {
		fmt.Fprintf(&b, "differs  %s: %s\n", d.Document, d.Reason)
	}
	if r.Extra > 0 {
		fmt.Fprintf(&b, "differs  it has %s that the library lacks\n", countOf(r.Extra, "chunk"))
	}
	differs := len(r.Differing) > 0 || r.Extra > 0
	if differs {
		b.WriteString(repair + "\n")
	}
	damaged, err := store.ListDamage(ctx)
	for _, d := range damaged {
		b.WriteString("damaged  " + printable(damageLine(d)) + "\n")
	}
	if err = errors.Join(err, s.print(c.JSON, r, b.String())); err != nil || !differs && len(damaged) == 0 {
		return err
	}
	return &exitError{code: exitDamage}
}

// findIndex returns the place of the library and its search index, and how to repair the index.
func (c *verifyCmd) findIndex(ctx context.Context, s surroundings, store *state.Store) (place library.Place, repair string, err error) {
	var index indexConfig
	if err := index.Index.UnmarshalText([]byte(s.getenv("IBID_INDEX"))); err != nil {
		return place, "", usageError("$IBID_INDEX: %w", err)
	}
	if place, err = c.indexedBy(index).open(s); err != nil || place.Cluster == nil {
		return place, "remove the folder 'index' from the data directory ('index-…' of a library on a server): " +
			"the next search rebuilds the index", err
	}
	x, err := library.Cluster(ctx, place, store)
	if err != nil {
		return place, "", err
	}
	return place, fmt.Sprintf("delete the collection %s from %s: a server rebuilds it; until then, searches get 503",
		x.Collection(), place.Cluster), x.Close()
}

// setAside makes the next ingest read damaged documents again, unless there is other damage,
// which opening the library would repair.
func (c *verifyCmd) setAside(ctx context.Context, s surroundings, damaged []state.Damage) error {
	if len(damaged) == 0 || slices.ContainsFunc(damaged, func(d state.Damage) bool { return d.Document == "" }) {
		return nil
	}
	return c.withStore(ctx, s, func(store *state.Store) error { return store.SetAside(ctx, damaged) })
}

type backupCmd struct {
	File string `arg:"" help:"File to create. To use it, name it ibid.db in a folder with copies of the folders uploads and collections."`
	upkeepConfig
}

// Run copies a library into one file.
func (c *backupCmd) Run(ctx context.Context, s surroundings) error {
	address, err := c.location(s)
	if err != nil {
		return err
	}
	checking := newMeter(s.stderr, "documents checked", 0)
	r, err := state.Backup(ctx, address, c.File, c.stateOptions(s), checking.update)
	checking.clear()
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, state.ErrTarget):
		return usageError("%w", err)
	case err != nil:
		return c.explain(err)
	}
	return c.printReport(s, r, c.File, "backed up to "+c.File)
}

type compactCmd struct {
	upkeepConfig
	indexConfig
}

// Run reclaims the disk space of deleted documents.
func (c *compactCmd) Run(ctx context.Context, s surroundings) error {
	if c.remote() {
		return usageError("'ibid compact' is for data directories, but the library is in %s: "+
			"there, autovacuum frees space for new rows, and VACUUM FULL returns it to the disk", c)
	}
	if c.Data == "" {
		return errNoData()
	}
	before, after, err := state.Compact(ctx, c.Data, state.Options{})
	if errors.Is(err, state.ErrDamaged) {
		err = fmt.Errorf("%w; 'ibid doctor' repairs it and keeps the damaged file", err)
	}
	if err == nil {
		err = c.indexedBy(c.indexConfig).purgeIndex(ctx, s)
	}
	if err != nil {
		return c.explain(err)
	}
	return s.print(c.JSON, struct {
		Data   string `json:"data"`
		Before int64  `json:"bytes_before"`
		After  int64  `json:"bytes_after"`
	}{c.Data, before, after}, fmt.Sprintf("%s: %s, was %s\n", filepath.Join(c.Data, state.FileName), megabytes(after), megabytes(before)))
}

// printReport prints the result of checking the library, or its copy in file. The exit code is
// 4 if something is damaged.
func (c upkeepConfig) printReport(s surroundings, r state.Report, file, done string) error {
	lines := ""
	for _, d := range r.Damaged {
		lines += "damaged  " + damageLine(d) + "\n"
	}
	if lines != "" && file == "" {
		done = "damage in " + c.String()
	}
	r.Damaged = append([]state.Damage{}, r.Damaged...) // a list in JSON
	err := s.print(c.JSON, struct {
		Data string `json:"data"`
		File string `json:"file,omitempty"`
		state.Report
	}{c.String(), file, r}, fmt.Sprintf("%s: %s intact, %s, %s\n%s",
		done, countOf(r.Documents, "document"), countOf(r.Chunks, "chunk"), megabytes(r.Bytes), lines))
	if err == nil && lines != "" {
		return &exitError{code: exitDamage}
	}
	return err
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

type forgetCmd struct {
	Root        string `arg:"" help:"Name of the ingested folder: the first part of its documents' names."`
	KeepAnswers bool   `help:"Keep recorded answers that used its documents."`
	storeConfig
}

// Run removes a root with all its documents, and the answers that quote them.
func (c *forgetCmd) Run(ctx context.Context, s surroundings) (err error) {
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	roots, err := store.Roots(ctx)
	if err != nil {
		return err
	}
	n, err := store.DeleteRoot(ctx, c.Root, c.KeepAnswers)
	for _, r := range roots {
		if err == nil && r.Name == c.Root && ingest.IsAddress(r.Path) && c.Data != "" {
			err = os.RemoveAll(site.Folder(c.Data, r.Path))
		}
	}
	if err == nil {
		err = c.place().purgeIndex(ctx, s)
	}
	switch {
	case errors.Is(err, retrieve.ErrNotFound) && len(roots) == 0:
		return fmt.Errorf("there is no folder %q: nothing has been ingested into %s", c.Root, c.placeConfig)
	case errors.Is(err, retrieve.ErrNotFound):
		var names []string
		for _, r := range roots {
			names = append(names, r.Name)
		}
		return fmt.Errorf("there is no folder %q in %s; it has: %s", c.Root, c.placeConfig, strings.Join(names, ", "))
	case err != nil:
		return fmt.Errorf("removing the folder %q: %w", c.Root, err)
	}
	return s.print(false, nil, fmt.Sprintf("removed %s with %s\n", c.Root, countOf(n, "document")))
}

// purgeIndex removes every trace of deleted documents from the search index.
func (c placeConfig) purgeIndex(ctx context.Context, s surroundings) error {
	return c.withStore(ctx, s, func(store *state.Store) error {
		place, err := c.open(s)
		if err != nil {
			return err
		}
		return library.Purge(ctx, place, store)
	})
}

type reembedCmd struct{ storeConfig }

// Run embeds every stored chunk with the embedder in use.
func (c *reembedCmd) Run(ctx context.Context, s surroundings) (err error) {
	embedder, err := c.embedder(ctx, s.getenv)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	embedding := newMeter(s.stderr, "chunks", 0)
	place, err := c.place().open(s)
	if err == nil {
		err = retrieve.Reembed(ctx, store, embedder, embedding.update, func(ctx context.Context) error {
			return library.Build(ctx, place, store, embedder.Space())
		})
	}
	embedding.end()
	if err != nil {
		err = errors.Join(err, store.Close())
		return fmt.Errorf("embedding %s with %s: %w; run the same command to resume", c.placeConfig, embedder.Space(), err)
	}
	lib, err := c.openOver(ctx, store, embedder, retrieve.Options{}, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	if err := lib.followIndex(ctx); err != nil {
		return err
	}
	return s.print(false, nil, fmt.Sprintf("everything in %s is embedded with %s\n", c.placeConfig, embedder.Space()))
}
