package state

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// earlierTables matches the names of the tables of the layouts 1 to 3 on a server.
const earlierTables = `^(migrations|roots|documents|texts|chunks|postings|totals|spaces|listings|vectors_[0-9]+|` +
	`runs|replies|records|record_documents|feedback|keys|sessions|ring|commits)$`

// earlierSchema is where the tables of an earlier layout are moved to.
func (s *Store) earlierSchema() string {
	const suffix = "_layout3"
	return s.schema[:min(len(s.schema), 63-len(suffix))] + suffix
}

// moveEarlier moves the tables of an earlier layout into a schema of their own, so
// that those of today's have their place. From then on earlier versions refuse
// the library.
func (s *Store) moveEarlier(t *tx) {
	others := value[int](t, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'ibid'`)
	if others > 0 {
		check(fmt.Errorf("%s, schema %q: %w, and %d connections of it are open: end the processes that use it, "+
			"and start again to have it brought up to date", s.place, s.schema, errEarlier, others))
	}
	have := column[string](t, `SELECT convert_to(tablename::text, 'UTF8') FROM pg_tables
		WHERE schemaname = convert_from(?, 'UTF8') AND tablename ~ convert_from(?, 'UTF8')`, s.schema, earlierTables)
	earlier := pgx.Identifier{s.earlierSchema()}.Sanitize()
	t.exec(`CREATE SCHEMA ` + earlier)
	for _, name := range have {
		t.exec(`ALTER TABLE ibid.` + name + ` SET SCHEMA ` + earlier)
	}
}

// oldServer is the layouts 1 to 3, which have no checksums.
func oldServer() earlier {
	return earlier{
		space: func(t *tx) (name string) {
			if err := t.row(`SELECT convert_to(name, 'UTF8') FROM ibid.spaces WHERE NOT next`).Scan(&name); !errors.Is(err, sql.ErrNoRows) {
				check(err)
			}
			return name
		},
		read:  readOldServer,
		roots: oldTable{"folders", "roots", rootColumns, "roots", rootColumns, nil},
		rest: []oldTable{
			{"records of answers", "records", recordColumns, "records", recordColumns, nil},
			{"records of answers", "records", `id, (SELECT count(*) FROM ibid.record_documents WHERE record = id), events`,
				"events", eventColumns, nil},
			{"records of answers", "record_documents", `record, row_number() OVER (PARTITION BY record ORDER BY document) - 1,
				document, document`, "quoted", quoteColumns, keyed(2)},
			{"entries of feedback", "feedback", feedbackColumns, "feedback", feedbackColumns, nil},
			{"keys", "keys", keyColumns, "keys", keyColumns, nil},
		},
	}
}

// readOldServer checks that the rows of the document fit one another.
func readOldServer(t *tx, key int64, into *oldDocument) {
	d, n := &into.doc, 0
	check(t.row(`SELECT `+oldColumns+`, chunks FROM ibid.documents LEFT JOIN ibid.texts ON document = key WHERE key = ?`, key).
		Scan(append(into.dest(), &n)...))
	first, last := keyRange(key)
	for r := range t.rows(`SELECT key, start, "end", place, tokens, heading, anchor FROM ibid.chunks WHERE key BETWEEN ? AND ? ORDER BY key`,
		first, last) {
		var c chunkRow
		check(r.Scan(&c.key, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor))
		c.at()
		if c.Start >= 0 && c.Start < c.End && c.End <= len(d.Text) {
			c.Text = d.Text[c.Start:c.End]
		}
		into.chunks = append(into.chunks, *c.of(d.ID))
	}
	if into.vectors = oldServerVectors(t, first, last); len(into.chunks) != n || len(into.vectors) != n {
		check(errRow)
	}
}

// oldServerVectors reads vectors of pgvector in its binary form: their number of
// dimensions and two bytes of nothing, then float32, most significant byte first.
func oldServerVectors(t *tx, first, last int64) (vectors [][]float32) {
	var table, schema string
	err := t.row(`SELECT convert_to('vectors_' || s.number, 'UTF8'), convert_to(n.nspname::text, 'UTF8') FROM ibid.spaces s, pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'vector' AND NOT s.next AND s.dimensions IS NOT NULL`).Scan(&table, &schema)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	check(err)
	for _, b := range column[[]byte](t, `SELECT `+pgx.Identifier{schema}.Sanitize()+`.vector_send(vector) FROM ibid.`+table+`
		WHERE key BETWEEN ? AND ? ORDER BY key`, first, last) {
		v := make([]float32, max(0, len(b)-4)/4)
		_, err := binary.Decode(b[min(4, len(b)):], binary.BigEndian, v)
		check(err)
		vectors = append(vectors, v)
	}
	return vectors
}
