package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"ibid/retrieve"
	"ibid/retrieve/local"
	"ibid/retrieve/postgres"
	"ibid/retrieve/weaviate"
)

// placeConfig says where a library is kept.
type placeConfig struct {
	Data              string   `help:"Folder in which Ibid keeps what it knows." default:"${data}" placeholder:"DIR" group:"Store"`
	Store             storeURL `help:"Database that keeps it in place of the folder: ${stores}. The folder then keeps the files of uploads alone." placeholder:"URL" group:"Store"`
	StorePasswordFile string   `help:"File that holds the password of --store, or the key of its API; unset: the variable IBID_STORE_PASSWORD, which may be empty." placeholder:"FILE" group:"Store"`
}

// A storeURL is the address of a store that is no folder. The zero value is none.
// As text it has no secret in it.
type storeURL struct{ url *url.URL }

// UnmarshalText reads an address. The error never has it in its words: a
// password may be anywhere in what cannot be read.
func (u *storeURL) UnmarshalText(text []byte) error {
	address := strings.TrimSpace(string(text))
	parsed, err := url.Parse(address)
	known := false
	if err == nil {
		_, known = kindOf(parsed.Scheme)
	}
	switch {
	case address == "":
		u.url = nil
		return nil
	case !strings.Contains(address, "://"):
		return fmt.Errorf("it is no URL: give %s; a folder is named with --data", exampleStores())
	case err != nil:
		return fmt.Errorf("it cannot be read as a URL: give %s, and a password with signs in it by --store-password-file", exampleStores())
	// Behind a sign in a password that ends the host the rest of it is taken for a
	// database, and the like.
	case parsed.Fragment != "" || strings.Contains(parsed.EscapedPath(), "@") || strings.Contains(strings.Join(slices.Collect(maps.Keys(parsed.Query())), ""), "@"):
		return fmt.Errorf("it cannot be read as a URL: give %s, and a password with signs in it by --store-password-file", exampleStores())
	case !known:
		return fmt.Errorf("%.40q is no kind of store that this version knows: give %s", parsed.Scheme, exampleStores())
	case parsed.Hostname() == "" && parsed.Query().Get("host") == "":
		return fmt.Errorf("it names no host: give %s", exampleStores())
	}
	u.url = parsed
	return nil
}

// String is the address without what is secret in it.
func (u storeURL) String() string {
	if u.url == nil {
		return ""
	}
	shown := *u.url
	if name := shown.User.Username(); name != "" && strings.HasPrefix(shown.Scheme, "postgres") {
		shown.User = url.User(name)
	} else {
		shown.User = nil // a name alone may be a key
	}
	query := shown.Query()
	for name := range query {
		if secret(name) {
			query.Del(name)
		}
	}
	shown.RawQuery = query.Encode()
	return shown.String()
}

// secret says whether a parameter of an address may be one that lets people in.
func secret(parameter string) bool {
	parameter = strings.ToLower(parameter)
	return slices.ContainsFunc([]string{"pass", "pwd", "key", "secret", "token", "auth"}, func(word string) bool { return strings.Contains(parameter, word) })
}

// A storeKind is one kind of store beside the embedded one.
type storeKind struct {
	schemes []string // of its addresses
	example string
	// open opens a store by its address, which has the secret in it. Renewing is
	// told of documents whose terms are made anew.
	open func(ctx context.Context, address string, renewing func(documents int)) (retrieve.Store, error)
	// instead says, by command, what its server has in place of one that looks
	// after a data directory.
	instead map[string]string
}

// storeKinds are the kinds of stores that this version knows.
func storeKinds() []storeKind {
	return []storeKind{{
		schemes: []string{"postgres", "postgresql"},
		example: "postgres://USER@HOST/DATABASE",
		open: func(ctx context.Context, address string, renewing func(int)) (retrieve.Store, error) {
			return opened(postgres.Open(ctx, address, postgres.Options{Renewing: renewing}))
		},
		instead: map[string]string{
			"verify":  "PostgreSQL compares its pages with checksums as it reads them, and pg_amcheck looks through all",
			"backup":  "pg_dump copies its schema ('ibid', if the address names no other), also while Ibid runs",
			"compact": "autovacuum makes room for what comes next, and VACUUM FULL gives it back to the disk",
		},
	}, {
		schemes: []string{"weaviate"},
		example: "weaviate://HOST:8080",
		open: func(ctx context.Context, address string, renewing func(int)) (retrieve.Store, error) {
			return opened(weaviate.Open(ctx, address, weaviate.Options{Renewing: renewing}))
		},
		instead: map[string]string{
			"verify":  "Weaviate compares the replicas of its shards with each other",
			"backup":  "its backup modules copy the classes whose names begin with 'Ibid', or with the prefix that the address names, also while Ibid runs",
			"compact": "Weaviate compacts its segments by itself",
		},
	}}
}

// opened is a store, or the error of opening it and no store.
func opened[S retrieve.Store](store S, err error) (retrieve.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// kindOf finds the kind of a scheme; ok is false where there is none.
func kindOf(scheme string) (kind storeKind, ok bool) {
	for _, k := range storeKinds() {
		if slices.Contains(k.schemes, scheme) {
			return k, true
		}
	}
	return kind, false
}

// exampleStores shows an address of each kind.
func exampleStores() string {
	var examples []string
	for _, k := range storeKinds() {
		examples = append(examples, k.example)
	}
	return strings.Join(examples, " or ")
}

// remote says whether the library is elsewhere than in the data directory.
func (c placeConfig) remote() bool { return c.Store.url != nil }

// String names the library in messages.
func (c placeConfig) String() string {
	if c.remote() {
		return c.Store.String()
	}
	return c.Data
}

// named is the member that names the library in JSON objects.
func (c placeConfig) named() (member, name string) {
	if c.remote() {
		return "store", c.Store.String()
	}
	return "data", c.Data
}

// passwordVariable holds the password of the store.
const passwordVariable = "IBID_STORE_PASSWORD"

// address is that of the store, with its password. That is read from a file or
// the environment, or stands in the address itself, where other users of the
// machine may see it.
func (c placeConfig) address(password string) (string, error) {
	u := *c.Store.url
	if c.StorePasswordFile != "" {
		b, err := os.ReadFile(c.StorePasswordFile)
		if err != nil {
			return "", fmt.Errorf("reading the password of the store: %w", err)
		}
		password = strings.TrimSpace(string(b))
	} else if own, set := u.User.Password(); set {
		password = own
	}
	if password != "" {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	return u.String(), nil
}

// openStore opens the library. What is damaged in it is named on stderr and left
// out: where that was set aside, no later start knows of it.
func openStore(ctx context.Context, c placeConfig, s surroundings) (retrieve.Store, error) {
	store, err := startStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	for _, d := range damageIn(store) {
		fmt.Fprintf(s.stderr, "ibid: damage in %s: %s\n", c, printable(strings.TrimPrefix(d.Document+": "+d.Reason, ": ")))
	}
	return store, nil
}

// startStore is openStore for who names the damage itself.
func startStore(ctx context.Context, c placeConfig, s surroundings) (retrieve.Store, error) {
	renewing := func(documents int) {
		fmt.Fprintf(s.stderr, "ibid: this version cuts words into terms in another way: analysing %d documents in %s anew, once\n", documents, c)
	}
	if c.remote() {
		address, err := c.address(strings.TrimSpace(s.getenv(passwordVariable)))
		if err != nil {
			return nil, err
		}
		kind, _ := kindOf(c.Store.url.Scheme)
		return kind.open(ctx, address, renewing)
	}
	if c.Data == "" {
		return nil, errNoData()
	}
	return opened(local.Open(ctx, c.Data, local.Options{Renewing: renewing}))
}

func errNoData() error {
	return usageError("there is no home folder to keep data in: name a folder with --data or $IBID_DATA")
}

// damageIn gives what the embedded store found damaged; others tell nothing.
func damageIn(store retrieve.Store) []local.Damage {
	if embedded, ok := store.(*local.Engine); ok {
		return embedded.Damaged()
	}
	return nil
}

// openKeyring opens the keys, and of the embedded store nothing but them.
func openKeyring(ctx context.Context, c placeConfig, s surroundings) (_ retrieve.Keyring, done func() error, _ error) {
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

// needData refuses a store that is no data directory, for a command that looks
// after one.
func (c placeConfig) needData(command string) error {
	if !c.remote() {
		if c.Data == "" {
			return errNoData()
		}
		return nil
	}
	kind, _ := kindOf(c.Store.url.Scheme)
	return usageError("'ibid %s' looks after the file of a data directory, and the library is in %s: %s; to look after a data directory, leave --store ($IBID_STORE) out, and 'ibid copy' copies the library into one", command, c, kind.instead[command])
}
