package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

var (
	_ retrieve.Store    = (*Engine)(nil)
	_ retrieve.Preparer = (*Engine)(nil)
	_ retrieve.Respacer = (*Engine)(nil)

	_ retrieve.RootKeeper = (*Engine)(nil)
	_ retrieve.Inspector  = (*Engine)(nil)
	_ retrieve.Counter    = (*Engine)(nil)
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
func newSchema(t testing.TB, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	schema := fmt.Sprintf("t%d_%s", os.Getpid(), strings.ToLower(strings.Map(func(r rune) rune {
		if r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a' {
			return '_'
		}
		return r
	}, t.Name())))
	q.Set("search_path", schema[:min(len(schema), 60)])
	u.RawQuery = q.Encode()
	t.Cleanup(func() {
		ctx := context.Background() // the test's has ended
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() {
			if err := conn.Close(ctx); err != nil {
				t.Error(err)
			}
		}()
		if _, err := conn.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{q.Get("search_path")}.Sanitize()+` CASCADE`); err != nil {
			t.Error(err)
		}
	})
	return u.String()
}

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

func backend(server string) enginetest.Backend {
	return enginetest.Backend{Recall: 1, New: func(t *testing.T) func() retrieve.Store {
		address := newSchema(t, server)
		return func() retrieve.Store { return openTest(t, address) }
	}}
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
