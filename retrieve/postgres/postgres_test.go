package postgres

import (
	"context"
	"net/url"
	"os"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/postgres/postgrestest"
)

var (
	_ retrieve.Store = (*Engine)(nil)

	_ retrieve.Inspector = (*Engine)(nil)
	_ retrieve.Counter   = (*Engine)(nil)
)

// servers are the variables with the addresses of servers to test with.
var servers = map[string]string{"PostgreSQL": "IBID_TEST_POSTGRES", "PGlite": "IBID_TEST_PGLITE"}

// onServers runs a test on each server that there is.
func onServers(t *testing.T, test func(t *testing.T, server string)) {
	for name, variable := range servers {
		t.Run(name, func(t *testing.T) {
			address := os.Getenv(variable)
			if address == "" {
				t.Skip(variable + " names no server to test with: .ci/postgres and .ci/pglite start them")
			}
			test(t, address)
		})
	}
}

// newSchema gives the address of an empty schema of the test's own.
func newSchema(t testing.TB, server string) string { return postgrestest.Schema(t, server) }

func openTest(t testing.TB, address string) *Engine {
	t.Helper()
	e, err := Open(context.Background(), address, Options{Limits: enginetest.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func backend(server string) enginetest.Backend { return backendThrough(server, server) }

// backendThrough makes its schemas on a server, and opens them at another address
// of the same.
func backendThrough(server, through string) enginetest.Backend {
	unbroken := ""
	if server == os.Getenv(servers["PGlite"]) {
		unbroken = "PGlite has one session for all its clients, and waits for ever for one that was broken off in a transaction"
	}
	return enginetest.Backend{Recall: 1, Unbroken: unbroken, New: func(t *testing.T) func() retrieve.Store {
		made, err := url.Parse(newSchema(t, server))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(through)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", made.Query().Get("search_path"))
		u.RawQuery = q.Encode()
		return func() retrieve.Store { return openTest(t, u.String()) }
	}}
}

// TestIndexed runs the contract where the vectors have an index from the start.
func TestIndexed(t *testing.T) {
	server := os.Getenv(servers["PostgreSQL"])
	if server == "" {
		t.Skip("IBID_TEST_POSTGRES names no server to test with: .ci/postgres starts one")
	}
	b := backend(server)
	whole := b.New
	b.Recall, b.New = 0.9, func(t *testing.T) func() retrieve.Store {
		open := whole(t)
		return func() retrieve.Store {
			e := open().(*Engine)
			e.few = 0
			return e
		}
	}
	enginetest.Run(t, b)
}

func TestEngine(t *testing.T) {
	onServers(t, func(t *testing.T, server string) { enginetest.Run(t, backend(server)) })
}

func TestCopy(t *testing.T) {
	onServers(t, func(t *testing.T, server string) { enginetest.Copy(t, backend(server)) })
}

func TestLedger(t *testing.T) {
	onServers(t, func(t *testing.T, server string) { enginetest.Ledger(t, backend(server)) })
}

func TestKeyring(t *testing.T) {
	onServers(t, func(t *testing.T, server string) { enginetest.Keyring(t, backend(server)) })
}
