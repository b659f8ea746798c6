package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/retrieve/library"
	"ibid/retrieve/state"
	"ibid/retrieve/weaviate"
)

// A storeURL is the address of a store on a server, or the name of a data directory. The zero
// value is neither. Its text never includes a secret.
type storeURL struct {
	url *url.URL
	dir string
}

// UnmarshalText reads an address. Its errors never quote it: in text that cannot be parsed, the
// password may be anywhere.
func (u *storeURL) UnmarshalText(text []byte) error {
	address := strings.TrimSpace(string(text))
	if address == "" {
		*u = storeURL{}
		return nil
	}
	if !strings.Contains(address, "://") {
		if strings.Contains(address, "@") { // there may be a password before it
			return fmt.Errorf("it is not a URL: give %s, or a data directory", exampleStore)
		}
		*u = storeURL{dir: address}
		return nil
	}
	parsed, err := url.Parse(address)
	// A character in a password may end the host; the text after it is then parsed as a
	// fragment, a path or a query.
	if err != nil || parsed.Fragment != "" || strings.Contains(parsed.EscapedPath(), "@") ||
		strings.Contains(strings.Join(slices.Collect(maps.Keys(parsed.Query())), ""), "@") {
		return fmt.Errorf("it cannot be parsed as a URL: give %s, and put a password with special characters into --store-password-file",
			exampleStore)
	}
	if parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return fmt.Errorf("%.40q is not a known kind of store: give %s", parsed.Scheme, exampleStore)
	}
	if parsed.Hostname() == "" && parsed.Query().Get("host") == "" {
		return fmt.Errorf("it has no host: give %s", exampleStore)
	}
	*u = storeURL{url: parsed}
	return nil
}

func (u *storeURL) replaceDir(data *string) error {
	if u.dir != "" {
		*data, *u = u.dir, storeURL{}
	}
	return nil
}

// String returns the address without parameters and password.
func (u storeURL) String() string {
	if u.url == nil {
		return ""
	}
	shown := *u.url
	shown.RawQuery = ""
	if shown.User = nil; u.url.User.Username() != "" {
		shown.User = url.User(u.url.User.Username())
	}
	return shown.String()
}

// An indexURL is the address of a search index in a cluster. The zero value is none. Its text
// has no key.
type indexURL struct{ cluster *weaviate.Address }

// UnmarshalText reads an address.
func (u *indexURL) UnmarshalText(text []byte) error {
	u.cluster = nil
	if len(text) == 0 {
		return nil
	}
	at, err := weaviate.ParseAddress(string(text))
	if err == nil {
		u.cluster = &at
	}
	return err
}

// String returns the address without its key.
func (u indexURL) String() string {
	if u.cluster == nil {
		return ""
	}
	return u.cluster.String()
}

const exampleStore = "postgres://USER@HOST/DATABASE"

func (c placeConfig) remote() bool { return c.Store.url != nil }

// String names the library in messages.
func (c placeConfig) String() string {
	if c.remote() {
		return c.Store.String()
	}
	return c.Data
}

// address returns the address of the store with its password, which comes from a file, the
// environment or the address itself.
func (c placeConfig) address(password string) (string, error) {
	u := *c.Store.url
	if own, set := u.User.Password(); set {
		password = own
	}
	password, err := secretFrom(c.StorePasswordFile, password, "the password of the store")
	if err != nil {
		return "", err
	}
	if password != "" {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	return u.String(), nil
}

// passwordVariable is the environment variable with the store's password.
const passwordVariable = "IBID_STORE_PASSWORD"

// openStore opens the state of a library and lists damaged documents, which are left out, on
// stderr: the next start no longer knows which rows were set aside.
func openStore(ctx context.Context, c placeConfig, s surroundings) (*state.Store, error) {
	store, err := startStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	damaged, err := store.ListDamage(ctx)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, d := range damaged {
		s.printMessage("damage in %s: %s", c, damageLine(d))
	}
	return store, nil
}

// startStore is openStore for callers that report damage themselves.
func startStore(ctx context.Context, c placeConfig, s surroundings) (*state.Store, error) {
	place, err := c.open(s)
	if err != nil {
		return nil, err
	}
	return library.OpenState(ctx, place, c.stateOptions(s))
}

// withStore opens the store, calls do with it, and closes it.
func (c placeConfig) withStore(ctx context.Context, s surroundings, do func(*state.Store) error) error {
	store, err := startStore(ctx, c, s)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// open returns the place of the library, with the password of its store.
func (c placeConfig) open(s surroundings) (place library.Place, err error) {
	place.Data = c.Data
	switch {
	case c.remote():
		place.URL, err = c.address(strings.TrimSpace(s.getenv(passwordVariable)))
	case c.Data == "":
		err = errNoData()
	}
	if err == nil && c.index.Index.cluster != nil {
		var key string
		key, err = secretFrom(c.index.IndexKeyFile, s.getenv("IBID_INDEX_KEY"), "the key of the search index")
		at := c.index.Index.cluster.WithKey(key)
		place.Cluster = &at
	}
	return place, err
}

func (c placeConfig) stateOptions(s surroundings) state.Options {
	return state.Options{Wait: c.StoreWait,
		Waiting:   func(err error) { s.printMessage("waiting for %s: %v", c, err) },
		Repairing: func() { s.printMessage("%s is damaged and is being rebuilt from its undamaged rows", c) }}
}

func errNoData() error {
	return usageError("the home folder for the data directory is unknown: name a folder with --data or $IBID_DATA")
}

func damageLine(d state.Damage) string { return strings.TrimPrefix(d.Document+": "+d.Reason, ": ") }

func (c placeConfig) exists() bool {
	_, err := os.Stat(filepath.Join(c.Data, state.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}
