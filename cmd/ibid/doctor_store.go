package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/local"
)

const ingestFirst = "run 'ibid ingest FOLDER'"

// checkStore looks at the library.
func (c *doctorCmd) checkStore(ctx context.Context, s surroundings, up *checkup, embedder retrieve.Embedder) error {
	if c.remote() {
		return c.checkServer(ctx, s, up, embedder)
	}
	return c.checkData(ctx, s, up, embedder)
}

// checkData looks at the data directory, and makes none.
func (c *doctorCmd) checkData(ctx context.Context, s surroundings, up *checkup, embedder retrieve.Embedder) (err error) {
	const check = "data"
	_, err = os.Stat(filepath.Join(c.Data, local.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return up.add(finding{check, stateWarning, c.Data + ": nothing has been ingested yet", ingestFirst})
	}
	store, err := startStore(ctx, c.placeConfig, s)
	if errors.Is(err, local.ErrNewer) {
		return up.add(finding{check, stateFailed, err.Error(), "update ibid, or name another folder with --data"})
	}
	if err != nil {
		return up.add(finding{check, stateFailed, err.Error(), "look at the folder's permissions and at what else uses it, or name another one with --data"})
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	what := fmt.Sprintf("%s (%.1f MB)", c.Data, float64(size(c.Data))/1e6)
	return c.checkLibrary(ctx, store, up, embedder, finding{check, "", what, "keep a copy of the folder, and ingest the documents into another one with --data"})
}

// serverPatience is how long a store on a server may take to open.
const serverPatience = 30 * time.Second

// checkServer looks at the store on a server.
func (c *doctorCmd) checkServer(ctx context.Context, s surroundings, up *checkup, embedder retrieve.Embedder) (err error) {
	const check = "store"
	opening, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	store, err := startStore(opening, c.placeConfig, s)
	if err != nil {
		return up.add(finding{check, stateFailed, err.Error(), "see that the server runs and can be reached from here, and that its password is in the file of --store-password-file or in $IBID_STORE_PASSWORD"})
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if inspected, can := store.(retrieve.Inspector); can {
		traits, err := inspected.Inspect(opening)
		if err != nil {
			return up.add(finding{check, stateFailed, err.Error(), "see that the server still runs"})
		}
		for _, t := range traits {
			f := ok(t.Name, "%s", t.Value)
			if t.Next != "" {
				f.State, f.Next = stateWarning, t.Next
			}
			if err := up.add(f); err != nil {
				return err
			}
		}
	}
	return c.checkLibrary(ctx, store, up, embedder, finding{check, "", c.String(), "see that the server still runs"})
}

// checkLibrary looks at what is in a store. The finding has what the store is
// called and, as what comes next, what to do when it cannot be read.
func (c *doctorCmd) checkLibrary(ctx context.Context, store retrieve.Store, up *checkup, embedder retrieve.Embedder, f finding) error {
	unreadable := func(err error) error {
		return up.add(finding{f.Check, stateFailed, fmt.Sprintf("%s: %v", c.placeConfig, err), f.Next})
	}
	documents, chunks, err := retrieve.Count(ctx, store, retrieve.Filter{})
	if err != nil {
		return unreadable(err)
	}
	space, err := store.Space(ctx)
	if err != nil {
		return unreadable(err)
	}
	roots, err := store.Roots(ctx)
	if err != nil {
		return unreadable(err)
	}
	counts := ok(f.Check, "%s: %s in %s, %s", f.Detail, counted(documents, "document"), counted(len(roots), "folder"), counted(chunks, "chunk"))
	if documents == 0 {
		counts.State, counts.Next = stateWarning, ingestFirst
	}
	if err := up.add(counts); err != nil {
		return err
	}
	if embedder != nil && space != "" {
		f := ok("space", "the vectors in the data are of %s", space)
		if space != embedder.Space() {
			f = finding{"space", stateFailed, fmt.Sprintf("the data is embedded with %s, and %s is in use", space, embedder.Space()),
				"run 'ibid reembed', or choose the embedding model that the data was made with"}
		}
		if err := up.add(f); err != nil {
			return err
		}
	}
	ring, err := store.Keyring().Ring(ctx)
	if err != nil {
		return unreadable(err)
	}
	if err := up.add(checkKeys(ring, time.Now())); err != nil {
		return err
	}
	for _, d := range damageIn(store) {
		up.damage = true
		if err := up.add(finding{"damage", stateWarning, strings.TrimPrefix(d.Document+": "+d.Reason, ": "), "run 'ibid ingest' on its folder: what is damaged is read anew"}); err != nil {
			return err
		}
	}
	for _, r := range roots {
		if r.Path == "" {
			continue
		}
		if _, err := os.Stat(r.Path); err != nil {
			f := finding{"folder " + r.Name, stateWarning, fmt.Sprintf("its folder cannot be read: %v", err), fmt.Sprintf("bring it back, or run 'ibid forget %s'; until then its documents stay as they were", r.Name)}
			if c.remote() {
				f = ok("folder "+r.Name, "its folder is not on this machine (%v): who has it keeps it in step", err)
			}
			if err := up.add(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeys says whether a server has keys to let people in with.
func checkKeys(ring retrieve.Ring, now time.Time) finding {
	const check, next = "keys", "run 'ibid keys make NAME' to let other machines in"
	good, writing := 0, 0
	for _, k := range ring.Keys {
		if k.Expires.IsZero() || now.Before(k.Expires) {
			good++
			if k.Write {
				writing++
			}
		}
	}
	switch expired := len(ring.Keys) - good; {
	case good > 0:
		return ok(check, "%d, of which %d may send documents, and %d expired: they guard 'ibid serve' where other machines reach it, or with --auth on", good, writing, expired)
	case expired > 0:
		return finding{check, stateWarning, fmt.Sprintf("all %d have expired: 'ibid serve' answers this machine alone", expired), next}
	default:
		return ok(check, "none: 'ibid serve' answers this machine alone ('ibid keys make' makes one)")
	}
}

// size is how many bytes the files of a folder have. What cannot be read does
// not count.
func size(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
	}
	return bytes
}
