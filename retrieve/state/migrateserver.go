package state

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
)

// earlierTables are those of the layouts 1 to 3 on a server, besides the tables of
// vectors, which have numbers.
var earlierTables = []string{"migrations", "roots", "documents", "texts", "chunks", "postings", "totals", "spaces", "listings",
	"runs", "replies", "records", "record_documents", "feedback", "keys", "sessions", "ring", "commits"}

// earlierSchema is where the tables of an earlier layout are moved to.
func (s *Store) earlierSchema() string {
	const suffix = "_layout3"
	return s.schema[:min(len(s.schema), 63-len(suffix))] + suffix
}

// moveEarlier moves the tables of an earlier layout into a schema of their own, so
// that those of today's have their place. From then on earlier versions refuse
// the library.
func (s *Store) moveEarlier(t *tx) error {
	others := 0
	err := t.row(`SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'ibid'`).Scan(&others)
	if err != nil {
		return err
	}
	if others > 0 {
		return fmt.Errorf("%s, schema %q: %w, and %d connections of it are open: end the processes that use it, "+
			"and start again to have it brought up to date", s.place, s.schema, errEarlier, others)
	}
	have, err := column[string](t, `SELECT convert_to(tablename::text, 'UTF8') FROM pg_tables
		WHERE schemaname = convert_from(?, 'UTF8')`, s.schema)
	if err != nil {
		return err
	}
	earlier := pgx.Identifier{s.earlierSchema()}.Sanitize()
	if _, err := t.exec(`CREATE SCHEMA ` + earlier); err != nil {
		return fmt.Errorf("making room for the tables of the earlier version: %w", err)
	}
	for _, name := range have {
		if !isEarlier(name) {
			continue
		}
		if _, err := t.exec(`ALTER TABLE ibid.` + name + ` SET SCHEMA ` + earlier); err != nil {
			return fmt.Errorf("moving the table %s of the earlier version: %w", name, err)
		}
	}
	return nil
}

func isEarlier(table string) bool {
	for _, name := range earlierTables {
		if table == name {
			return true
		}
	}
	number, ok := strings.CutPrefix(table, "vectors_")
	return ok && strings.Trim(number, "0123456789") == ""
}

// migrateServer copies what is left to copy of the tables of an earlier layout,
// which are kept. Several processes may do that together.
func (s *Store) migrateServer(ctx context.Context, opts Options) error {
	source := ""
	err := s.view(ctx, func(t *tx) (err error) {
		source, err = t.setting(settingSource)
		return err
	})
	if err != nil || source == "" {
		return err
	}
	from := &Store{place: s.place, dialect: postgresDialect(source), schema: source, classify: s.classify, write: s.write, read: s.read,
		wait: s.wait, silence: s.silence, maxPause: s.maxPause, damaged: make(map[int64]Damage)}
	m := migration{from: from, into: s, progress: opts.migrating(), most: opts.most(),
		document: oldServerDocument, listings: oldServerListings, space: oldServerSpace, roots: oldServerRoots}
	if err := m.run(ctx); err != nil {
		return fmt.Errorf("bringing the library up to date: %w", err)
	}
	return nil
}

func oldServerSpace(t *tx) (name string, err error) {
	err = t.row(`SELECT convert_to(name, 'UTF8') FROM ibid.spaces WHERE NOT next`).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

func oldServerRoots(t *tx) (roots []ingest.Root, err error) {
	err = t.each(func(row scanner) error {
		var r ingest.Root
		err := row.Scan(&r.Name, &r.Path, &r.Collection)
		roots = append(roots, r)
		return err
	}, `SELECT name, path, collection FROM ibid.roots`)
	return roots, err
}

func oldServerListings(t *tx) (rows [][]any, err error) {
	if exists, err := t.hasTable("listings"); err != nil || !exists {
		return nil, err
	}
	err = t.each(func(r scanner) error {
		var id, root string
		var listing []byte
		err := r.Scan(&id, &root, &listing)
		rows = append(rows, []any{keyOf(id), id, root, listing})
		return err
	}, `SELECT id, root, listing FROM ibid.listings`)
	return rows, err
}

// oldServerDocument reads a document of the layouts 1 to 3. Their rows have no
// checksums, but they must fit one another.
func oldServerDocument(t *tx, key int64) (*oldDocument, error) {
	var d ingest.Document
	var meta, stored string
	n := 0
	err := t.row(`SELECT d.id, d.root, d.path, d.title, d.format, d.digest, d.meta, d.chunks, x.outline, x.text
		FROM ibid.documents d JOIN ibid.texts x ON x.document = d.key WHERE d.key = ?`, key).
		Scan(&d.ID, &d.Root, &d.Path, &d.Title, &d.Format, &d.Digest, &meta, &n, &stored, &d.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &damagedError{reason: "its text was missing before the library was brought up to date"}
	}
	if err != nil {
		return nil, err
	}
	old := &oldDocument{doc: &d}
	if err := old.describe(meta, stored); err != nil {
		return nil, &damagedError{id: d.ID, reason: "it was damaged before the library was brought up to date"}
	}
	first, last := keyRange(key)
	err = t.each(func(r scanner) error {
		var c chunkRow
		if err := r.Scan(&c.key, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor); err != nil {
			return err
		}
		c.at()
		if c.Start >= 0 && c.Start < c.End && c.End <= len(d.Text) {
			c.Text = d.Text[c.Start:c.End]
		}
		old.chunks = append(old.chunks, *c.of(d.ID))
		return nil
	}, `SELECT key, start, "end", place, tokens, heading, anchor FROM ibid.chunks WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return nil, err
	}
	if old.vectors, err = oldServerVectors(t, first, last); err == nil && (len(old.chunks) != n || len(old.vectors) != n) {
		err = &damagedError{id: d.ID, reason: "some of its chunks were missing before the library was brought up to date"}
	}
	return old, err
}

// oldServerVectors reads vectors of pgvector in its binary form: their number of
// dimensions and two bytes of nothing, then float32, most significant byte first.
func oldServerVectors(t *tx, first, last int64) (vectors [][]float32, err error) {
	var table, schema string
	err = t.row(`SELECT convert_to('vectors_' || s.number, 'UTF8'), convert_to(n.nspname::text, 'UTF8') FROM ibid.spaces s, pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'vector' AND NOT s.next AND s.dimensions IS NOT NULL`).Scan(&table, &schema)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = t.each(func(r scanner) error {
		var b []byte
		if err := r.Scan(&b); err != nil {
			return err
		}
		v := make([]float32, max(0, len(b)-4)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.BigEndian.Uint32(b[4+4*i:]))
		}
		vectors = append(vectors, v)
		return nil
	}, `SELECT `+pgx.Identifier{schema}.Sanitize()+`.vector_send(vector) FROM ibid.`+table+`
		WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	return vectors, err
}
