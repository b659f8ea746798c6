package main

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"ibid/retrieve"
	"ibid/retrieve/state"
)

type copyCmd struct {
	From       placeArg `help:"Library to copy: a data directory, or ${stores}." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	To         placeArg `help:"Target; documents of the same name are replaced." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	Collection string   `help:"Copy only this collection." placeholder:"NAME" noenv:""`
	Keys       bool     `help:"Copy the keys too, so that they work for both libraries." noenv:""`
	JSON       bool     `help:"Print a JSON object." name:"json"`

	FromPasswordFile string `help:"File with the password of --from; default: $IBID_FROM_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
	ToPasswordFile   string `help:"File with the password of --to; default: $IBID_TO_PASSWORD." placeholder:"FILE" noenv:"" group:"Store"`
}

// A placeArg names a library by a data directory or the address of a store.
type placeArg struct{ placeConfig }

// UnmarshalText reads the name.
func (a *placeArg) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "://") {
		return a.Store.UnmarshalText(text)
	}
	a.Data = string(text)
	return nil
}

// Help is what 'ibid copy --help' says in addition to the flags.
func (copyCmd) Help() string {
	return "Documents are copied with their text, chunks and vectors; nothing is embedded again. " +
		"An interrupted copy resumes when the same command runs again. At the end the lists of both libraries are compared: " +
		"exit code 4 when something differs. Stored answers, feedback and unfinished runs are not copied."
}

// Run copies a library, or one collection of it.
func (c *copyCmd) Run(ctx context.Context, s surroundings) (err error) {
	from, to := c.From.placeConfig, c.To.placeConfig
	from.StorePasswordFile, to.StorePasswordFile = c.FromPasswordFile, c.ToPasswordFile
	if err := c.check(from, to); err != nil {
		return err
	}
	source, err := openStore(ctx, from, s.withPassword("IBID_FROM_PASSWORD"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := retrieve.RootsToCopy(ctx, source, c.Collection); errors.Is(err, retrieve.ErrNotFound) {
		return usageError("copying %s: %w", from, err)
	} else if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	target, err := openStore(ctx, to, s.withPassword("IBID_TO_PASSWORD")) // creates it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()

	report, err := c.copyDocuments(ctx, source, target, s)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.stderr, "ibid: stopped: run the same command to resume")
		return err
	case errors.Is(err, retrieve.ErrCopyRefused):
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	case err != nil:
		return fmt.Errorf("copying %s to %s: %w; run the same command to resume", from, to, err)
	}
	out := copied{From: from.String(), To: to.String(), CopyReport: report, Damaged: []string{}}
	damaged, err := source.Damaged(ctx)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		out.Damaged = append(out.Damaged, damageLine(d))
	}
	if c.Keys {
		if out.Keys, err = copyKeys(ctx, source.Keyring(), target.Keyring()); err != nil {
			return err
		}
	}
	if err := copyUploads(ctx, from, to, report.Roots); err != nil {
		return fmt.Errorf("copying the uploaded files: %w", err)
	}
	if err := out.show(s, c.JSON, c.Keys); err != nil {
		return err
	}
	switch {
	case len(out.Differences) > 0 || len(out.Damaged) > 0:
		return &exitError{code: exitDamage}
	case len(out.Failed) > 0:
		return &exitError{code: exitPartial}
	}
	return nil
}

func (c *copyCmd) copyDocuments(ctx context.Context, source, target *state.Store, s surroundings) (retrieve.CopyReport, error) {
	sending := newMeter(s.stderr, "documents", 0)
	defer func() { sending.end() }()
	copying := &retrieve.Copy{
		From: source, To: target, Collection: c.Collection,
		Planned: func(send, there int) {
			sending.end()
			if there > 0 {
				fmt.Fprintf(s.stderr, "ibid: %d of %s are there already\n", there, counted(there+send, "document"))
			}
			sending = newMeter(s.stderr, "documents", send)
		},
		Sent: func() { sending.add() },
	}
	return copying.Run(ctx)
}

// check refuses what cannot be copied before anything is opened, which would
// create a data directory.
func (c *copyCmd) check(from, to placeConfig) error {
	if !from.remote() && !from.exists() {
		return usageError("there is no library in %s: name a data directory or the address of a store with --from", from)
	}
	same := from.remote() && to.remote() && from.Store.url.Host == to.Store.url.Host && from.String() == to.String()
	if !from.remote() && !to.remote() {
		a, err := os.Stat(from.Data)
		b, missing := os.Stat(to.Data)
		same = err == nil && missing == nil && os.SameFile(a, b)
	}
	if same {
		return usageError("--from and --to are both %s: name another store to copy to", to)
	}
	return nil
}

// withPassword makes a store find its password in another variable.
func (s surroundings) withPassword(variable string) surroundings {
	getenv := s.getenv
	s.getenv = func(name string) string {
		if name == passwordVariable {
			name = variable
		}
		return getenv(name)
	}
	return s
}

// copyKeys adds the keys that the target does not have, and returns how many.
func copyKeys(ctx context.Context, from, to retrieve.Keyring) (n int, err error) {
	source, err := from.Ring(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the keys of the source: %w", err)
	}
	target, err := to.Ring(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the keys of the target: %w", err)
	}
	for _, k := range source.Keys {
		if slices.ContainsFunc(target.Keys, func(has retrieve.Key) bool { return has.Digest == k.Digest }) {
			continue
		}
		if err := to.Add(ctx, k); errors.Is(err, retrieve.ErrKeyName) {
			return n, fmt.Errorf("the target has another key called %q: revoke one of the two, or omit --keys", k.Name)
		} else if err != nil {
			return n, fmt.Errorf("copying the key %q: %w", k.Name, err)
		}
		n++
	}
	return n, nil
}

// copyUploads copies the uploaded files into a data directory that received
// their documents. It marks the directory if some files may be elsewhere:
// otherwise a server would delete the documents that have no file.
func copyUploads(ctx context.Context, from, to placeConfig, roots []retrieve.CopiedRoot) (err error) {
	uploaded := slices.ContainsFunc(roots, func(r retrieve.CopiedRoot) bool { return r.Path == "" && r.Documents > 0 })
	if to.remote() || !uploaded {
		return nil
	}
	if err := os.MkdirAll(uploadsIn(to.Data), 0o700); err != nil {
		return err
	}
	target, err := os.OpenRoot(uploadsIn(to.Data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if from.shared() {
		if err := target.WriteFile(elsewhereMark, nil, 0o600); err != nil {
			return err
		}
	}
	if from.remote() {
		return nil
	}
	source, err := os.OpenRoot(uploadsIn(from.Data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	entries, err := fs.ReadDir(source.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := errors.Join(ctx.Err(), copyUpload(source, target, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyUpload copies one file, unless the target has it with its size and time.
func copyUpload(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	if there, err := target.Lstat(name); err == nil && there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
		return nil
	}
	data, err := source.ReadFile(name)
	if err != nil {
		return err
	}
	temporary := ".upload-" + cryptorand.Text() // the name of incomplete uploads
	out, err := target.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err = errors.Join(err, out.Close()); err == nil {
		err = target.Chtimes(temporary, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = target.Rename(temporary, name)
	}
	if err != nil {
		err = errors.Join(err, target.Remove(temporary))
	}
	return err
}

// copied is what --json prints.
type copied struct {
	From string `json:"from"`
	To   string `json:"to"`
	retrieve.CopyReport
	Damaged []string `json:"damaged"` // in the source, not copied
	Keys    int      `json:"keys"`
}

func (c copied) show(s surroundings, asJSON, keys bool) error {
	var b strings.Builder
	for _, r := range c.Roots {
		fmt.Fprintf(&b, "%s: %s, %s", r.Name, counted(r.Documents, "document"), counted(r.Chunks, "chunk"))
		if r.OnlyTarget > 0 {
			fmt.Fprintf(&b, "; the target has %d more of its own", r.OnlyTarget)
		}
		b.WriteByte('\n')
	}
	for _, d := range c.Damaged {
		fmt.Fprintf(&b, "damaged  %s\n", d)
	}
	for _, list := range []struct {
		word string
		of   []retrieve.CopyTrouble
	}{{"failed", c.Failed}, {"differs", c.Differences}} {
		for _, d := range list.of {
			fmt.Fprintf(&b, "%-8s %s: %s\n", list.word, d.Document, oneLine(d.Reason, 300))
		}
	}
	fmt.Fprintf(&b, "%s to %s: %s, %s", c.From, c.To, counted(c.Documents, "document"), counted(c.Chunks, "chunk"))
	if keys {
		fmt.Fprintf(&b, ", %s", counted(c.Keys, "key"))
	}
	fmt.Fprintf(&b, "; %d sent: ", c.Sent)
	if len(c.Differences) == 0 {
		b.WriteString("no difference\n")
	} else {
		fmt.Fprintf(&b, "%s\n", counted(len(c.Differences), "difference"))
	}
	return s.print(asJSON, c, b.String())
}
