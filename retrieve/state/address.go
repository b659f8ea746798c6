package state

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultConnections is the largest number of connections if the address has no pool_max_conns.
	defaultConnections = 16
	// defaultSchema is the schema if the address has no search_path.
	defaultSchema = "ibid"
)

// parse reads an address. Its errors never quote the address, which may contain a password. Silence
// is how long a server may take to accept a connection before it counts as unreachable, unless the
// address has its own timeout.
func parse(address string, silence time.Duration) (config *pgxpool.Config, schema string, err error) {
	const form = "write it as postgres://USER:PASSWORD@HOST:5432/DATABASE"
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", errors.New("the address cannot be parsed: " + form)
	}
	q := u.Query()
	// A special character in a password ends the host early; the rest of the
	// password is then read as a database or parameter.
	if u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") ||
		slices.ContainsFunc(slices.Collect(maps.Keys(q)), func(name string) bool { return strings.Contains(name, "@") }) {
		return nil, "", errors.New("the address cannot be parsed: write the characters / ? # @ of a password as %2F %3F %23 %40: " + form)
	}
	schema = defaultSchema
	if q.Has("search_path") {
		schema = q.Get("search_path")
		// A pooler refuses sessions with this parameter, so statements name the schema instead.
		q.Del("search_path")
	}
	if schema == "" || len(schema) > 63 || strings.ContainsAny(schema, "\x00,\"") {
		return nil, "", fmt.Errorf("the search_path %q in the address is not the name of one schema", schema)
	}
	u.RawQuery = q.Encode()
	config, err = pgxpool.ParseConfig(u.String())
	if err != nil {
		text := err.Error()
		if at := strings.LastIndex(text, "`: "); at >= 0 { // after the address
			text = text[at+3:]
		}
		if password, set := u.User.Password(); set && password != "" {
			text = strings.ReplaceAll(text, password, "xxxxx")
		}
		return nil, "", fmt.Errorf("the address cannot be parsed: %s: %s", text, form)
	}
	if !q.Has("pool_max_conns") {
		config.MaxConns = defaultConnections
	}
	if !q.Has("connect_timeout") {
		config.ConnConfig.ConnectTimeout = silence
	}
	// The client notices within ten seconds that the server's machine has disappeared.
	dialer := net.Dialer{Timeout: config.ConnConfig.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}}
	config.ConnConfig.DialFunc = dialer.DialContext
	if !q.Has("default_query_exec_mode") {
		// Statements have no names on the server, so that a pooler may assign each transaction to
		// another session. Only the statements of searches have names, as long as that works.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if _, set := config.ConnConfig.RuntimeParams["application_name"]; !set {
		config.ConnConfig.RuntimeParams["application_name"] = "ibid"
	}
	return config, schema, nil
}

// serverName names the database in messages, without user and password.
func serverName(c *pgx.ConnConfig) string {
	return (&url.URL{Scheme: "postgres", Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}).String()
}
