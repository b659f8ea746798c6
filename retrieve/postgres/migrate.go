package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Migrations lay out the schema, in the order of their numbers. One that has been
// released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// What the statements of this package need.
const (
	leastServer  = 130000 // PostgreSQL 13: WITH TIES
	leastVectors = "0.8"  // pgvector 0.8: iterative index scans
)

// migrate lays out the schema, or brings it up to date.
func (e *Engine) migrate(ctx context.Context) error {
	e.setNames("public") // for what is done before pgvector is found
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	return e.update(ctx, func(s *session) error {
		var version int
		if err := s.row(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
			return err
		}
		if version < leastServer {
			return fmt.Errorf("%s: it is PostgreSQL %d, and %d or newer is needed", e.server, version/10000, leastServer/10000)
		}
		// Servers that start together wait for the first. The extension belongs to
		// the database, so the lock is not one of the schema's.
		if _, err := s.exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, databaseLock); err != nil {
			return err
		}
		vectors, err := e.vectorsSchema(ctx, s)
		if err != nil {
			return err
		}
		e.setNames(vectors)
		var there, laid bool
		err = s.row(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1),
			EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'migrations')`, e.schema).Scan(&there, &laid)
		if err != nil {
			return err
		}
		if !there {
			if _, err := s.exec(ctx, `CREATE SCHEMA `+pgx.Identifier{e.schema}.Sanitize()); err != nil {
				return err
			}
		}
		if laid {
			if err := e.ownMigrations(ctx, s); err != nil {
				return err
			}
		} else {
			if _, err := s.exec(ctx, `CREATE TABLE ibid.migrations (number int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())`); err != nil {
				return err
			}
		}
		var newest int
		if err := s.row(ctx, `SELECT coalesce(max(number), 0) FROM ibid.migrations`).Scan(&newest); err != nil {
			return err
		}
		if newest > len(steps) {
			return fmt.Errorf("%s, schema %q: %w (migration %d; this version knows %d): update ibid, or name another schema with search_path", e.server, e.schema, ErrNewer, newest, len(steps))
		}
		for i, name := range steps[newest:] {
			number := newest + i + 1
			if !strings.HasPrefix(name, fmt.Sprintf("migrations/%04d_", number)) {
				return fmt.Errorf("%s is not migration %d", name, number)
			}
			text, err := migrations.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := s.exec(ctx, string(text)); err != nil {
				if of := (*pgconn.PgError)(nil); errors.As(err, &of) && of.Code == "42P07" { // duplicate_table
					return e.foreign(err.Error())
				}
				return fmt.Errorf("%s: %w", name, err)
			}
			if _, err := s.exec(ctx, `INSERT INTO ibid.migrations (number) VALUES ($1)`, number); err != nil {
				return err
			}
		}
		return e.whole(ctx, s, steps)
	})
}

// foreign says that the schema is somebody else's.
func (e *Engine) foreign(why string) error {
	return fmt.Errorf("%s: the schema %q holds tables that are not Ibid's (%s): name another schema with search_path", e.server, e.schema, why)
}

// ownMigrations looks whether the table of migrations is Ibid's: other programs
// have one of that name.
func (e *Engine) ownMigrations(ctx context.Context, s *session) error {
	var columns int
	err := s.row(ctx, `SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = 'migrations' AND a.attname IN ('number', 'applied')`, e.schema).Scan(&columns)
	if err == nil && columns < 2 {
		err = e.foreign("its table of migrations is another program's")
	}
	return err
}

// whole looks whether all tables and indexes are there that the migrations have
// made: where a copy of the database was broken off, some are not.
func (e *Engine) whole(ctx context.Context, s *session, steps []string) error {
	made := regexp.MustCompile(`CREATE (?:UNIQUE )?(?:TABLE|INDEX) (?:ibid\.)?(\w+)`)
	var names, missing []string
	for _, step := range steps {
		text, err := migrations.ReadFile(step)
		if err != nil {
			return err
		}
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	err := s.row(ctx, `SELECT array(SELECT name FROM unnest($2::text[]) name WHERE NOT EXISTS (
		SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = name) ORDER BY name)`, e.schema, names).Scan(&missing)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%s: the schema %q is not whole: it lacks %s: restore it from a copy that is, or name another schema with search_path", e.server, e.schema, strings.Join(missing, ", "))
	}
	return err
}

// vectorsSchema finds pgvector in the database, and puts it there where it is not.
func (e *Engine) vectorsSchema(ctx context.Context, s *session) (schema string, err error) {
	find := func() (version string, err error) {
		err = s.row(ctx, `SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'`).Scan(&version, &schema)
		return version, err
	}
	version, err := find()
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := s.exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public`); err != nil {
			return "", fmt.Errorf("the database needs pgvector: install it on the server, and let an administrator say CREATE EXTENSION vector in this database: %w", err)
		}
		version, err = find()
	}
	if err != nil {
		return "", err
	}
	if olderVersion(version, leastVectors) {
		return "", fmt.Errorf("%s: its pgvector is %s, and %s or newer is needed: install a newer one, and say ALTER EXTENSION vector UPDATE in this database", e.server, version, leastVectors)
	}
	return schema, nil
}

// olderVersion compares two versions, number by number.
func olderVersion(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, err := strconv.Atoi(x[i])
		if err != nil {
			return false
		}
		if n, err := strconv.Atoi(y[i]); err == nil && m != n {
			return m < n
		}
	}
	return len(x) < len(y)
}
