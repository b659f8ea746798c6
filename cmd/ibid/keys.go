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
	"ibid/web"
)

type keysCmd struct {
	Make   keysMakeCmd   `cmd:"" help:"Make a key and print it, once."`
	List   keysListCmd   `cmd:"" help:"List the keys: names, permissions, last use."`
	Log    keysLogCmd    `cmd:"" help:"List what was asked with a key, newest first, without the questions."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it at once and end its requests."`
}

type keysMakeCmd struct {
	Name       string   `arg:"" help:"Name of the key: who or what it is for."`
	Scope      string   `help:"${scope_help}" enum:"read,write,relay,settings,public" default:"read" placeholder:"KIND" noenv:""`
	Collection []string `help:"Collection that it gives access to; repeatable; default: all." placeholder:"NAME" sep:"none" noenv:""`
	Expires    lifetime `help:"How long it is valid, such as 12h, 90d or 52w; default: until it is revoked." placeholder:"TIME" noenv:""`
	upkeepConfig
}

// A lifetime is a duration that can be given in days and weeks.
type lifetime time.Duration

// UnmarshalText reads 90d, 2w or what [time.ParseDuration] does.
func (l *lifetime) UnmarshalText(text []byte) error {
	s := string(text)
	d, err := time.ParseDuration(s)
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			var n int
			n, err = strconv.Atoi(digits)
			if n > int(100*365*24*time.Hour/unit) {
				n = 0 // it would overflow
			}
			d = time.Duration(n) * unit
		}
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no lifetime: give it as 12h, 90d or 52w", s)
	}
	*l = lifetime(d)
	return nil
}

// maxKeyName is the longest name of a key, in bytes.
const maxKeyName = 100

// Run makes a key and prints it.
func (c *keysMakeCmd) Run(ctx context.Context, s surroundings) (err error) {
	if c.Name == "" || len(c.Name) > maxKeyName || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usageError("%q is no name for a key: give up to %d printable characters", c.Name, maxKeyName)
	}
	for _, name := range c.Collection {
		if name == "" {
			return usageError("--collection is empty: name a collection, or omit the flag for all")
		}
	}
	if c.Scope == "settings" && len(c.Collection) > 0 {
		return usageError("--scope settings and --collection contradict each other: the settings apply to all collections")
	}
	if c.Scope == "public" && len(c.Collection) != 1 {
		return usageError("--scope public is for one collection, which everybody may then ask: name it with --collection")
	}
	store, err := startStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	key, digest := web.NewKey()
	k := retrieve.Key{ID: strings.ToLower(rand.Text()[:8]), Name: c.Name, Digest: digest,
		Write: c.Scope == "write" || c.Scope == "settings", Relay: c.Scope == "relay", Settings: c.Scope == "settings",
		Public: c.Scope == "public", Collections: c.Collection, Created: time.Now()}
	if c.Expires > 0 {
		k.Expires = k.Created.Add(time.Duration(c.Expires))
	}
	if err := store.Keyring().Add(ctx, k); errors.Is(err, retrieve.ErrKeyName) {
		return usageError("there already is a key %q: revoke it with 'ibid keys revoke', or choose another name", c.Name)
	} else if err != nil {
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

func (c placeConfig) withKeys(ctx context.Context, s surroundings, do func(retrieve.Keyring, retrieve.Ring) error) error {
	store, err := startStore(ctx, c, s)
	if err != nil {
		return err
	}
	ring, err := store.Keyring().Ring(ctx)
	if err != nil {
		err = fmt.Errorf("reading the keys: %w", err)
	} else {
		err = do(store.Keyring(), ring)
	}
	return errors.Join(err, store.Close())
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
	return c.withKeys(ctx, s, func(_ retrieve.Keyring, ring retrieve.Ring) error { return c.show(s, ring) })
}

func (c *keysListCmd) show(s surroundings, ring retrieve.Ring) error {
	if ring.Damaged > 0 {
		next := ": 'ibid verify' names them"
		if c.remote() {
			next = ""
		}
		fmt.Fprintf(s.stderr, "ibid: %d keys or sessions are damaged and do not work%s\n", ring.Damaged, next)
	}
	lines := make([]keyLine, len(ring.Keys))
	for i, k := range ring.Keys {
		lines[i] = lineOf(k)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(lines)
	}
	if len(lines) == 0 {
		fmt.Fprintf(s.stderr, "ibid: there are no keys in %s: 'ibid keys make NAME' makes one\n", c.placeConfig)
		return nil
	}
	day := func(t time.Time, none string) string {
		if t.IsZero() {
			return none
		}
		return t.Local().Format("2006-01-02 15:04")
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSCOPE\tCOLLECTIONS\tMADE\tLAST USED\tEXPIRES")
	for _, l := range lines {
		expires := day(l.Expires, "never")
		if !l.Expires.IsZero() && !time.Now().Before(l.Expires) {
			expires += " (expired)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, printable(l.Name), l.Scope,
			printable(cmp.Or(strings.Join(l.Collections, ", "), "all")), day(l.Created, ""), day(l.Used, "never"), expires)
	}
	return w.Flush()
}

type keysLogCmd struct {
	Key string `arg:"" help:"Name or id of the key; a revoked one has only its id."`
	upkeepConfig
}

// An askedLine is a question or summary in the log of a key.
type askedLine struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Run     string    `json:"run"`
}

// Run lists the records of a key.
func (c *keysLogCmd) Run(ctx context.Context, s surroundings) (err error) {
	store, err := startStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ring, err := store.Keyring().Ring(ctx)
	if err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	id := c.Key
	if at := slices.IndexFunc(ring.Keys, func(k retrieve.Key) bool { return k.Name == c.Key }); at >= 0 {
		id = ring.Keys[at].ID
	}
	const page = 500
	lines := []askedLine{}
	for after := (retrieve.Record{}); ; {
		found, err := store.Ledger().Records(ctx, id, after, page)
		if err != nil {
			return fmt.Errorf("reading the records of the key: %w", err)
		}
		for _, r := range found {
			lines = append(lines, askedLine{r.Started.UTC().Truncate(time.Second), r.Ended.Sub(r.Started).Seconds(), r.Kind, r.State, r.ID})
		}
		if len(found) < page {
			break
		}
		after = found[page-1]
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(lines)
	}
	if len(lines) == 0 {
		fmt.Fprintf(s.stderr, "ibid: there is no record of the key %q in %s\n", c.Key, c.placeConfig)
		return nil
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STARTED\tSECONDS\tKIND\tSTATE\tRUN")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%s\t%s\n", l.Started.Local().Format("2006-01-02 15:04"), l.Seconds, l.Kind, l.State, l.Run)
	}
	return w.Flush()
}

type keysRevokeCmd struct {
	Key string `arg:"" help:"Name or id of the key."`
	upkeepConfig
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(ctx context.Context, s surroundings) error {
	return c.withKeys(ctx, s, func(keyring retrieve.Keyring, ring retrieve.Ring) error {
		at := slices.IndexFunc(ring.Keys, func(k retrieve.Key) bool { return k.Name == c.Key })
		if at < 0 {
			at = slices.IndexFunc(ring.Keys, func(k retrieve.Key) bool { return k.ID == c.Key })
		}
		if at < 0 {
			return usageError("there is no key %q in %s: 'ibid keys list' shows all keys", c.Key, c.placeConfig)
		}
		found := ring.Keys[at]
		if err := keyring.Revoke(ctx, found.ID); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
			return fmt.Errorf("revoking the key %s: %w", found.Name, err)
		}
		return s.print(c.JSON, map[string]string{"id": found.ID, "name": found.Name}, fmt.Sprintf("revoked %s\n", found.Name))
	})
}
