package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/retrieve"
	"ibid/retrieve/local"
)

type copyCmd struct {
	From       placeArg `help:"Where the library is: a data directory, or ${stores}." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	To         placeArg `help:"Where it is to be too. What is there already stays, and a document of the same name is replaced." required:"" placeholder:"STORE" noenv:"" group:"Store"`
	Collection string   `help:"Collection to copy, and no other. Unset: all." placeholder:"NAME" noenv:""`
	Keys       bool     `help:"Copy the keys too: who has one is then let in at either." noenv:""`
	Again      bool     `help:"Send the documents too that are there already." noenv:""`
	Sample     int      `help:"Documents that are compared whole at the end, chosen by chance." default:"100" placeholder:"N" noenv:""`
	Seed       uint64   `help:"Number that the choice follows; 0: one by chance, which is told." default:"0" placeholder:"N" noenv:""`
	JSON       bool     `help:"Print a JSON object." name:"json"`

	FromPasswordFile string `help:"File that holds the password of --from; unset: the variable IBID_FROM_PASSWORD, which may be empty." placeholder:"FILE" noenv:"" group:"Store"`
	ToPasswordFile   string `help:"File that holds the password of --to; unset: the variable IBID_TO_PASSWORD, which may be empty." placeholder:"FILE" noenv:"" group:"Store"`
}

// A placeArg names a library by one word: a data directory or the address of a
// store.
type placeArg struct{ placeConfig }

// UnmarshalText reads the word.
func (a *placeArg) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "://") {
		return a.Store.UnmarshalText(text)
	}
	a.Data = string(text)
	return nil
}

// Help is what 'ibid copy --help' says beside the flags.
func (copyCmd) Help() string {
	return `Documents are copied with their texts, chunks and vectors, and nothing is embedded anew. Interrupted, the same command goes on where it was. At the end the counts of both are compared, and a sample of documents byte by byte: exit code 4 when something differs. Answers that were kept, opinions on them and unfinished runs stay where they are.`
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
	target, err := openStore(ctx, to, s.withPassword("IBID_TO_PASSWORD")) // which makes one that is not there
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()

	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<53-1) // as large as all readers of JSON understand
	}
	var sending *meter
	copying := &retrieve.Copy{
		From: source, To: target, Collection: c.Collection, Again: c.Again, Sample: c.Sample, Seed: c.Seed,
		Planned: func(send, there int) {
			if sending != nil {
				sending.end()
			}
			if there > 0 {
				fmt.Fprintf(s.stderr, "ibid: %d of %s are there already\n", there, counted(there+send, "document"))
			}
			sending = newMeter(s.stderr, "documents", send)
		},
		Sent: func() { sending.add() },
	}
	report, err := copying.Run(ctx)
	if sending != nil {
		sending.end()
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.stderr, "ibid: stopped: the same command goes on there")
		return err
	}
	if errors.Is(err, retrieve.ErrCopyRefused) {
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w; what is copied stays, and the same command goes on there", from, to, err)
	}
	out := copied{From: from.String(), To: to.String(), CopyReport: report, Seed: c.Seed, Damaged: []string{}}
	for _, d := range damageIn(source) {
		out.Damaged = append(out.Damaged, strings.TrimPrefix(d.Document+": "+d.Reason, ": "))
	}
	if c.Keys {
		if out.Keys, err = copyKeys(ctx, source.Keyring(), target.Keyring()); err != nil {
			return err
		}
	}
	if err := copyUploads(ctx, from, to, report.Roots); err != nil {
		return err
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

// check refuses what cannot be copied before anything is opened: opening makes a
// data directory that is not there.
func (c *copyCmd) check(from, to placeConfig) error {
	if c.Sample < 0 {
		return usageError("--sample %d: give the number of documents, 0 or more", c.Sample)
	}
	if !from.remote() {
		if _, err := os.Stat(filepath.Join(from.Data, local.FileName)); errors.Is(err, fs.ErrNotExist) {
			return usageError("there is no library in %s: name a data directory or the address of a store with --from", from)
		}
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

// withPassword has a store find its password in another variable.
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

// copyKeys adds the keys that the other has not, and says how many.
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
			return n, fmt.Errorf("the target has another key called %q: revoke one of the two, or leave --keys out", k.Name)
		} else if err != nil {
			return n, fmt.Errorf("copying the key %q: %w", k.Name, err)
		}
		n++
	}
	return n, nil
}

// copied is what --json prints.
type copied struct {
	From string `json:"from"`
	To   string `json:"to"`
	retrieve.CopyReport
	Seed    uint64   `json:"seed"`
	Damaged []string `json:"damaged"` // of the source, and left out
	Keys    int      `json:"keys"`
}

func (c copied) show(s surroundings, asJSON, keys bool) error {
	if asJSON {
		return json.NewEncoder(s.stdout).Encode(c)
	}
	var b strings.Builder
	for _, r := range c.Roots {
		fmt.Fprintf(&b, "%s: %s, %s", r.Name, counted(r.Documents, "document"), counted(r.Chunks, "chunk"))
		if r.Beside > 0 {
			fmt.Fprintf(&b, "; the target has %d more of its own", r.Beside)
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
	fmt.Fprintf(&b, "; %d sent, %d compared whole (seed %d): ", c.Sent, c.Compared, c.Seed)
	if len(c.Differences) == 0 {
		b.WriteString("no difference\n")
	} else {
		fmt.Fprintf(&b, "%s\n", counted(len(c.Differences), "difference"))
	}
	_, err := fmt.Fprint(s.stdout, printable(b.String()))
	return err
}
