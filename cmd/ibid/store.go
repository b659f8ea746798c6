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

	"ibid/retrieve"
	"ibid/retrieve/local"
	"ibid/retrieve/postgres"
)

// A storeURL is the address of a store on a server. The zero value is none. As
// text it never includes a secret.
type storeURL struct{ url *url.URL }

// UnmarshalText reads an address. Its errors never quote the address: a
// password may be anywhere in text that cannot be parsed.
func (u *storeURL) UnmarshalText(text []byte) error {
	address := strings.TrimSpace(string(text))
	if address == "" {
		u.url = nil
		return nil
	}
	if !strings.Contains(address, "://") {
		return fmt.Errorf("it is no URL: give %s; for a folder use --data", exampleStore)
	}
	parsed, err := url.Parse(address)
	// A sign in a password can end the host, and what follows is then parsed as
	// a fragment, a path or a query.
	if err != nil || parsed.Fragment != "" || strings.Contains(parsed.EscapedPath(), "@") ||
		strings.Contains(strings.Join(slices.Collect(maps.Keys(parsed.Query())), ""), "@") {
		return fmt.Errorf("it cannot be parsed as a URL: give %s, and a password with special characters by --store-password-file", exampleStore)
	}
	switch parsed.Scheme {
	case "postgres", "postgresql":
	case "weaviate":
		return fmt.Errorf("a library is no longer stored in Weaviate: copy it to PostgreSQL with 'ibid copy' of the version before, and give %s", exampleStore)
	default:
		return fmt.Errorf("%.40q is no known kind of store: give %s", parsed.Scheme, exampleStore)
	}
	if parsed.Hostname() == "" && parsed.Query().Get("host") == "" {
		return fmt.Errorf("it names no host: give %s", exampleStore)
	}
	u.url = parsed
	return nil
}

// String returns the address without its secrets.
func (u storeURL) String() string {
	if u.url == nil {
		return ""
	}
	shown := *u.url
	name := shown.User.Username()
	shown.User = nil // outside PostgreSQL a name alone may be a key
	if name != "" && strings.HasPrefix(shown.Scheme, "postgres") {
		shown.User = url.User(name)
	}
	query := shown.Query()
	for name := range query {
		if isSecret(name) {
			query.Del(name)
		}
	}
	shown.RawQuery = query.Encode()
	return shown.String()
}

// isSecret reports whether a parameter of an address may be a secret.
func isSecret(parameter string) bool {
	parameter = strings.ToLower(parameter)
	return slices.ContainsFunc([]string{"pass", "pwd", "key", "secret", "token", "auth"}, func(word string) bool {
		return strings.Contains(parameter, word)
	})
}

// exampleStore shows the address of a store.
const exampleStore = "postgres://USER@HOST/DATABASE"

// insteadOn names, for each command that maintains a data directory, what does
// the same in PostgreSQL.
func insteadOn(command string) string {
	return map[string]string{
		"verify":  "PostgreSQL compares its pages with checksums as it reads them, and pg_amcheck checks them all",
		"backup":  "pg_dump copies its schema ('ibid', unless the address names another), also while Ibid is running",
		"compact": "autovacuum makes room for new rows, and VACUUM FULL returns it to the disk",
	}[command]
}

// opened keeps a nil pointer out of the interface.
func opened[S retrieve.Store](store S, err error) (retrieve.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// remote reports whether the library is on a server.
func (c placeConfig) remote() bool { return c.Store.url != nil }

// String names the library in messages.
func (c placeConfig) String() string {
	if c.remote() {
		return c.Store.String()
	}
	return c.Data
}

// address returns the address of the store with its password, which is in a
// file, in the environment or in the address itself.
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

// passwordVariable holds the password of the store.
const passwordVariable = "IBID_STORE_PASSWORD"

// openStore opens the library and names on stderr what is damaged and left out:
// a later start no longer knows what was set aside.
func openStore(ctx context.Context, c placeConfig, s surroundings) (retrieve.Store, error) {
	store, err := startStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	for _, line := range damageIn(store) {
		fmt.Fprintf(s.stderr, "ibid: damage in %s: %s\n", c, printable(line))
	}
	return store, nil
}

// startStore is openStore for callers that report the damage themselves.
func startStore(ctx context.Context, c placeConfig, s surroundings) (retrieve.Store, error) {
	renewing := func(documents int) {
		fmt.Fprintf(s.stderr, "ibid: this version splits words differently: analysing %d documents in %s again, once\n", documents, c)
	}
	if c.remote() {
		address, err := c.address(strings.TrimSpace(s.getenv(passwordVariable)))
		if err != nil {
			return nil, err
		}
		return opened(postgres.Open(ctx, address, postgres.Options{Renewing: renewing}))
	}
	if c.Data == "" {
		return nil, errNoData()
	}
	return opened(local.Open(ctx, c.Data, local.Options{Renewing: renewing}))
}

func errNoData() error {
	return usageError("there is no home folder for the data directory: name a folder with --data or $IBID_DATA")
}

// damageIn returns a line for each thing that a data directory lost.
func damageIn(store retrieve.Store) []string {
	embedded, ok := store.(*local.Engine)
	if !ok {
		return nil
	}
	var lines []string
	for _, d := range embedded.Damaged() {
		lines = append(lines, damageLine(d))
	}
	return lines
}

func damageLine(d local.Damage) string { return strings.TrimPrefix(d.Document+": "+d.Reason, ": ") }

// openKeyring opens the keys, and of a data directory nothing else.
func openKeyring(ctx context.Context, c placeConfig, s surroundings) (_ retrieve.Keyring, closeIt func() error, _ error) {
	if !c.remote() {
		if c.Data == "" {
			return nil, nil, errNoData()
		}
		return local.OpenKeyring(ctx, c.Data, local.Options{})
	}
	store, err := startStore(ctx, c, s)
	if err != nil {
		return nil, nil, err
	}
	return store.Keyring(), store.Close, nil
}

// needData refuses a store on a server for a command that maintains a data
// directory.
func (c placeConfig) needData(command string) error {
	if c.remote() {
		return usageError("'ibid %s' is for data directories, and the library is in %s: %s; omit --store ($IBID_STORE) to use a data directory, and 'ibid copy' to copy the library into one",
			command, c, insteadOn(command))
	}
	if c.Data == "" {
		return errNoData()
	}
	return nil
}

// exists reports whether a data directory has a library.
func (c placeConfig) exists() bool {
	_, err := os.Stat(filepath.Join(c.Data, local.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}
