// Package statetest gives each test its own schema or database on a real PostgreSQL server.
package statetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Env names the environment variable with the address of a server on which tests may create
// schemas.
const Env = "IBID_TEST_POSTGRES"

// Server returns the address of the server, or skips the test.
func Server(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		t.Skipf("%s names no server to test with: '.ci/postgres DIR' starts one and prints what to set", Env)
	}
	return server
}

// Schema returns the address of a new, empty schema, which is dropped when the test ends.
func Schema(t testing.TB) string {
	t.Helper()
	server := Server(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", "t_"+strings.ToLower(rand.Text()))
	u.RawQuery = q.Encode()
	t.Cleanup(func() {
		Exec(t, server, `DROP SCHEMA IF EXISTS `+pgx.Identifier{q.Get("search_path")}.Sanitize()+` CASCADE`)
	})
	return u.String()
}

// Database returns the address of an empty database with the given name, which is dropped when the
// test ends. It drops an existing database with that name first, so the test needs a server for
// itself.
func Database(t testing.TB, name string) string {
	t.Helper()
	server := Server(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	drop := `DROP DATABASE IF EXISTS ` + pgx.Identifier{name}.Sanitize() + ` WITH (FORCE)`
	Exec(t, server, drop)
	Exec(t, server, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize())
	t.Cleanup(func() { Exec(t, server, drop) })
	return u.String()
}

// Exec runs a statement on a server.
func Exec(t testing.TB, server, statement string) {
	t.Helper()
	ctx := context.Background() // the test's context may have ended
	conn, err := pgx.Connect(ctx, server)
	if err == nil {
		_, err = conn.Exec(ctx, statement)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		t.Error(err)
	}
}
