package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"ibid/retrieve"
	"ibid/web"
)

type keysCmd struct {
	Make   keysMakeCmd   `cmd:"" help:"Make a key, and print it this once."`
	List   keysListCmd   `cmd:"" help:"List the keys: names, what they may do, when they were used last."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers let nobody in with it from then on, and end what it has under way."`
}

type keysMakeCmd struct {
	Name       string   `arg:"" help:"What to call the key: who or what it is for."`
	Scope      string   `help:"What it lets do: ${enum}. Write is reading, and sending and deleting documents too." enum:"read,write" default:"read" placeholder:"KIND" noenv:""`
	Collection []string `help:"Collection that it reaches; may be repeated. Unset: all." placeholder:"NAME" sep:"none" noenv:""`
	Expires    lifetime `help:"How long it is good for, such as 12h, 90d or 52w. Unset: until it is revoked." placeholder:"TIME" noenv:""`
	upkeepConfig
}

// A lifetime is a time that may be given in days and weeks.
type lifetime time.Duration

// UnmarshalText reads 90d, 2w or what [time.ParseDuration] does.
func (l *lifetime) UnmarshalText(text []byte) error {
	s := string(text)
	wrong := fmt.Errorf("%q is no time to come: give it as 12h, 90d or 52w", s)
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		digits, ok := strings.CutSuffix(s, suffix)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > int(100*365*24*time.Hour/unit) {
			return wrong
		}
		*l = lifetime(time.Duration(n) * unit)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return wrong
	}
	*l = lifetime(d)
	return nil
}

// maxKeyName is the longest name of a key, in bytes.
const maxKeyName = 100

// Run makes a key and prints it.
func (c *keysMakeCmd) Run(ctx context.Context, s surroundings) (err error) {
	if c.Name == "" || len(c.Name) > maxKeyName || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usageError("%q is no name for a key: give one of up to %d letters that can be read", c.Name, maxKeyName)
	}
	for _, name := range c.Collection {
		if name == "" {
			return usageError("--collection is empty: name a collection, or leave it out to reach all")
		}
	}
	if err := c.missing(ctx, s); err != nil {
		return err
	}
	keyring, done, err := openKeyring(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	key, digest := web.NewKey()
	k := retrieve.Key{ID: strings.ToLower(rand.Text()[:8]), Name: c.Name, Digest: digest, Write: c.Scope == "write",
		Collections: c.Collection, Created: time.Now()}
	if c.Expires > 0 {
		k.Expires = k.Created.Add(time.Duration(c.Expires))
	}
	if err := keyring.Add(ctx, k); errors.Is(err, retrieve.ErrKeyName) {
		return usageError("there is a key %q already: revoke it with 'ibid keys revoke', or choose another name", c.Name)
	} else if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(struct {
			keyLine
			Key string `json:"key"`
		}{lineOf(k), key})
	}
	fmt.Fprintf(s.stderr, "ibid: this is the key %s; it is shown only now. Send it as 'Authorization: Bearer KEY', or give it to the page.\n", printable(c.Name))
	_, err = fmt.Fprintln(s.stdout, key)
	return err
}

// missing names the collections that have no document.
func (c *keysMakeCmd) missing(ctx context.Context, s surroundings) (err error) {
	if len(c.Collection) == 0 {
		return nil
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, name := range c.Collection {
		any, err := store.Holds(ctx, retrieve.Filter{Collection: name})
		if err != nil {
			return fmt.Errorf("looking for the collection %s: %w", name, err)
		}
		if !any {
			fmt.Fprintf(s.stderr, "ibid: there is no document in the collection %s yet\n", printable(name))
		}
	}
	return nil
}

// ring opens the keys, and reads them.
func (c placeConfig) ring(ctx context.Context, s surroundings) (_ retrieve.Keyring, ring retrieve.Ring, done func() error, _ error) {
	keyring, done, err := openKeyring(ctx, c, s)
	if err != nil {
		return nil, ring, nil, err
	}
	if ring, err = keyring.Ring(ctx); err != nil {
		return nil, ring, nil, errors.Join(fmt.Errorf("reading the keys: %w", err), done())
	}
	return keyring, ring, done, nil
}

// A keyLine is what is told of a key.
type keyLine struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Scope       string     `json:"scope"`
	Collections []string   `json:"collections"` // empty: all
	Created     time.Time  `json:"created"`
	Expires     *time.Time `json:"expires,omitempty"`
	Used        *time.Time `json:"used,omitempty"`
}

func lineOf(k retrieve.Key) keyLine {
	l := keyLine{ID: k.ID, Name: k.Name, Scope: "read", Collections: k.Collections, Created: k.Created.UTC().Truncate(time.Second)}
	if k.Write {
		l.Scope = "write"
	}
	if l.Collections == nil {
		l.Collections = []string{}
	}
	for _, t := range []struct {
		from time.Time
		to   **time.Time
	}{{k.Expires, &l.Expires}, {k.Used, &l.Used}} {
		if !t.from.IsZero() {
			at := t.from.UTC().Truncate(time.Second)
			*t.to = &at
		}
	}
	return l
}

type keysListCmd struct {
	upkeepConfig
}

// Run lists the keys.
func (c *keysListCmd) Run(ctx context.Context, s surroundings) (err error) {
	_, ring, done, err := c.ring(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if ring.Damaged > 0 {
		next := ": 'ibid verify' names them"
		if c.remote() {
			next = ""
		}
		fmt.Fprintf(s.stderr, "ibid: %d keys or sessions are damaged and let nobody in%s\n", ring.Damaged, next)
	}
	lines := make([]keyLine, len(ring.Keys))
	for i, k := range ring.Keys {
		lines[i] = lineOf(k)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(lines)
	}
	if len(lines) == 0 {
		fmt.Fprintf(s.stderr, "ibid: there is no key in %s: 'ibid keys make NAME' makes one\n", c.placeConfig)
		return nil
	}
	day := func(t *time.Time, none string) string {
		if t == nil {
			return none
		}
		return t.Local().Format("2006-01-02 15:04")
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSCOPE\tCOLLECTIONS\tMADE\tLAST USED\tEXPIRES")
	for _, l := range lines {
		expires := day(l.Expires, "never")
		if l.Expires != nil && !time.Now().Before(*l.Expires) {
			expires += " (expired)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, printable(l.Name), l.Scope,
			printable(cmp.Or(strings.Join(l.Collections, ", "), "all")), day(&l.Created, ""), day(l.Used, "never"), expires)
	}
	return w.Flush()
}

type keysRevokeCmd struct {
	Key string `arg:"" help:"Name or id of the key."`
	upkeepConfig
}

// Run revokes a key.
func (c *keysRevokeCmd) Run(ctx context.Context, s surroundings) (err error) {
	keyring, ring, done, err := c.ring(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var named, found *retrieve.Key
	for i, k := range ring.Keys {
		if k.ID == c.Key {
			found = &ring.Keys[i]
		}
		if k.Name == c.Key {
			named = &ring.Keys[i]
		}
	}
	found = cmp.Or(named, found)
	if found == nil {
		return usageError("there is no key %q in %s: 'ibid keys list' shows those there are", c.Key, c.placeConfig)
	}
	if err := keyring.Revoke(ctx, found.ID); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
		return fmt.Errorf("revoking the key %s: %w", found.Name, err)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(map[string]string{"id": found.ID, "name": found.Name})
	}
	_, err = fmt.Fprintf(s.stdout, "revoked %s\n", printable(found.Name))
	return err
}

// authConfig says who is let in.
type authConfig struct {
	Auth       string   `help:"Whether keys guard the server: ${enum}. Auto is on where other machines reach it, by its address or --public-url; 'ibid keys make' makes a key." enum:"auto,on,off" default:"auto" placeholder:"KIND" group:"Server"`
	NoAuth     bool     `help:"The same as --auth off: everyone who reaches the server can read every document." group:"Server"`
	Rate       int      `help:"Questions and searches that one key may ask in a minute." default:"600" placeholder:"N" group:"Server"`
	TrustProxy []string `help:"Address or network of a proxy whose X-Forwarded-For is believed; may be repeated." placeholder:"CIDR" group:"Server"`
}

// check reads the flags that say who is let in.
func (c authConfig) check() error {
	if c.NoAuth && c.Auth == "on" {
		return usageError("--no-auth and --auth on contradict each other: give one of them")
	}
	if c.Rate < 1 {
		return usageError("--rate %d: give the questions of a minute, 1 or more", c.Rate)
	}
	_, err := c.proxies()
	return err
}

func (c authConfig) proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, s := range c.TrustProxy {
		p, err := netip.ParsePrefix(s)
		if a, notOne := netip.ParseAddr(s); err != nil && notOne == nil {
			p, err = a.Unmap().Prefix(a.Unmap().BitLen())
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, usageError("--trust-proxy %q is no address or network: give 10.0.0.7 or 10.0.0.0/24", s)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// guarded gives the keys that guard the server, nil if none are to. A server
// that other machines reach needs one.
func (c *serveCmd) guarded(ctx context.Context, keyring retrieve.Keyring) (retrieve.Keyring, error) {
	if c.NoAuth || c.Auth == "off" || c.Auth == "auto" && !c.reached() {
		return nil, nil
	}
	ring, err := keyring.Ring(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for keys: %w", err)
	}
	for _, k := range ring.Keys {
		if k.Expires.IsZero() || time.Now().Before(k.Expires) {
			return keyring, nil
		}
	}
	next := fmt.Sprintf("make one with 'ibid keys make NAME' for the library in %s", c.placeConfig)
	if len(ring.Keys) > 0 {
		next = "those there are have expired: " + next
	}
	if !c.reached() {
		return nil, usageError("--auth on needs a key to let people in with: %s", next)
	}
	where := "--addr " + c.Addr
	if c.local() {
		where = "--public-url " + c.PublicURL
	}
	return nil, usageError("%s lets other machines in, and there is no key to let people in with: %s; or say --no-auth, if everyone who reaches the server may read every document", where, next)
}

// reached says whether other machines reach the server: by its address, or
// through a proxy.
func (c *serveCmd) reached() bool {
	if !c.local() {
		return true
	}
	u, err := url.Parse(c.PublicURL)
	return c.PublicURL != "" && (err != nil || !isLoopback(u.Hostname()))
}

// local says whether only this machine reaches the address itself.
func (c *serveCmd) local() bool {
	host, _, err := net.SplitHostPort(c.Addr)
	return err == nil && isLoopback(host)
}
