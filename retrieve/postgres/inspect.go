package postgres

import (
	"context"
	"fmt"

	"ibid/ingest"
	"ibid/retrieve"
)

// Inspect gives the versions of the server and of pgvector, how far the schema
// is laid out, and what it takes on the server's disk.
func (e *Engine) Inspect(ctx context.Context) ([]retrieve.Trait, error) {
	var server, vectors string
	var migration, bytes int64
	err := e.view(ctx, func(s *session) error {
		return s.row(ctx, `SELECT current_setting('server_version'),
			(SELECT extversion FROM pg_extension WHERE extname = 'vector'),
			(SELECT max(number) FROM ibid.migrations),
			(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname = $1 AND c.relkind IN ('r', 'm'))`, e.schema).Scan(&server, &vectors, &migration, &bytes)
	})
	if err != nil {
		return nil, fmt.Errorf("inspect the store: %w", err)
	}
	return []retrieve.Trait{
		{Name: "server", Value: fmt.Sprintf("%s, PostgreSQL %s", e.server, server)},
		{Name: "pgvector", Value: vectors},
		{Name: "schema", Value: fmt.Sprintf("%s, at migration %d, takes %.1f MB", e.schema, migration, float64(bytes)/1e6)},
	}, nil
}

// Count counts the documents that pass the filter, and their chunks.
func (e *Engine) Count(ctx context.Context, f retrieve.Filter) (documents, chunks int, err error) {
	c := where(f)
	err = e.view(ctx, func(s *session) error {
		if f.IsZero() {
			t, _, err := readTotals(ctx, s)
			documents, chunks = int(t.documents), int(t.chunks)
			return err
		}
		return s.row(ctx, `SELECT count(*), coalesce(sum(d.chunks), 0) FROM ibid.documents d WHERE `+c.sql, c.args...).Scan(&documents, &chunks)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the documents: %w", err)
	}
	return documents, chunks, nil
}

// KeepRoot makes a root as another store has it, if it is not there.
func (e *Engine) KeepRoot(ctx context.Context, root ingest.Root) error {
	err := e.update(ctx, func(s *session) error {
		if err := e.lockLibrary(ctx, s); err != nil {
			return err
		}
		roots, err := readRoots(ctx, s)
		if err != nil {
			return err
		}
		if there, err := retrieve.CheckRoot(root, roots); err != nil || there {
			return err
		}
		return e.insertRoot(ctx, s, root)
	})
	if err != nil {
		return fmt.Errorf("keep the root %q: %w", root.Name, err)
	}
	return nil
}
