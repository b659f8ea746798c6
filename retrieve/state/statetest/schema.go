// Package statetest gives tests places of their own on a real PostgreSQL
// server.
package statetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Env names the environment variable that holds the address of a server on which
// tests may make schemas.
const Env = "IBID_TEST_POSTGRES"

// Schema gives the address of an empty schema of the test's own, which is
// dropped when the test ends.
func Schema(t testing.TB, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", "t_"+strings.ToLower(rand.Text()))
	u.RawQuery = q.Encode()
	t.Cleanup(func() {
		run(t, server, `DROP SCHEMA IF EXISTS `+pgx.Identifier{q.Get("search_path")}.Sanitize()+` CASCADE`)
	})
	return u.String()
}

// Database gives the address of an empty database of this name, which is dropped
// when the test ends. One that is there is dropped first: whoever wants the name
// for a test has the server for himself.
func Database(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	drop := `DROP DATABASE IF EXISTS ` + pgx.Identifier{name}.Sanitize() + ` WITH (FORCE)`
	run(t, server, drop)
	run(t, server, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize())
	t.Cleanup(func() { run(t, server, drop) })
	return u.String()
}

// run runs one statement on the server.
func run(t testing.TB, server, statement string) {
	t.Helper()
	ctx := context.Background() // the test's may have ended
	conn, err := pgx.Connect(ctx, server)
	if err == nil {
		_, err = conn.Exec(ctx, statement)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		t.Error(err)
	}
}
