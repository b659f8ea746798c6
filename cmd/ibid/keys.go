package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"ibid/retrieve"
	"ibid/retrieve/state"
	"ibid/web"
)

type keysCmd struct {
	Make   keysMakeCmd   `cmd:"" help:"Make a key and print it, once."`
	List   keysListCmd   `cmd:"" help:"List the keys: names, permissions, last use."`
	Log    keysLogCmd    `cmd:"" help:"List the requests made with a key, newest first. Questions are not recorded."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it at once and end its requests."`
}

type keysMakeCmd struct {
	Name       string   `arg:"" help:"Name of the key: who or what it is for."`
	Scope      string   `help:"@scope" enum:"read,write,relay,settings,public" default:"read" placeholder:"KIND" noenv:""`
	Collection []string `help:"Collection that it gives access to; repeatable; default: all." placeholder:"NAME" sep:"none" noenv:""`
	Expires    lifetime `help:"How long it is valid, such as 12h, 90d or 52w; default: until it is revoked." placeholder:"TIME" noenv:""`
	upkeepConfig
}

// A lifetime is a duration that can be given in days and weeks.
type lifetime time.Duration

// UnmarshalText reads 90d, 2w or a duration as in [time.ParseDuration].
func (l *lifetime) UnmarshalText(text []byte) error {
	s := string(text)
	for suffix, hours := range map[string]uint64{"d": 24, "w": 7 * 24} {
		digits, ok := strings.CutSuffix(s, suffix)
		if n, err := strconv.ParseUint(digits, 10, 32); ok && err == nil {
			s = fmt.Sprintf("%dh", n*hours)
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a lifetime: give it as 12h, 90d or 52w", text)
	}
	*l = lifetime(d)
	return nil
}

// maxKeyName is the largest length of a key's name, in bytes.
const maxKeyName = 100

// Run makes a key and prints it.
func (c *keysMakeCmd) Run(ctx context.Context, s surroundings) error {
	if c.Name == "" || len(c.Name) > maxKeyName || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usageError("%q is not a name for a key: give up to %d printable characters", c.Name, maxKeyName)
	}
	if slices.Contains(c.Collection, "") {
		return usageError("--collection is empty: name a collection, or omit the flag for all")
	}
	for _, name := range c.Collection {
		if strings.Contains(name, ",") {
			return usageError("--collection %q has a comma: give the flag once for each collection", name)
		}
	}
	if c.Scope == "settings" && len(c.Collection) > 0 {
		return usageError("--scope settings and --collection contradict each other: the settings apply to all collections")
	}
	if c.Scope == "public" && len(c.Collection) != 1 {
		return usageError("--scope public needs a collection, which everybody may then ask: name it with --collection")
	}
	key, digest := web.NewKey()
	k := retrieve.Key{ID: strings.ToLower(rand.Text()[:8]), Name: c.Name, Digest: digest,
		Write: c.Scope == "write" || c.Scope == "settings", Relay: c.Scope == "relay", Settings: c.Scope == "settings",
		Public: c.Scope == "public", Collections: c.Collection, Created: time.Now()}
	if c.Expires > 0 {
		k.Expires = k.Created.Add(time.Duration(c.Expires))
	}
	err := c.withStore(ctx, s, func(store *state.Store) error { return store.Keyring().Add(ctx, k) })
	if errors.Is(err, retrieve.ErrKeyName) {
		return usageError("there already is a key %q: revoke it with 'ibid keys revoke', or choose another name", c.Name)
	}
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(struct {
			keyLine
			Key string `json:"key"`
		}{lineOf(k), key})
	}
	fmt.Fprintf(s.stderr, "ibid: this is the key %s; it is shown only once. "+
		"Send it as 'Authorization: Bearer KEY', or give it to the page.\n", printable(c.Name))
	_, err = fmt.Fprintln(s.stdout, key)
	return err
}

// withKeys calls do with the open store and its keys.
func (c placeConfig) withKeys(ctx context.Context, s surroundings, do func(*state.Store, retrieve.Ring) error) error {
	return c.withStore(ctx, s, func(store *state.Store) error {
		ring, err := store.Keyring().Ring(ctx)
		if err != nil {
			return fmt.Errorf("reading the keys: %w", err)
		}
		return do(store, ring)
	})
}

// printTable prints lines as JSON or as a table, or the text none if the table is empty.
func printTable[T any](s surroundings, asJSON bool, lines []T, none, header string, row func(T) string) error {
	if asJSON {
		return json.NewEncoder(s.stdout).Encode(lines)
	}
	if len(lines) == 0 {
		s.printMessage("%s", none)
		return nil
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, header)
	for _, l := range lines {
		fmt.Fprintln(w, row(l))
	}
	return w.Flush()
}

// A keyLine is a key in a list, in JSON.
type keyLine struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Scope       string    `json:"scope"`
	Collections []string  `json:"collections"` // empty: all
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`
	Used        time.Time `json:"used,omitzero"`
}

func lineOf(k retrieve.Key) keyLine {
	second := func(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
	l := keyLine{ID: k.ID, Name: k.Name, Scope: "read", Collections: append([]string{}, k.Collections...),
		Created: second(k.Created), Expires: second(k.Expires), Used: second(k.Used)}
	switch {
	case k.Public:
		l.Scope = "public"
	case k.Settings:
		l.Scope = "settings"
	case k.Write:
		l.Scope = "write"
	case k.Relay:
		l.Scope = "relay"
	}
	return l
}

type keysListCmd struct {
	upkeepConfig
}

// Run lists the keys.
func (c *keysListCmd) Run(ctx context.Context, s surroundings) error {
	return c.withKeys(ctx, s, func(_ *state.Store, ring retrieve.Ring) error { return c.printKeys(s, ring) })
}

func (c *keysListCmd) printKeys(s surroundings, ring retrieve.Ring) error {
	if ring.Damaged > 0 {
		next := ": 'ibid verify' names them"
		if c.remote() {
			next = ""
		}
		s.printMessage("%d keys or sessions are damaged and do not work%s", ring.Damaged, next)
	}
	lines := make([]keyLine, len(ring.Keys))
	for i, k := range ring.Keys {
		lines[i] = lineOf(k)
	}
	day := func(t time.Time, none string) string {
		if t.IsZero() {
			return none
		}
		return t.Local().Format("2006-01-02 15:04")
	}
	none := fmt.Sprintf("there are no keys in %s: 'ibid keys make NAME' makes one", c.placeConfig)
	return printTable(s, c.JSON, lines, none, "ID\tNAME\tSCOPE\tCOLLECTIONS\tMADE\tLAST USED\tEXPIRES\n", func(l keyLine) string {
		expires := day(l.Expires, "never")
		if isExpired(retrieve.Key{Expires: l.Expires}) {
			expires += " (expired)"
		}
		return strings.Join([]string{l.ID, printable(l.Name), l.Scope, printable(cmp.Or(strings.Join(l.Collections, ", "), "all")),
			day(l.Created, ""), day(l.Used, "never"), expires}, "\t")
	})
}

type keysLogCmd struct {
	Key string `arg:"" help:"Name or id of the key; a revoked key has only its id."`
	upkeepConfig
}

// An askedLine is a question or summary in the log of a key.
type askedLine struct {
	Started time.Time `json:"started"`
	Took    int64     `json:"took_ms"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Run     string    `json:"run"`
}

// Run lists the records of a key.
func (c *keysLogCmd) Run(ctx context.Context, s surroundings) error {
	const page = 500
	lines := []askedLine{}
	err := c.withKeys(ctx, s, func(store *state.Store, ring retrieve.Ring) error {
		id := c.Key
		if k, known := keyNamed(ring, c.Key); known {
			id = k.ID
		}
		for _, by := range []string{id, retrieve.DeletedBy(id)} {
			for found, after := make([]retrieve.Record, page), (retrieve.Record{}); len(found) == page; {
				var err error
				if found, err = store.Ledger().Records(ctx, by, after, page); err != nil {
					return err
				}
				for _, after = range found {
					r := after
					lines = append(lines, askedLine{r.Started.UTC().Truncate(time.Second), r.Ended.Sub(r.Started).Milliseconds(), r.Kind, r.State, r.ID})
				}
			}
		}
		slices.SortStableFunc(lines, func(a, b askedLine) int { return b.Started.Compare(a.Started) })
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the records of the key: %w", err)
	}
	none := fmt.Sprintf("there is no record of the key %q in %s", c.Key, c.placeConfig)
	return printTable(s, c.JSON, lines, none, "STARTED\tSECONDS\tKIND\tSTATE\tRUN\n", func(l askedLine) string {
		return fmt.Sprintf("%s\t%.1f\t%s\t%s\t%s", l.Started.Local().Format("2006-01-02 15:04"), float64(l.Took)/1000, l.Kind, l.State, l.Run)
	})
}

// keyNamed returns the key with a name or, failing that, with this id.
func keyNamed(ring retrieve.Ring, name string) (k retrieve.Key, known bool) {
	at := slices.IndexFunc(ring.Keys, func(k retrieve.Key) bool { return k.Name == name })
	if at < 0 {
		at = slices.IndexFunc(ring.Keys, func(k retrieve.Key) bool { return k.ID == name })
	}
	if at < 0 {
		return k, false
	}
	return ring.Keys[at], true
}

type keysRevokeCmd struct {
	Key string `arg:"" help:"Name or id of the key."`
	upkeepConfig
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(ctx context.Context, s surroundings) error {
	return c.withKeys(ctx, s, func(store *state.Store, ring retrieve.Ring) error {
		found, known := keyNamed(ring, c.Key)
		if !known {
			return usageError("there is no key %q in %s: 'ibid keys list' shows all keys", c.Key, c.placeConfig)
		}
		if err := store.Keyring().Revoke(ctx, found.ID); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			return fmt.Errorf("revoking the key %s: %w", found.Name, err)
		}
		return s.print(c.JSON, map[string]string{"id": found.ID, "name": found.Name}, fmt.Sprintf("revoked %s\n", found.Name))
	})
}
